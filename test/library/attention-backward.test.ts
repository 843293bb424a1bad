/**
 * Gradients of attention, and the logarithms that its forward pass gives for them, compared with
 * JavaScript's in double precision and with finite differences: by rows on every device, by warp
 * groups on those of compute capability 9.0.
 */
import { CudaArgumentError, DTYPES, Device, bool, f16, f32, i32 } from 'async-cuda';
import type { DType } from 'async-cuda';
import type { KernelTensor, Tensor } from 'async-cuda/tensor';
import { attention, attentionBackward, attentionForward } from 'async-cuda/library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { attentionBackwardBy } from '../../src/library/attention-backward.js';
import type { AttentionOptions } from '../../src/library/attention-operands.js';
import type { BackwardPlan } from '../../src/library/warp-group-attention-backward.js';
import { onCpu, onDevice } from '../core/test-device.js';
import * as fc from '../fast-check.js';
import { openHopper } from '../kernels/hopper/hopper-device.js';
import { backward, forward } from './attention-reference.js';
import type { Attention } from './attention-reference.js';

type Name = 'f16' | 'bf16' | 'f32';
interface Case {
  readonly batches?: number;
  readonly heads?: number;
  readonly kvHeads?: number;
  readonly m: number;
  readonly n: number;
  readonly channels: number;
  readonly options?: Omit<AttentionOptions, 'mask'>;
  readonly masked?: 'bool' | 'added';
  /** Whether the forward pass is JavaScript's, which compiles no kernel. */
  readonly forwardInJavaScript?: boolean;
}

/**
 * How far an element may be from the expected one, relative to the magnitudes of its terms: shares,
 * gradients of scores and the result are rounded, and for f32 their sums.
 */
const BOUNDS: Readonly<Record<Name, number>> = { f16: 2 ** -10, bf16: 2 ** -7, f32: 2 ** -17 };

function randomNumbers(count: number, seed: number, amplitude = 1): Float32Array {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return ((state >>> 8) / 2 ** 23 - 1) * amplitude;
  });
}

/** How far gradients and logarithms are from the expected ones, relative to their bounds. */
async function errorsOf(
  device: Device,
  name: Name,
  given: Case,
  plan?: BackwardPlan,
): Promise<Record<'logSums' | 'dq' | 'dk' | 'dv', number>> {
  const { batches = 1, heads = 1, kvHeads = heads, m, n, channels, options = {}, masked } = given;
  const make = async (count: number, length: number, seed: number, amplitude: number) =>
    (await device.tensor(
      DTYPES[name] as DType<'f32'>,
      randomNumbers(batches * count * length * channels, seed, amplitude),
      [batches, count, length, channels],
    )) as unknown as KernelTensor & Disposable;
  using q = await make(heads, m, 1, 2);
  using k = await make(kvHeads, n, 2, 2);
  using v = await make(kvHeads, n, 3, 1);
  using dOut = await make(heads, m, 4, 1);
  // One mask for all heads. Its first query sees no key.
  const masks = randomNumbers(m * n, 5, 2).map((value, at) => (at < n ? -Infinity : value));
  using mask = await (masked === 'bool'
    ? device.tensor(
        bool,
        Array.from(masks, (value) => value > 0),
        [m, n],
      )
    : device.tensor(DTYPES[name] as DType<'f32'>, masks, [m, n]));
  const held = Array.from(await mask.read(), Number);
  const all = { ...options, ...(masked === undefined ? {} : { mask: mask as never }) };
  const read = async (tensor: KernelTensor) => (await tensor.read()) as ArrayLike<number>;
  const expected: Attention = {
    ...{ q: await read(q), k: await read(k), v: await read(v) },
    ...{ batches, heads, kvHeads, m, n, channels, ...options },
    added: (_, query, key) => {
      const value = held[query * n + key]!;
      if (masked === 'bool') return value === 0 ? -Infinity : 0;
      return masked === 'added' ? value : 0;
    },
  };
  const known = forward(expected);
  const first = given.forwardInJavaScript
    ? {
        out: await device.tensor(DTYPES[name] as DType<'f32'>, Float32Array.from(known.out), [
          ...q.shape,
        ]),
        logSums: await device.tensor(f32, Float32Array.from(known.logSums), q.shape.slice(0, -1)),
      }
    : await attentionForward(q as never, k as never, v as never, all);
  using out = first.out as KernelTensor & Disposable;
  using logSums = first.logSums as KernelTensor & Disposable;
  using gradients = await attentionBackwardBy(plan, [dOut, q, k, v, out, logSums], all);
  expect(gradients.dq.shape).toEqual(q.shape);
  expect(gradients.dk.shape).toEqual(k.shape);
  expect(gradients.dv.shape).toEqual(v.shape);

  let offLogs = 0;
  const logs = await read(logSums);
  known.logSums.forEach((log, at) => {
    const off = log === logs[at] ? 0 : Math.abs(log - logs[at]!) / 2 ** -16;
    if (!(off <= offLogs)) offLogs = off;
  });
  const wanted = backward(expected, await read(dOut));
  const errorOf = async (which: 'dq' | 'dk' | 'dv'): Promise<number> => {
    const found = await read(gradients[which]);
    const { values, magnitudes } = wanted[which];
    let error = 0;
    for (let at = 0; at < values.length; at++) {
      const off = Math.abs(found[at]! - values[at]!);
      const relative = off === 0 ? 0 : off / (BOUNDS[name] * magnitudes[at]! + 2 ** -24);
      if (!(relative <= error)) error = relative;
    }
    return error;
  };
  return {
    logSums: offLogs,
    dq: await errorOf('dq'),
    dk: await errorOf('dk'),
    dv: await errorOf('dv'),
  };
}

async function check(device: Device, name: Name, given: Case, plan?: BackwardPlan): Promise<void> {
  const errors = await errorsOf(device, name, given, plan);
  for (const [which, error] of Object.entries(errors)) expect(error, which).toBeLessThan(1);
}

const CASES: readonly (readonly [string, Case])[] = [
  [
    'grouped heads, causal, of the last queries',
    { batches: 2, heads: 4, kvHeads: 2, m: 17, n: 40, channels: 8, options: { causal: true } },
  ],
];
const MORE_CASES: readonly (readonly [string, Case])[] = [
  ['one head', { m: 20, n: 40, channels: 64 }],
  ['a mask of bool', { heads: 2, m: 20, n: 34, channels: 8, masked: 'bool' }],
  ['an odd number of channels', { heads: 2, m: 17, n: 33, channels: 5 }],
  ['many channels', { heads: 2, kvHeads: 1, m: 3, n: 35, channels: 130 }],
  [
    'causal, with queries that see no key',
    { m: 40, n: 11, channels: 16, options: { causal: true } },
  ],
  ['a window', { heads: 2, m: 70, n: 70, channels: 8, options: { causal: true, window: 4 } }],
  ['a window alone', { m: 20, n: 90, channels: 8, options: { window: 40 } }],
  ['a scale', { m: 6, n: 7, channels: 8, options: { scale: -0.5 } }],
  ['an added mask', { heads: 2, m: 20, n: 34, channels: 8, masked: 'added' }],
];

onDevice('Gradients of attention', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  test.each(CASES)('of f32: %s', async (_, given) => {
    await check(device, 'f32', given);
  });

  test.each(MORE_CASES)('of f32: %s', { tags: 'thorough' }, async (_, given) => {
    await check(device, 'f32', given);
  });

  test.each(['f16', 'bf16'] as const)('of %s', { tags: 'thorough' }, async (name) => {
    const options = { causal: true };
    await check(device, name, { heads: 2, kvHeads: 1, m: 33, n: 50, channels: 12, options });
  });

  test('finite differences', async () => {
    const sizes = { batches: 1, heads: 2, kvHeads: 1, m: 3, n: 4, channels: 8, causal: true };
    const lists = [2, 1, 1, 2].map((heads, at) =>
      Float64Array.from(randomNumbers(heads * (at % 3 === 0 ? 3 : 4) * 8, at + 1)),
    );
    const [q, k, v, dOut] = lists as [Float64Array, Float64Array, Float64Array, Float64Array];
    const loss = (): number =>
      forward({ q, k, v, ...sizes }).out.reduce((sum, value, at) => sum + value * dOut[at]!, 0);
    const slopesOf = (list: Float64Array): number[] =>
      Array.from(list, (value, at) => {
        list[at] = value + 1e-5;
        const more = loss();
        list[at] = value - 1e-5;
        const less = loss();
        list[at] = value;
        return (more - less) / 2e-5;
      });
    const tensor = (list: Float64Array, shape: readonly number[]) =>
      device.tensor(f32, Float32Array.from(list), shape);
    const [tq, tk, tv, td] = await Promise.all([
      ...[
        tensor(q, [2, 3, 8]),
        tensor(k, [1, 4, 8]),
        tensor(v, [1, 4, 8]),
        tensor(dOut, [2, 3, 8]),
      ],
    ]);
    using first = await attentionForward(tq!, tk!, tv!, { causal: true });
    const { out, logSums } = first;
    using found = await attentionBackward(td!, tq!, tk!, tv!, out, logSums, { causal: true });
    for (const [gradient, list] of [
      [found.dq, q],
      [found.dk, k],
      [found.dv, v],
    ] as const) {
      const read = await gradient.read();
      slopesOf(list).forEach((slope, at) => {
        expect(read[at]).toBeCloseTo(slope, 5);
      });
    }
    for (const each of [tq, tk, tv, td]) each!.close();
  });

  /** Gradients of operands that are given as numbers; those of k and v one after the other. */
  const gradientsOf = async (
    numbers: Readonly<Record<'q' | 'k' | 'v' | 'dOut', Float32Array>>,
    [heads, kvHeads, m, n]: readonly [number, number, number, number],
  ): Promise<{ dq: Float32Array; dkv: number[] }> => {
    const tensor = (list: Float32Array, count: number, length: number) =>
      device.tensor(f32, list, [count, length, 8]);
    using q = await tensor(numbers.q, heads, m);
    using k = await tensor(numbers.k, kvHeads, n);
    using v = await tensor(numbers.v, kvHeads, n);
    using dOut = await tensor(numbers.dOut, heads, m);
    using first = await attentionForward(q, k, v, { causal: true });
    const options = { causal: true };
    using found = await attentionBackward(dOut, q, k, v, first.out, first.logSums, options);
    return {
      dq: await found.dq.read(),
      dkv: [...(await found.dk.read()), ...(await found.dv.read())],
    };
  };
  const close = (found: ArrayLike<number>, expected: ArrayLike<number>): void => {
    expect(found.length).toBe(expected.length);
    for (let at = 0; at < found.length; at++) expect(found[at]).toBeCloseTo(expected[at]!, 4);
  };
  const extents = fc.record({
    m: fc.integer({ min: 1, max: 40 }),
    n: fc.integer({ min: 1, max: 40 }),
    seed: fc.integer({ min: 1, max: 2 ** 20 }),
  });

  test('they are linear in the gradient of the result', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(extents, fc.integer({ min: -4, max: 4 }), async ({ m, n, seed }, factor) => {
        const given = {
          q: randomNumbers(2 * m * 8, seed),
          k: randomNumbers(n * 8, seed + 1),
          v: randomNumbers(n * 8, seed + 2),
        };
        const one = randomNumbers(2 * m * 8, seed + 3);
        const other = randomNumbers(2 * m * 8, seed + 4);
        const of = (dOut: Float32Array) => gradientsOf({ ...given, dOut }, [2, 1, m, n]);
        const [a, b] = [await of(one), await of(other)];
        const both = await of(one.map((value, at) => factor * value + other[at]!));
        close(
          both.dq,
          a.dq.map((value, at) => factor * value + b.dq[at]!),
        );
        close(
          both.dkv,
          a.dkv.map((value, at) => factor * value + b.dkv[at]!),
        );
      }),
      { numRuns: 40, leastRuns: 2 },
    );
  });

  test('those of a shared head are sums over its group', { tags: 'random' }, async () => {
    await fc.assert(
      fc.asyncProperty(extents, async ({ m, n, seed }) => {
        const [q, dOut] = [randomNumbers(3 * m * 8, seed), randomNumbers(3 * m * 8, seed + 1)];
        const [k, v] = [randomNumbers(n * 8, seed + 2), randomNumbers(n * 8, seed + 3)];
        const thrice = (list: Float32Array): Float32Array =>
          Float32Array.from([...list, ...list, ...list]);
        const grouped = await gradientsOf({ q, k, v, dOut }, [3, 1, m, n]);
        const apart = await gradientsOf({ q, k: thrice(k), v: thrice(v), dOut }, [3, 3, m, n]);
        close(grouped.dq, apart.dq);
        const size = n * 8;
        const sumAt = (at: number): number =>
          [0, 1, 2].reduce(
            (sum, head) => sum + apart.dkv[(at < size ? 0 : 2 * size) + at + head * size]!,
            0,
          );
        close(
          grouped.dkv,
          grouped.dkv.map((_, at) => sumAt(at)),
        );
      }),
      { numRuns: 40, leastRuns: 2 },
    );
  });

  test('the forward pass gives the result of attention', { tags: 'thorough' }, async () => {
    using q = await device.randn(f32, [2, 9, 8], { seed: 1 });
    using k = await device.randn(f32, [1, 5, 8], { seed: 2 });
    using plain = await attention(q, k, k, { causal: true });
    using first = await attentionForward(q, k, k, { causal: true });
    expect(first.logSums.shape).toEqual([2, 9]);
    expect(await first.out.read()).toEqual(await plain.read());
    // The first four of nine queries are before the first of five keys.
    expect([...(await first.logSums.read())].map((log) => log === -Infinity)).toEqual(
      [0, 1].flatMap(() => Array.from({ length: 9 }, (_, query) => query < 4)),
    );
  });

  test('without keys, queries or channels gradients are zeros', async () => {
    using q = await device.ones(f32, [1, 2, 4]);
    using none = await device.zeros(f32, [1, 0, 4]);
    using first = await attentionForward(q, none, none);
    expect([...(await first.logSums.read())]).toEqual([-Infinity, -Infinity]);
    using found = await attentionBackward(q, q, none, none, first.out, first.logSums);
    expect([...(await found.dq.read())]).toEqual(Array(8).fill(0));
    expect(found.dk.shape).toEqual([1, 0, 4]);

    using empty = await attentionForward(none, q, q);
    using others = await attentionBackward(none, none, q, q, empty.out, empty.logSums);
    expect([...(await others.dk.read()), ...(await others.dv.read())]).toEqual(Array(16).fill(0));
  });

  test('operations as operands, and transposed ones', async () => {
    // [positions][heads][channels]
    using x = await device.randn(f32, [6, 2, 8], { seed: 1 });
    const turned = x.transpose(0, 1);
    const copy = turned.contiguous();
    const options = { causal: true };
    using first = await attentionForward(turned, turned, turned, options);
    const { out, logSums } = first;
    using one = await attentionBackward(turned, turned, turned, turned, out, logSums, options);
    using other = await attentionBackward(copy, copy, copy, copy, out, logSums, options);
    expect(await one.dk.read()).toEqual(await other.dk.read());
  });

  describe('refuses', () => {
    const shape = [2, 3, 4];
    const messageOf = async (
      changes: Readonly<Partial<Record<'dOut' | 'q' | 'k' | 'out' | 'logSums', Tensor>>>,
      options: object = {},
    ): Promise<string> => {
      using good = await device.zeros(f32, shape);
      using logs = await device.zeros(f32, [2, 3]);
      const given = { dOut: good, q: good, k: good, out: good, logSums: logs, ...changes };
      const { dOut, q, k, out, logSums } = given as unknown as Record<string, never>;
      try {
        await attentionBackward(dOut!, q!, k!, k!, out!, logSums!, options);
      } catch (error) {
        expect(error).toBeInstanceOf(CudaArgumentError);
        return (error as CudaArgumentError).message;
      }
      return 'nothing';
    };

    test('other shapes, dtypes and options', async () => {
      using short = await device.zeros(f32, [2, 2, 4]);
      using half = await device.zeros(f16, shape);
      using whole = await device.zeros(i32, shape);
      using logs = await device.zeros(f16, [2, 3]);
      expect(await messageOf({ dOut: short })).toMatch(/dOut has to have the shape \[2, 3, 4\]/);
      expect(await messageOf({ out: short })).toMatch(/out has to have the shape \[2, 3, 4\]/);
      expect(await messageOf({ logSums: short })).toMatch(/logSums has to have the shape \[2, 3\]/);
      expect(await messageOf({ out: half })).toMatch(/out: expected a Tensor of f32, as q is/);
      expect(await messageOf({ logSums: logs })).toMatch(/logSums: expected a Tensor of f32/);
      expect(await messageOf({ q: whole })).toMatch(/q: expected a Tensor of f16, bf16, f32/);
      expect(await messageOf({ k: half })).toMatch(/k: expected a Tensor of f32, as q is/);
      expect(await messageOf({}, { casual: true })).toMatch(/Did you mean 'causal'/);
      expect(await messageOf({}, { scale: NaN })).toMatch(/options.scale/);
    });
  });
});

/** A small plan, so that small cases have several tiles. */
const SMALL: BackwardPlan = { rows: 64, keys: 64, stages: 2 };

const BY_GROUPS: readonly (readonly [string, Name, Case, BackwardPlan | undefined])[] = [
  [
    'grouped heads, causal',
    'bf16',
    {
      ...{ batches: 2, heads: 2, kvHeads: 1, m: 70, n: 100, channels: 64 },
      options: { causal: true },
      forwardInJavaScript: true,
    },
    SMALL,
  ],
];
const MORE_BY_GROUPS: typeof BY_GROUPS = [
  ['128 channels', 'bf16', { heads: 2, m: 150, n: 200, channels: 128 }, undefined],
  ['64 channels', 'f16', { m: 300, n: 150, channels: 64, options: { causal: true } }, undefined],
  ['fewer channels', 'f16', { heads: 2, m: 130, n: 90, channels: 72 }, undefined],
  [
    'queries that see no key',
    'f16',
    { m: 200, n: 50, channels: 40, options: { causal: true } },
    undefined,
  ],
  [
    'a window',
    'f16',
    { heads: 2, m: 200, n: 270, channels: 64, options: { causal: true, window: 70 } },
    SMALL,
  ],
  [
    'a window alone, with keys that no query sees',
    'bf16',
    { m: 100, n: 300, channels: 64, options: { window: 20, scale: 0.2 } },
    undefined,
  ],
  ['three stages', 'bf16', { m: 400, n: 70, channels: 128 }, { ...SMALL, stages: 3 }],
  [
    '256 channels, causal, grouped heads',
    'bf16',
    { heads: 2, kvHeads: 1, m: 150, n: 180, channels: 256, options: { causal: true } },
    undefined,
  ],
  [
    '136 channels, a window',
    'f16',
    { batches: 2, m: 70, n: 130, channels: 136, options: { window: 30, scale: 0.1 } },
    undefined,
  ],
  [
    'an added mask, 64 channels',
    'bf16',
    { batches: 2, m: 150, n: 200, channels: 64, masked: 'added' },
    undefined,
  ],
  [
    'a mask of bool, causal, 128 channels',
    'f16',
    { heads: 2, m: 100, n: 150, channels: 120, options: { causal: true }, masked: 'bool' },
    undefined,
  ],
  [
    'a mask, 256 channels',
    'f16',
    { heads: 2, m: 130, n: 90, channels: 200, masked: 'added' },
    undefined,
  ],
];

test.runIf(onCpu)('by warp groups, under the checker', { tags: 'thorough' }, async () => {
  await using device = await Device.open('cpu', { computeCapability: '9.0', check: true });
  const sizes = { m: 150, n: 64, channels: 64, options: { causal: true } };
  await check(device, 'f16', { ...sizes, forwardInJavaScript: true }, SMALL);
  // Keys of two blocks; their masks and the gradients of scores share memory.
  const masked = {
    m: 130,
    n: 70,
    channels: 64,
    masked: 'added',
    forwardInJavaScript: true,
  } as const;
  await check(device, 'bf16', masked, SMALL);
  await check(device, 'bf16', { ...masked, channels: 136 });
});

describe('by warp groups', () => {
  let device: Device | undefined;
  beforeAll(async () => {
    device = await openHopper();
  });
  afterAll(() => device?.close());

  test.for(BY_GROUPS)('%s', async ([, name, given, plan], { skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    await check(device, name, given, plan);
  });

  test.for(MORE_BY_GROUPS)('%s', { tags: 'thorough' }, async ([, name, given, plan], { skip }) => {
    if (device === undefined) return skip('the GPU is of another generation');
    await check(device, name, given, plan);
  });
});
