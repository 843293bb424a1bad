/** The threads of ONNX Runtime, from the JavaScript thread's side. */
import { CudaError } from '../core/index.js';
import { messageOf } from '../ground/other-realms.js';
import { ThreadCrew } from '../native/thread-crew.js';
import type { AskOptions } from '../native/thread-crew.js';
import { errorOf } from './failure.js';
import { optOut } from './telemetry.js';
import { onnxThreadSource } from './thread-source.js';
import type { Answers, Loaded, Refusal, Request } from './thread/messages.js';

const died = (reason: unknown): CudaError =>
  new CudaError('ERR_CUDA_INTERNAL', `a thread of ONNX Runtime died: ${messageOf(reason)}`, {
    cause: reason,
  });

const crew = new ThreadCrew<Request, Refusal>({
  name: 'async-cuda onnxruntime',
  source: onnxThreadSource,
  // The most runs that are under way at once: more would only take the cores from each other.
  most: 8,
  isUrgent: ({ kind }) => kind === 'cancel' || kind === 'terminate',
  // The CUDA provider makes handles of cuBLAS and cuDNN, and memory with them, for each thread that
  // uses a session.
  subject: sessionOf,
  ends: ({ kind }) => kind === 'release',
  refused: errorOf,
  died,
});

/** Returns the session of a request; for a load it is the one that was made. */
function sessionOf(request: Request, answer?: unknown): number | undefined {
  if (request.kind === 'load') return (answer as Loaded | undefined)?.session;
  return request.kind === 'run' || request.kind === 'release' ? request.session : undefined;
}

/**
 * The one thread for all recordings. A session gives each thread that uses it handles of cuBLAS and
 * cuDNN, and memory with them, for which it runs three times before it records (80 ms, H100; 2 ms
 * where it has them).
 */
const recorders = new ThreadCrew<Request, Refusal>({
  name: 'async-cuda onnxruntime recorder',
  source: onnxThreadSource,
  most: 1,
  refused: errorOf,
  died,
});

/** Sends a request to a thread, the first that is free. Rejects with the error of its refusal. */
export function sendRequest<R extends Request>(
  request: R,
  options?: AskOptions,
): Promise<Answers[R['kind']]> {
  // Threads have the environment of the time when they are started, which may be now.
  optOut();
  return (isOfRecorder(request) ? recorders : crew).ask(request, options) as Promise<
    Answers[R['kind']]
  >;
}

function isOfRecorder(request: Request): boolean {
  return (
    request.kind === 'record' ||
    request.kind === 'releaseRecorded' ||
    (request.kind === 'load' && request.recorded)
  );
}
