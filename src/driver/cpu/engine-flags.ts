/**
 * V8's flags that the CPU device needs. They are in a file of their own, because they are set
 * before the rest is compiled.
 */
import { setFlagsFromString } from 'node:v8';

/** The number of a function that no module has. */
const NO_FUNCTION = 2 ** 31 - 1;
const IS_NODE_20 = Number(process.versions.node.split('.')[0]) < 21;

/**
 * Enables what later versions of V8 do by default, by flags that can be set while Node 20 runs:
 * relaxed SIMD, which fuses multiply-add; and the usual register allocator for functions of more
 * than 8192 values. The other one keeps hardly any value in registers: with it a kernel of 55
 * barriers ran fifteen times slower.
 */
export function setEngineFlags(): void {
  if (!IS_NODE_20) return;
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  setFlagsFromString('--no-turbo-use-mid-tier-regalloc-for-huge-functions');
}

/**
 * Compiles, in `make`, code that V8 never optimises: its baseline code then counts no turns, by
 * which other functions are chosen for optimisation. All of it is compiled at once, since the flags
 * are those of the process and must not affect other modules.
 */
export function withoutOptimiser<T>(make: () => T): T {
  setFlagsFromString(`--wasm-tier-up-filter=${NO_FUNCTION}`);
  setFlagsFromString('--no-wasm-lazy-compilation');
  try {
    return make();
  } finally {
    setFlagsFromString('--wasm-lazy-compilation');
    setFlagsFromString('--wasm-tier-up-filter=-1');
  }
}
