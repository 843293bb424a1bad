/** The code of a crew's thread (`thread-crew.ts`): how it loads koffi and answers requests. */
import { parentPort, workerData } from 'node:worker_threads';

import { loadKoffi } from './koffi.js';
import type { Koffi } from './koffi.js';
import type { CrewStart, FromCrew, ToCrew } from './thread-crew.js';

let loaded: Koffi | undefined;

export function crewKoffi(): Koffi {
  return (loaded ??= whileLoading(() => loadKoffi((workerData as CrewStart).koffiPath)));
}

/**
 * Runs `load` while the crew's word records it: the process must not end this thread while it loads
 * native code (see `ThreadCrew.atExit`).
 */
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
 * Answers requests one after the other. `tell` sends a message before the answer; a thrown error is
 * sent as `refusalOf` returns it.
 */
export function answerRequests<R, F>(
  answer: (request: R, tell: (message: unknown) => void) => unknown,
  refusalOf: (error: unknown) => F,
): void {
  const port = parentPort!;
  port.on('message', (message: ToCrew<R>) => {
    if ('end' in message) {
      // With its port closed, nothing keeps the thread alive: it ends by itself, as a thread that
      // uses koffi must.
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
