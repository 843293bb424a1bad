/**
 * The compiler's thread, seen from the JavaScript thread. A library of a hundred megabytes stays
 * loaded in the process when it ends.
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

/** What cannot be done is an answer: what becomes of it the source and the options say. */
const crew = new ThreadCrew<Request, never>({
  name: 'async-cuda compiler',
  source: compilerThreadSource,
  most: 1,
  refused: died,
  died,
});

/**
 * Rejects with the signal's reason where it aborts first: what has begun is still finished, what
 * has not is dropped.
 */
export function compileOnThread(
  request: CompileRequest,
  signal: AbortSignal | undefined,
): Promise<Compiled | Refusal> {
  return crew.ask(request, { signal }) as Promise<Compiled | Refusal>;
}

/** {@link compileOnThread}, for the linker. */
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
