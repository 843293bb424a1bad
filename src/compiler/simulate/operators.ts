/** The tree's operators as JavaScript: one row for each, by the type that it works on. */
import type {
  ApproximateName,
  BinaryOperator,
  CompareOperator,
  UnaryOperator,
  ValueType,
} from '../tree.js';
import type { Rope } from './mapped-text.js';

/** Text of an expression, and its precedence. */
export interface Js {
  readonly rope: Rope;
  readonly precedence: number;
}

/** JavaScript's precedences, from loose to tight. */
export const PRECEDENCE = {
  comma: 1,
  assign: 2,
  conditional: 3,
  or: 4,
  and: 5,
  bitOr: 6,
  bitXor: 7,
  bitAnd: 8,
  equality: 9,
  relation: 10,
  shift: 11,
  sum: 12,
  product: 13,
  unary: 15,
  call: 18,
  primary: 20,
} as const;

const INFIX: Readonly<Record<string, number>> = {
  '||': PRECEDENCE.or,
  '&&': PRECEDENCE.and,
  '|': PRECEDENCE.bitOr,
  '^': PRECEDENCE.bitXor,
  '&': PRECEDENCE.bitAnd,
  '===': PRECEDENCE.equality,
  '!==': PRECEDENCE.equality,
  '<': PRECEDENCE.relation,
  '<=': PRECEDENCE.relation,
  '>': PRECEDENCE.relation,
  '>=': PRECEDENCE.relation,
  '<<': PRECEDENCE.shift,
  '>>': PRECEDENCE.shift,
  '>>>': PRECEDENCE.shift,
  '+': PRECEDENCE.sum,
  '-': PRECEDENCE.sum,
  '*': PRECEDENCE.product,
  '/': PRECEDENCE.product,
  '%': PRECEDENCE.product,
};

export const primary = (rope: Rope): Js => ({ rope, precedence: PRECEDENCE.primary });

/** The text in parentheses, unless its precedence is at least that. */
export function bound(js: Js, precedence: number): Rope {
  return js.precedence >= precedence ? js.rope : ['(', js.rope, ')'];
}

export function infix(operator: string, left: Js, right: Js): Js {
  const precedence = INFIX[operator]!;
  return {
    rope: [bound(left, precedence), ` ${operator} `, bound(right, precedence + 1)],
    precedence,
  };
}

/**
 * Writes a prefix operator. A sign before a sign would be another operator, so an operand with a
 * prefix is put in parentheses.
 */
export const prefix = (operator: string, operand: Js): Js => ({
  rope: [operator, bound(operand, PRECEDENCE.call)],
  precedence: PRECEDENCE.unary,
});

/** Writes a call; functions of the runtime are recorded as used. */
export type Call = (name: string, ...operands: readonly Js[]) => Js;

const ZERO = primary('0');
const asI32 = (js: Js): Js => infix('|', js, ZERO);
const asU32 = (js: Js): Js => infix('>>>', js, ZERO);

/** Wraps or rounds the result of a JavaScript operator to the type. */
export function settle(type: ValueType, js: Js, call: Call): Js {
  switch (type) {
    case 'i32':
      return asI32(js);
    case 'u32':
      return asU32(js);
    case 'i64':
      return call('asI64', js);
    case 'u64':
      return call('asU64', js);
    case 'f32':
      return call('fround', js);
    default:
      return js;
  }
}

type BinaryRow = (type: ValueType, a: Js, b: Js, call: Call) => Js;

const is64 = (type: ValueType): boolean => type === 'i64' || type === 'u64';
const isFloat = (type: ValueType): boolean => type === 'f32' || type === 'f64';

const plain =
  (operator: string): BinaryRow =>
  (type, a, b, call) =>
    settle(type, infix(operator, a, b), call);
/** The result of a u32 is signed here. */
const bitwise =
  (operator: string): BinaryRow =>
  (type, a, b) => {
    const js = infix(operator, a, b);
    if (type === 'u32') return asU32(js);
    return type === 'bool' ? infix('!==', js, ZERO) : js;
  };
const extreme =
  (name: 'min' | 'max'): BinaryRow =>
  (type, a, b, call) =>
    call(is64(type) ? `${name}64` : `Math.${name}`, a, b);

/** The distance of a shift of 64 bits. */
const distance = (js: Js, call: Call): Js => call('BigInt', infix('&', js, primary('63')));

const BINARY: Readonly<Record<BinaryOperator, BinaryRow>> = {
  add: plain('+'),
  sub: plain('-'),
  mul: (type, a, b, call) =>
    type === 'i32'
      ? call('imul', a, b)
      : type === 'u32'
        ? asU32(call('imul', a, b))
        : plain('*')(type, a, b, call),
  div: (type, a, b, call) =>
    is64(type) ? settle(type, call('divide64', a, b), call) : plain('/')(type, a, b, call),
  // The remainder of two f32 is an f32.
  rem: (type, a, b, call) =>
    is64(type)
      ? call('remainder64', a, b)
      : isFloat(type)
        ? infix('%', a, b)
        : plain('%')(type, a, b, call),
  and: bitwise('&'),
  or: bitwise('|'),
  xor: bitwise('^'),
  shl: (type, a, b, call) =>
    is64(type)
      ? settle(type, infix('<<', a, distance(b, call)), call)
      : bitwise('<<')(type, a, b, call),
  shr: (type, a, b, call) =>
    is64(type) ? infix('>>', a, distance(b, call)) : infix(type === 'u32' ? '>>>' : '>>', a, b),
  min: extreme('min'),
  max: extreme('max'),
  mulhi: (type, a, b, call) =>
    call(is64(type) ? 'mulhi64' : type === 'i32' ? 'mulhiI32' : 'mulhiU32', a, b),
  copysign: (_type, a, b, call) => call('copysign', a, b),
};

export function binary(operator: BinaryOperator, type: ValueType, a: Js, b: Js, call: Call): Js {
  return BINARY[operator](type, a, b, call);
}

const COMPARE: Readonly<Record<CompareOperator, string>> = {
  lt: '<',
  le: '<=',
  gt: '>',
  ge: '>=',
  eq: '===',
  ne: '!==',
};

export function compare(operator: CompareOperator, a: Js, b: Js): Js {
  return infix(COMPARE[operator], a, b);
}

type UnaryRow = (type: ValueType, a: Js, call: Call) => Js;

const floatOnly =
  (name: string): UnaryRow =>
  (type, a, call) =>
    isFloat(type) ? call(name, a) : a;

/** `type`: of the operand. Counts are numbers; the caller converts them to another type. */
const UNARY: Readonly<Record<UnaryOperator, UnaryRow>> = {
  neg: (type, a, call) => (isFloat(type) ? prefix('-', a) : settle(type, prefix('-', a), call)),
  not: (type, a, call) =>
    type === 'bool'
      ? prefix('!', a)
      : type === 'i32'
        ? prefix('~', a)
        : settle(type, prefix('~', a), call),
  abs: (type, a, call) => {
    if (type === 'u32' || type === 'u64' || type === 'bool') return a;
    if (isFloat(type)) return call('Math.abs', a);
    return type === 'i32' ? asI32(call('Math.abs', a)) : call('absI64', a);
  },
  floor: floatOnly('Math.floor'),
  ceil: floatOnly('Math.ceil'),
  trunc: floatOnly('Math.trunc'),
  rint: floatOnly('rint'),
  sqrt: (type, a, call) => settle(type, call('Math.sqrt', a), call),
  popc: (type, a, call) => call(is64(type) ? 'popcount64' : 'popcount', a),
  clz: (type, a, call) => call(is64(type) ? 'clz64' : 'Math.clz32', a),
  brev: (type, a, call) =>
    is64(type)
      ? settle(type, call('reverseBits64', a), call)
      : settle(type, call('reverseBits', a), call),
};

/**
 * `result` differs from the operand's type, where the bits of 64-bit integers are counted as a
 * 32-bit one.
 */
export function unary(
  operator: UnaryOperator,
  result: ValueType,
  type: ValueType,
  a: Js,
  call: Call,
): Js {
  const js = UNARY[operator](type, a, call);
  const counts = operator === 'popc' || operator === 'clz';
  return counts && is64(result) ? call('BigInt', js) : js;
}

type Conversion = (a: Js, call: Call) => Js;

const same: Conversion = (a) => a;
const through =
  (name: string): Conversion =>
  (a, call) =>
    call(name, a);
const number =
  (settled: Conversion): Conversion =>
  (a, call) =>
    settled(call('Number', call('asI32Bits', a)), call);

const CONVERT: Readonly<Record<ValueType, Readonly<Record<ValueType, Conversion>>>> = {
  bool: {
    bool: same,
    i32: through('Number'),
    u32: through('Number'),
    i64: through('BigInt'),
    u64: through('BigInt'),
    f32: through('Number'),
    f64: through('Number'),
  },
  i32: {
    bool: (a) => infix('!==', a, ZERO),
    i32: same,
    u32: asU32,
    i64: through('BigInt'),
    u64: (a, call) => call('asU64', call('BigInt', a)),
    f32: through('fround'),
    f64: same,
  },
  u32: {
    bool: (a) => infix('!==', a, ZERO),
    i32: asI32,
    u32: same,
    i64: through('BigInt'),
    u64: through('BigInt'),
    f32: through('fround'),
    f64: same,
  },
  i64: {
    bool: (a) => infix('!==', a, primary('0n')),
    i32: number(same),
    u32: number(asU32),
    i64: same,
    u64: through('asU64'),
    f32: through('i64ToF32'),
    f64: through('Number'),
  },
  u64: {
    bool: (a) => infix('!==', a, primary('0n')),
    i32: number(same),
    u32: number(asU32),
    i64: through('asI64'),
    u64: same,
    f32: through('i64ToF32'),
    f64: through('Number'),
  },
  f32: {
    bool: (a) => infix('!==', a, ZERO),
    i32: through('floatToI32'),
    u32: through('floatToU32'),
    i64: through('floatToI64'),
    u64: through('floatToU64'),
    f32: same,
    f64: same,
  },
  f64: {
    bool: (a) => infix('!==', a, ZERO),
    i32: through('floatToI32'),
    u32: through('floatToU32'),
    i64: through('floatToI64'),
    u64: through('floatToU64'),
    f32: through('fround'),
    f64: same,
  },
};

export function convert(from: ValueType, to: ValueType, a: Js, call: Call): Js {
  return CONVERT[from][to](a, call);
}

const BITCAST: Partial<Record<ValueType, Partial<Record<ValueType, Conversion>>>> = {
  f32: { u32: through('bitsOfF32'), i32: (a, call) => asI32(call('bitsOfF32', a)) },
  f64: { u64: through('bitsOfF64'), i64: (a, call) => call('asI64', call('bitsOfF64', a)) },
  u32: { f32: through('f32OfBits') },
  i32: { f32: through('f32OfBits') },
  u64: { f64: through('f64OfBits') },
  i64: { f64: (a, call) => call('f64OfBits', call('asU64', a)) },
};

/** Between integers of one size a bit cast is a conversion. */
export function bitcast(from: ValueType, to: ValueType, a: Js, call: Call): Js {
  return (BITCAST[from]?.[to] ?? CONVERT[from][to])(a, call);
}

/**
 * Approximate functions, computed in f64 and rounded once, as on the CPU device; a GPU's results
 * differ in the last bits.
 */
const APPROXIMATE: Readonly<Record<ApproximateName, (operands: readonly Js[], call: Call) => Js>> =
  {
    div: ([a, b]) => infix('/', a!, b!),
    rcp: ([a]) => infix('/', primary('1'), a!),
    sqrt: ([a], call) => call('Math.sqrt', a!),
    rsqrt: ([a], call) => infix('/', primary('1'), call('Math.sqrt', a!)),
    ex2: ([a], call) => call('Math.pow', primary('2'), a!),
    lg2: ([a], call) => call('Math.log2', a!),
    sin: ([a], call) => call('Math.sin', a!),
    cos: ([a], call) => call('Math.cos', a!),
    tanh: ([a], call) => call('Math.tanh', a!),
  };

export function approximate(name: ApproximateName, operands: readonly Js[], call: Call): Js {
  return call('fround', APPROXIMATE[name](operands, call));
}
