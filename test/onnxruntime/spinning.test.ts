/** Whether ONNX Runtime's threads wait for one another awake. */
import { setTimeout } from 'node:timers/promises';

import { f32 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { zeros } from 'async-cuda/tensor';
import { expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { longModel } from './onnx-model.js';

const RUNS = 40;
/** Longer than the threads look for work before they sleep after all. */
const PAUSE_MS = 10;

/** Milliseconds of all processors that short runs with pauses between them take. */
async function busy(spinning: boolean | undefined): Promise<number> {
  await using device = await openTestDevice();
  await using engine = await loadOnnxEngine(device, longModel(64, 2), {
    providers: ['cpu'],
    threads: 8,
    ...(spinning === undefined ? {} : { spinning }),
  });
  using x = await zeros(device, f32, [64, 64]);
  const run = async (): Promise<void> => {
    const { y } = await engine.infer({ x });
    y!.close();
    await setTimeout(PAUSE_MS);
  };
  for (let i = 0; i < 5; i++) await run();
  const before = process.cpuUsage();
  for (let i = 0; i < RUNS; i++) await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

test(
  'threads without spinning use no processor time between two runs',
  { tags: 'thorough' },
  async () => {
    // The first of all has JavaScript compiled beside it, and beside other processes threads that
    // are awake lose their processors: medians.
    const [asleep, awake]: [number[], number[]] = [[], []];
    for (let i = 0; i < 3; i++) {
      asleep.push(await busy(false));
      awake.push(await busy(undefined));
    }
    const median = (of: readonly number[]): number => [...of].sort((a, b) => a - b)[1]!;
    expect(median(asleep)).toBeLessThan(0.7 * median(awake));
  },
);

test('the option is a boolean', async () => {
  await using device = await openTestDevice();
  await expect(async () =>
    loadOnnxEngine(device, longModel(64, 2), { spinning: 'no' as never }),
  ).rejects.toMatchObject({
    code: 'ERR_CUDA_INVALID_ARGUMENT',
    argument: 'options.spinning',
    message: expect.stringMatching(/true or false/) as string,
  });
});
