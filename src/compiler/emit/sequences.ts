/** Operations that take more than one instruction. */
import type { Value } from '../ssa/function.js';
import type { Writer } from './writer.js';

const NAN = '0d7FFFFFFFFFFFFFFF';
const INFINITE = '0d7FF0000000000000';

/**
 * JavaScript's `%`: the remainder after the divisor was subtracted as often as it fits. The
 * quotient, rounded towards zero, has 53 bits; its product with the divisor is exact in fma, and so
 * is the remainder, so that each iteration makes the dividend smaller by 2^52. f32 is computed in
 * f64, where quotients of f32 do not overflow; f64 subtracts multiples of the divisor first.
 */
export function floatRemainder(w: Writer, value: Value): void {
  const [x, y] = value.args.map((arg) => w.operand(arg)) as [string, string];
  const single = value.type === 'f32';
  const [left, by, quotient] = [w.register('f64'), w.register('f64'), w.register('f64')];
  const [a, b] = [w.register('pred'), w.register('pred')];
  const [turn, done] = [w.label(), w.label()];
  const rest = w.register('f64');
  if (single) {
    const [p, q] = [w.register('f32'), w.register('f32')];
    w.line(`abs.f32 ${p}, ${x}`);
    w.line(`abs.f32 ${q}, ${y}`);
    w.line(`cvt.f64.f32 ${left}, ${p}`);
    w.line(`cvt.f64.f32 ${by}, ${q}`);
  } else {
    w.line(`abs.f64 ${left}, ${x}`);
    w.line(`abs.f64 ${by}, ${y}`);
  }
  w.line(`setp.lt.f64 ${a}, ${left}, ${INFINITE}`);
  w.line(`setp.gt.f64 ${b}, ${by}, 0d0000000000000000`);
  w.line(`and.pred ${a}, ${a}, ${b}`);
  w.line(`selp.f64 ${rest}, ${left}, ${NAN}, ${a}`);
  let divisor = by;
  const [large, larger] = [w.register('f64'), w.register('f64')];
  if (!single) {
    w.line(`mul.rn.f64 ${large}, ${by}, 0d7830000000000000`);
    w.line(`mul.rn.f64 ${larger}, ${large}, 0d7830000000000000`);
    divisor = w.register('f64');
  }
  w.put(turn);
  // The loop also ends where an operand is NaN.
  w.line(`setp.ge.f64 ${b}, ${rest}, ${by}`);
  w.line(`and.pred ${b}, ${b}, ${a}`);
  w.line(`@!${b} bra ${done}`);
  if (!single) {
    w.line(`setp.ge.f64 ${b}, ${rest}, ${large}`);
    w.line(`selp.f64 ${divisor}, ${large}, ${by}, ${b}`);
    w.line(`setp.ge.f64 ${b}, ${rest}, ${larger}`);
    w.line(`selp.f64 ${divisor}, ${larger}, ${divisor}, ${b}`);
  }
  w.line(`div.rz.f64 ${quotient}, ${rest}, ${divisor}`);
  w.line(`cvt.rzi.f64.f64 ${quotient}, ${quotient}`);
  w.line(`neg.f64 ${quotient}, ${quotient}`);
  w.line(`fma.rn.f64 ${rest}, ${quotient}, ${divisor}, ${rest}`);
  w.line(`bra ${turn}`);
  w.put(done);
  const result = w.operand(value);
  if (single) {
    const f = w.register('f32');
    w.line(`cvt.rn.f32.f64 ${f}, ${rest}`);
    w.line(`copysign.f32 ${result}, ${x}, ${f}`);
  } else w.line(`copysign.f64 ${result}, ${x}, ${rest}`);
}

/**
 * A NaN operand gives NaN: PTX's own min and max give the other operand. The forms that propagate
 * NaN exist for f32 from sm_80.
 */
export function floatExtreme(w: Writer, value: Value): void {
  const { op, type } = value;
  const [a, b] = value.args.map((arg) => w.operand(arg)) as [string, string];
  const result = w.operand(value);
  if (type === 'f32' && w.capability >= 80) {
    w.line(`${op}.NaN.f32 ${result}, ${a}, ${b}`);
    return;
  }
  const plain = w.register(type);
  const isNaN = w.register('pred');
  w.line(`${op}.${type} ${plain}, ${a}, ${b}`);
  w.line(`setp.nan.${type} ${isNaN}, ${a}, ${b}`);
  w.line(`selp.${type} ${result}, ${type === 'f32' ? '0f7FFFFFFF' : NAN}, ${plain}, ${isNaN}`);
}

/**
 * The barrier of cooperative groups: the first thread of each block adds to a word that the launch
 * provides (%envreg1 and 2). Block 0 adds a number that flips the sum's sign once all blocks have
 * arrived; the blocks wait for that.
 */
export function gridBarrier(w: Writer): void {
  const r = (): string => w.register('b32');
  const [low, high] = [r(), r()];
  const place = w.register('b64');
  const [waits, first] = [w.register('pred'), w.register('pred')];
  const [turn, done] = [w.label(), w.label()];
  w.line(`mov.u32 ${low}, %envreg2`);
  w.line(`mov.u32 ${high}, %envreg1`);
  w.line(`mov.b64 ${place}, {${low}, ${high}}`);
  const sum = (names: readonly string[], join: string): string => {
    const [x, y, z] = names.map((name) => {
      const register = r();
      w.line(`mov.u32 ${register}, ${name}`);
      return register;
    }) as [string, string, string];
    const [one, two] = [r(), r()];
    w.line(`${join} ${one}, ${x}, ${y}`);
    w.line(`${join} ${two}, ${one}, ${z}`);
    return two;
  };
  w.line(`setp.ne.s32 ${waits}, ${sum(['%tid.x', '%tid.y', '%tid.z'], 'or.b32')}, 0`);
  w.line('barrier.sync 0');
  w.line(`@${waits} bra ${done}`);
  w.line(`setp.eq.s32 ${first}, ${sum(['%ctaid.x', '%ctaid.y', '%ctaid.z'], 'or.b32')}, 0`);
  const blocks = sum(['%nctaid.x', '%nctaid.y', '%nctaid.z'], 'mul.lo.s32');
  const [last, added, old, now, changed] = [r(), r(), r(), r(), r()];
  w.line(`sub.s32 ${last}, -2147483647, ${blocks}`);
  w.line(`selp.b32 ${added}, ${last}, 1, ${first}`);
  w.line(`atom.add.release.gpu.u32 ${old}, [${place}+4], ${added}`);
  w.put(turn);
  w.line(`ld.acquire.gpu.u32 ${now}, [${place}+4]`);
  w.line(`xor.b32 ${changed}, ${now}, ${old}`);
  w.line(`setp.gt.s32 ${first}, ${changed}, -1`);
  w.line(`@${first} bra ${turn}`);
  w.put(done);
  w.line('barrier.sync 0');
}

function addressOfText(w: Writer, symbol: string): string {
  const [near, generic] = [w.register('b64'), w.register('b64')];
  w.line(`mov.u64 ${near}, ${symbol}`);
  w.line(`cvta.global.u64 ${generic}, ${near}`);
  return generic;
}

function call(
  w: Writer,
  name: string,
  args: readonly (readonly [type: string, value: string])[],
  result: string | undefined,
): void {
  w.raw('\t{');
  args.forEach(([type, value], at) => {
    w.line(`.param .${type} param${at}`);
    w.line(`st.param.${type} [param${at}], ${value}`);
  });
  if (result !== undefined) w.line('.param .b32 retval0');
  const list = args.map((_, at) => `param${at}`).join(', ');
  w.line(`call.uni ${result === undefined ? '' : '(retval0), '}${name}, (${list})`);
  if (result !== undefined) w.line(`ld.param.b32 ${result}, [retval0]`);
  w.raw('\t}');
}

/** printf: arguments lie in local memory, each at a multiple of its size. */
export function print(w: Writer, value: Value): void {
  w.uses.add('print');
  const stack = w.register('b64');
  w.line(`mov.u64 ${stack}, __print`);
  let offset = 0;
  for (const arg of value.args) {
    const size = arg.type === 'b32' ? 4 : 8;
    offset = Math.ceil(offset / size) * size;
    w.line(
      `st.local.${arg.type === 'f64' ? 'f64' : size === 4 ? 'u32' : 'u64'} ` +
        `[${stack}+${offset}], ${w.operand(arg)}`,
    );
    offset += size;
  }
  let generic = '0';
  if (value.args.length > 0) {
    generic = w.register('b64');
    w.line(`cvta.local.u64 ${generic}, ${stack}`);
  }
  call(
    w,
    'vprintf',
    [
      ['b64', addressOfText(w, value.detail)],
      ['b64', generic],
    ],
    w.register('b32'),
  );
}

/** The assertion as nvcc writes it: message, file, line, function, bytes of a character. */
export function assertion(w: Writer, value: Value): void {
  w.uses.add('assert');
  const passed = w.label();
  const [message, file, name, line] = value.detail.split(' ') as [string, string, string, string];
  const [test] = value.args;
  if (test!.constant === undefined) w.line(`@${w.operand(test!)} bra ${passed}`);
  call(
    w,
    '__assertfail',
    [
      ['b64', addressOfText(w, message)],
      ['b64', addressOfText(w, file)],
      ['b32', line],
      ['b64', addressOfText(w, name)],
      ['b64', '1'],
    ],
    undefined,
  );
  if (test!.constant === undefined) w.put(passed);
}

/** Elements of 16 bits that atomics change. */
export type HalfStorage = 'i16' | 'u16' | 'f16' | 'bf16';

/**
 * Atomics of 16 bits by compare-and-swap, which PTX has for 16 bits, as it has additions of f16 and
 * bf16. The loop retries until no other thread has changed the value in between. Minimum and
 * maximum of a float and NaN give the float. An expected NaN matches any NaN, because a NaN does
 * not keep its bits as f32.
 */
export function halfAtomic(
  w: Writer,
  value: Value,
  {
    operator,
    half,
    where,
    address,
  }: { operator: string; half: HalfStorage; where: string; address: string },
): void {
  const isFloat = half === 'f16' || half === 'bf16';
  const b16 = (): string => w.register('b16');
  const float = (bits: string): string => {
    const register = w.register('f32');
    if (half === 'f16') w.line(`cvt.f32.f16 ${register}, ${bits}`);
    else w.line(`mov.b32 ${register}, {${zero}, ${bits}}`);
    return register;
  };
  const inRegister = (bits: Value): string => {
    const register = b16();
    w.line(`mov.b16 ${register}, ${w.operand(bits)}`);
    return register;
  };
  const zero = half === 'bf16' ? b16() : '';
  if (half === 'bf16') w.line(`mov.b16 ${zero}, 0`);
  const operand = inRegister(value.args.at(-1)!);
  const [seen, turn, changed] = [b16(), w.label(), w.register('pred')];
  const before = w.operand(value);
  if (operator === 'cas') {
    w.line(`mov.b16 ${seen}, ${inRegister(value.args[1]!)}`);
    if (!isFloat) {
      w.line(`atom${where}.cas.b16 ${before}, ${address}, ${seen}, ${operand}`);
      return;
    }
    const [expectsNaN, isNaN] = [w.register('pred'), w.register('pred')];
    const expected = float(seen);
    w.line(`setp.nan.f32 ${expectsNaN}, ${expected}, ${expected}`);
    w.put(turn);
    w.line(`atom${where}.cas.b16 ${before}, ${address}, ${seen}, ${operand}`);
    w.line(`setp.ne.b16 ${changed}, ${before}, ${seen}`);
    const found = float(before);
    w.line(`setp.nan.and.f32 ${isNaN}, ${found}, ${found}, ${expectsNaN}`);
    w.line(`and.pred ${changed}, ${changed}, ${isNaN}`);
    w.line(`mov.b16 ${seen}, ${before}`);
    w.line(`@${changed} bra ${turn}`);
    return;
  }
  const done = w.label();
  const of = isFloat && operator !== 'exch' ? float(operand) : '';
  w.line(`ld.volatile${where.slice(where.lastIndexOf('.'))}.u16 ${seen}, ${address}`);
  w.put(turn);
  let next = operand;
  if (isFloat && (operator === 'min' || operator === 'max')) {
    const changes = w.register('pred');
    w.line(`setp.${operator === 'min' ? 'lt' : 'gt'}.f32 ${changes}, ${of}, ${float(seen)}`);
    w.line(`@!${changes} bra ${done}`);
  } else if (isFloat && operator === 'add') {
    next = b16();
    const sum = w.register('f32');
    w.line(`add.rn.f32 ${sum}, ${float(seen)}, ${of}`);
    w.line(`cvt.rn.${half}.f32 ${next}, ${sum}`);
  } else if (operator !== 'exch') {
    next = b16();
    const type =
      operator === 'add' || operator === 'min' || operator === 'max'
        ? half === 'i16'
          ? 's16'
          : 'u16'
        : 'b16';
    w.line(`${operator}.${type} ${next}, ${seen}, ${operand}`);
  }
  w.line(`atom${where}.cas.b16 ${before}, ${address}, ${seen}, ${next}`);
  w.line(`setp.ne.b16 ${changed}, ${before}, ${seen}`);
  w.line(`mov.b16 ${seen}, ${before}`);
  w.line(`@${changed} bra ${turn}`);
  w.put(done);
  w.line(`mov.b16 ${before}, ${seen}`);
}

/**
 * 1 / d, within less than one unit in the last place of the nearest float: the result of
 * `rcp.approx`, refined once.
 */
export function reciprocal(w: Writer, value: Value): void {
  const divisor = w.operand(value.args[0]!);
  const [near, negative, rest] = [w.register('f32'), w.register('f32'), w.register('f32')];
  w.line(`rcp.approx.ftz.f32 ${near}, ${divisor}`);
  w.line(`neg.f32 ${negative}, ${divisor}`);
  w.line(`fma.rn.f32 ${rest}, ${negative}, ${near}, 0f3F800000`);
  w.line(`fma.rn.f32 ${w.operand(value)}, ${near}, ${rest}, ${near}`);
}

// Within these bounds quotients lie between 2^-124 and 2^124, and remainders are multiples of
// 2^-149.
const [LEAST_DIVISOR, MOST_DIVISOR] = ['0f33800000', '0f4B800000'];
const [LEAST_DIVIDEND, MOST_DIVIDEND] = ['0f0D800000', '0f71800000'];
/**
 * From this mantissa on the reciprocal can be one unit off, and some quotients with it. All others
 * were tested with every possible result of `rcp.approx`, up to one unit beside the nearest float,
 * and with the dividends whose quotients lie nearest to the midpoint of two floats.
 */
const ODD_MANTISSA = 0x7ffffd;
/** The bits of the least dividend without the sign, doubled, less one. */
const LEAST_BITS = 0x0d800000 * 2 - 1;

/** Joins all values by the operation, two by two. */
function joinAll(w: Writer, type: 'f32' | 'b32', operation: string, of: readonly string[]): string {
  let left = [...of];
  while (left.length > 1) {
    const next: string[] = [];
    for (let at = 0; at + 1 < left.length; at += 2) {
      const joined = w.register(type);
      w.line(`${operation} ${joined}, ${left[at]!}, ${left[at + 1]!}`);
      next.push(joined);
    }
    if (left.length % 2 === 1) next.push(left.at(-1)!);
    left = next;
  }
  return left[0]!;
}

/**
 * Divides dividends a by one divisor d through its reciprocal y: q = a y, then q - (d q - a) y,
 * which is rounded as the quotient is where no step leaves the range of normal floats; else all are
 * divided by `div.rn`. The remainder is written with that sign so that zeros keep theirs where d is
 * positive: softmax has zeros wherever it is masked. NaN goes through all steps.
 */
export function quotients(w: Writer, value: Value): void {
  const [divisor, inverse, ...dividends] = value.args.map((arg) => w.operand(arg)) as [
    string,
    string,
    ...string[],
  ];
  const results = value.parts!.map((part) => w.operand(part));
  const done = w.label();
  const f32 = (): string => w.register('f32');
  dividends.forEach((dividend, at) => {
    const [first, opposite, left, correction] = [f32(), f32(), f32(), f32()];
    w.line(`mul.rn.f32 ${first}, ${dividend}, ${inverse}`);
    w.line(`neg.f32 ${opposite}, ${dividend}`);
    w.line(`fma.rn.f32 ${left}, ${divisor}, ${first}, ${opposite}`);
    w.line(`neg.f32 ${correction}, ${left}`);
    w.line(`fma.rn.f32 ${results[at]!}, ${correction}, ${inverse}, ${first}`);
  });
  const absolute = (of: string): string => {
    const register = f32();
    w.line(`abs.f32 ${register}, ${of}`);
    return register;
  };
  const sizes = dividends.map(absolute);
  const size = absolute(divisor);
  const [usual, all] = [w.register('pred'), w.register('pred')];
  w.line(`setp.ge.f32 ${usual}, ${size}, ${LEAST_DIVISOR}`);
  w.line(`setp.le.and.f32 ${usual}, ${size}, ${MOST_DIVISOR}, ${usual}`);
  const [pattern, mantissa] = [w.register('b32'), w.register('b32')];
  w.line(`mov.b32 ${pattern}, ${divisor}`);
  w.line(`and.b32 ${mantissa}, ${pattern}, ${0x7fffff}`);
  w.line(`setp.lt.and.u32 ${usual}, ${mantissa}, ${ODD_MANTISSA}, ${usual}`);
  w.line(
    `setp.le.and.f32 ${usual}, ${joinAll(w, 'f32', 'max.f32', sizes)}, ${MOST_DIVIDEND}, ${usual}`,
  );
  w.line(
    `setp.ge.and.f32 ${all}, ${joinAll(w, 'f32', 'min.f32', sizes)}, ${LEAST_DIVIDEND}, ${usual}`,
  );
  w.line(`@${all} bra ${done}`);
  // As unsigned numbers, zeros are then the greatest.
  const bits = dividends.map((dividend) => {
    const [own, twice, less] = [w.register('b32'), w.register('b32'), w.register('b32')];
    w.line(`mov.b32 ${own}, ${dividend}`);
    w.line(`add.s32 ${twice}, ${own}, ${own}`);
    w.line(`add.s32 ${less}, ${twice}, -1`);
    return less;
  });
  w.line(`setp.gt.and.f32 ${all}, ${divisor}, 0f00000000, ${usual}`);
  w.line(`setp.ge.and.u32 ${all}, ${joinAll(w, 'b32', 'min.u32', bits)}, ${LEAST_BITS}, ${all}`);
  w.line(`@${all} bra ${done}`);
  dividends.forEach((dividend, at) =>
    w.line(`div.rn.f32 ${results[at]!}, ${dividend}, ${divisor}`),
  );
  w.put(done);
}

/** Writes zeros to a local array. */
export function clear(w: Writer, value: Value): void {
  const bytes = Number(value.detail);
  const base = w.operand(value.args[0]!);
  if (bytes <= 256) {
    for (let at = 0; at < bytes; at += 8) w.line(`st.local.u64 [${base}+${at}], 0`);
    return;
  }
  const [place, end] = [w.register('b64'), w.register('b64')];
  const more = w.register('pred');
  const turn = w.label();
  w.line(`mov.u64 ${place}, ${base}`);
  w.line(`add.s64 ${end}, ${base}, ${bytes}`);
  w.put(turn);
  w.line(`st.local.u64 [${place}], 0`);
  w.line(`add.s64 ${place}, ${place}, 8`);
  w.line(`setp.lt.u64 ${more}, ${place}, ${end}`);
  w.line(`@${more} bra ${turn}`);
}

/** Compares predicates, for which PTX has no comparison and no selection. */
export function comparePredicates(w: Writer, value: Value): void {
  const [a, b] = value.args.map((arg) => w.predicate(arg)) as [string, string];
  const result = w.operand(value);
  // Predicates count as 0 and 1: lt is !a and b.
  const rest = w.register('pred');
  const two = (op: string, negated: string, other: string): void => {
    w.line(`not.pred ${rest}, ${negated}`);
    w.line(`${op}.pred ${result}, ${rest}, ${other}`);
  };
  switch (value.detail) {
    case 'ne':
      w.line(`xor.pred ${result}, ${a}, ${b}`);
      break;
    case 'eq':
      w.line(`xor.pred ${rest}, ${a}, ${b}`);
      w.line(`not.pred ${result}, ${rest}`);
      break;
    case 'lt':
      two('and', a, b);
      break;
    case 'gt':
      two('and', b, a);
      break;
    case 'le':
      two('or', a, b);
      break;
    default:
      two('or', b, a);
  }
}

export function selectPredicate(w: Writer, value: Value): void {
  const [test, a, b] = value.args.map((arg) => w.predicate(arg)) as [string, string, string];
  const [one, other, not] = [w.register('pred'), w.register('pred'), w.register('pred')];
  w.line(`and.pred ${one}, ${test}, ${a}`);
  w.line(`not.pred ${not}, ${test}`);
  w.line(`and.pred ${other}, ${not}, ${b}`);
  w.line(`or.pred ${w.operand(value)}, ${one}, ${other}`);
}
