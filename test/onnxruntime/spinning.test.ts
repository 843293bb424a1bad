/** Whether ONNX Runtime's threads spin while they wait for one another. */
import { f32, i64 } from 'async-cuda/core';
import { loadOnnxEngine } from 'async-cuda/onnxruntime';
import { zeros } from 'async-cuda/tensor';
import { expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { longModel, onnxModel } from './onnx-model.js';

const RUNS = 20;
const SIZE = 256;
const PAIRS = 6;

/** Products, which all threads compute, and sums along an axis, which one thread computes. */
function model(): Uint8Array {
  const nodes = Array.from({ length: PAIRS }, (_, i) => [
    { op: 'MatMul', inputs: [i === 0 ? 'x' : `s${i - 1}`, 'x'], outputs: [`p${i}`] },
    { op: 'CumSum', inputs: [`p${i}`, 'axis'], outputs: [i === PAIRS - 1 ? 'y' : `s${i}`] },
  ]).flat();
  return onnxModel({
    inputs: [
      ['x', 'f32', [SIZE, SIZE]],
      ['axis', 'i64', [1]],
    ],
    outputs: [['y', 'f32', [SIZE, SIZE]]],
    nodes,
  });
}

/** Milliseconds of all processors that runs take. */
async function busy(spinning: boolean | undefined): Promise<number> {
  await using device = await openTestDevice();
  await using engine = await loadOnnxEngine(device, model(), {
    providers: ['cpu'],
    threads: 8,
    ...(spinning === undefined ? {} : { spinning }),
  });
  using x = await zeros(device, f32, [SIZE, SIZE]);
  using axis = await zeros(device, i64, [1]);
  const run = async (): Promise<void> => {
    const { y } = await engine.infer({ x, axis });
    y!.close();
  };
  for (let i = 0; i < 5; i++) await run();
  const before = process.cpuUsage();
  for (let i = 0; i < RUNS; i++) await run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

test(
  'threads without spinning use no processor time while one of them computes alone',
  { tags: 'thorough' },
  async () => {
    // Other processes may take processors from threads that spin: medians are compared.
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
