/** Operators of the tree as operations on each element of tiles: one row each. */
import type { AttributesOf } from '../../tileir/index.js';
import type {
  ApproximateName,
  BinaryOperator,
  CompareOperator,
  UnaryOperator,
  ValueType,
} from '../tree.js';
import { BITS, isFloat, signOf } from './element-types.js';
import type { Tile, TileBuilder } from './tile-values.js';

/** Undefined where Tile IR has no such operation. */
type Unary = (to: TileBuilder, operand: Tile) => Tile | undefined;
type Binary = (to: TileBuilder, left: Tile, right: Tile) => Tile | undefined;

const NEAREST = { rounding: 'nearestEven' } as const;
const WRAPS = { overflow: 'none' } as const;

/** The integer type of a float's bits. */
const bitsType = (type: ValueType): ValueType => (BITS[type] === 64 ? 'u64' : 'u32');
export const bitcast = (to: TileBuilder, operand: Tile, type: ValueType): Tile =>
  (isFloat(operand.type) || isFloat(type)) && operand.type !== type
    ? to.each('bitcast', type, [operand], {})
    : { ...operand, type };

const signBit = (type: ValueType): bigint => 1n << BigInt(BITS[type] - 1);

/** The magnitude of one float with the sign of another. */
function copySign(to: TileBuilder, magnitude: Tile, sign: Tile): Tile {
  const { type } = magnitude;
  const bits = bitsType(type);
  const mask = signBit(type);
  const and = (value: Tile, with_: bigint): Tile =>
    to.each('andi', bits, [bitcast(to, value, bits), to.constant(with_, bits)], {});
  return bitcast(to, to.each('ori', bits, [and(magnitude, mask - 1n), and(sign, mask)], {}), type);
}

/**
 * The nearest integer, ties to even: adding and subtracting a power of two of which the last place
 * is 1 rounds every smaller magnitude, and larger ones are integers.
 */
function nearestInteger(to: TileBuilder, operand: Tile): Tile {
  const { type } = operand;
  const power = to.constant(type === 'f64' ? 2 ** 52 : 2 ** 23, type);
  const magnitude = to.each('absf', type, [operand], {});
  const shifted = to.each('addf', type, [magnitude, power], NEAREST);
  const whole = to.each('subf', type, [shifted, power], NEAREST);
  const isSmall = to.each('cmpf', 'bool', [magnitude, power], {
    predicate: 'lessThan',
    ordering: 'ordered',
  });
  return to.select(isSmall, copySign(to, whole, operand), operand);
}

/** Leading zeros of 32 bits: half of the bits that are left are looked at in each step. */
function leadingZeros(to: TileBuilder, operand: Tile): Tile | undefined {
  if (BITS[operand.type] !== 32) return undefined;
  const number = (value: number): Tile => to.constant(value, 'u32');
  let rest: Tile = { ...operand, type: 'u32' };
  let zeros = number(32);
  for (const bits of [16, 8, 4, 2, 1]) {
    const upper = to.each('shri', 'u32', [rest, number(bits)], { signedness: 'unsigned' });
    const isSet = to.compare('notEqual', upper, number(0));
    zeros = to.select(isSet, to.integer('subi', zeros, number(bits)), zeros);
    rest = to.select(isSet, upper, rest);
  }
  // What is left is 0 or 1.
  return { ...to.integer('subi', zeros, rest), type: 'i32' };
}

/** One operation for floats, and one for integers. */
const either =
  (ofFloats: Unary, ofIntegers: Unary): Unary =>
  (to, operand) =>
    isFloat(operand.type) ? ofFloats(to, operand) : ofIntegers(to, operand);
const plain =
  (name: 'absf' | 'negf' | 'floor' | 'ceil'): Unary =>
  (to, operand) =>
    to.each(name, operand.type, [operand], {});
const none: Unary = () => undefined;

export const UNARY: Readonly<Record<UnaryOperator, Unary>> = {
  neg: either(plain('negf'), (to, operand) =>
    to.each('subi', operand.type, [to.constant(0, operand.type), operand], WRAPS),
  ),
  not: (to, operand) =>
    to.each(
      'xori',
      operand.type,
      [operand, to.constant(operand.type === 'bool' ? true : -1, operand.type)],
      {},
    ),
  abs: either(plain('absf'), (to, operand) => to.each('absi', operand.type, [operand], {})),
  floor: plain('floor'),
  ceil: plain('ceil'),
  trunc: (to, operand) => {
    const isNegative = to.each('cmpf', 'bool', [operand, to.constant(0, operand.type)], {
      predicate: 'lessThan',
      ordering: 'ordered',
    });
    return copySign(
      to,
      to.select(
        isNegative,
        to.each('ceil', operand.type, [operand], {}),
        to.each('floor', operand.type, [operand], {}),
      ),
      operand,
    );
  },
  rint: nearestInteger,
  sqrt: (to, operand) => to.each('sqrt', operand.type, [operand], NEAREST),
  popc: none,
  clz: leadingZeros,
  brev: none,
};

const arithmetic =
  (ofFloats: 'addf' | 'subf' | 'mulf' | 'divf', ofIntegers: Binary): Binary =>
  (to, left, right) =>
    isFloat(left.type)
      ? to.each(ofFloats, left.type, [left, right], NEAREST)
      : ofIntegers(to, left, right);

const wrapping =
  (name: 'addi' | 'subi' | 'muli'): Binary =>
  (to, left, right) =>
    to.each(name, left.type, [left, right], WRAPS);

const bitwise =
  (name: 'andi' | 'ori' | 'xori'): Binary =>
  (to, left, right) =>
    to.each(name, left.type, [left, right], {});

const extreme =
  (ofFloats: 'minf' | 'maxf', ofIntegers: 'mini' | 'maxi', ofBooleans: 'andi' | 'ori'): Binary =>
  (to, left, right) => {
    const { type } = left;
    if (type === 'bool') return to.each(ofBooleans, type, [left, right], {});
    return isFloat(type)
      ? to.each(ofFloats, type, [left, right], {}, ['propagateNaN'])
      : to.each(ofIntegers, type, [left, right], { signedness: signOf(type) });
  };

/** Counts are taken modulo the bits of the value, as in JavaScript. */
const shift =
  (name: 'shli' | 'shri'): Binary =>
  (to, left, right) => {
    const { type } = left;
    const count = convert(to, right, type);
    const within = to.each('andi', type, [count, to.constant(BITS[type] - 1, type)], {});
    return name === 'shli'
      ? to.each('shli', type, [left, within], WRAPS)
      : to.each('shri', type, [left, within], { signedness: signOf(type) });
  };

/** The upper half of a product of 32 bits is that of a product of 64. */
const upperHalf: Binary = (to, left, right) => {
  if (BITS[left.type] !== 32) return undefined;
  const wide: ValueType = left.type === 'i32' ? 'i64' : 'u64';
  const product = to.each('muli', wide, [convert(to, left, wide), convert(to, right, wide)], WRAPS);
  const upper = to.each('shri', wide, [product, to.constant(32, wide)], {
    signedness: signOf(wide),
  });
  return convert(to, upper, left.type);
};

export const BINARY: Readonly<Record<BinaryOperator, Binary>> = {
  add: arithmetic('addf', wrapping('addi')),
  sub: arithmetic('subf', wrapping('subi')),
  mul: arithmetic('mulf', wrapping('muli')),
  div: arithmetic('divf', (to, left, right) =>
    to.each('divi', left.type, [left, right], {
      signedness: signOf(left.type),
      rounding: 'zero',
    }),
  ),
  rem: (to, left, right) =>
    isFloat(left.type)
      ? to.each('remf', left.type, [left, right], {})
      : to.each('remi', left.type, [left, right], { signedness: signOf(left.type) }),
  and: bitwise('andi'),
  or: bitwise('ori'),
  xor: bitwise('xori'),
  shl: shift('shli'),
  shr: shift('shri'),
  min: extreme('minf', 'mini', 'andi'),
  max: extreme('maxf', 'maxi', 'ori'),
  mulhi: upperHalf,
  copysign: copySign,
};

const PREDICATES: Readonly<Record<CompareOperator, AttributesOf<'cmpi'>['predicate']>> = {
  lt: 'lessThan',
  le: 'lessThanOrEqual',
  gt: 'greaterThan',
  ge: 'greaterThanOrEqual',
  eq: 'equal',
  ne: 'notEqual',
};

/** Comparisons with NaN are false, `ne` is true. */
export const compare = (
  to: TileBuilder,
  operator: CompareOperator,
  left: Tile,
  right: Tile,
): Tile =>
  isFloat(left.type)
    ? to.each('cmpf', 'bool', [left, right], {
        predicate: PREDICATES[operator],
        ordering: operator === 'ne' ? 'unordered' : 'ordered',
      })
    : to.compare(PREDICATES[operator], left, right, signOf(left.type));

type Approximate = (to: TileBuilder, operands: readonly Tile[]) => Tile;

const single =
  (name: 'rsqrt' | 'exp2' | 'log2' | 'sin' | 'cos'): Approximate =>
  (to, operands) =>
    to.each(name, operands[0]!.type, operands, {});
const rounded =
  (name: 'divf' | 'sqrt' | 'tanh'): Approximate =>
  (to, operands) =>
    to.each(name, operands[0]!.type, operands, { rounding: 'approximate' });

/** Functions of one instruction, whose results differ in the last bits between devices. */
export const APPROXIMATE: Readonly<Record<ApproximateName, Approximate>> = {
  div: rounded('divf'),
  rcp: (to, [operand]) => rounded('divf')(to, [to.constant(1, operand!.type), operand!]),
  sqrt: rounded('sqrt'),
  rsqrt: single('rsqrt'),
  ex2: single('exp2'),
  lg2: single('log2'),
  sin: single('sin'),
  cos: single('cos'),
  tanh: rounded('tanh'),
};

/** The limits of the values that a conversion to an integer type gives. */
const LIMITS: Readonly<Partial<Record<ValueType, readonly [lowest: bigint, highest: bigint]>>> = {
  i32: [-(2n ** 31n), 2n ** 31n - 1n],
  u32: [0n, 2n ** 32n - 1n],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0n, 2n ** 64n - 1n],
};

/** A float as an integer: cut off, within the limits of the type, and 0 for NaN. */
function floatToInteger(to: TileBuilder, operand: Tile, type: ValueType): Tile {
  const [lowest, highest] = LIMITS[type]!;
  const is = (how: 'lessThan' | 'greaterThanOrEqual' | 'equal', limit: Tile): Tile =>
    to.each('cmpf', 'bool', [operand, limit], { predicate: how, ordering: 'ordered' });
  const ofLimit = (limit: bigint): Tile => to.constant(Number(limit), operand.type);
  const cut = to.each('ftoi', type, [operand], {
    signedness: signOf(type),
    rounding: 'nearestIntToZero',
  });
  // Number(highest) is the power of two above it, or the float below which everything fits.
  const low = to.select(is('lessThan', ofLimit(lowest)), to.constant(lowest, type), cut);
  const high = to.select(
    is('greaterThanOrEqual', ofLimit(highest + 1n)),
    to.constant(highest, type),
    low,
  );
  return to.select(is('equal', operand), high, to.constant(0, type));
}

/** Converts the values of a tile to another type. */
export function convert(to: TileBuilder, operand: Tile, type: ValueType): Tile {
  const from = operand.type;
  if (from === type) return operand;
  if (type === 'bool') return compare(to, 'ne', operand, to.constant(0, from));
  if (isFloat(from) && isFloat(type)) return to.each('ftof', type, [operand], NEAREST);
  if (isFloat(from)) return floatToInteger(to, operand, type);
  if (isFloat(type)) {
    const whole = from === 'bool' ? convert(to, operand, 'i32') : operand;
    return to.each('itof', type, [whole], { signedness: signOf(whole.type), ...NEAREST });
  }
  return resized(to, operand, type);
}

/** An integer, or a boolean, in a type of as many bits, more or fewer. */
function resized(to: TileBuilder, operand: Tile, type: ValueType): Tile {
  const { type: from } = operand;
  if (BITS[from] === BITS[type]) return { ...operand, type };
  return BITS[from] < BITS[type]
    ? to.each('exti', type, [operand], { signedness: signOf(from) })
    : to.each('trunci', type, [operand], WRAPS);
}
