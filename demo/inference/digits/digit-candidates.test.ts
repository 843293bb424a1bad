/** What the device finds in the model's outputs, beside the host. */
import { Device, f32 } from 'async-cuda';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { candidatesOf } from './digit-candidates.js';
import { CELLS, LABELS, LEAST_SCORE, NUMBERS } from './digit-decoding.js';

const cells = CELLS * CELLS;
let device: Device;
beforeAll(async () => {
  device = await Device.open(process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu');
});
afterAll(() => device.close());

/**
 * For each photograph of a batch, as many cells as in `counts` have one digit or several with a
 * sufficient score.
 */
function outputs(counts: readonly number[]): {
  readonly scores: Float32Array;
  readonly distances: Float32Array;
} {
  let state = 7;
  const random = (): number => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
  const scores = new Float32Array(counts.length * LABELS.length * cells).map(
    () => random() * (LEAST_SCORE - 0.01),
  );
  const distances = new Float32Array(counts.length * 4 * cells).map(() => random() * 30);
  counts.forEach((count, n) => {
    for (let i = 0; i < count; i++) {
      const cell = (i * 1237) % cells;
      for (let k = 0; k < 1 + (i % 3); k++)
        scores[(n * LABELS.length + ((i + 4 * k) % LABELS.length)) * cells + cell] =
          0.5 + random() / 2;
    }
  });
  return { scores, distances };
}

function expected({ scores, distances }: ReturnType<typeof outputs>, n: number): number[][] {
  return Array.from({ length: cells }, (_, cell) => {
    const of = LABELS.map((_, digit) => scores[(n * LABELS.length + digit) * cells + cell]!);
    const best = Math.max(...of);
    return [
      cell,
      of.indexOf(best),
      best,
      ...[0, 1, 2, 3].map((side) => distances[(n * 4 + side) * cells + cell]!),
    ];
  }).filter(([, , score]) => score! >= LEAST_SCORE);
}

// None, some, as many as are read at once and one more, and all.
test.each([[[0, 3, 50]], [[128, 0]], [[129, 5]], [[cells, 1, 700]]])(
  'photographs with %s candidates',
  async (counts) => {
    const made = outputs(counts);
    // A batch may be larger than what is in it.
    const [scores, distances] = await Promise.all([
      device.tensor(f32, made.scores, [counts.length, LABELS.length, CELLS, CELLS]),
      device.tensor(f32, made.distances, [counts.length, 4, CELLS, CELLS]),
    ]);
    const found = await candidatesOf(device, scores, distances, counts.length - 1);
    expect(found.length).toBe(counts.length - 1);
    for (const [n, numbers] of found.entries()) {
      const rows = Array.from({ length: numbers.length / NUMBERS }, (_, i) => [
        ...numbers.subarray(i * NUMBERS, (i + 1) * NUMBERS),
      ]).sort((a, b) => a[0]! - b[0]!);
      expect(rows.length).toBe(counts[n]);
      expect(rows).toEqual(expected(made, n));
    }
    expect([scores.isClosed, distances.isClosed]).toEqual([false, false]);
    scores.close();
    distances.close();
  },
);
