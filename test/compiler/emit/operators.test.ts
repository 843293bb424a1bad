/**
 * Every operator of every type on edge values, compared with JavaScript: with operands from memory,
 * and folded by the compiler.
 */
import { describe, expect, test } from 'vitest';
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  UnaryOperator,
  ValueType,
} from '../../../src/compiler/tree.js';
import type { HostArray } from './run-kernel.js';
import { runKernel } from './run-kernel.js';
import {
  TreeBuilder,
  binary,
  compare,
  constant,
  convert,
  fma,
  unary,
} from '../../../src/compiler/emit/trees.test-support.js';
import { someOf } from '../../random-runs.js';

type Scalar = number | bigint;

const f = Math.fround;
const floats = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  -1.5,
  2.5,
  3,
  -7.25,
  1e-45,
  -1e-45,
  f(1e-38),
  f(1.1e-40),
  f(3.4e38),
  f(-3.4e38),
  2147483647,
  -2147483648,
  4294967296,
  f(1e19),
  f(-1e19),
  16777217,
  0.1,
  123456.789,
  Infinity,
  -Infinity,
  NaN,
].map(f);
const doubles = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  1.5,
  2.5,
  3,
  -7.25,
  5e-324,
  -5e-324,
  1e-310,
  1.7e308,
  -1.7e308,
  2147483647.5,
  -2147483649,
  9.3e18,
  -9.3e18,
  1.9e19,
  0.1,
  123456.789,
  Infinity,
  -Infinity,
  NaN,
];
const i32s = [
  0, 1, -1, 2, 3, -3, 5, 7, 8, -8, 31, 32, 33, 63, 255, -128, 65535, 32768, 2147483647, -2147483648,
  123456789, -987654321, 0x55555555,
];
const u32s = i32s.map((value) => value >>> 0);
const i64s = [
  0n,
  1n,
  -1n,
  2n,
  3n,
  -3n,
  7n,
  8n,
  31n,
  33n,
  63n,
  64n,
  4294967295n,
  4294967296n,
  9223372036854775807n,
  -9223372036854775808n,
  1234567890123456789n,
  -987654321987654321n,
];
const u64s = i64s.map((value) => BigInt.asUintN(64, value));

interface TypeRow {
  readonly values: readonly Scalar[];
  readonly make: (values: readonly Scalar[]) => HostArray;
  readonly wrap: (value: Scalar) => Scalar;
}

const types: Readonly<Record<Exclude<ValueType, 'bool'>, TypeRow>> = {
  i32: {
    values: i32s,
    make: (values) => Int32Array.from(values as number[]),
    wrap: (value) => Number(BigInt.asIntN(32, BigInt(value))),
  },
  u32: {
    values: u32s,
    make: (values) => Uint32Array.from(values as number[]),
    wrap: (value) => Number(BigInt.asUintN(32, BigInt(value))),
  },
  i64: {
    values: i64s,
    make: (values) => BigInt64Array.from(values as bigint[]),
    wrap: (value) => BigInt.asIntN(64, BigInt(value)),
  },
  u64: {
    values: u64s,
    make: (values) => BigUint64Array.from(values as bigint[]),
    wrap: (value) => BigInt.asUintN(64, BigInt(value)),
  },
  f32: {
    values: floats,
    make: (values) => Float32Array.from(values as number[]),
    wrap: (value) => f(value as number),
  },
  f64: {
    values: doubles,
    make: (values) => Float64Array.from(values as number[]),
    wrap: (value) => value,
  },
};
type NumberType = keyof typeof types;

const big = (value: Scalar): bigint => BigInt(value);
const bitsOf = (type: NumberType): number => (type.endsWith('32') ? 32 : 64);

/** Undefined where the result is unspecified. */
const integerBinary: Readonly<
  Record<
    Exclude<BinaryOperator, 'copysign'>,
    (a: bigint, b: bigint, bits: number) => bigint | undefined
  >
> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => (b === 0n ? undefined : a / b),
  rem: (a, b, bits) =>
    b === 0n || (b === -1n && a === -(1n << BigInt(bits - 1))) ? undefined : a % b,
  and: (a, b) => a & b,
  or: (a, b) => a | b,
  xor: (a, b) => a ^ b,
  shl: (a, b, bits) => a << (b & BigInt(bits - 1)),
  shr: (a, b, bits) => a >> (b & BigInt(bits - 1)),
  min: (a, b) => (a < b ? a : b),
  max: (a, b) => (a > b ? a : b),
  mulhi: (a, b, bits) => (a * b) >> BigInt(bits),
};

const sign = (value: number): boolean => value < 0 || Object.is(value, -0);
const floatBinary: Readonly<Partial<Record<BinaryOperator, (a: number, b: number) => number>>> = {
  add: (a, b) => a + b,
  sub: (a, b) => a - b,
  mul: (a, b) => a * b,
  div: (a, b) => a / b,
  rem: (a, b) => a % b,
  min: Math.min,
  max: Math.max,
  copysign: (a, b) => (Number.isNaN(b) ? NaN : sign(b) ? -Math.abs(a) : Math.abs(a)),
};

const even = (value: number): number => {
  const floor = Math.floor(value);
  const rest = value - floor;
  const rounded = rest < 0.5 || (rest === 0.5 && floor % 2 === 0) ? floor : floor + 1;
  return Math.abs(value) >= 2 ** 52 || !Number.isFinite(value)
    ? value
    : rounded === 0 && sign(value)
      ? -0
      : rounded;
};

const floatUnary: Readonly<Partial<Record<UnaryOperator, (a: number) => number>>> = {
  neg: (a) => -a,
  abs: Math.abs,
  floor: Math.floor,
  ceil: Math.ceil,
  trunc: Math.trunc,
  rint: even,
  sqrt: Math.sqrt,
};

const binaryText = (value: bigint, bits: number): string =>
  BigInt.asUintN(bits, value).toString(2).padStart(bits, '0');
const integerUnary: Readonly<Partial<Record<UnaryOperator, (a: bigint, bits: number) => bigint>>> =
  {
    neg: (a) => -a,
    not: (a) => ~a,
    abs: (a) => (a < 0n ? -a : a),
    popc: (a, bits) => BigInt([...binaryText(a, bits)].filter((digit) => digit === '1').length),
    clz: (a, bits) => BigInt((binaryText(a, bits) + '1').indexOf('1')),
    brev: (a, bits) => BigInt(`0b${[...binaryText(a, bits)].reverse().join('')}`),
  };

const comparisons: Readonly<Record<CompareOperator, (a: Scalar, b: Scalar) => boolean>> = {
  lt: (a, b) => a < b,
  le: (a, b) => a <= b,
  gt: (a, b) => a > b,
  ge: (a, b) => a >= b,
  eq: (a, b) => a === b,
  ne: (a, b) => a !== b,
};

const isFloat = (type: NumberType): boolean => type === 'f32' || type === 'f64';

function expectedBinary(
  type: NumberType,
  operator: BinaryOperator,
  a: Scalar,
  b: Scalar,
): Scalar | undefined {
  if (isFloat(type)) return types[type].wrap(floatBinary[operator]!(a as number, b as number));
  const result = integerBinary[operator as 'add'](big(a), big(b), bitsOf(type));
  return result === undefined ? undefined : types[type].wrap(result);
}

const differ = (got: Scalar, wanted: Scalar | undefined): boolean =>
  wanted !== undefined && !Object.is(got, wanted);

/** Each pair is read from memory; each operator has its own row of results. */
function runPairs(
  type: NumberType,
  build: (a: Expression, b: Expression) => readonly Expression[],
  target: { optimise?: boolean; capability?: string } = {},
): { out: HostArray; a: Scalar[]; b: Scalar[] } {
  const { values, make } = types[type];
  const a = values.flatMap((left) => values.map(() => left));
  const b = values.flatMap(() => [...values]);
  const t = new TreeBuilder('pairs');
  const [x, y] = [t.tensor('x', type, 'input'), t.tensor('y', type, 'input')];
  const i = t.variable(t.special('globalId.x'));
  const results = build(x.at(i.value), y.at(i.value));
  const out = t.tensor('out', results[0]!.type === 'bool' ? 'u8' : results[0]!.type);
  t.if(compare('lt', i.value, x.length), () => {
    results.forEach((result, row) =>
      out.put(
        binary('add', i.value, row * a.length),
        result.type === 'bool' ? convert(result, 'i32') : result,
      ),
    );
  });
  const room = new Array<Scalar>(a.length * results.length).fill(typeof a[0] === 'bigint' ? 0n : 0);
  const outType = results[0]!.type;
  const { outcome, of } = runKernel(t.tree, {
    values: {
      x: make(a),
      y: make(b),
      out:
        outType === 'bool'
          ? new Uint8Array(room.length)
          : types[outType].make(
              new Array<Scalar>(room.length).fill(
                outType.endsWith('64') && outType[0] !== 'f' ? 0n : 0,
              ),
            ),
    },
    grid: [Math.ceil(a.length / 64)],
    block: [64],
    target,
  });
  expect(outcome.status).toBe(0);
  return { out: of('out'), a, b };
}

const numberTypes = Object.keys(types) as NumberType[];

describe.each([
  { optimise: true, capability: '8.0' },
  { optimise: false, capability: '7.5' },
])('operators (%j)', (target) => {
  test.each(numberTypes)('binary operators of %s', (type) => {
    const operators = (
      isFloat(type) ? Object.keys(floatBinary) : Object.keys(integerBinary)
    ) as BinaryOperator[];
    const { out, a, b } = runPairs(
      type,
      (x, y) =>
        operators.map((operator) => ({
          op: 'binary',
          type,
          span: x.span,
          operator,
          left: x,
          right: operator === 'shl' || operator === 'shr' ? convert(y, 'u32') : y,
        })),
      target,
    );
    const wrong: string[] = [];
    operators.forEach((operator, row) =>
      a.forEach((left, at) => {
        const wanted = expectedBinary(type, operator, left, b[at]!);
        const got = out[row * a.length + at]!;
        if (operator === 'copysign' && Number.isNaN(Number(b[at]))) return;
        if (differ(got, wanted))
          wrong.push(`${operator}(${left}, ${b[at]!}) = ${got}, not ${wanted!}`);
      }),
    );
    expect(wrong.slice(0, 8)).toEqual([]);
  });

  test.each(numberTypes)('comparisons of %s', (type) => {
    const operators = Object.keys(comparisons) as CompareOperator[];
    const { out, a, b } = runPairs(
      type,
      (x, y) => operators.map((operator) => compare(operator, x, y)),
      target,
    );
    const wrong: string[] = [];
    operators.forEach((operator, row) =>
      a.forEach((left, at) => {
        if ((out[row * a.length + at] === 1) !== comparisons[operator](left, b[at]!))
          wrong.push(`${operator}(${left}, ${b[at]!})`);
      }),
    );
    expect(wrong.slice(0, 8)).toEqual([]);
  });

  test.each(numberTypes)('unary operators of %s', (type) => {
    const table = isFloat(type) ? floatUnary : integerUnary;
    const operators = (Object.keys(table) as UnaryOperator[]).filter(
      (operator) => !(type[0] === 'u' && operator === 'abs'),
    );
    const { out, a } = runPairs(
      type,
      (x) => operators.map((operator) => unary(operator, x)),
      target,
    );
    const wrong: string[] = [];
    operators.forEach((operator, row) =>
      a.forEach((left, at) => {
        const wanted = types[type].wrap(
          isFloat(type)
            ? floatUnary[operator]!(left as number)
            : integerUnary[operator]!(big(left), bitsOf(type)),
        );
        if (differ(out[row * a.length + at]!, wanted))
          wrong.push(`${operator}(${left}) = ${out[row * a.length + at]!}, not ${wanted}`);
      }),
    );
    expect(wrong.slice(0, 8)).toEqual([]);
  });

  test.each(
    numberTypes.flatMap((from) =>
      numberTypes.filter((to) => to !== from).map((to) => ({ from, to })),
    ),
  )('$from to $to', ({ from, to }) => {
    const { out, a } = runPairs(from, (x) => [convert(x, to)], target);
    const wrong: string[] = [];
    a.forEach((value, at) => {
      const wanted = converted(value, from, to);
      if (differ(out[at]!, wanted)) wrong.push(`${value} = ${out[at]!}, not ${wanted}`);
    });
    expect(wrong.slice(0, 8)).toEqual([]);
  });

  test.each(numberTypes)('%s to bool and back', (type) => {
    const { out, a } = runPairs(type, (x) => [convert(convert(x, 'bool'), type)], target);
    a.forEach((value, at) => expect(Number(out[at])).toBe(Number(value) === 0 ? 0 : 1));
  });

  test.each(['f32', 'f64'] as const)('fma of %s', (type) => {
    const { out, a, b } = runPairs(
      type,
      (x, y) => [fma(x, y, constant(1, type)), fma(x, constant(3, type), y)],
      target,
    );
    const wrong: string[] = [];
    a.forEach((left, at) => {
      const right = b[at]! as number;
      const wanted = fusedWithOne(left as number, right, type);
      if (wanted !== undefined && differ(out[at]!, wanted))
        wrong.push(`${left} * ${right} + 1 = ${out[at]!}, not ${wanted}`);
    });
    expect(wrong.slice(0, 8)).toEqual([]);
  });
});

function converted(value: Scalar, from: NumberType, to: NumberType): Scalar {
  if (isFloat(to))
    return to === 'f64'
      ? Number(value)
      : isFloat(from)
        ? f(value as number)
        : nearestFloat(big(value));
  if (!isFloat(from)) return types[to].wrap(value);
  if (Number.isNaN(value)) return types[to].wrap(0n);
  const [low, high] =
    to[0] === 'u'
      ? [0n, (1n << BigInt(bitsOf(to))) - 1n]
      : [-(1n << BigInt(bitsOf(to) - 1)), (1n << BigInt(bitsOf(to) - 1)) - 1n];
  if (!Number.isFinite(value)) return types[to].wrap((value as number) < 0 ? low : high);
  const whole = BigInt(Math.trunc(value as number));
  return types[to].wrap(whole < low ? low : whole > high ? high : whole);
}

/** The nearest of the floats beside a whole number; ties to even. */
function nearestFloat(value: bigint): number {
  const magnitude = value < 0n ? -value : value;
  const excess = BigInt(Math.max(magnitude.toString(2).length - 24, 0));
  let kept = magnitude >> excess;
  const rest = magnitude - (kept << excess);
  const half = excess === 0n ? 0n : 1n << (excess - 1n);
  if (rest > half || (rest === half && excess > 0n && (kept & 1n) === 1n)) kept++;
  const result = Number(kept << excess);
  return value < 0n ? -result : result;
}

/** a * b + 1 with one rounding, where products are exact enough to compute it here. */
function fusedWithOne(a: number, b: number, type: 'f32' | 'f64'): number | undefined {
  if (type === 'f64') return undefined;
  const product = a * b;
  const sum = product + 1;
  return sum - product === 1 && sum - 1 === product
    ? f(sum)
    : Number.isFinite(sum)
      ? undefined
      : f(sum);
}

someOf(2, test)(numberTypes)('constants of %s are folded as the device computes them', (type) => {
  const { values, make } = types[type];
  const operators = (
    isFloat(type) ? ['add', 'sub', 'mul', 'div', 'rem', 'min', 'max'] : Object.keys(integerBinary)
  ) as BinaryOperator[];
  const picked = values.filter((_, at) => at % 2 === 0 || at > values.length - 4);
  const t = new TreeBuilder('folded');
  const out = t.tensor('out', type);
  const wanted: (Scalar | undefined)[] = [];
  for (const operator of operators) {
    for (const a of picked)
      for (const b of picked) {
        const shift = operator === 'shl' || operator === 'shr';
        out.put(wanted.length, {
          op: 'binary',
          type,
          span: constant(0).span,
          operator,
          left: constant(a, type),
          right: shift ? constant(Number(BigInt.asUintN(32, big(b))), 'u32') : constant(b, type),
        });
        wanted.push(expectedBinary(type, operator, a, b));
      }
  }
  const { of } = runKernel(t.tree, {
    values: { out: make(wanted.map(() => (typeof values[0] === 'bigint' ? 0n : 0))) },
    block: [1],
  });
  const got = of('out');
  const wrong = wanted
    .map((value, at) => (differ(got[at]!, value) ? `${at}: ${got[at]!}, not ${value!}` : ''))
    .filter(Boolean);
  expect(wrong.slice(0, 8)).toEqual([]);
});
