/** Division by constants, which needs no division instruction, compared with JavaScript. */
import * as fc from '../../fast-check.js';
import { describe, expect, test } from 'vitest';
import {
  TreeBuilder,
  add,
  binary,
  constant,
  convert,
  mul,
} from '../../../src/compiler/emit/trees.test-support.js';
import { runKernel } from './run-kernel.js';
import type { HostArray } from './run-kernel.js';

const types = ['i32', 'u32', 'i64', 'u64'] as const;
type IntegerType = (typeof types)[number];

const bitsOf = (type: IntegerType): number => (type.endsWith('32') ? 32 : 64);
const wrap = (type: IntegerType, value: bigint): bigint =>
  type.startsWith('i') ? BigInt.asIntN(bitsOf(type), value) : BigInt.asUintN(bitsOf(type), value);
const lowest = (type: IntegerType): bigint =>
  type.startsWith('i') ? -(1n << BigInt(bitsOf(type) - 1)) : 0n;
const highest = (type: IntegerType): bigint => lowest(type) + (1n << BigInt(bitsOf(type))) - 1n;

function arrayOf(type: IntegerType, values: readonly bigint[]): HostArray {
  switch (type) {
    case 'i32':
      return Int32Array.from(values, Number);
    case 'u32':
      return Uint32Array.from(values, Number);
    case 'i64':
      return BigInt64Array.from(values);
    case 'u64':
      return BigUint64Array.from(values);
  }
}

/**
 * Dividends at which quotients change: multiples of the divisor and their neighbours, and the ends
 * of the range.
 */
function dividendsOf(
  type: IntegerType,
  divisors: readonly bigint[],
  others: readonly bigint[],
): bigint[] {
  const [low, high] = [lowest(type), highest(type)];
  const near = divisors.flatMap((d) =>
    [high / d, low / d, high / d / 3n, 1n, -1n, 7n].flatMap((k) =>
      [-1n, 0n, 1n].map((by) => k * d + by),
    ),
  );
  return [...near, low, low + 1n, -1n, 0n, 1n, high - 1n, high, ...others].map((value) =>
    wrap(type, value),
  );
}

/**
 * Quotients and remainders by each divisor, of each dividend; `positive`: the compiler can derive
 * that they are not negative.
 */
function divide(
  type: IntegerType,
  divisors: readonly bigint[],
  dividends: readonly bigint[],
  positive: boolean,
): { ptx: string; results: bigint[] } {
  const t = new TreeBuilder('divide');
  const [x, out] = [t.tensor('x', type, 'input'), t.tensor('out', type, 'output')];
  const i = t.variable(add(mul(t.special('blockIdx.x'), 128), t.special('threadIdx.x')));
  const read = x.at(i.value);
  const value = t.variable(
    positive
      ? binary('and', read, constant(type.endsWith('64') ? 0x7fffffffn : 0x7fffffff, type))
      : read,
    type,
  );
  divisors.forEach((divisor, at) => {
    const by = constant(type.endsWith('64') ? divisor : Number(divisor), type);
    out.put(add(mul(i.value, 2 * divisors.length), 2 * at), binary('div', value.value, by));
    out.put(add(mul(i.value, 2 * divisors.length), 2 * at + 1), binary('rem', value.value, by));
  });
  const blocks = Math.ceil(dividends.length / 128);
  const padded = Array.from({ length: blocks * 128 }, (_, at) => dividends[at] ?? 0n);
  const ran = runKernel(t.tree, {
    values: {
      x: arrayOf(type, padded),
      out: arrayOf(type, Array<bigint>(padded.length * divisors.length * 2).fill(0n)),
    },
    grid: [blocks],
    block: [128],
  });
  return {
    ptx: ran.emitted.ptx,
    results: Array.from(ran.of<Int32Array>('out') as ArrayLike<number | bigint>, BigInt),
  };
}

function check(
  type: IntegerType,
  divisors: readonly bigint[],
  others: readonly bigint[],
  positive = false,
): void {
  const dividends = dividendsOf(type, divisors, others).map((value) =>
    positive ? value & 0x7fffffffn : value,
  );
  const { ptx, results } = divide(type, divisors, dividends, positive);
  expect(ptx).not.toMatch(/\b(div|rem)\./);
  dividends.forEach((dividend, row) => {
    divisors.forEach((divisor, at) => {
      const place = 2 * (row * divisors.length + at);
      const [quotient, remainder] = [results[place], results[place + 1]];
      if (quotient !== dividend / divisor || remainder !== dividend % divisor) {
        throw new Error(
          `${type}: ${dividend} by ${divisor} gave ${String(quotient)} and ` +
            `${String(remainder)}, not ${dividend / divisor} and ${dividend % divisor}`,
        );
      }
    });
  });
}

describe.each(types)('of %s', (type) => {
  const bits = bitsOf(type);
  const plain = [
    2n,
    3n,
    5n,
    6n,
    7n,
    9n,
    10n,
    11n,
    12n,
    14n,
    25n,
    28n,
    64n,
    100n,
    125n,
    256n,
    625n,
    641n,
    1000n,
    1024n,
    4097n,
    65535n,
    65537n,
    1_000_000_007n,
    (1n << 30n) + 1n,
  ];
  const ends = [
    highest(type),
    highest(type) - 1n,
    highest(type) / 2n,
    highest(type) / 2n + 1n,
    highest(type) / 3n,
    highest(type) / 3n + 1n,
  ];
  const signed = type.startsWith('i');

  test('by common divisors, and those at the ends of the range', () => {
    check(type, plain, []);
    check(
      type,
      [
        ...ends,
        ...Array.from(
          { length: bits - 2 },
          (_, k) => (1n << BigInt(k + 1)) + (k % 2 === 0 ? 1n : -1n),
        ).filter((d) => d > 1n),
      ],
      [],
    );
  });

  test('by powers of two', () => {
    check(
      type,
      Array.from({ length: bits - 2 }, (_, k) => 1n << BigInt(k + 1)),
      [12345n, -12345n, -128n],
    );
  });

  test.runIf(signed)('by numbers below zero', () => {
    check(
      type,
      [...plain, ...ends].map((d) => -d),
      [],
    );
  });

  test('of numbers that are known to be non-negative', () => {
    check(type, [...plain, ...(signed ? [-3n, -8n, -1000n] : [])], [], true);
  });

  test('of and by any number', { tags: 'random' }, () => {
    const divisor = fc
      .bigInt({ min: signed ? lowest(type) + 1n : 2n, max: highest(type) })
      .filter((d) => d > 1n || d < -1n);
    const small = fc.bigInt({ min: 2n, max: 5000n });
    fc.assert(
      fc.property(
        fc.array(fc.oneof(divisor, small), { minLength: 12, maxLength: 12 }),
        fc.array(fc.bigInt({ min: lowest(type), max: highest(type) }), {
          minLength: 64,
          maxLength: 64,
        }),
        (divisors, others) => {
          check(type, divisors, others);
        },
      ),
      { numRuns: 25 },
    );
  });
});

test('by the lowest number, and by one, are exact', () => {
  const dividends = [-(2n ** 31n), -(2n ** 31n) + 1n, -1n, 0n, 1n, 2n ** 31n - 1n];
  const { results } = divide('i32', [-(2n ** 31n), 1n], dividends, false);
  dividends.forEach((dividend, row) => {
    expect(results.slice(4 * row, 4 * row + 4)).toEqual([
      dividend / -(2n ** 31n),
      dividend % -(2n ** 31n),
      dividend,
      0n,
    ]);
  });
});

test('a quotient and a remainder share their product, and ranges stay known', () => {
  const t = new TreeBuilder('share');
  const out = t.tensor('out', 'i32', 'output');
  const i = t.variable(t.special('threadIdx.x'));
  out.put(
    i.value,
    convert(
      add(binary('div', i.value, constant(7, 'i32')), binary('rem', i.value, constant(7, 'i32'))),
      'i32',
    ),
  );
  const { emitted } = runKernel(t.tree, { values: { out: new Int32Array(64) }, block: [64] });
  expect(emitted.ptx.match(/mul\.hi/g)).toHaveLength(1);
  // Numbers of threads are not negative: there is no correction for negative ones.
  expect(emitted.ptx).not.toMatch(/shr\.s32/);
});
