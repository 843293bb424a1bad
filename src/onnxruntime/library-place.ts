/** Where ONNX Runtime is looked for. */
import { thisMachine } from '../native/find.js';
import type { LibraryPlace } from './thread/messages.js';

/**
 * Asked anew each time, as variables may have been set. `cuda`: a build with the CUDA provider is
 * preferred.
 */
export function libraryPlace(cuda: boolean): LibraryPlace {
  return { env: { ...process.env }, modules: thisMachine().modules ?? [], cuda };
}
