/** Threads that compute have a lower priority than the event loop. */
import { readFileSync, readdirSync } from 'node:fs';
import { getPriority } from 'node:os';

import { f32 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { zeros } from 'async-cuda/tensor';
import { expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { longModel } from './onnx-model.js';

/** How many threads of this process have the niceness. */
function threadsOf(niceness: number): number {
  return readdirSync('/proc/self/task').filter((thread) => {
    try {
      const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
      // After the name, which may contain blanks.
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]) === niceness;
    } catch {
      return false;
    }
  }).length;
}

test.skipIf(process.platform !== 'linux')(
  'its threads, not the event loop’s, have the given niceness, 10 by default',
  async () => {
    await using device = await openTestDevice();
    using x = await zeros(device, f32, [64, 64]);
    const before = getPriority();
    // A thread keeps the greatest that it was given.
    for (const [niceness, options] of [
      [10, {}],
      [13, { niceness: 13 }],
    ] as const) {
      expect(threadsOf(niceness)).toBe(0);
      await using engine = await loadOnnxEngine(device, longModel(64, 2), {
        providers: ['cpu'],
        threads: 3,
        ...options,
      });
      const { y } = await engine.infer({ x });
      y!.close();
      // The thread that loads, and two that it starts.
      expect(threadsOf(niceness)).toBeGreaterThanOrEqual(3);
      expect(getPriority()).toBe(before);
    }
  },
);

test('bad input', async () => {
  await using device = await openTestDevice();
  for (const niceness of [-1, 20, 1.5])
    await expect(async () =>
      loadOnnxEngine(device, longModel(64, 2), { niceness }),
    ).rejects.toThrow(/options\.niceness: expected a whole number from 0 to 19/);
});
