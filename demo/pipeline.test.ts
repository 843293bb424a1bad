/**
 * The pipeline on a device against the reference, byte by byte. `ASYNC_CUDA_TEST_DEVICE` names the
 * device; the CPU device is the default.
 */
import { fileURLToPath } from 'node:url';

import { CoreDevice } from 'async-cuda/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type Image, readImage } from './image.js';
import { type Kernels, loadKernels } from './kernels.js';
import { noise } from './noise.js';
import { runPipeline } from './pipeline.js';
import { referenceStages } from './reference.js';
import { loadTypeScriptKernels } from './typescript-kernels.js';
import { someOf } from '../test/random-runs.js';

let device: CoreDevice;
let kernels: Kernels;
let inTypeScript: Kernels;

beforeAll(async () => {
  device = await CoreDevice.open(process.env.ASYNC_CUDA_TEST_DEVICE ?? 'cpu');
  [kernels, inTypeScript] = await Promise.all([loadKernels(device), loadTypeScriptKernels(device)]);
});

afterAll(async () => {
  await device.close();
});

async function expectReference(image: Image, by: () => Kernels): Promise<void> {
  const stages = await runPipeline(device, image, by());
  const reference = referenceStages(image);
  for (const name of ['grey', 'blurred', 'edges', 'histogram', 'equalised'] as const) {
    // Comparing buffers first: a failing toEqual of a quarter million numbers prints for minutes.
    const same = Buffer.compare(bytes(stages[name]), bytes(reference[name])) === 0;
    expect(same ? name : `${name}: ${firstDifference(stages[name], reference[name])}`).toBe(name);
  }
}

function bytes(array: Uint8Array | Uint32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function firstDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): string {
  if (actual.length !== expected.length)
    return `${actual.length} elements instead of ${expected.length}`;
  const at = Array.from(expected).findIndex((value, i) => value !== actual[i]);
  return `${actual[at]} instead of ${expected[at]} at ${at}`;
}

describe.each<[string, () => Kernels]>([
  ['CUDA C++', () => kernels],
  ['TypeScript', () => inTypeScript],
])('the pipeline of kernels in %s gives the reference, byte for byte', (_, by) => {
  someOf(
    3,
    test,
  )([
    { width: 1, height: 1, what: 'a single pixel' },
    { width: 131, height: 77, what: 'odd sizes, tiles cut on both sides' },
    { width: 64, height: 32, what: 'whole tiles' },
    { width: 3, height: 70, what: 'narrower than the halo' },
  ])('for $what ($width x $height)', async ({ width, height }) => {
    await expectReference(noise(width, height), by);
  });

  test('for an image of one level, which equalising leaves alone', async () => {
    await expectReference(
      { width: 45, height: 19, data: new Uint8Array(45 * 19 * 3).fill(255) },
      by,
    );
  });

  test('for the photograph', async () => {
    await expectReference(
      await readImage(fileURLToPath(new URL('images/coffee.png', import.meta.url))),
      by,
    );
  });
});

test('every stage is timed, and stream B starts when the grey image is there', async () => {
  const { times } = await runPipeline(device, noise(131, 77), kernels);
  expect(times.map(({ name }) => name).sort()).toEqual(
    [
      'upload',
      'grey',
      'blur rows',
      'blur columns',
      'sobel',
      'histogram',
      'table',
      'equalise',
    ].sort(),
  );
  for (const { start, end } of times) expect(end).toBeGreaterThanOrEqual(start);
  const grey = times.find(({ name }) => name === 'grey')!;
  const histogram = times.find(({ name }) => name === 'histogram')!;
  // Event times have a resolution of half a microsecond.
  expect(histogram.start).toBeGreaterThanOrEqual(grey.end - 0.001);
});
