// Vector forms of f16 and bf16, single and packed. They are computed as f32, and each result is
// rounded once: f32 has more than twice the bits of a half, so that the intermediate rounding does
// not change sums and products of two halves; a fused multiply-add is rounded to odd.

import type { Arg } from '../analysis/program.js';
import { isHalf } from '../rules/half.js';
import type { ScalarType } from '../scalar-types.js';
import { emitWat } from '../wasm/wat.js';
import { FLOAT_COMPARISONS, popTruth, setsPredicate } from './comparison.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { only } from './operands.js';
import { callForAll } from './vector-calls.js';
import { opcodeNamed } from '../wasm/opcodes.js';

type Quad = readonly [number, number, number, number];
const all = (word: number): Quad => [word, word, word, word];

/** The NaN of every operation on halves, in both formats. */
const NAN = 0x7fff;

/** Converts the halves on the stack, which have zeros above, to f32; this is exact. */
export function pushWidened(e: LaneEmitter, type: ScalarType): void {
  const [a, m, x] = e.temps(3) as [number, number, number];
  e.code.set(a);
  emitWat(e.code, widened('$a', formatOf(type), false, '$x'), { $a: a, $m: m, $x: x });
  e.code.get(x);
}

/** Rounds the f32 on the stack to the nearest halves, with zeros above. */
export function pushRounded(e: LaneEmitter, type: ScalarType): void {
  const [s, m, r] = e.temps(3) as [number, number, number];
  e.code.set(s);
  emitWat(e.code, rounded(formatOf(type), false), { $s: s, $m: m, $r: r });
  e.code.get(r);
}

type Format = 'f16' | 'bf16';

/** The format of the halves of a type. */
const formatOf = ({ name }: ScalarType): Format => (name.startsWith('b') ? 'bf16' : 'f16');

interface Halves {
  type: ScalarType;
  format: Format;
  packed: boolean;
}

/**
 * The instruction's only type, if it is one of halves, and all operands are registers of its width.
 */
function halvesOf(e: LaneEmitter, count: number): Halves | undefined {
  const [type] = e.types();
  const { args } = e.inst;
  if (e.types().length !== 1 || !type || !isHalf(type) || args.length !== count + 1)
    return undefined;
  const fits = (arg: Arg): boolean =>
    arg.kind === 'register' &&
    arg.register.type.bits === type.bits &&
    (arg.register.type.kind === 'bits' || arg.register.type === type);
  return args.every(fits) ? { type, format: formatOf(type), packed: type.bits === 32 } : undefined;
}

const ownType = (arg: Arg): ScalarType => (arg as Arg & { kind: 'register' }).register.type;

/** The signs of all halves of a register. */
const signs = ({ packed }: Halves): Quad => all(packed ? 0x80008000 : 0x8000);

export const fused =
  (shape: 'add' | 'sub' | 'mul' | 'fma'): LaneRule =>
  (e) => {
    const halves = halvesOf(e, shape === 'fma' ? 3 : 2);
    if (!halves || !only(e, 'rn')) return false;
    const {
      code,
      inst: { args },
    } = e;
    const push = (arg: Arg, index: number): void => {
      e.pushLanes(arg, ownType(arg));
      if (shape === 'sub' && index === 1) code.v128(signs(halves)).op('v128.xor');
    };
    callForAll(
      e,
      args.slice(1),
      push,
      () => {
        e.popLanes(args[0]!);
      },
      (room) => {
        code.get(room).i32(e.groups);
        e.call(`${shape === 'sub' ? 'add' : shape}_${halves.type.name}_lanes`);
      },
    );
    return true;
  };

export const sign =
  (operation: 'abs' | 'neg'): LaneRule =>
  (e) => {
    const halves = halvesOf(e, 1);
    if (!halves || !only(e)) return false;
    const {
      code,
      inst: { args },
    } = e;
    e.pushLanes(args[1]!, ownType(args[1]!));
    code.v128(signs(halves)).op(operation === 'abs' ? 'v128.andnot' : 'v128.xor');
    e.popLanes(args[0]!);
    return true;
  };

/** The halves become 16-bit integers with the same order, -0 below +0. */
export const extreme =
  (name: 'min' | 'max'): LaneRule =>
  (e) => {
    const halves = halvesOf(e, 2);
    if (!halves || !only(e, 'NaN')) return false;
    const {
      code,
      inst: { args },
    } = e;
    const both = (word: number): Quad => all(halves.packed ? word * 0x10001 : word);
    const infinity = both(halves.format === 'bf16' ? 0x7f80 : 0x7c00);
    const [a, b] = [1, 2].map((index) => {
      const local = e.temp('v128');
      e.pushLanes(args[index]!, ownType(args[index]!));
      code.set(local);
      return local;
    }) as [number, number];
    const ordered = (): void => {
      const local = e.temp('v128');
      code
        .tee(local)
        .get(local)
        .i32(15)
        .op('i16x8.shr_s')
        .v128(both(0x7fff))
        .op('v128.and')
        .op('v128.xor');
    };
    const pushIsNaN = (local: number): void => {
      code.get(local).v128(both(0x7fff)).op('v128.and').v128(infinity).op('i16x8.gt_s');
    };
    const result = e.temp('v128');
    code.get(a);
    ordered();
    code.get(b);
    ordered();
    code.op(`i16x8.${name}_s`);
    ordered();
    code.set(result);
    if (e.has('NaN')) {
      code.v128(both(NAN)).get(result);
      pushIsNaN(a);
      pushIsNaN(b);
      code.op('v128.or').op('v128.bitselect');
    } else {
      // Of a number and a NaN the result is the number.
      code.get(b).get(result);
      pushIsNaN(a);
      code.op('v128.bitselect').set(result).get(a).get(result);
      pushIsNaN(b);
      code.op('v128.bitselect').set(result).v128(both(NAN)).get(result);
      pushIsNaN(result);
      code.op('v128.bitselect');
    }
    e.popLanes(args[0]!);
    return true;
  };

export const setPredicate: LaneRule = (e) => {
  const [type] = e.types();
  const {
    code,
    inst: { args, modifiers },
  } = e;
  const row = FLOAT_COMPARISONS[modifiers[0]!];
  if (
    e.types().length !== 1 ||
    !type ||
    !isHalf(type) ||
    type.bits !== 16 ||
    !row ||
    !setsPredicate(e, type) ||
    args[1]!.kind !== 'register' ||
    args[2]!.kind !== 'register'
  )
    return false;
  for (const index of [1, 2]) {
    e.pushLanes(args[index]!, type);
    pushWidened(e, type);
  }
  code.op(opcodeNamed(`f32x4.${row.op}`));
  popTruth(e, row);
  return true;
};

// Texts, which are used in functions and in the code of a group.

const splat = (word: number): string => `(i32x4.splat ${word})`;

/**
 * One of two halves, such as `$a`, as f32 in `$x`. The upper half of bf16 is in place. A subnormal
 * f16 is computed as the excess over the least normal f32 of its exponent: a multiplication would
 * do for all, but processors take long for subnormal factors. The greatest exponent stays the
 * greatest.
 */
function widened(name: string, format: Format, upper: boolean, to: string): string {
  if (format === 'bf16')
    return (
      `(local.set ${to} ` +
      `${upper ? `(v128.and ${name} ${splat(0xffff0000)})` : `(i32x4.shl ${name} 16)`})`
    );
  const shifted = upper
    ? `(v128.and (i32x4.shr_u ${name} 3) ${splat(0x0fffe000)})`
    : `(i32x4.shl (v128.and ${name} ${splat(0x7fff)}) 13)`;
  const signBit = upper
    ? `(v128.and ${name} ${splat(0x80000000)})`
    : `(i32x4.shl (v128.and ${name} ${splat(0x8000)}) 16)`;
  return `
    (local.set $m ${shifted})
    (local.set ${to} (v128.or ${signBit} (v128.bitselect
      (f32x4.sub (i32x4.add $m ${splat(0x38800000)}) (f32x4.splat 0x1p-14f))
      (i32x4.add (i32x4.add $m ${splat(0x38000000)})
        (v128.and (i32x4.gt_s $m ${splat(0x0f7fffff)}) ${splat(0x38000000)}))
      (i32x4.lt_s $m ${splat(0x00800000)}))))`;
}

/**
 * Rounds `$s` into the lower or upper half of lanes of `$r`. From 0.5 on, the last bit of an f32 is
 * that of a subnormal f16.
 */
function rounded(format: Format, upper: boolean): string {
  const bits =
    format === 'bf16'
      ? `(i32x4.shr_u (i32x4.add (i32x4.add $s ${splat(0x7fff)}) (v128.and (i32x4.shr_u $s 16) ` +
        `${splat(1)})) 16)`
      : `(v128.or (v128.and (i32x4.shr_u $s 16) ${splat(0x8000)}) (v128.bitselect
        (i32x4.sub (f32x4.add $m (f32x4.splat 0.5f)) ${splat(0x3f000000)})
        (i32x4.min_u (i32x4.shr_u (i32x4.add (i32x4.add $m ${splat(0xfff - 0x38000000)})
              (v128.and (i32x4.shr_u $m 13) ${splat(1)})) 13) ${splat(0x7c00)})
        (i32x4.lt_s $m ${splat(0x38800000)})))`;
  const result = `(v128.bitselect ${bits} ${splat(NAN)} (f32x4.eq $s $s))`;
  return `${format === 'f16' ? `(local.set $m (v128.and $s ${splat(0x7fffffff)}))` : ''}
    (local.set $r ${upper ? `(v128.or $r (i32x4.shl ${result} 16))` : result})`;
}

/**
 * `$s` = `$x` + `$z`, rounded to odd: if the sum is inexact and its last bit even, it moves one
 * step towards the exact value.
 */
const SUM_TO_ODD = `
    (local.set $s (f32x4.add $x $z))
    (local.set $m (f32x4.sub $s $x))
    (local.set $m (f32x4.add (f32x4.sub $x (f32x4.sub $s $m)) (f32x4.sub $z $m)))
    (local.set $s (i32x4.add $s (v128.and
      (v128.and (f32x4.gt (f32x4.abs $m) (f32x4.splat 0f))
        (i32x4.sub (v128.and $s ${splat(1)}) ${splat(1)}))
      (v128.or (i32x4.shr_s (v128.xor $m $s) 31) ${splat(1)}))))`;

/**
 * Some products of bf16, which has the exponents of f32, do not fit there: groups with one are
 * computed lane by lane.
 */
function laneByLane(shape: 'mul' | 'fma', packed: boolean): string {
  const one = (lane: number, upper: boolean): string => {
    const bits = (name: string): string => {
      const word = `(i32x4.extract_lane ${lane} ${name})`;
      return upper ? `(i32.shr_u ${word} 16)` : `(i32.and ${word} 0xffff)`;
    };
    const third =
      shape === 'fma' ? bits('$c') : `(i32.and (i32.xor ${bits('$a')} ${bits('$b')}) 0x8000)`;
    const call = `(call $fma_bf16 ${bits('$a')} ${bits('$b')} ${third})`;
    return upper ? `(i32.shl ${call} 16)` : call;
  };
  return [0, 1, 2, 3]
    .map((lane) => {
      const word = packed ? `(i32.or ${one(lane, false)} ${one(lane, true)})` : one(lane, false);
      return `(local.set $r (i32x4.replace_lane ${lane} $r ${word}))`;
    })
    .join('\n        ');
}

/** From 2^-133 on the 16 bits of a product end at the least bit of f32. Zeros are exact. */
const isTiny =
  '(v128.and (f32x4.lt (f32x4.abs $x) (f32x4.splat 0x1p-132f)) (v128.and (f32x4.ne $p ' +
  '(f32x4.splat 0f)) (f32x4.ne $y (f32x4.splat 0f))))';

function lanesFunction(format: Format, packed: boolean, shape: 'add' | 'mul' | 'fma'): string {
  const takesThird = shape === 'fma';
  const isUnbounded = '(v128.not (f32x4.lt (f32x4.abs $x) (f32x4.splat (f32.const inf))))';
  const isOdd = takesThird ? `(v128.or ${isUnbounded} ${isTiny})` : isTiny;
  const mayNotFit = format === 'bf16' && shape !== 'add';
  const half = (upper: boolean): string => `
    ${widened('$a', format, upper, '$x')}
    ${widened('$b', format, upper, '$y')}
    ${takesThird ? widened('$c', format, upper, '$z') : ''}
    ${
      shape === 'add'
        ? '(local.set $s (f32x4.add $x $y))'
        : `
    (local.set $p $x)
    (local.set $x (f32x4.mul $x $y))
    ${mayNotFit ? `(local.set $odd (v128.or $odd ${isOdd}))` : ''}
    ${takesThird ? SUM_TO_ODD : '(local.set $s $x)'}`
    }
    ${rounded(format, upper)}`;
  return `
(func $${shape}_${format}${packed ? 'x2' : ''}_lanes (param $at $count i32) (local $apart $end i32)
  (local $a $b $c $x $y $z $p $s $m $r $odd v128)
  (local.set $apart (i32.shl $count 4))
  (local.set $end (i32.add $at $apart))
  (loop $each
    (local.set $a (v128.load $at))
    (local.set $b (v128.load (i32.add $at $apart)))
    ${takesThird ? '(local.set $c (v128.load (i32.add $at (i32.shl $apart 1))))' : ''}
    ${mayNotFit ? '(local.set $odd (i32x4.splat 0))' : ''}
    ${half(false)}
    ${packed ? half(true) : ''}
    ${
      mayNotFit
        ? `(if (v128.any_true $odd) (then
        ${laneByLane(shape, packed)}))`
        : ''
    }
    (v128.store $at $r)
    (local.set $at (i32.add $at 16))
    (br_if $each (i32.lt_u $at $end))))
`;
}

export const HALF_CALL_FUNCTIONS = (['f16', 'bf16'] as const)
  .flatMap((format) =>
    [false, true].flatMap((packed) =>
      (['add', 'mul', 'fma'] as const).map((shape) => lanesFunction(format, packed, shape)),
    ),
  )
  .join('');
