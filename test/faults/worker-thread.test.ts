/** Devices in worker threads. */
import { expect, test } from 'vitest';

import { runProgram } from './program.js';

test('a worker_thread opens a device of its own, and its end affects no other', async () => {
  const { code, signal, stderr, result } = await runProgram('worker-thread');
  expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
  expect(result).toEqual({ values: [300, 500, 500], codes: [0, 0], after: 10 });
});
