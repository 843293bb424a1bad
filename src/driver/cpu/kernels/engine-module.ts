/**
 * Modules of the engine. V8 compiles a function at once and simply, and again in the background, optimised, when it has
 * run for a while. It cannot break that off: the process ends only when that is done.
 */
import { optimisingMs } from '../../../ptx/index.js';
import { withoutOptimiser } from '../engine-flags.js';

/**
 * Functions that take V8 longer are not optimised. Besides the wait at the end of the process (100 s, measured), Node 26
 * aborts the process at a block that more than 65,535 branches go to, and Node 20 takes gigabytes of memory.
 */
const MOST_MS = 1000;
/** The same of code in vector lanes, which is run often: without the optimiser it is several times slower. */
const MOST_MS_IN_LANES = 1500;
/** What takes less keeps no process that ends waiting. */
const SHORT_MS = 150;

export interface EngineModule {
  readonly wasm: WebAssembly.Module;
  /** How long V8 takes in the background while this begins to be run, in milliseconds, if that is long enough to matter. */
  readonly optimisingMs: number;
}

export function engineModule(code: Uint8Array, inLanes = false): EngineModule {
  const ms = optimisingMs(code);
  const make = (): WebAssembly.Module => new WebAssembly.Module(code);
  if (ms > (inLanes ? MOST_MS_IN_LANES : MOST_MS)) return { wasm: withoutOptimiser(make), optimisingMs: 0 };
  return { wasm: make(), optimisingMs: ms < SHORT_MS ? 0 : ms };
}
