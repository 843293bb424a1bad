/** Simpler forms of operations that give the same bits: integers are reordered, floats never. */
import { foldConstants } from './fold.js';
import { resolve } from './function.js';
import type { Constant, NumberType, RegisterType, SsaFunction, Value } from './function.js';
import { pureOperations } from './operations.js';
import { rangeOf } from './ranges.js';
import { isNeverPositive } from './signs.js';

/** Makes operations, and simplifies them first. */
export type Make = (
  op: string,
  type: RegisterType,
  args: Value[],
  detail?: string,
  as?: NumberType,
) => Value;

export interface Shape {
  readonly op: string;
  readonly type: RegisterType;
  readonly args: Value[];
  readonly detail: string;
  readonly as: NumberType | undefined;
}

/**
 * The negation of a comparison. Comparisons of floats that are false for NaN become ones that are
 * true for it.
 */
const inverseOfIntegers: Readonly<Record<string, string>> = {
  lt: 'ge',
  ge: 'lt',
  gt: 'le',
  le: 'gt',
  eq: 'ne',
  ne: 'eq',
};
const inverseOfFloats: Readonly<Record<string, string>> = {
  lt: 'geu',
  ge: 'ltu',
  gt: 'leu',
  le: 'gtu',
  eq: 'ne',
  ne: 'eq',
  ltu: 'ge',
  geu: 'lt',
  gtu: 'le',
  leu: 'gt',
  nan: 'num',
  num: 'nan',
};
const swapped: Readonly<Record<string, string>> = {
  lt: 'gt',
  gt: 'lt',
  le: 'ge',
  ge: 'le',
  eq: 'eq',
  ne: 'ne',
};

const isZero = (value: Value): boolean => value.constant === 0 || value.constant === 0n;
const isOne = (value: Value): boolean => value.constant === 1 || value.constant === 1n;
const isOnes = (value: Value): boolean => value.constant === -1 || value.constant === -1n;

/** k where the value is 2^k and positive as a signed number, k > 0. */
function powerOfTwo(value: Value): number | undefined {
  const { constant } = value;
  if (value.type !== 'b32' && value.type !== 'b64') return undefined;
  const number = Number(constant);
  if (!(number > 1) || number > 2 ** 62) return undefined;
  const log = Math.log2(number);
  return Number.isInteger(log) &&
    (value.type === 'b64' ? 1n << BigInt(log) === constant : 2 ** log === constant)
    ? log
    : undefined;
}

type Rule = (shape: Shape, a: Value, b: Value, make: Make, f: SsaFunction) => Value | undefined;

const integer = (type: RegisterType): boolean => type === 'b32' || type === 'b64';

const rules: Readonly<Record<string, Rule>> = {
  add({ type }, a, b, make, f) {
    if (!integer(type)) {
      // x + -0 is x for every x; x + 0 turns -0 to 0.
      return Object.is(b.constant, -0) ? a : undefined;
    }
    if (isZero(b)) return a;
    if (b.constant !== undefined && a.op === 'add' && resolve(a.args[1]!).constant !== undefined) {
      return make('add', type, [
        resolve(a.args[0]!),
        f.constant(type, sum(resolve(a.args[1]!).constant!, b.constant)),
      ]);
    }
    // Constants move outwards, where addresses use them.
    if (b.constant === undefined) {
      const [left, right] = [constantAdded(a), constantAdded(b)];
      if (left) return make('add', type, [make('add', type, [left[0], b]), left[1]]);
      if (right) return make('add', type, [make('add', type, [a, right[0]]), right[1]]);
      if (b.op === 'neg') return make('sub', type, [a, resolve(b.args[0]!)]);
    }
    return undefined;
  },
  sub({ type }, a, b, make, f) {
    if (!integer(type)) return Object.is(b.constant, 0) ? a : undefined;
    if (a === b) return f.constant(type, 0);
    if (b.constant !== undefined)
      return make('add', type, [a, f.constant(type, negative(b.constant))]);
    if (isZero(a)) return make('neg', type, [b]);
    const left = constantAdded(a);
    if (left) return make('add', type, [make('sub', type, [left[0], b]), left[1]]);
    const right = constantAdded(b);
    if (right)
      return make('add', type, [
        make('sub', type, [a, right[0]]),
        f.constant(type, negative(right[1].constant!)),
      ]);
    if (a.op === 'add') {
      if (resolve(a.args[0]!) === b) return resolve(a.args[1]!);
      if (resolve(a.args[1]!) === b) return resolve(a.args[0]!);
    }
    return undefined;
  },
  mul({ type }, a, b, make, f) {
    if (isOne(b)) return a;
    if (!integer(type)) return undefined;
    if (isZero(b)) return b;
    if (isOnes(b)) return make('neg', type, [a]);
    if (b.constant !== undefined && a.op === 'mul' && resolve(a.args[1]!).constant !== undefined) {
      return make('mul', type, [
        resolve(a.args[0]!),
        f.constant(type, product(resolve(a.args[1]!).constant!, b.constant)),
      ]);
    }
    // A constant factor of a sum with a constant: the constant moves outwards.
    const added = b.constant === undefined ? undefined : constantAdded(a);
    if (added)
      return make('add', type, [
        make('mul', type, [added[0], b]),
        f.constant(type, product(added[1].constant!, b.constant!)),
      ]);
    const by = powerOfTwo(b);
    if (by !== undefined && type === 'b32') return make('shl', type, [a, f.constant('b32', by)]);
    if (type === 'b64' && a.op === 'extend') {
      const from = resolve(a.args[0]!);
      const { constant } = b;
      if (typeof constant === 'bigint' && constant >= 0n && constant < 2n ** 31n)
        return make('wide', 'b64', [from, f.constant('b32', constant)], '', a.as);
      if (b.op === 'extend' && b.as === a.as)
        return make('wide', 'b64', [from, resolve(b.args[0]!)], '', a.as);
    }
    if (type === 'b64' && by !== undefined) return make('shl', type, [a, f.constant('b32', by)]);
    return undefined;
  },
  wide: (_, a, b, make, f) =>
    isZero(b) ? f.constant('b64', 0) : isOne(b) ? make('extend', 'b64', [a], '', _.as) : undefined,
  div({ type, as }, a, b, make, f) {
    if (isOne(b)) return a;
    if (!integer(type)) {
      const { constant } = b;
      // The reciprocal of a power of two is exact, so its product rounds as the quotient does.
      if (typeof constant === 'number' && constant !== 0 && Number.isFinite(constant)) {
        const inverse = type === 'f32' ? Math.fround(1 / constant) : 1 / constant;
        const normal = type === 'f32' ? 2 ** -126 : 2 ** -1022;
        if (
          Math.abs(inverse) >= normal &&
          Number.isFinite(inverse) &&
          Number.isInteger(Math.log2(Math.abs(constant)))
        ) {
          return make('mul', type, [a, f.constant(type, inverse)]);
        }
      }
      return undefined;
    }
    const by = powerOfTwo(b);
    if (by === undefined) return undefined;
    const isUnsigned = as === 'u32' || as === 'u64';
    if (isUnsigned || rangeOf(a)[0] >= 0)
      return make(
        'shr',
        type,
        [a, f.constant('b32', by)],
        '',
        isUnsigned ? as : type === 'b32' ? 'u32' : 's64',
      );
    return undefined;
  },
  rem({ type, as }, a, b, make, f) {
    if (!integer(type)) return undefined;
    const by = powerOfTwo(b);
    if (by === undefined) return isOne(b) ? f.constant(type, 0) : undefined;
    if (as === 'u32' || as === 'u64' || rangeOf(a)[0] >= 0)
      return make('and', type, [
        a,
        f.constant(type, type === 'b32' ? 2 ** by - 1 : (1n << BigInt(by)) - 1n),
      ]);
    return undefined;
  },
  and({ type }, a, b, make) {
    if (a === b) return a;
    if (type === 'pred') return b.constant === undefined ? undefined : b.constant ? a : b;
    if (isZero(b)) return b;
    if (isOnes(b)) return a;
    const masked = rangeOf(a);
    if (
      type === 'b32' &&
      typeof b.constant === 'number' &&
      b.constant > 0 &&
      (b.constant & (b.constant + 1)) === 0 &&
      masked[0] >= 0 &&
      masked[1] <= b.constant
    )
      return a;
    return a.op === 'and' && b.constant !== undefined && resolve(a.args[1]!).constant !== undefined
      ? make('and', type, [resolve(a.args[0]!), make('and', type, [resolve(a.args[1]!), b])])
      : undefined;
  },
  or({ type }, a, b) {
    if (a === b) return a;
    if (type === 'pred') return b.constant === undefined ? undefined : b.constant ? b : a;
    return isZero(b) ? a : isOnes(b) ? b : undefined;
  },
  xor({ type }, a, b, make, f) {
    if (a === b) return f.constant(type, type === 'pred' ? false : 0);
    if (type === 'pred')
      return b.constant === undefined ? undefined : b.constant ? make('not', 'pred', [a]) : a;
    return isZero(b) ? a : isOnes(b) ? make('not', type, [a]) : undefined;
  },
  not({ type }, a, _, make) {
    if (a.op === 'not') return resolve(a.args[0]!);
    if (type === 'pred' && a.op === 'compare') {
      const inverse = (a.as === 'f32' || a.as === 'f64' ? inverseOfFloats : inverseOfIntegers)[
        a.detail
      ];
      if (inverse !== undefined) return make('compare', 'pred', a.args.map(resolve), inverse, a.as);
    }
    return undefined;
  },
  neg: (_, a) => (a.op === 'neg' ? resolve(a.args[0]!) : undefined),
  shl({ type }, a, b, make, f) {
    if (isZero(b)) return a;
    const { constant } = b;
    if (typeof constant !== 'number') return undefined;
    // This is the form of an address: an element's bytes, with the constant added after.
    if (a.op === 'shl' && typeof resolve(a.args[1]!).constant === 'number') {
      const total = (resolve(a.args[1]!).constant as number) + constant;
      return total < (type === 'b32' ? 32 : 64)
        ? make('shl', type, [resolve(a.args[0]!), f.constant('b32', total)])
        : f.constant(type, 0);
    }
    const added = type === 'b32' ? constantAdded(a) : undefined;
    if (added)
      return make('add', type, [
        make('shl', type, [added[0], b]),
        f.constant(type, (added[1].constant as number) << constant),
      ]);
    if (type === 'b64' && a.op === 'extend' && constant < 31)
      return make('wide', 'b64', [resolve(a.args[0]!), f.constant('b32', 2 ** constant)], '', a.as);
    return undefined;
  },
  shr({ type }, a, b, _, f) {
    if (isZero(b) || isZero(a)) return a;
    const { constant } = b;
    const [low, high] = rangeOf(a);
    return type === 'b32' &&
      typeof constant === 'number' &&
      constant < 32 &&
      low >= 0 &&
      high < 2 ** constant
      ? f.constant('b32', 0)
      : undefined;
  },
  min({ type, as }, a, b) {
    if (a === b) return a;
    // A NaN operand gives NaN, which stays.
    if (!integer(type))
      return typeof b.constant === 'number' && b.constant > 0 && isNeverPositive(a) ? a : undefined;
    return as === 's32' ? chosen(a, b, true) : undefined;
  },
  max: ({ as }, a, b) => (a === b ? a : as === 's32' ? chosen(a, b, false) : undefined),
  compare({ detail, as }, a, b, make, f) {
    if (a.constant !== undefined && b.constant === undefined && swapped[detail] !== undefined)
      return make('compare', 'pred', [b, a], swapped[detail], as);
    if (as === 'f32' || as === 'f64')
      return detail === 'gt' && Object.is(b.constant, 0) && isNeverPositive(a)
        ? f.constant('pred', false)
        : undefined;
    if (a === b) return f.constant('pred', detail === 'le' || detail === 'ge' || detail === 'eq');
    if (as === 'pred' && b.constant !== undefined) {
      return (detail === 'ne') === b.constant ? make('not', 'pred', [a]) : a;
    }
    const flag =
      a.op === 'select' && resolve(a.args[1]!).constant === 1 && isZero(resolve(a.args[2]!));
    if (flag && isZero(b) && (detail === 'ne' || detail === 'eq')) {
      const test = resolve(a.args[0]!);
      return detail === 'ne' ? test : make('not', 'pred', [test]);
    }
    if (as === 's32' || as === 'u32') {
      const [x, y] = [rangeOf(a), rangeOf(b)];
      if (as === 'u32' && (x[0] < 0 || y[0] < 0)) return undefined;
      if (
        (detail === 'lt' && x[1] < y[0]) ||
        (detail === 'le' && x[1] <= y[0]) ||
        (detail === 'gt' && x[0] > y[1]) ||
        (detail === 'ge' && x[0] >= y[1])
      )
        return f.constant('pred', true);
      if (
        (detail === 'lt' && x[0] >= y[1]) ||
        (detail === 'le' && x[0] > y[1]) ||
        (detail === 'gt' && x[1] <= y[0]) ||
        (detail === 'ge' && x[1] < y[0])
      )
        return f.constant('pred', false);
    }
    return undefined;
  },
  select({ type, args }, a, b, make) {
    const c = resolve(args[2]!);
    if (a.constant !== undefined) return a.constant ? b : c;
    if (b === c) return b;
    if (a.op === 'not') return make('select', type, [resolve(a.args[0]!), c, b]);
    if (type !== 'pred') return undefined;
    if (b.constant === true) return make('or', 'pred', [a, c]);
    if (b.constant === false) return make('and', 'pred', [make('not', 'pred', [a]), c]);
    if (c.constant === false) return make('and', 'pred', [a, b]);
    if (c.constant === true) return make('or', 'pred', [make('not', 'pred', [a]), b]);
    return make('or', 'pred', [
      make('and', 'pred', [a, b]),
      make('and', 'pred', [make('not', 'pred', [a]), c]),
    ]);
  },
  truncate(_, a, __, make) {
    if (a.op === 'extend') return resolve(a.args[0]!);
    if (a.op === 'pair') return resolve(a.args[0]!);
    if (a.op === 'wide') return make('mul', 'b32', a.args.map(resolve));
    return undefined;
  },
  narrow({ detail }, a) {
    const range = rangeOf(a);
    const [low, high] =
      detail === 'u8'
        ? [0, 255]
        : detail === 'u16'
          ? [0, 65535]
          : detail === 's8'
            ? [-128, 127]
            : [-32768, 32767];
    return range[0] >= low && range[1] <= high ? a : undefined;
  },
  bits({ type }, a, _, make) {
    if (a.op !== 'bits') return undefined;
    const inner = resolve(a.args[0]!);
    return inner.type === type ? inner : a.type === 'b16' ? undefined : make('bits', type, [inner]);
  },
  lowHalf: (_, a, __, ___, f) => halfOf(a, 0, f),
  highHalf: (_, a, __, ___, f) => halfOf(a, 1, f),
  halves(_, a, b, __, f) {
    if (a.constant !== undefined && b.constant !== undefined)
      return f.constant('b32', ((a.constant as number) & 0xffff) | ((b.constant as number) << 16));
    const word = a.op === 'lowHalf' && b.op === 'highHalf' ? resolve(a.args[0]!) : undefined;
    return word !== undefined && word === resolve(b.args[0]!) ? word : undefined;
  },
  convert({ detail }, a) {
    // The value comes back from a wider float without a loss.
    return detail === 'f32.f64' && a.op === 'convert' && a.detail === 'f64.f32'
      ? resolve(a.args[0]!)
      : undefined;
  },
};

function halfOf(word: Value, which: 0 | 1, f: SsaFunction): Value | undefined {
  if (word.constant !== undefined)
    return f.constant('b16', ((word.constant as number) >>> (16 * which)) & 0xffff);
  return word.op === 'halves' ? resolve(word.args[which]!) : undefined;
}

function chosen(a: Value, b: Value, smaller: boolean): Value | undefined {
  const [x, y] = [rangeOf(a), rangeOf(b)];
  if (x[1] <= y[0]) return smaller ? a : b;
  if (y[1] <= x[0]) return smaller ? b : a;
  return undefined;
}

const sum = (a: Constant, b: Constant): Constant =>
  typeof a === 'bigint' ? a + (b as bigint) : ((a as number) + (b as number)) | 0;
const product = (a: Constant, b: Constant): Constant =>
  typeof a === 'bigint' ? a * (b as bigint) : Math.imul(a as number, b as number);
const negative = (a: Constant): Constant => (typeof a === 'bigint' ? -a : -(a as number) | 0);

/** x and c of x + c. */
export function constantAdded(value: Value): [Value, Value] | undefined {
  if (value.op !== 'add' || (value.type !== 'b32' && value.type !== 'b64')) return undefined;
  const right = resolve(value.args[1]!);
  return right.constant === undefined ? undefined : [resolve(value.args[0]!), right];
}

/**
 * Gives a simpler value for the operation; undefined where it stays. `make` makes the operations of
 * that value.
 */
export function simplify(shape: Shape, make: Make, f: SsaFunction): Value | undefined {
  const { op, type, args, detail, as } = shape;
  const facts = pureOperations[op];
  if (facts === undefined) return undefined;
  if (args.length > 0 && args.every((arg) => arg.constant !== undefined)) {
    const folded = foldConstants(
      op,
      type,
      detail,
      as,
      args.map((arg) => arg.constant!),
    );
    if (folded !== undefined) return f.constant(type, folded);
  }
  if (facts.commutes && args[0]!.constant !== undefined && args[1]!.constant === undefined)
    [args[0], args[1]] = [args[1]!, args[0]!];
  return rules[op]?.(shape, args[0]!, args[1]!, make, f);
}
