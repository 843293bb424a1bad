/**
 * The compiler as the device takes it. In a file of its own: public types lead here, and must not
 * lead on to WebAssembly's, which a program without the DOM's types does not have.
 */
import type { CompiledModule } from '../../../ptx/index.js';

export type Compile = (
  source: string,
  options?: { fileName?: string; check?: boolean; ordered?: boolean },
) => CompiledModule;
