/**
 * The compiler's thread, from the JavaScript thread's side. The library, of a hundred megabytes,
 * stays loaded in the process when the thread ends.
 */
import { CudaError } from '../core/index.js';
import { messageOf } from '../ground/other-realms.js';
import { ThreadCrew } from '../native/thread-crew.js';
import { compilerThreadSource } from './thread-source.js';
import type {
  CompileRequest,
  Compiled,
  LinkRequest,
  Linked,
  Refusal,
  Request,
} from './thread/messages.js';

/**
 * A refusal is an answer and not a failure of the thread: `compile` and `link` make the error of
 * it.
 */
const crew = new ThreadCrew<Request, never>({
  name: 'async-cuda compiler',
  source: compilerThreadSource,
  most: 1,
  refused: died,
  died,
});

/**
 * Compiles on the thread. Rejects with the signal's reason where it aborts first: a compilation
 * that has begun runs to its end, one that has not is dropped.
 */
export function compileOnThread(
  request: CompileRequest,
  signal: AbortSignal | undefined,
): Promise<Compiled | Refusal> {
  return crew.ask(request, { signal }) as Promise<Compiled | Refusal>;
}

/** The same as {@link compileOnThread}, for the linker. */
export function linkOnThread(
  request: LinkRequest,
  signal: AbortSignal | undefined,
): Promise<Linked | Refusal> {
  return crew.ask(request, { signal }) as Promise<Linked | Refusal>;
}

function died(reason: unknown): CudaError {
  return new CudaError('ERR_CUDA_INTERNAL', `the compiler's thread died: ${messageOf(reason)}`, {
    cause: reason,
  });
}
