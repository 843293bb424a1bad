/** A thread of a crew (`thread-crew.ts`) from the inside. */
import { parentPort, workerData } from 'node:worker_threads';

import { loadKoffi } from './koffi.js';
import type { Koffi } from './koffi.js';
import type { CrewStart, FromCrew, ToCrew } from './thread-crew.js';

let loaded: Koffi | undefined;

export function crewKoffi(): Koffi {
  return (loaded ??= whileLoading(() => loadKoffi((workerData as CrewStart).koffiPath)));
}

/** The process must not end this thread while it loads native code: see the crew. */
export function whileLoading<T>(load: () => T): T {
  const { loading } = workerData as CrewStart;
  Atomics.add(loading, 0, 1);
  try {
    return load();
  } finally {
    Atomics.sub(loading, 0, 1);
    Atomics.notify(loading, 0);
  }
}

/**
 * Answers one request after the other. `tell` says something before the answer; what is thrown is
 * shown as `refusalOf` has it.
 */
export function answerRequests<R, F>(
  answer: (request: R, tell: (message: unknown) => void) => unknown,
  refusalOf: (error: unknown) => F,
): void {
  const port = parentPort!;
  port.on('message', (message: ToCrew<R>) => {
    if ('end' in message) {
      // Nothing holds the thread any more: it ends by itself, as one must that uses koffi.
      port.close();
      return;
    }
    const { id, request } = message;
    let reply: FromCrew<F>;
    try {
      reply = {
        id,
        answer: answer(request, (told) => {
          port.postMessage({ id, told } satisfies FromCrew<F>);
        }),
      };
    } catch (error) {
      reply = { id, refusal: refusalOf(error) };
    }
    port.postMessage(reply);
  });
}
