/**
 * V8's flags that the CPU device needs. Apart from the rest: it is asked before the rest is
 * compiled.
 */
import { setFlagsFromString } from 'node:v8';

/** The number of a function that no module has. */
const NO_FUNCTION = 2 ** 31 - 1;
const IS_NODE_20 = Number(process.versions.node.split('.')[0]) < 21;

/**
 * What later engines do by themselves, behind flags that can be set while Node 20 runs. It has
 * relaxed SIMD, which fuses multiply-add; and it gives functions of more than 8192 values to a
 * register allocator that keeps hardly anything in registers, with which a kernel of 55 barriers
 * ran fifteen times slower than with the usual one.
 */
export function bringUpToDate(): void {
  if (!IS_NODE_20) return;
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  setFlagsFromString('--no-turbo-use-mid-tier-regalloc-for-huge-functions');
}

/**
 * What `make` compiles, V8 never optimises: its simple code then counts no turns, by which others
 * are chosen for that. All of it is compiled at once, since the flags are those of the process and
 * others' modules are to keep theirs.
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
