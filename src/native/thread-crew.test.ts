import { expect, test } from 'vitest';

import { ThreadCrew } from './thread-crew.js';

interface Request {
  readonly kind: 'make' | 'use' | 'end' | 'other';
  readonly subject?: number;
  readonly ms?: number;
}
interface Answer {
  readonly thread: number;
  readonly made?: number;
}

/** The thread answers with its number, some milliseconds later, one request after the other. */
const SOURCE = `
const { parentPort, threadId } = require('node:worker_threads');
let made = 0;
parentPort.on('message', ({ id, request, end }) => {
  if (end) return parentPort.close();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, request.ms ?? 0);
  const own = request.kind === 'make' ? 100 * threadId + ++made : undefined;
  parentPort.postMessage({ id, answer: { thread: threadId, made: own } });
});
`;

function crewOf(most: number): (request: Request) => Promise<Answer> {
  const crew = new ThreadCrew<Request, string>({
    name: 'test crew',
    source: SOURCE,
    most,
    subject: ({ kind, subject }, answer) =>
      kind === 'make' ? (answer as Answer | undefined)?.made : subject,
    ends: ({ kind }) => kind === 'end',
    refused: (refusal) => new Error(refusal),
    died: (reason) => new Error(String(reason)),
  });
  return (request) => crew.ask(request) as Promise<Answer>;
}

test(
  'a request goes to the free thread that made its subject, and later to the one ' +
    'that used it last',
  async () => {
    const ask = crewOf(2);
    // Both threads are busy; the second creates a subject.
    const [first, second] = await Promise.all([
      ask({ kind: 'other', ms: 200 }),
      ask({ kind: 'make' }),
    ]);
    expect(second.thread).not.toBe(first.thread);
    const subject = second.made!;
    for (let i = 0; i < 3; i++)
      expect((await ask({ kind: 'use', subject })).thread).toBe(second.thread);
    // A request without a subject goes to the first free thread.
    expect((await ask({ kind: 'other' })).thread).toBe(first.thread);
    // Of two requests at once, the other thread uses the subject last.
    const both = await Promise.all([
      ask({ kind: 'use', subject }),
      ask({ kind: 'use', subject, ms: 50 }),
    ]);
    expect(both.map(({ thread }) => thread)).toEqual([second.thread, first.thread]);
    expect((await ask({ kind: 'use', subject })).thread).toBe(first.thread);
    await Promise.all([ask({ kind: 'other', ms: 50 }), ask({ kind: 'use', subject })]);
    expect((await ask({ kind: 'use', subject })).thread).toBe(second.thread);
    // Another subject may get the number later.
    await ask({ kind: 'end', subject });
    expect((await ask({ kind: 'use', subject: subject + 50 })).thread).toBe(first.thread);
    expect((await ask({ kind: 'use', subject })).thread).toBe(first.thread);
  },
);

test('where no thread is free, the first that is free gets the request', async () => {
  const ask = crewOf(1);
  const { made, thread } = await ask({ kind: 'make' });
  const answers = await Promise.all([
    ask({ kind: 'use', subject: made!, ms: 20 }),
    ask({ kind: 'use', subject: made! }),
    ask({ kind: 'other' }),
  ]);
  expect(answers.map((answer) => answer.thread)).toEqual([thread, thread, thread]);
});
