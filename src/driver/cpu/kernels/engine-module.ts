/**
 * WebAssembly modules of V8. V8 compiles a function at once with its baseline compiler, and again
 * in the background, optimised, when it has run for a while. It cannot cancel that: the process
 * ends only when that is done.
 */
import { optimisingTime } from '../../../ptx/index.js';
import { withoutOptimiser } from '../engine-flags.js';

/**
 * Functions that take V8 longer are not optimised. A process should end within half a second, and
 * Node waits for the optimiser when the event loop is empty, before 'exit'. Besides that wait (100
 * s, measured), Node 26 aborts the process at a block that is the target of more than 65,535
 * branches, and Node 20 takes gigabytes of memory.
 */
const MOST_MS = 300;
/**
 * The same limit for code in vector lanes, which runs often and is several times slower without the
 * optimiser. Of large kernels a matrix product takes 0.5 s and all functions of mathematics 1.2 s,
 * of which their loops take a tenth.
 */
const MOST_MS_IN_LANES = 1500;
const MOST_LOOPS_MS_IN_LANES = 200;
/** Shorter optimisation does not delay the end of a process. */
const SHORT_MS = 150;

export interface EngineModule {
  readonly wasm: WebAssembly.Module;
  /**
   * How long V8 optimises in the background while this begins to run, in milliseconds, if that is
   * long enough to matter.
   */
  readonly optimisingMs: number;
}

export function engineModule(code: Uint8Array, inLanes = false): EngineModule {
  const { ms, loopsMs } = optimisingTime(code);
  const make = (): WebAssembly.Module => new WebAssembly.Module(code);
  const isLong = inLanes ? ms > MOST_MS_IN_LANES || loopsMs > MOST_LOOPS_MS_IN_LANES : ms > MOST_MS;
  if (isLong) return { wasm: withoutOptimiser(make), optimisingMs: 0 };
  return { wasm: make(), optimisingMs: ms < SHORT_MS ? 0 : ms };
}
