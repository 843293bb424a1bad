/**
 * Modules of the engine. V8 compiles a function at once and simply, and again in the background,
 * optimised, when it has run for a while. It cannot break that off: the process ends only when that
 * is done.
 */
import { optimisingTime } from '../../../ptx/index.js';
import { withoutOptimiser } from '../engine-flags.js';

/**
 * Functions that take V8 longer are not optimised. A process is to end within half a second, and
 * Node waits for the optimiser when the event loop is empty, before 'exit'. Besides that wait
 * (100 s, measured), Node 26 aborts the process at a block that more than 65,535 branches go to,
 * and Node 20 takes gigabytes of memory.
 */
const MOST_MS = 300;
/**
 * The same of code in vector lanes, which is run often and without the optimiser is several times
 * slower. Of large kernels a matrix product takes 0.5 s and all functions of mathematics 1.2 s, of
 * which their loops take a tenth.
 */
const MOST_MS_IN_LANES = 1500;
const MOST_LOOPS_MS_IN_LANES = 200;
/** What takes less keeps no process that ends waiting. */
const SHORT_MS = 150;

export interface EngineModule {
  readonly wasm: WebAssembly.Module;
  /**
   * How long V8 takes in the background while this begins to be run, in milliseconds, if that is
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
