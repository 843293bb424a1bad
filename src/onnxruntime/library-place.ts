/** Where ONNX Runtime is searched for. */
import { thisMachine } from '../native/find.js';
import type { LibraryPlace } from './thread/messages.js';

/**
 * Returns the place, read anew each time, since variables may have been set. `cuda`: whether a
 * build with the CUDA provider is preferred.
 */
export function libraryPlace(cuda: boolean): LibraryPlace {
  return { env: { ...process.env }, modules: thisMachine().modules ?? [], cuda };
}
