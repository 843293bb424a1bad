/** Atomics of every dtype that has them, by many threads at once, and as JavaScript. */
import {
  Device,
  bf16,
  f16,
  f32,
  f64,
  i16,
  i32,
  i64,
  inout,
  kernel,
  output,
  u16,
  u32,
  u64,
} from 'async-cuda';
import { beforeAll, expect, test } from 'vitest';

import { onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const DTYPES = { i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64 };
type Name = keyof typeof DTYPES;
const ALL = Object.keys(DTYPES) as Name[];
const WHOLE = ALL.filter((name) => name[0] !== 'f' && name[0] !== 'b');
const FLOATS = ALL.filter((name) => !WHOLE.includes(name));
const isWide = (name: Name): boolean => name === 'i64' || name === 'u64';

/** The body is the same for all; other tests cover its types. */
const of = (name: Name): typeof f32 => DTYPES[name] as unknown as typeof f32;
const ARRAYS: Readonly<Record<Name, unknown>> = {
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Float32Array,
  bf16: Float32Array,
  f32: Float32Array,
  f64: Float64Array,
};
const values = (name: Name, list: readonly number[]): Float32Array<ArrayBuffer> =>
  (ARRAYS[name] as typeof Float32Array).from((isWide(name) ? list.map(BigInt) : list) as number[]);
const numbers = (list: ArrayLike<number | bigint>): number[] =>
  Array.from(list as ArrayLike<number>, Number);
const sorted = (list: readonly number[]): number[] => [...list].sort((a, b) => a - b);

const THREADS = 192;

const ofBits = (name: Name) =>
  kernel('bits', { y: inout(of(name)), before: output(of(name)) }, ({ y, before }, gpu) => {
    const i = gpu.globalId.x;
    before[i] = gpu.atomicXor(y, 0, 1 << (i % 3));
    gpu.atomicOr(y, 1, 1 << (i % 13));
    gpu.atomicAnd(y, 2, ~(1 << (i % 7)));
  });

onDevice('Atomics', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  /** The results of the device and of JavaScript, each with new arrays. */
  async function both(
    name: Name,
    run: ReturnType<typeof ofBits>,
    start: readonly number[],
    threads = THREADS,
  ): Promise<{ y: number[]; before: number[] }[]> {
    using y = await device.tensor(of(name), values(name, start));
    using before = await device.zeros(of(name), [threads]);
    await run({ y, before }, { grid: threads / 32, block: 32 });
    const empty = values(
      name,
      Array.from({ length: threads }, () => 0),
    );
    const simulated = (await run.simulate({ y: values(name, start), before: empty } as never, {
      grid: threads / 32,
      block: 32,
    })) as { y: ArrayLike<number>; before: ArrayLike<number> };
    return [
      { y: numbers(await y.read()), before: numbers(await before.read()) },
      { y: numbers(simulated.y), before: numbers(simulated.before) },
    ];
  }

  someOf(2, test)(ALL)('%s: sums', async (name) => {
    const add = kernel(
      'add',
      { y: inout(of(name)), before: output(of(name)) },
      ({ y, before }, gpu) => {
        const i = gpu.globalId.x;
        before[i] = gpu.atomicAdd(y, 0, 1);
        gpu.atomicAdd(y, 1 + (i % 3), 2);
        const shared = gpu.shared.f32(1);
        shared[0] = 0;
        gpu.block.sync();
        gpu.atomicAdd(shared, 0, 1);
        gpu.block.sync();
        if (shared[0]! !== 32) y[4] = 1;
      },
    );
    for (const { y, before } of await both(name, add, [3, 0, 10, -0, 0])) {
      expect(y).toEqual([
        3 + THREADS,
        (THREADS * 2) / 3,
        10 + (THREADS * 2) / 3,
        (THREADS * 2) / 3,
        0,
      ]);
      expect(sorted(before)).toEqual(Array.from({ length: THREADS }, (_, i) => 3 + i));
    }
  });

  someOf(3, test)(ALL)('%s: least and largest', async (name) => {
    const extremes = kernel(
      'extremes',
      { y: inout(of(name)), before: output(of(name)) },
      ({ y, before }, gpu) => {
        const i = gpu.globalId.x;
        const turned = (i * 59) % 192;
        before[i] = gpu.atomicMin(y, 0, turned);
        gpu.atomicMax(y, 1, turned);
        gpu.atomicMin(y, 2, turned);
        gpu.atomicMax(y, 3, turned);
      },
    );
    const signed = name[0] !== 'u';
    const [found, simulated] = await both(name, extremes, [200, 5, signed ? -7 : 0, 240]);
    expect(found!.y).toEqual([0, THREADS - 1, signed ? -7 : 0, 240]);
    expect(simulated!.y).toEqual(found!.y);
    // One thread saw 200, the others a number that another thread wrote after it saw a larger one.
    // The thread that writes 0 may be the last.
    const { before } = found!;
    expect(before.filter((value) => value === 200)).toHaveLength(1);
    const turned = before.map((_, i) => (i * 59) % 192);
    for (const value of before)
      if (value !== 200) expect(before[turned.indexOf(value)]).toBeGreaterThan(value);
  });

  test.each(FLOATS)(
    '%s: NaN as an operand of min and max, and as an expected value',
    async (name) => {
      const withNaN = kernel(
        'with_nan',
        { y: inout(of(name)), before: output(of(name)) },
        ({ y, before }, gpu) => {
          if (gpu.globalId.x > 0) return;
          gpu.atomicMin(y, 0, 0 / y[4]!);
          gpu.atomicMax(y, 0, 0 / y[4]!);
          before[0] = gpu.atomicMin(y, 1, 3);
          before[1] = gpu.atomicMax(y, 1, 3);
          before[2] = gpu.atomicCompareExchange(y, 2, 0 / y[4]!, 7);
          before[3] = gpu.atomicCompareExchange(y, 3, -0, 9);
          before[4] = gpu.atomicCompareExchange(y, 3, 0, 8);
          before[5] = gpu.atomicExchange(y, 5, 1.5);
          before[6] = gpu.atomicAdd(y, 6, 2);
        },
      );
      for (const { y, before } of await both(name, withNaN, [5, NaN, NaN, 0, 0, NaN, NaN], 32)) {
        // A computed NaN has other bits than the NaN that JavaScript writes: only with 16 bits both
        // are equal as expected values.
        const isHalf = name === 'f16' || name === 'bf16';
        expect([...y.slice(0, 2), ...y.slice(3)]).toEqual([5, NaN, 8, 0, 1.5, NaN]);
        if (isHalf) expect(y[2]).toBe(7);
        expect(before.slice(0, 7)).toEqual([NaN, NaN, NaN, 0, 0, NaN, NaN]);
      }
    },
  );

  someOf(3, test)(WHOLE)('%s: bits', async (name) => {
    for (const { y, before } of await both(name, ofBits(name), [0, 1 << 14, 0x7fff])) {
      expect(y).toEqual([0, (1 << 14) | 0x1fff, 0x7f80]);
      expect(before.every((value) => value >= 0 && value < 8)).toBe(true);
    }
  });

  someOf(3, test)(ALL)('%s: an exchange loses no value', async (name) => {
    const exchange = kernel(
      'exchange',
      { y: inout(of(name)), before: output(of(name)) },
      ({ y, before }, gpu) => {
        before[gpu.globalId.x] = gpu.atomicExchange(y, 1, gpu.globalId.x);
      },
    );
    for (const { y, before } of await both(name, exchange, [1, 250, 1])) {
      expect(sorted([...before, y[1]!])).toEqual([
        ...Array.from({ length: THREADS }, (_, i) => i),
        250,
      ]);
      expect([y[0], y[2]]).toEqual([1, 1]);
    }
  });

  someOf(3, test)(ALL)(
    '%s: compared and exchanged by one thread, or by each in turn',
    async (name) => {
      const claim = kernel(
        'claim',
        { y: inout(of(name)), before: output(of(name)) },
        ({ y, before }, gpu) => {
          const i = gpu.globalId.x;
          before[i] = gpu.atomicCompareExchange(y, 0, 250, i);
          let seen = gpu.volatileLoad(y, 1);
          for (;;) {
            const found = gpu.atomicCompareExchange(y, 1, seen, seen + 1);
            if (found === seen) break;
            seen = found;
          }
        },
      );
      for (const { y, before } of await both(name, claim, [250, 1])) {
        expect(before.filter((value) => value === 250)).toHaveLength(1);
        expect(before.indexOf(250)).toBe(y[0]);
        expect(y[1]).toBe(1 + THREADS);
      }
    },
  );

  test('i16 and u16 wrap, and are compared as they are stored', async () => {
    for (const [name, start, after] of [
      ['i16', [32767, -5, 100], [-32768, -5, -25536]],
      ['u16', [65535, 5, 100], [0, 5, 40000]],
    ] as const) {
      const wrap = kernel(
        'wrap',
        { y: inout(of(name)), before: output(of(name)) },
        ({ y, before }, gpu) => {
          if (gpu.globalId.x > 0) return;
          before[0] = gpu.atomicAdd(y, 0, 1);
          before[1] = gpu.atomicMax(y, 1, 65536 * 3);
          before[2] = gpu.atomicCompareExchange(y, 2, 65636, 40000);
        },
      );
      for (const { y, before } of await both(name, wrap, start, 32)) {
        expect(y).toEqual(name === 'i16' ? [after[0], 0, after[2]] : after);
        expect(before.slice(0, 3)).toEqual([...start]);
      }
    }
  });

  test('sums of f16 and bf16 are rounded once, to even', async () => {
    const [addF16, addBf16] = (['f16', 'bf16'] as const).map((name) =>
      kernel('add', { y: inout(of(name)), before: output(of(name)), by: f32 }, ({ y, by }, gpu) => {
        if (gpu.globalId.x === 0) gpu.atomicAdd(y, 1, by);
      }),
    );
    for (const [name, start, by, after] of [
      ['f16', 2048, 1, 2048],
      ['f16', 2050, 1, 2052],
      ['bf16', 256, 1, 256],
      ['bf16', 258, 1, 260],
      ['f16', 65504, 16, Infinity],
      ['bf16', 1, 2 ** -8 + 2 ** -16, 1],
    ] as const) {
      const add = (name === 'f16' ? addF16 : addBf16)!;
      using y = await device.tensor(of(name), values(name, [7, start, 7]));
      using before = await device.zeros(of(name), [32]);
      await add({ y, before, by }, { grid: 1, block: 32 });
      expect(numbers(await y.read()), `${name}: ${start} + ${by}`).toEqual([7, after, 7]);
      const simulated = (await add.simulate(
        {
          y: values(name, [7, start, 7]),
          before: values(
            name,
            Array.from({ length: 32 }, () => 0),
          ),
          by,
        } as never,
        { grid: 1, block: 32 },
      )) as { y: ArrayLike<number> };
      expect(numbers(simulated.y)).toEqual([7, after, 7]);
    }
  });
});
