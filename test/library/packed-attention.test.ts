/** Attention of packed sequences, compared with JavaScript's of each sequence. */
import { CudaArgumentError, Device, f16, f32, i32 } from 'async-cuda';
import type { DType } from 'async-cuda';
import { packedAttention } from 'async-cuda/library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { onCpu, onDevice } from '../core/test-device.js';
import * as fc from '../fast-check.js';
import { openHopper } from '../kernels/hopper/hopper-device.js';
import { forward } from './attention-reference.js';

const CHANNELS = 8;

/** Where sequences of these lengths begin, and where the last one ends. */
const offsetsOf = (lengths: readonly number[]): number[] => {
  const offsets = [0];
  for (const length of lengths) offsets.push(offsets.at(-1)! + length);
  return offsets;
};

type Sequences = readonly (readonly [queries: number, keys: number])[];

/** Computes sequences of so many queries and keys, and compares each with JavaScript's. */
async function check(
  device: Device,
  sequences: Sequences,
  options: { readonly causal?: boolean; readonly window?: number } = {},
  dtype: DType<'f32' | 'f16'> = f32,
): Promise<void> {
  const [heads, kvHeads] = [2, 1];
  const [forQueries, forKeys] = [0, 1].map((at) => offsetsOf(sequences.map((each) => each[at]!)));
  const [m, n] = [forQueries!.at(-1)!, forKeys!.at(-1)!];
  using q = await device.randn(dtype, [m, heads, CHANNELS], { seed: 1 });
  using k = await device.randn(dtype, [n, kvHeads, CHANNELS], { seed: 2 });
  using v = await device.randn(dtype, [n, kvHeads, CHANNELS], { seed: 3 });
  using queryOffsets = await device.tensor(i32, forQueries!);
  using keyOffsets = await device.tensor(i32, forKeys!);
  using y = await packedAttention(q, k, v, queryOffsets, keyOffsets, options);
  expect(y.shape).toEqual([m, heads, CHANNELS]);
  const found = await y.read();
  const [qs, ks, vs] = [await q.read(), await k.read(), await v.read()];
  /** The part of a list from one position to another, with heads before positions. */
  const part = (list: ArrayLike<number>, count: number, from: number, to: number) =>
    Array.from({ length: count * (to - from) * CHANNELS }, (_, at) => {
      const [head, position] = [
        Math.floor(at / ((to - from) * CHANNELS)),
        Math.floor(at / CHANNELS) % (to - from),
      ];
      return list[((from + position) * count + head) * CHANNELS + (at % CHANNELS)]!;
    });
  sequences.forEach(([queries, keys], sequence) => {
    const [from, fromKey] = [forQueries![sequence]!, forKeys![sequence]!];
    const { out } = forward({
      q: part(qs, heads, from, from + queries),
      k: part(ks, kvHeads, fromKey, fromKey + keys),
      v: part(vs, kvHeads, fromKey, fromKey + keys),
      ...{ batches: 1, heads, kvHeads, m: queries, n: keys, channels: CHANNELS, ...options },
    });
    part(found, heads, from, from + queries).forEach((value, at) => {
      expect(value).toBeCloseTo(out[at]!, dtype === f32 ? 4 : 2);
    });
  });
}

onDevice('Packed attention', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test('sequences of several blocks, without queries, without keys', async () => {
    await check(
      device,
      [
        [5, 7],
        [0, 3],
        [33, 40],
        [16, 16],
        [20, 11],
        [1, 0],
      ],
      { causal: true },
    );
  });

  test('sequences of any lengths', { tags: 'random' }, async () => {
    const length = fc.integer({ min: 0, max: 50 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(length, length), { maxLength: 8 }), async (sequences) => {
        await check(device, sequences, { causal: true });
      }),
      { numRuns: 60, leastRuns: 3 },
    );
  });

  test('of f16, with a window', { tags: 'thorough' }, async () => {
    const sequences = [
      [30, 50],
      [3, 70],
    ] as const;
    await check(device, sequences, { window: 9 }, f16);
  });

  test('offsets that are wrong do not lead out of the tensors', async () => {
    using x = await device.ones(f32, [20, 1, CHANNELS]);
    using offsets = await device.tensor(i32, [-5, 1000, 3, 2 ** 30]);
    using y = await packedAttention(x, x, x, offsets, offsets, { causal: true });
    expect(y.shape).toEqual([20, 1, CHANNELS]);
  });

  test('refuses other shapes and dtypes', async () => {
    using x = await device.zeros(f32, [3, 1, 4]);
    using wide = await device.zeros(f32, [1, 3, 1, 4]);
    using offsets = await device.tensor(i32, [0, 3]);
    using more = await device.tensor(i32, [0, 1, 3]);
    using floats = await device.tensor(f32, [0, 3]);
    using none = await device.zeros(i32, [0]);
    const messageOf = async (run: () => PromiseLike<unknown>): Promise<string> => {
      try {
        await run();
      } catch (error) {
        expect(error).toBeInstanceOf(CudaArgumentError);
        return (error as CudaArgumentError).message;
      }
      return 'nothing';
    };
    expect(await messageOf(() => packedAttention(wide, x, x, offsets, offsets))).toMatch(
      /q: expected three axes/,
    );
    expect(await messageOf(() => packedAttention(x, x, x, floats as never, offsets))).toMatch(
      /queryOffsets: expected a Tensor of i32 of one axis/,
    );
    expect(await messageOf(() => packedAttention(x, x, x, offsets, more))).toMatch(
      /keyOffsets has to have the shape \[2\], and has \[3\]/,
    );
    expect(await messageOf(() => packedAttention(x, x, x, none, none))).toMatch(/has no elements/);
    expect(
      await messageOf(() => packedAttention(x, x, x, offsets, offsets, { mask: x } as never)),
    ).toMatch(/takes no mask/);
  });
});

const SEQUENCES: Sequences = [
  [70, 90],
  [0, 30],
  [64, 64],
  [130, 20],
  [1, 0],
  [3, 150],
];

describe('Packed attention by warp groups', () => {
  let device: Device | undefined;
  beforeAll(async () => {
    device = await openHopper();
  });
  afterAll(() => device?.close());

  test('sequences of several tiles, without queries, without keys', async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    await check(device, SEQUENCES, { causal: true }, f16);
  });

  test('a window', { tags: 'thorough' }, async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    await check(device, SEQUENCES, { window: 9 }, f16);
  });

  test('sequences of any lengths', { tags: 'random' }, async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    const length = fc.integer({ min: 0, max: 150 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(length, length), { maxLength: 5 }), async (sequences) => {
        await check(device!, sequences, { causal: true }, f16);
      }),
      { numRuns: 20, leastRuns: 1 },
    );
  });

  test('a sequence has nothing of those beside it', { tags: 'thorough' }, async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    const offsets = [0, 70, 100, 170];
    using x = await device.randn(f16, [170, 2, 64], { seed: 1 });
    using positions = await device.tensor(i32, offsets);
    using alone = await packedAttention(x, x, x, positions, positions);
    using y = await device.zeros(f16, x.shape);
    await y.copyFrom(x);
    await y.slice([70, 100]).fill(NaN);
    using other = await packedAttention(y, y, y, positions, positions);
    const [found, expected] = [await other.read(), await alone.read()];
    const [first, last] = [70 * 2 * 64, 100 * 2 * 64];
    expect(found.subarray(0, first)).toEqual(expected.subarray(0, first));
    expect(found.subarray(last)).toEqual(expected.subarray(last));
    expect(found.subarray(first, last).every(Number.isNaN)).toBe(true);
  });

  test('offsets that are wrong do not lead out of the tensors', async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    using x = await device.ones(f16, [200, 1, CHANNELS]);
    using offsets = await device.tensor(i32, [-5, 1000, 3, 2 ** 30]);
    using y = await packedAttention(x, x, x, offsets, offsets, { causal: true });
    expect((await y.read()).length).toBe(200 * CHANNELS);
  });
});

test.runIf(onCpu)('by warp groups, under the checker', { tags: 'thorough' }, async () => {
  await using device = await Device.open('cpu', { computeCapability: '9.0', check: true });
  await check(device, SEQUENCES, { causal: true }, f16);
});
