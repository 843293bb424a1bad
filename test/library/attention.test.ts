/**
 * Attention, compared with JavaScript's in double precision within a bound: by rows on every
 * device, by warp groups on those of compute capability 9.0.
 */
import { CudaArgumentError, DTYPES, Device, bf16, bool, f16, f32, i32 } from 'async-cuda';
import type { DType } from 'async-cuda';
import type { KernelTensor } from 'async-cuda/tensor';
import { attention } from 'async-cuda/library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { attentionBy } from '../../src/library/attention.js';
import type { AttentionOptions } from '../../src/library/attention.js';
import { sectionOf } from '../../src/library/tile-order.js';
import type { AttentionPlan } from '../../src/library/warp-group-attention.js';
import { onCpu, onDevice } from '../core/test-device.js';
import { openHopper } from '../kernels/hopper/hopper-device.js';
import { tagsOf } from '../random-runs.js';

type Name = 'f16' | 'bf16' | 'f32';
interface Case {
  readonly batch?: readonly number[];
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly m: number;
  readonly n: number;
  readonly channels: number;
  readonly options?: Omit<AttentionOptions, 'mask'>;
  readonly masked?: 'bool' | 'added';
}

/** Bits of a result's fraction, with the hidden one. */
const DIGITS: Readonly<Record<Name, number>> = { f16: 11, bf16: 8, f32: 24 };

function randomNumbers(count: number, seed: number, amplitude: number): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return ((state >>> 8) / 2 ** 23 - 1) * amplitude;
  });
}

/** How far the result of a case is from the expected one, relative to the bound. */
async function errorOf(
  device: Device,
  name: Name,
  { batch = [], heads = 1, kvHeads = heads, m, n, channels, options = {}, masked }: Case,
  bound: number,
  plan?: AttentionPlan,
): Promise<number> {
  const batches = batch.reduce((a, b) => a * b, 1);
  const make = async (count: number, length: number, seed: number, amplitude: number) => {
    const tensor = (await device.tensor(
      DTYPES[name] as DType<'f32'>,
      randomNumbers(batches * count * length * channels, seed, amplitude),
      [...batch, count, length, channels],
    )) as unknown as KernelTensor & Disposable;
    return { tensor, values: (await tensor.read()) as ArrayLike<number> };
  };
  const q = await make(heads, m, 1, 3);
  const k = await make(kvHeads, n, 2, 3);
  const v = await make(kvHeads, n, 3, 1);
  // One mask for all heads.
  const masks = randomNumbers(m * n, 4, 2);
  using mask = await (masked === 'bool'
    ? device.tensor(
        bool,
        Array.from(masks, (value) => value > 0),
        [m, n],
      )
    : device.tensor(DTYPES[name] as DType<'f32'>, masks, [m, n]));
  const held = Array.from(await mask.read(), Number);
  using y = await attentionBy(plan, q.tensor, k.tensor, v.tensor, {
    ...options,
    ...(masked === undefined ? {} : { mask: mask as never }),
  });
  expect(y.shape).toEqual([...batch, heads, m, channels]);
  const found = (await y.read()) as ArrayLike<number>;
  for (const { tensor } of [q, k, v]) tensor[Symbol.dispose]();

  const { causal = false, window = Infinity, scale = 1 / Math.sqrt(channels) } = options;
  let error = 0;
  for (let matrix = 0; matrix < batches * heads; matrix++) {
    const shared =
      Math.floor(matrix / heads) * kvHeads + Math.floor((matrix % heads) / (heads / kvHeads));
    for (let i = 0; i < m; i++) {
      const position = i + n - m;
      const scores = Array.from({ length: n }, (_, j) => {
        if ((causal && j > position) || j < position - window) return -Infinity;
        if (masked === 'bool' && held[i * n + j] === 0) return -Infinity;
        let dot = 0;
        for (let c = 0; c < channels; c++)
          dot +=
            q.values[(matrix * m + i) * channels + c]! * k.values[(shared * n + j) * channels + c]!;
        return dot * scale + (masked === 'added' ? held[i * n + j]! : 0);
      });
      const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
      const shares = scores.map((score) => (most === -Infinity ? 0 : Math.exp(score - most)));
      const weight = shares.reduce((a, b) => a + b, 0);
      for (let c = 0; c < channels; c++) {
        let sum = 0;
        shares.forEach((share, j) => {
          sum += share * v.values[(shared * n + j) * channels + c]!;
        });
        const expected = weight === 0 ? 0 : sum / weight;
        const got = found[(matrix * m + i) * channels + c]!;
        const off = Math.abs(got - expected) / bound;
        if (!(off <= error)) error = off;
      }
    }
  }
  return error;
}

const CASES: readonly (readonly [string, Case])[] = [
  ['one head', { m: 20, n: 40, channels: 64 }],
  ['an odd number of channels', { heads: 2, m: 17, n: 33, channels: 5 }],
  ['many channels', { m: 3, n: 35, channels: 130 }],
  [
    'grouped heads of two batch axes',
    { batch: [2, 1], heads: 4, kvHeads: 2, m: 9, n: 12, channels: 8 },
  ],
  ['causal', { heads: 2, m: 40, n: 40, channels: 16, options: { causal: true } }],
  ['causal, of the last queries', { m: 5, n: 70, channels: 16, options: { causal: true } }],
  [
    'causal, with queries that see no key',
    { m: 30, n: 11, channels: 16, options: { causal: true } },
  ],
  ['a window', { m: 70, n: 70, channels: 8, options: { causal: true, window: 4 } }],
  ['a scale', { m: 6, n: 7, channels: 8, options: { scale: -0.5 } }],
  ['a mask of bool', { heads: 2, m: 20, n: 34, channels: 8, masked: 'bool' }],
  ['an added mask', { heads: 2, m: 20, n: 34, channels: 8, masked: 'added' }],
];

onDevice('Attention', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test.each(CASES)('of f32: %s', async (_, each) => {
    // Sums of f32, and exponents of at most 30.
    expect(await errorOf(device, 'f32', each, 2 ** -17)).toBeLessThan(1);
  });

  test.each(['f16', 'bf16'] as const)('of %s', async (name) => {
    const each = { heads: 2, kvHeads: 1, m: 33, n: 50, channels: 24, options: { causal: true } };
    expect(await errorOf(device, name, each, 2 ** (1 - DIGITS[name]))).toBeLessThan(1);
  });

  test('without keys it is zeros', async () => {
    using q = await device.ones(f32, [1, 2, 4]);
    using k = await device.zeros(f32, [1, 0, 4]);
    using y = await attention(q, k, k);
    expect([...(await y.read())]).toEqual(new Array(8).fill(0));
  });

  test('transposed operands', async () => {
    // [positions][heads][channels]
    using q = await device.randn(f32, [6, 2, 8], { seed: 1 });
    using turned = await attention(q.transpose(0, 1), q.transpose(0, 1), q.transpose(0, 1));
    using copy = await q.transpose(0, 1).contiguous();
    using plain = await attention(copy, copy, copy);
    expect(await turned.read()).toEqual(await plain.read());
  });

  describe('refuses', () => {
    const refused = async (
      shapes: readonly [readonly number[], readonly number[], readonly number[]],
      options: object = {},
      dtype: DType = f32,
    ): Promise<unknown> => {
      const [q, k, v] = await Promise.all(
        shapes.map((shape) => device.zeros(dtype as DType<'f32'>, shape)),
      );
      try {
        return await attention(q!, k!, v!, options);
      } catch (error) {
        expect(error).toBeInstanceOf(CudaArgumentError);
        return (error as CudaArgumentError).message;
      } finally {
        for (const each of [q, k, v]) each!.close();
      }
    };
    const good = [1, 2, 4];

    test.each([
      ['two axes', [[2, 4], good, good], {}, /q: expected at least three axes/],
      ['other channels', [[1, 2, 5], good, good], {}, /different numbers of channels/],
      ['k and v of different shapes', [good, [1, 3, 4], good], {}, /k and v have different shapes/],
      [
        'heads that do not divide',
        [
          [3, 2, 4],
          [2, 2, 4],
          [2, 2, 4],
        ],
        {},
        /no multiple of 2 heads/,
      ],
      [
        'other batches',
        [
          [2, 1, 2, 4],
          [3, 1, 2, 4],
          [3, 1, 2, 4],
        ],
        {},
        /before the heads/,
      ],
      ['an unknown option', [good, good, good], { casual: true }, /Did you mean 'causal'/],
      ['a negative window', [good, good, good], { window: -1 }, /options.window/],
      ['an infinite scale', [good, good, good], { scale: Infinity }, /options.scale/],
    ] as const)('%s', async (_, shapes, options, message) => {
      expect(await refused(shapes as never, options)).toMatch(message);
    });

    test('another dtype, and a mask of another shape', async () => {
      expect(await refused([good, good, good], {}, i32)).toMatch(/f16, bf16, f32/);
      using mask = await device.zeros(f32, [3, 3]);
      expect(await refused([good, good, good], { mask })).toMatch(/does not broadcast/);
    });
  });
});

test('sections with which blocks end together', () => {
  const times = Array.from({ length: 32 }, (_, at) => 34 - at);
  // Simulated for 132 blocks: with 16 the last one ends 11 % late.
  const timeOf = (at: number): number => times[at]!;
  const tiles = { timeOf, down: times.length, matrices: 192, grid: 132, most: 24 };
  expect(sectionOf('test', tiles)).toBe(22);
});

/** Small tiles, so that small cases have several of them. */
const plan = (rows: number, keys: number, more: Partial<AttentionPlan> = {}): AttentionPlan => ({
  ...{ rows, keys, stages: 2, queries: 2, turns: true },
  ...more,
});

const BY_GROUPS: readonly (readonly [string, Name, Case, AttentionPlan | undefined])[] = [
  ['64 channels', 'bf16', { heads: 2, m: 192, n: 256, channels: 64 }, undefined],
  ['128 channels', 'f16', { m: 150, n: 300, channels: 128 }, undefined],
  ['192 channels', 'f16', { m: 70, n: 100, channels: 136 }, undefined],
  ['256 channels', 'bf16', { m: 130, n: 90, channels: 256 }, undefined],
  [
    'grouped heads, causal',
    'bf16',
    { batch: [2], heads: 4, kvHeads: 2, m: 100, n: 190, channels: 64, options: { causal: true } },
    plan(128, 64),
  ],
  [
    'queries that see no key',
    'f16',
    { m: 200, n: 50, channels: 64, options: { causal: true } },
    plan(64, 48, { queries: 1 }),
  ],
  [
    'a window',
    'f16',
    { heads: 2, m: 200, n: 270, channels: 40, options: { causal: true, window: 70 } },
    plan(192, 64),
  ],
  [
    'a window alone',
    'bf16',
    { m: 100, n: 200, channels: 64, options: { window: 20, scale: 0.2 } },
    plan(64, 32, { turns: false }),
  ],
  [
    'three stages',
    'bf16',
    { m: 130, n: 400, channels: 128, options: { scale: 2 } },
    plan(128, 64, { stages: 3, queries: 1 }),
  ],
  [
    'an added mask',
    'bf16',
    { batch: [2], heads: 2, m: 70, n: 136, channels: 64, masked: 'added' },
    plan(128, 64),
  ],
  [
    'a mask of bool, causal',
    'f16',
    { m: 100, n: 90, channels: 72, options: { causal: true }, masked: 'bool' },
    undefined,
  ],
  ['a mask, 192 channels', 'bf16', { m: 70, n: 100, channels: 136, masked: 'bool' }, undefined],
  ['a mask, 256 channels', 'f16', { m: 70, n: 100, channels: 256, masked: 'added' }, undefined],
];

describe.runIf(onCpu)('by warp groups, under the checker', () => {
  const check = async (name: Name, each: Case, given: AttentionPlan | undefined): Promise<void> => {
    await using device = await Device.open('cpu', { computeCapability: '9.0', check: true });
    expect(await errorOf(device, name, each, 2 ** (1 - DIGITS[name]), given)).toBeLessThan(1);
  };

  test('one group', { tags: 'thorough' }, async () => {
    const each = { m: 70, n: 64, channels: 64, options: { causal: true } };
    await check('f16', each, plan(64, 16));
    const masked = { m: 70, n: 100, channels: 64, masked: 'added' } as const;
    await check('bf16', masked, plan(64, 64));
  });

  test.each(BY_GROUPS.slice(4, 6))('%s', { tags: 'thorough' }, async (_, ...given) => {
    await check(...given);
  });
});

describe('by warp groups', () => {
  let device: Device | undefined;
  beforeAll(async () => {
    device = await openHopper();
  });
  afterAll(() => device?.close());

  for (const row of BY_GROUPS) {
    const [title, name, each, given] = row;
    test(title, { tags: tagsOf(BY_GROUPS, row, 5) }, async ({ skip }) => {
      if (device === undefined) return skip('the GPU is of another generation');
      expect(await errorOf(device, name, each, 2 ** (1 - DIGITS[name]), given)).toBeLessThan(1);
    });
  }

  test.for([
    ['of keys', [72]],
    ['of keys, for each batch', [2, 1, 1, 72]],
    ['of queries, for each head', [3, 70, 1]],
    ['for each batch', [2, 1, 70, 72]],
    ['for each batch and head', [2, 3, 70, 72]],
  ] as const)('a mask %s', { tags: 'thorough' }, async ([, shape], { skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    using x = await device.randn(f16, [2, 3, 70, 64], { seed: 1 });
    using k = await device.randn(f16, [2, 3, 72, 64], { seed: 2 });
    using mask = await device.randn(f16, [...shape], { seed: 3 });
    using whole = await mask.broadcastTo([2, 3, 70, 72]).contiguous();
    using y = await attention(x, k, k, { mask: mask as never });
    using other = await attention(x, k, k, { mask: whole as never });
    expect(await y.read()).toEqual(await other.read());
  });

  test('queries whose keys all have the least number', { tags: 'thorough' }, async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    using x = await device.randn(bf16, [1, 70, 64], { seed: 1 });
    using none = await device.zeros(bf16, [1, 70, 64]);
    using mask = await device.full(bf16, [70], -(2 - 2 ** -7) * 2 ** 127);
    using y = await attention(x, x, x, { mask });
    using mean = await attention(none, x, x);
    const [found, expected] = [await y.read(), await mean.read()];
    found.forEach((value, at) => {
      expect(value).toBeCloseTo(expected[at]!, 3);
    });
  });

  test('operands whose rows are not where tensor copies begin are copied', async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    using wide = await device.randn(f16, [1, 70, 65], { seed: 1 });
    const x = wide.slice(null, null, [1, 65]);
    using copy = await x.contiguous();
    using y = await attention(x, x, x);
    using other = await attention(copy, copy, copy);
    expect(await y.read()).toEqual(await other.read());
  });

  test('dtypes that it does not take are computed by rows', async ({ skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    for (const name of ['f32', 'bf16'] as const) {
      const each = { m: 10, n: 20, channels: name === 'bf16' ? 12 : 16 };
      expect(await errorOf(device, name, each, 2 ** -7)).toBeLessThan(1);
    }
  });
});
