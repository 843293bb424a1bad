/**
 * A thread that calls TensorRT, or the one that TensorRT calls. `scripts/build.mjs` builds it into
 * a script of its own.
 */
import { parentPort, workerData } from 'node:worker_threads';

import { loadKoffi } from '../../native/koffi.js';
import { Listener } from './listener.js';
import type { Answer, Notification, Question, TensorRTThreadStart } from './messages.js';
import { Procedures } from './procedures.js';
import { Refused } from './refused.js';

const { role, koffiPath, said, busy } = workerData as TensorRTThreadStart;
const port = parentPort!;
const working = new Int32Array(busy);

let target: Procedures | Listener | undefined;

function answer({ id, name, args }: Question): Answer {
  try {
    target ??=
      role === 'caller'
        ? new Procedures(koffiPath, said!)
        : new Listener(loadKoffi(koffiPath), (notification: Notification) => {
            port.postMessage(notification);
          });
    return {
      id,
      value: (target as unknown as Record<string, (...args: readonly unknown[]) => unknown>)[name]!(
        ...args,
      ),
    };
  } catch (error) {
    if (error instanceof Refused)
      return { id, refusal: { kind: error.kind, message: error.message, details: error.details } };
    return {
      id,
      refusal: {
        kind: 'internal',
        message: error instanceof Error ? (error.stack ?? error.message) : String(error),
        details: {},
      },
    };
  }
}

port.on('message', (question: Question) => {
  Atomics.store(working, 0, 1);
  const answered = answer(question);
  Atomics.store(working, 0, 0);
  Atomics.notify(working, 0);
  port.postMessage(answered);
});
