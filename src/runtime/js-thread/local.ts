/**
 * The objects that execute commands where there is no runtime thread: all of it runs on the
 * JavaScript thread. Types come from the files that declare them: `thread/inline.ts` imports the
 * CPU device, whose types need those of WebAssembly, and the package's declarations must not.
 */
import type { Decoder } from '../decoder.js';
import type { runProcedure } from '../procedures.js';
import type { ThreadLoop } from '../thread/loop.js';

export interface Local {
  readonly decoder: Decoder;
  readonly loop: ThreadLoop;
  readonly runProcedure: typeof runProcedure;
}
