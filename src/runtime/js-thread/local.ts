/**
 * What carries out commands where there is no runtime thread: all of it runs on the JS thread.
 */
import type { Decoder } from '../decoder.js';
import type * as Inline from '../thread/inline.js';

export interface Local {
  readonly decoder: Decoder;
  readonly loop: Inline.ThreadLoop;
  readonly runProcedure: typeof Inline.runProcedure;
}
