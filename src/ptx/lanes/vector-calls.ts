// Vector forms that are too long to be written for every group: the unit's values are passed
// through memory, and one call computes all results, bit for bit those of the scalar functions in
// runtime/.

import type { Arg } from '../analysis/program.js';
import {
  COSINE_SERIES,
  EXP2_LIMIT,
  EXP2_SERIES,
  EXP2_SINGLES,
  INTEGER_SINGLE,
  INTEGER_SINGLE_BITS,
  LEAST_ANGLE,
  LEAST_SINGLE,
  LOG2_SERIES,
  SINE_SERIES,
  horner,
} from '../runtime/approximations.js';
import { ROUNDING } from '../runtime/floats.js';
import { scalarType } from '../scalar-types.js';
import type { LaneEmitter, LaneRule } from './lane-emitter.js';
import { fits, floatOperand, floatResult, only } from './operands.js';

const F32 = scalarType('f32');

/**
 * Calls a function for all groups of some operands, which `push` pushes. They are one after the
 * other in memory, and the function writes its results in place of the first. `pop` takes those of
 * the current group.
 */
export function callForAll(
  e: LaneEmitter,
  operands: readonly Arg[],
  push: (arg: Arg, index: number) => void,
  pop: () => void,
  call: (room: number) => void,
): void {
  const { code, groups } = e;
  const room = e.temp('i32');
  e.pushRoom(16 * groups * operands.length);
  code.set(room);
  operands.forEach((arg, index) => {
    e.eachGroup((group) => {
      e.scoped(() => {
        code.get(room);
        push(arg, index);
        code.memory('v128.store', 16 * (index * groups + group));
      });
    });
  });
  call(room);
  e.eachGroup((group) => {
    e.scoped(() => {
      code.get(room).memory('v128.load', 16 * group);
      pop();
    });
  });
}

/** The same for singles. */
function callForSingles(
  e: LaneEmitter,
  operands: readonly Arg[],
  call: (room: number) => void,
): void {
  callForAll(
    e,
    operands,
    (arg) => {
      floatOperand(e, arg, F32, 0);
    },
    () => {
      floatResult(e, F32, 0);
    },
    call,
  );
}

const isSingle = (e: LaneEmitter): boolean => e.types().length === 1 && e.types()[0] === F32;

export const approximate =
  (name: string): LaneRule =>
  (e) => {
    if (!isSingle(e) || !only(e, 'approx', 'ftz') || !fits(e, [F32, F32])) return false;
    callForSingles(e, [e.inst.args[1]!], (room) => {
      e.code.get(room).i32(e.groups);
      e.call(`${name}_lanes`);
    });
    return true;
  };

/** fma that rounds in a direction, as in every expf. */
export const directed: LaneRule = (e) => {
  const mode = e.oneOf('rz', 'rm', 'rp');
  if (!mode || !isSingle(e) || !only(e, mode) || !fits(e, [F32, F32, F32, F32])) return false;
  callForSingles(e, e.inst.args.slice(1), (room) => {
    e.code.get(room).i32(e.groups).i32(ROUNDING[mode]);
    e.call('fma_directed_lanes');
  });
  return true;
};

/** Four singles at a time, by a function of two doubles. */
const inDoubles = (name: string, ofTwo: (pair: string) => string): string => `
(func $${name}_lanes (param $at $count i32) (local $x v128)
  (loop $each
    (local.set $x (v128.load $at))
    (v128.store $at (i8x16.shuffle 0 1 4 5
      (f32x4.demote_f64x2_zero ${ofTwo('(f64x2.promote_low_f32x4 $x)')})
      (f32x4.demote_f64x2_zero
        ${ofTwo('(f64x2.promote_low_f32x4 (i8x16.shuffle 2 3 2 3 $x $x))')})))
    (local.set $at (i32.add $at 16))
    (local.set $count (i32.sub $count 1))
    (br_if $each $count)))
`;

export const VECTOR_CALL_FUNCTIONS = `
;; Like exp2_single.
(func $exp2_lanes (param $at $count i32) (local $x $n $i $h v128)
  (loop $each
    (local.set $x (f32x4.pmax (f32x4.pmin (v128.load $at) (f32x4.splat ${EXP2_LIMIT}f))
        (f32x4.splat ${-EXP2_LIMIT}f)))
    (local.set $n (f32x4.nearest $x))
    (local.set $x (f32x4.sub $x $n))
    (local.set $i (i32x4.sub (f32x4.add $n (f32x4.splat ${INTEGER_SINGLE}f))
        (i32x4.splat ${INTEGER_SINGLE_BITS})))
    (local.set $h (i32x4.shr_s $i 1))
    (v128.store $at
      (f32x4.mul
        (f32x4.mul
          (f32x4.add (f32x4.splat 1f) (f32x4.mul $x ${horner('f32x4', '$x', EXP2_SINGLES)}))
          (i32x4.shl (i32x4.add $h (i32x4.splat 127)) 23))
        (i32x4.shl (i32x4.add (i32x4.sub $i $h) (i32x4.splat 127)) 23)))
    (local.set $at (i32.add $at 16))
    (local.set $count (i32.sub $count 1))
    (br_if $each $count)))

;; Like fma_directed_f32, for the two low lanes.
(func $fma_directed_two (param $a $b $c v128) (param $mode i32) (result v128)
  (local $p $s $t $e $r $d $down $step $negative v128)
  (local.set $p (f64x2.mul (f64x2.promote_low_f32x4 $a) (f64x2.promote_low_f32x4 $b)))
  (local.set $d (f64x2.promote_low_f32x4 $c))
  (local.set $s (f64x2.add $p $d))
  (local.set $t (f64x2.sub $s $p))
  (local.set $e (f64x2.add (f64x2.sub $p (f64x2.sub $s $t)) (f64x2.sub $d $t)))
  ;; An exact zero from operands of different signs is -0 when rounding down.
  (if (i32.eq $mode ${ROUNDING.rm}) (then
    (local.set $s (v128.or $s (v128.and (f64x2.eq $s (f64x2.splat 0d))
          (v128.and (v128.xor $p $d) (i64x2.splat 0x8000000000000000L)))))))
  (local.set $r (f32x4.demote_f64x2_zero $s))
  (local.set $d (f64x2.promote_low_f32x4 $r))
  (local.set $negative (i32x4.shr_s $r 31))
  (local.set $down (if (result v128) (i32.eq $mode ${ROUNDING.rz}) (then (v128.not $negative))
      (else (i32x4.splat (i32.sub 0 (i32.eq $mode ${ROUNDING.rm}))))))
  ;; Results whose nearest single is on the wrong side of the exact sum move by one step.
  (local.set $t (f64x2.eq $d $s))
  (local.set $step (v128.and (f64x2.lt (f64x2.abs $s) (f64x2.splat (f64.const inf))) (v128.bitselect
    (v128.or (f64x2.gt $d $s) (v128.and $t (f64x2.lt $e (f64x2.splat 0d))))
    (v128.or (f64x2.lt $d $s) (v128.and $t (f64x2.gt $e (f64x2.splat 0d))))
    (i8x16.shuffle 0 0 1 1 $down $down))))
  (v128.bitselect
    (v128.bitselect
      (v128.or (i32x4.splat 1) (v128.and $down (i32x4.splat 0x80000000)))
      (i32x4.add $r (v128.or (v128.xor $down $negative) (i32x4.splat 1)))
      (f32x4.eq $r (f32x4.splat 0f)))
    $r
    (i8x16.shuffle 0 2 0 2 $step $step)))

;; For this many groups, whose operands are as many groups apart.
(func $fma_directed_lanes (param $at $count $mode i32) (local $apart $end i32) (local $a $b $c v128)
  (local.set $apart (i32.shl $count 4))
  (local.set $end (i32.add $at $apart))
  (loop $each
    (local.set $a (v128.load $at))
    (local.set $b (v128.load (i32.add $at $apart)))
    (local.set $c (v128.load (i32.add $at (i32.shl $apart 1))))
    (v128.store $at (i8x16.shuffle 0 1 4 5
      (call $fma_directed_two $a $b $c $mode)
      (call $fma_directed_two (i8x16.shuffle 2 3 2 3 $a $a) (i8x16.shuffle 2 3 2 3 $b $b)
        (i8x16.shuffle 2 3 2 3 $c $c) $mode)))
    (local.set $at (i32.add $at 16))
    (br_if $each (i32.lt_u $at $end))))

;; Like log2, for two.
(func $log2_two (param $x v128) (result v128) (local $e $m $s $s2 v128)
  (local.set $e (i64x2.shr_s (i64x2.sub $x (i64x2.splat 0x3fe6a09e667f3bcdL)) 52))
  (local.set $m (i64x2.sub $x (i64x2.shl $e 52)))
  (local.set $s (f64x2.div (f64x2.sub $m (f64x2.splat 1d)) (f64x2.add $m (f64x2.splat 1d))))
  (local.set $s2 (f64x2.mul $s $s))
  (local.set $s (f64x2.add (f64x2.convert_low_i32x4_s (i8x16.shuffle 0 2 0 2 $e $e))
      (f64x2.mul $s ${horner('f64x2', '$s2', LOG2_SERIES)})))
  (local.set $s (v128.bitselect $x $s (f64x2.eq $x (f64x2.splat (f64.const inf)))))
  (local.set $s (v128.bitselect (f64x2.splat (f64.const -inf)) $s (f64x2.eq $x (f64x2.splat 0d))))
  (v128.bitselect $s (f64x2.splat (f64.const nan)) (f64x2.ge $x (f64x2.splat 0d))))
${inDoubles('log2', (pair) => `(call $log2_two ${pair})`)}
;; Like sine, for two. Angles so large that the quadrant does not fit an integer of 32 bits are
;; computed one by one.
(func $sine_two (param $x v128) (param $quadrant i32) (result v128) (local $n $r $r2 $q v128)
  (local.set $n (f64x2.nearest (f64x2.mul $x (f64x2.splat ${2 / Math.PI}d))))
  (if (i32.eqz (i64x2.all_true (f64x2.lt (f64x2.abs $n) (f64x2.splat 2147483647d)))) (then
    (return (f64x2.replace_lane 1 (f64x2.splat (call $sine (f64x2.extract_lane 0 $x) $quadrant))
        (call $sine (f64x2.extract_lane 1 $x) $quadrant)))))
  (local.set $q (i64x2.extend_low_i32x4_u (i32x4.add (i32x4.trunc_sat_f64x2_s_zero $n)
        (i32x4.splat $quadrant))))
  (local.set $r (f64x2.sub (f64x2.sub $x (f64x2.mul $n (f64x2.splat 1.5707963267341256d)))
      (f64x2.mul $n (f64x2.splat 6.077100506506192e-11d))))
  (local.set $r2 (f64x2.mul $r $r))
  (local.set $r (v128.xor
    (i64x2.shl (i64x2.shr_u $q 1) 63)
    (v128.bitselect
      ${horner('f64x2', '$r2', COSINE_SERIES)}
      (f64x2.mul $r ${horner('f64x2', '$r2', SINE_SERIES)})
      (i64x2.shr_s (i64x2.shl $q 63) 63))))
  (if (i32.eqz $quadrant) (then
    (local.set $r (v128.bitselect $x $r (f64x2.lt (f64x2.abs $x) (f64x2.splat ${LEAST_ANGLE}d))))
    ;; Only the sign is left of the least ones.
    (local.set $r (v128.and $r (v128.or (f64x2.ge (f64x2.abs $x) (f64x2.splat ${LEAST_SINGLE}d))
          (v128.or (f64x2.ne $x $x) (i64x2.splat 0x8000000000000000L)))))))
  $r)
${inDoubles('sine', (pair) => `(call $sine_two ${pair} 0)`)}
${inDoubles('cosine', (pair) => `(call $sine_two ${pair} 1)`)}
;; Like tanh, for two.
(func $tanh_two (param $x v128) (result v128) (local $a $n $t $r v128)
  (local.set $a (f64x2.abs $x))
  ;; Like exp2, for numbers up to zero.
  (local.set $t (f64x2.mul $a (f64x2.splat ${-2 * Math.LOG2E}d)))
  (local.set $n (f64x2.nearest (f64x2.pmax (f64x2.splat -1000d) $t)))
  (local.set $r (f64x2.sub $t $n))
  (local.set $t (v128.and
    (f64x2.ge $t (f64x2.splat -1000d))
    (f64x2.mul ${horner('f64x2', '$r', EXP2_SERIES)}
      (i64x2.shl (i64x2.add (i64x2.extend_low_i32x4_s (i32x4.trunc_sat_f64x2_s_zero $n))
          (i64x2.splat 1023L)) 52))))
  (local.set $r (f64x2.div (f64x2.sub (f64x2.splat 1d) $t) (f64x2.add (f64x2.splat 1d) $t)))
  (local.set $r (v128.or $r (v128.and $x (i64x2.splat 0x8000000000000000L))))
  (local.set $r (v128.bitselect
    (f64x2.mul $x (f64x2.sub (f64x2.splat 1d) (f64x2.div (f64x2.mul $x $x) (f64x2.splat 3d))))
    $r
    (f64x2.lt $a (f64x2.splat 0.0009765625d))))
  (v128.bitselect $r $x (f64x2.eq $x $x)))
${inDoubles('tanh', (pair) => `(call $tanh_two ${pair})`)}`;
