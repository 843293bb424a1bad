// Tensor copies by the PTX ISA ("Tensors"). A copy goes through the rows of its box, and through
// each row in pieces of 16 bytes. Swizzling keeps the bytes of a piece together. Every field of the
// tensor map, and every address, is checked before it is used. What the ISA leaves open is done as
// an H200 does it (driver 580).

import { ACCESS, IN_FLIGHT } from '../check.js';
import { CTX, FAULT, NULL_PAGE } from '../context.js';
import {
  OUTSIDE_NAN,
  TENSOR_KIND,
  TENSOR_MAP as M,
  TENSOR_MAP_MAGIC,
  TENSOR_TYPES,
  isFloatTensor,
  tensorTypeBytes,
} from '../tensor-map.js';
import type { TensorType } from '../tensor-map.js';

/** What an instruction does with a tensor. */
export const TENSOR_OPERATIONS = [
  'load',
  'store',
  'add',
  'min',
  'max',
  'inc',
  'dec',
  'and',
  'or',
  'xor',
] as const;
export type TensorOperation = (typeof TENSOR_OPERATIONS)[number];

/** How an instruction goes through a tensor, in the bits above the number of dimensions. */
export const TENSOR_MODE = { tile: 0, im2col: 8, rows: 16 } as const;

/** The element types that a reduction takes (H200, driver 580). */
const REDUCED: Readonly<Record<TensorOperation, readonly TensorType[]>> = {
  load: TENSOR_TYPES,
  store: TENSOR_TYPES,
  add: ['u32', 's32', 'u64', 'f16', 'bf16', 'f32', 'f32.ftz', 'tf32', 'tf32.ftz', 'f64'],
  min: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
  max: ['u32', 's32', 'u64', 's64', 'f16', 'bf16'],
  inc: ['u32'],
  dec: ['u32'],
  and: ['u32', 's32', 'u64'],
  or: ['u32', 's32', 'u64'],
  xor: ['u32', 's32', 'u64'],
};

const numberOf = (type: TensorType): number => TENSOR_TYPES.indexOf(type);
const operationOf = (name: TensorOperation): number => TENSOR_OPERATIONS.indexOf(name);
/** A bit for each of the types. */
const typeSet = (types: readonly TensorType[]): number =>
  types.reduce((set, type) => set | (1 << numberOf(type)), 0);
/** Two bits for each type: the logarithm of its bytes. */
const SIZES = TENSOR_TYPES.reduce(
  (sizes, type, index) => sizes | (Math.log2(tensorTypeBytes(type)) << (2 * index)),
  0,
);
const FLOATS = typeSet(TENSOR_TYPES.filter(isFloatTensor));
/** Types whose values change when they are loaded. `.ftz` changes none (H200, driver 580). */
const ROUNDED = typeSet(['tf32', 'tf32.ftz']);

const isType = (...types: TensorType[]): string =>
  `(i32.and (i32.shr_u ${typeSet(types)} $type) 1)`;
const byte = (offset: number): string => `(i32.load8_u offset=${offset} $m)`;
const word = (offset: number): string => `(i32.load offset=${offset} $m)`;
const is = (a: string, b: number): string => `(i32.eq ${a} ${b})`;
/** The size of the box along a dimension, as steps. */
const stepsOf = (d: number): string =>
  `(i32.div_u (i32.sub (i32.add ${word(M.box + 4 * d)} ${byte(M.steps + d)}) 1) ` +
  `${byte(M.steps + d)})`;
/** Adds `$x` along dimension `d` to the row's place. */
const place = (d: number): string => `
        (local.set $ok (i32.and $ok (i32.lt_u $x ${word(M.dims + 4 * d)})))
        (local.set $at (i64.add $at (i64.mul (i64.extend_i32_s $x)
              (i64.load offset=${M.strides + 8 * (d - 1)} $m))))`;
const OUTER = [1, 2, 3, 4];
/** W, H and D. */
const AXES = [1, 2, 3];

const VALIDITY = `
;; 1 if the bytes are a tensor map that an instruction of this form can use for the operation.
(func $tensor_map_valid (param $m $form $op $log i32) (result i32)
  (local $rank $type $interleave $swizzle $atomicity $inner $d $align i32)
  (local.set $rank ${byte(M.rank)})
  (local.set $type ${byte(M.type)})
  (local.set $interleave ${byte(M.interleave)})
  (local.set $swizzle ${byte(M.swizzle)})
  (local.set $atomicity ${byte(M.atomicity)})
  (block $bad
    (br_if $bad (i32.ne $rank (i32.and $form 7)))
    (br_if $bad (i32.or (i32.gt_u $interleave 2) (i32.gt_u $swizzle 4)))
    (br_if $bad (i32.and (i32.ne $atomicity 0)
        (i32.or (i32.gt_u $atomicity 3) (i32.ne $swizzle 3))))
    ;; The flip is for loads only.
    (br_if $bad (i32.and ${is('$atomicity', 2)} (i32.ne $op 0)))
    (br_if $bad (i32.eqz (i32.and (i32.shr_u (call $tensor_types $op) $type) 1)))
    (if (i32.ge_u $form ${TENSOR_MODE.rows})
      (then
        (br_if $bad (i32.or $interleave (i32.ne ${word(M.box + 4)} 1)))
        (br_if $bad (i32.ne ${byte(M.kind)} ${TENSOR_KIND.tile})))
      (else (if (i32.ge_u $form ${TENSOR_MODE.im2col})
        (then
          (br_if $bad (i32.lt_u $rank 3))
          (br_if $bad (i32.ne ${byte(M.kind)} ${TENSOR_KIND.im2col})))
        (else (br_if $bad (i32.ne ${byte(M.kind)} ${TENSOR_KIND.tile}))))))
    (if (i32.and $form ${TENSOR_MODE.im2col})
      (then
        (local.set $inner (i32.load16_u offset=${M.channels} $m))
        (br_if $bad (i32.eqz (i32.load16_u offset=${M.pixels} $m)))
        (br_if $bad (i32.gt_u (i32.load16_u offset=${M.pixels} $m) 1024)))
      (else (local.set $inner ${word(M.box)})))
    (br_if $bad (i32.gt_u (i32.sub $inner 1) 255))
    (if $interleave
      (then (br_if $bad (i32.lt_u $rank 3)))
      (else
        (local.set $inner (i32.shl $inner $log))
        (br_if $bad (i32.and $inner 15))
        (br_if $bad (i32.and (i32.ne $swizzle 0) (i32.gt_u $inner (call $tensor_span $swizzle))))))
    (local.set $align (select 31 15 ${is('$interleave', 2)}))
    (br_if $bad (i32.and ${word(M.address)} $align))
    (loop $dimensions
      (if (i32.gt_u $d 0) (then
        (br_if $bad (i32.and (i32.load offset=${M.strides} (i32.add $m (i32.shl (i32.sub $d 1) 3)))
            $align))
        (br_if $bad (i32.shr_u
            (i32.load offset=${M.strides + 4} (i32.add $m (i32.shl (i32.sub $d 1) 3))) 8))))
      (br_if $bad (i32.gt_u
          (i32.sub (i32.load offset=${M.dims} (i32.add $m (i32.shl $d 2))) 1) 0x7fffffff))
      (br_if $bad (i32.gt_u
          (i32.sub (i32.load offset=${M.box} (i32.add $m (i32.shl $d 2))) 1) 255))
      (br_if $bad (i32.gt_u
          (i32.sub (i32.load8_u offset=${M.steps} (i32.add $m $d)) 1) 7))
      (local.set $d (i32.add $d 1))
      (br_if $dimensions (i32.lt_u $d $rank)))
    (return 1))
  0)

;; A bit for each element type that the operation takes.
(func $tensor_types (param $op i32) (result i32)
  ${TENSOR_OPERATIONS.slice(2)
    .map((name) => `(if ${is('$op', operationOf(name))} (then (return ${typeSet(REDUCED[name])})))`)
    .join('\n  ')}
  ${typeSet(TENSOR_TYPES)})

;; The bytes within which a swizzle moves data.
(func $tensor_span (param $swizzle i32) (result i32)
  (if ${is('$swizzle', 4)} (then (return 96)))
  (i32.shl 16 $swizzle))

;; The tensor map at an address; 0 with a fault recorded if there is none that fits.
(func $tensor_map (param $ctx $thread $line i32) (param $map i64) (param $form $op i32) (result i32)
  (local $m i32)
  (if (call $check_range $ctx $thread $map ${M.bytes} ${M.align} ${NULL_PAGE}L
      (call $memory_end $ctx) $line) (then (return 0)))
  (local.set $m (i32.wrap_i64 $map))
  (if (i32.eq ${word(M.magic)} ${TENSOR_MAP_MAGIC}) (then
    (if (i32.lt_u ${byte(M.type)} ${TENSOR_TYPES.length}) (then
      (if (call $tensor_map_valid $m $form $op (call $tensor_size $m)) (then (return $m)))))))
  (call $fault $ctx ${FAULT.tensorMap} $thread $line $map)
  0)

;; The logarithm of an element's bytes.
(func $tensor_size (param $m i32) (result i32)
  (i32.and (i32.shr_u ${SIZES} (i32.shl ${byte(M.type)} 1)) 3))

(func $memory_end (param $ctx i32) (result i64)
  (i64.add (i64.extend_i32_u (i32.sub (i32.load offset=${CTX.memoryTop} $ctx) 1)) 1L))
`;

/** A field that each dimension has; that of the dimension with the number in a local, plus `by`. */
const field = (load: string, offset: number, bytes: number, local: string, by = 0): string =>
  `(${load} offset=${offset + bytes * by} (i32.add $m (i32.mul ${local} ${bytes})))`;
/** Those of W, H or D. */
const dimOf = (d: number): string => field('i32.load', M.dims, 4, '$above', d - 1);
const stepOf = (d: number): string => field('i32.load8_u', M.steps, 1, '$above', d - 1);
const corner = (offset: number, d: number): string =>
  `(i32.load16_s offset=${offset + 2 * (d - 1)} $m)`;
/** The coordinate whose number is in a local: 2 to 4. */
const coordinate = (local: string): string =>
  `(select $c4 (select $c3 $c2 ${is(local, 3)}) ${is(local, 4)})`;

const COPY = `
;; Copies between a box of a tensor and shared memory: from $shared, in the window that begins at
;; $window. Returns the bytes of the box, or 0 with a fault recorded. $c are the coordinates, $o the
;; offsets of im2col.
;;
;; An interleaved tensor consists of slices, and its dimensions are W, H, D, the number of the
;; slice, and the image: that of the channels in a slice is not among them. A row of the box is one
;; slice, and all of them have the same number, whatever the box is (H200, driver 580).
(func $tensor_copy (param $ctx $thread $line i32) (param $map $shared i64)
  (param $window $form $op $c0 $c1 $c2 $c3 $c4 $o1 $o2 $o3 i32) (result i32)
  (local $m $log $rank $inner $slice $rows $r $left $ok $x $c $n $bytes $to $q i32)
  (local $n0 $n1 $n2 $n3 $n4 $x1 $x2 $x3 $image $spatial $above $up1 $up2 $up3 i32)
  (local $shift $mask $flip $span $next $wide i32) (local $at i64)
  (local.set $m (call $tensor_map $ctx $thread $line $map $form $op))
  (if (i32.eqz $m) (then (return 0)))
  (local.set $log (call $tensor_size $m))
  (local.set $rank ${byte(M.rank)})
  (local.set $wide ${word(M.dims)})
  (if ${byte(M.interleave)}
    (then
      (local.set $bytes (i32.shl 8 ${byte(M.interleave)}))
      (local.set $slice $bytes)
      ;; A slice is inside of the tensor, or is not.
      (local.set $wide (i32.shr_u $bytes $log)))
    (else
      (local.set $above 1)
      (local.set $inner ${word(M.box)})
      (if (i32.and $form ${TENSOR_MODE.im2col})
        (then (local.set $inner (i32.load16_u offset=${M.channels} $m))))
      (local.set $bytes (i32.shl $inner $log))))
  (block $counted (block $bad
    ;; The box begins at a multiple of 16 bytes.
    (if (i32.eqz $slice) (then
      (br_if $bad (i32.and $c0 (i32.sub (i32.shr_u 16 $log) 1)))))
    (if (i32.ge_u $form ${TENSOR_MODE.rows}) (then
      (local.set $rows 4)
      (br $counted)))
    ;; Boxes to store begin at no negative coordinate (H200, driver 580).
    (br_if $bad (i32.and (i32.ne $op 0)
        (i32.lt_s (i32.or (i32.or $c0 $c1) (i32.or (i32.or $c2 $c3) $c4)) 0)))
    (if (i32.and $form ${TENSOR_MODE.im2col}) (then
      (local.set $rows (i32.load16_u offset=${M.pixels} $m))
      (local.set $spatial (i32.sub $rank 2))
      (local.set $x1 (select $c1 $c0 $above))
      (local.set $x2 (select $c2 $c1 $above))
      (local.set $x3 (select $c3 $c2 $above))
      (local.set $q (i32.sub $rank 1))
      (local.set $image ${coordinate('$q')})
      ${AXES.map(
        (d) => `(if (i32.ge_u $spatial ${d}) (then
        (local.set $up${d} (i32.sub (i32.add ${dimOf(d)} ${corner(M.upper, d)}) 1))
        ;; The first position is between the corners, which are those of the tensor or inside of it
        ;; if the box is to store (H200, driver 580).
        (br_if $bad (i32.or (i32.lt_s $x${d} ${corner(M.lower, d)}) (i32.gt_s $x${d} $up${d})))
        (br_if $bad (i32.and (i32.ne $op 0)
            (i32.or (i32.lt_s ${corner(M.lower, d)} 0) (i32.gt_s ${corner(M.upper, d)} 0))))))`,
      ).join('\n      ')}
      (br $counted)))
    (local.set $rows 1)
    (if $slice (then
      (local.set $n0 ${stepsOf(0)})
      (local.set $rows $n0)))
    ${OUTER.map(
      (d) => `(if (i32.gt_u $rank ${d}) (then
      (local.set $n${d} (select ${stepsOf(d)} 1 (i32.or (i32.eqz $slice)
          (i32.ne $rank ${d + 2}))))
      (local.set $rows (i32.mul $rows $n${d}))
      ;; More than shared memory has, before numbers overflow.
      (br_if $bad (i32.gt_u $rows 0x10000))))`,
    ).join('\n    ')}
    (br $counted))
    (call $fault $ctx ${FAULT.tensorMap} $thread $line $map)
    (return 0))
  (local.set $next $bytes)
  (local.set $left (i32.mul $rows $bytes))
  ;; Swizzling moves data within spans. Each row takes one, whatever its length; slices are
  ;; adjacent, and the last span may be incomplete (H200, driver 580).
  (if ${byte(M.swizzle)} (then
    (local.set $span (call $tensor_span ${byte(M.swizzle)}))
    (if (i32.eqz $slice) (then
      (local.set $next $span)
      (local.set $left (i32.mul $rows $span))))
    (local.set $left (i32.mul (i32.div_u (i32.sub (i32.add $left $span) 1) $span) $span))
    (local.set $shift 3)
    (local.set $mask (i32.and (i32.sub $span 16) 0x70))
    (if ${is(byte(M.swizzle), 4)} (then (local.set $mask 0x10)))
    (if ${byte(M.atomicity)} (then
      (local.set $shift 2)
      (local.set $mask 0x60)
      (if ${is(byte(M.atomicity), 2)} (then (local.set $flip 8)))
      (if ${is(byte(M.atomicity), 3)} (then (local.set $shift 1) (local.set $mask 0x40)))))))
  (if (call $check_range $ctx $thread $shared $left 128 (i64.extend_i32_u $window)
      (i64.add (i64.extend_i32_u $window)
        (i64.extend_i32_u (i32.load offset=${CTX.sharedBytes} $ctx))) $line)
    (then (return 0)))
  (local.set $to (i32.wrap_i64 $shared))
  (if (i32.eqz $slice) (then (local.set $c $c0)))
  (loop $each
    (local.set $at (i64.load offset=${M.address} $m))
    (local.set $ok 1)
    (local.set $left $r)
    (block $placed
      (if (i32.ge_u $form ${TENSOR_MODE.rows}) (then
        (local.set $x (select (select $c1 $c2 (i32.eqz $r)) (select $c3 $c4 ${is('$r', 2)})
            (i32.lt_u $r 2)))
        ${place(1)}
        (br $placed)))
      (if (i32.and $form ${TENSOR_MODE.im2col}) (then
        ${AXES.map(
          (d) => `(if (i32.ge_u $spatial ${d}) (then
        (local.set $x (i32.add $x${d} $o${d}))
        (local.set $q (i32.add $above ${d - 1}))
        (call $tensor_place $m $q $slice $x $at $ok)
        (local.set $ok) (local.set $at)))`,
        ).join('\n        ')}
        (if $slice (then
          (local.set $q (i32.sub $rank 2))
          (call $tensor_place $m $q $slice
            (select $c1 ${coordinate('$q')} ${is('$q', 1)}) $at $ok)
          (local.set $ok) (local.set $at)))
        (call $tensor_place $m (i32.sub $rank 1) $slice $image $at $ok)
        (local.set $ok) (local.set $at)
        (br $placed)))
      (if $slice (then
        (call $tensor_place $m 0 $slice
          (i32.add $c0 (i32.mul (i32.rem_u $left $n0) ${byte(M.steps)})) $at $ok)
        (local.set $ok) (local.set $at)
        (local.set $left (i32.div_u $left $n0))))
      ${OUTER.map(
        (d) => `(if (i32.gt_u $rank ${d}) (then
        (local.set $x (i32.add $c${d} (i32.mul (i32.rem_u $left $n${d}) ${byte(M.steps + d)})))
        (local.set $left (i32.div_u $left $n${d}))${place(d)}))`,
      ).join('\n      ')})
    (if (call $tensor_row $ctx $thread $line $m $op $to
        (i64.add $at (i64.shl (i64.extend_i32_s $c) (i64.extend_i32_u $log)))
        $ok $c $wide $bytes $log $shift $mask $flip) (then (return 0)))
    (local.set $r (i32.add $r 1))
    (if (i32.and $form ${TENSOR_MODE.im2col}) (then
      (block $moved
        ;; The next position of the filter.
        ${AXES.map(
          (d) => `(if (i32.ge_u $spatial ${d}) (then
        (local.set $x${d} (i32.add $x${d} ${stepOf(d)}))
        (br_if $moved (i32.le_s $x${d} $up${d}))
        (local.set $x${d} ${corner(M.lower, d)})))`,
        ).join('\n        ')}
        ;; The next image is a step away (H200, driver 580).
        (local.set $image (i32.add $image
            ${field('i32.load8_u', M.steps, 1, '(i32.sub $rank 1)')})))))
    (local.set $to (i32.add $to $next))
    (br_if $each (i32.lt_u $r $rows)))
  (i32.mul $rows $bytes))

;; Adds coordinate $x along dimension $d to a row's place, and whether the row is inside. Slices are
;; adjacent along dimension 0.
(func $tensor_place (param $m $d $slice $x i32) (param $at i64) (param $ok i32) (result i64 i32)
  (local $stride i64)
  (local.set $stride (i64.extend_i32_u $slice))
  (if $d (then (local.set $stride ${field('i64.load', M.strides, 8, '(i32.sub $d 1)')})))
  (i64.add $at (i64.mul (i64.extend_i32_s $x) $stride))
  (i32.and $ok (i32.lt_u $x ${field('i32.load', M.dims, 4, '$d')})))
`;

const plus = (...terms: string[]): string =>
  terms.reduce((sum, term) => `(i32.add ${sum} ${term})`);
/** What is left of the 16 bytes in global memory. */
const PART = '(i32.sub $b $a)';
const COPIED = ACCESS.read | ACCESS.copy;
/** A store goes on until its thread waits for it. */
const STORES = IN_FLIGHT.bulk << ACCESS.inFlightShift;

interface Reports {
  touch: (address: string, bytes: string, access: number) => string;
  copied: (to: string, from: string, bytes: string) => string;
}

const row = ({ touch, copied }: Reports): string => {
  /** Half of the 16 bytes, moved whole. */
  const half = (to: string, from: string): string =>
    `(i64.store ${to} (i64.load ${from}))${copied(to, from, '8')}`;
  return `
;; A row of a box: $bytes at $to in shared memory, and at $at in global memory, where the element is
;; number $c of its row of $wide elements. Returns 1 with a fault recorded.
(func $tensor_row (param $ctx $thread $line $m $op $to i32) (param $at i64)
  (param $ok $c $wide $bytes $log $shift $mask $flip i32) (result i32)
  (local $n $low $high $from $off $s $f $a $b $type $whole i32) (local $inside $fill i64)
  (local.set $type ${byte(M.type)})
  (local.set $n (i32.shr_u $bytes $log))
  ;; The bytes that are inside the tensor.
  (if $ok (then
    (if (i32.lt_s $c 0) (then
      (local.set $low (select (i32.sub 0 $c) $n (i32.lt_u (i32.sub 0 $c) $n)))))
    (local.set $inside (i64.sub (i64.extend_i32_u $wide) (i64.extend_i32_s $c)))
    (if (i64.gt_s $inside 0L) (then
      (local.set $high (select $n (i32.wrap_i64 $inside)
          (i64.ge_s $inside (i64.extend_i32_u $n))))))
    (local.set $low (i32.shl $low $log))
    (local.set $high (i32.shl $high $log))
    ;; Stores and reductions change the last 16 bytes whole, also those beyond the row (H200,
    ;; driver 580).
    (if $op (then
      (local.set $high (i32.and (i32.add $high 15) -16))))))
  (if (i32.lt_s $low $high)
    (then (if (i64.gt_u
        (i64.sub (i64.add $at (i64.extend_i32_u $low)) ${NULL_PAGE}L)
        (i64.sub (i64.sub (call $memory_end $ctx) ${NULL_PAGE}L)
          (i64.extend_i32_u (i32.sub $high $low))))
      (then
        (call $fault $ctx ${FAULT.outOfBounds} $thread $line
          (i64.add $at (i64.extend_i32_u $low)))
        (return 1))))
    (else (if $op (then (return 0)))))
  (if (i32.and ${byte(M.fill)} (i32.and (i32.shr_u ${FLOATS} $type) 1)) (then
    (local.set $fill ${BigInt(OUTSIDE_NAN) * 0x1000100010001n}L)))
  (local.set $from (i32.wrap_i64 $at))
  (loop $each
    (local.set $s (i32.add $to $off))
    (local.set $f (i32.and (i32.shr_u $s 4) $flip))
    (local.set $s (i32.xor $s (i32.and (i32.shr_u $s $shift) $mask)))
    (local.set $a (i32.sub $low $off))
    (if (i32.lt_s $a 0) (then (local.set $a 0)))
    (local.set $b (i32.sub $high $off))
    (if (i32.gt_s $b 16) (then (local.set $b 16)))
    (local.set $whole (i32.and (i32.eqz $a) ${is('$b', 16)}))
    (block $done
      (if (i32.eqz $op)
        (then${touch('$s', '16', ACCESS.write)}
          (if (i32.lt_s $a $b) (then${touch(plus('$from', '$off', '$a'), PART, COPIED)}))
          (if (i32.and $whole (i32.eqz (i32.and (i32.shr_u ${ROUNDED} $type) 1))) (then
            ${half(plus('$s', '$f'), plus('$from', '$off'))}
            ${half(plus('$s', '(i32.xor $f 8)'), plus('$from', '$off', '8'))}
            (br $done)))
          (i64.store $s $fill)
          (i64.store offset=8 $s $fill))
        (else
          (if (i32.ge_s $a $b) (then (br $done)))
          (if ${is('$op', 1)}
            (then${touch(plus('$s', '$a'), PART, COPIED | STORES)}
              ${touch(plus('$from', '$off', '$a'), PART, ACCESS.write | STORES)}
              (if $whole (then
                ${half(plus('$from', '$off'), '$s')}
                ${half(plus('$from', '$off', '8'), plus('$s', '8'))}
                (br $done))))
            (else${touch(plus('$s', '$a'), PART, ACCESS.read | STORES)}
              ${touch(plus('$from', '$off', '$a'), PART, ACCESS.atomic | ACCESS.strong)}))))
      ;; Element by element.
      (loop $elements
        (br_if $done (i32.ge_s $a $b))
        (local.set $n ${plus('$s', '(i32.xor $a $f)')})
        (if (i32.eqz $op)
          (then
            (call $tensor_put $log $n
              (call $tensor_converted $type (call $tensor_get $log ${plus('$from', '$off', '$a')})))
            ${copied('$n', plus('$from', '$off', '$a'), '(i32.shl 1 $log)')})
          (else (if ${is('$op', 1)}
            (then
              (call $tensor_put $log ${plus('$from', '$off', '$a')} (call $tensor_get $log $n))
              ${copied(plus('$from', '$off', '$a'), '$n', '(i32.shl 1 $log)')})
            (else (call $tensor_reduce $op $type $log ${plus('$from', '$off', '$a')} $n)))))
        (local.set $a (i32.add $a (i32.shl 1 $log)))
        (br $elements)))
    (local.set $off (i32.add $off 16))
    (br_if $each (i32.lt_u $off $bytes)))
  0)
`;
};

const ELEMENTS = `
(func $tensor_get (param $log $at i32) (result i64)
  (if (i32.eqz $log) (then (return (i64.extend_i32_u (i32.load8_u $at)))))
  (if ${is('$log', 1)} (then (return (i64.extend_i32_u (i32.load16_u $at)))))
  (if ${is('$log', 2)} (then (return (i64.extend_i32_u (i32.load $at)))))
  (i64.load $at))
(func $tensor_put (param $log $at i32) (param $value i64)
  (if (i32.eqz $log) (then (i32.store8 $at (i32.wrap_i64 $value)) (return)))
  (if ${is('$log', 1)} (then (i32.store16 $at (i32.wrap_i64 $value)) (return)))
  (if ${is('$log', 2)} (then (i32.store $at (i32.wrap_i64 $value)) (return)))
  (i64.store $at $value))

;; A value as it is loaded: tf32 is rounded, ties to even (H200, driver 580).
(func $tensor_converted (param $type i32) (param $value i64) (result i64) (local $v i32)
  (if (i32.eqz (i32.and (i32.shr_u ${ROUNDED} $type) 1)) (then (return $value)))
  (local.set $v (i32.wrap_i64 $value))
  (if ${is('(i32.and $v 0x7f800000)', 0x7f800000)}
    (then (if (i32.and $v 0x7fffff) (then (local.set $v 0x7fffe000))))
    (else (local.set $v (i32.and 0xffffe000
        (i32.add $v (i32.add 0xfff (i32.and (i32.shr_u $v 13) 1)))))))
  (i64.extend_i32_u $v))
;; A value whose subnormals are zeros if the type is of .ftz.
(func $tensor_flushed (param $type i32) (param $value f32) (result f32) (local $v i32)
  (local.set $v (i32.reinterpret_f32 $value))
  (if (i32.and ${isType('f32.ftz', 'tf32.ftz')} (i32.eqz (i32.and $v 0x7f800000))) (then
    (local.set $v (i32.and $v 0x80000000))))
  (f32.reinterpret_i32 $v))

;; Changes an element in global memory; other blocks may change it at the same time.
(func $tensor_reduce (param $op $type $log $at $from i32) (local $value $old $seen i64)
  (local.set $value (call $tensor_get $log $from))
  (local.set $old (call $tensor_get $log $at))
  (loop $again
    (local.set $seen (call $tensor_exchange $log $at $old
        (call $tensor_reduced $op $type $old $value)))
    (if (i64.ne $seen $old) (then
      (local.set $old $seen)
      (br $again)))))
(func $tensor_exchange (param $log $at i32) (param $old $new i64) (result i64)
  (if ${is('$log', 1)} (then (return (i64.extend_i32_u (i32.atomic.rmw16.cmpxchg_u $at
            (i32.wrap_i64 $old) (i32.and (i32.wrap_i64 $new) 0xffff))))))
  (if ${is('$log', 2)} (then (return (i64.extend_i32_u (i32.atomic.rmw.cmpxchg $at
            (i32.wrap_i64 $old) (i32.wrap_i64 $new))))))
  (i64.atomic.rmw.cmpxchg $at $old $new))
(func $tensor_reduced (param $op $type i32) (param $old $value i64) (result i64)
  (local $x $y f64) (local $sum f32)
  (if ${is('$op', operationOf('and'))} (then (return (i64.and $old $value))))
  (if ${is('$op', operationOf('or'))} (then (return (i64.or $old $value))))
  (if ${is('$op', operationOf('xor'))} (then (return (i64.xor $old $value))))
  (if ${is('$op', operationOf('inc'))} (then
    (return (select 0L (i64.add $old 1L) (i64.ge_u $old $value)))))
  (if ${is('$op', operationOf('dec'))} (then
    (return (select $value (i64.sub $old 1L)
        (i32.or (i64.eqz $old) (i64.gt_u $old $value))))))
  ;; Sums of tf32 are those of f32, unrounded. NaN is 0x7fffffff (H200, driver 580).
  (if ${isType('f32', 'f32.ftz', 'tf32', 'tf32.ftz')} (then
    (local.set $sum (call $tensor_flushed $type (f32.add
          (call $tensor_flushed $type (f32.reinterpret_i32 (i32.wrap_i64 $old)))
          (call $tensor_flushed $type (f32.reinterpret_i32 (i32.wrap_i64 $value))))))
    (if (f32.ne $sum $sum) (then (return 0x7fffffffL)))
    (return (i64.extend_i32_u (i32.reinterpret_f32 $sum)))))
  ;; A NaN stays as it is, that of shared memory before the other (H200, driver 580).
  (if ${isType('f64')} (then
    (local.set $x (f64.reinterpret_i64 $old))
    (local.set $y (f64.reinterpret_i64 $value))
    (if (f64.ne $y $y) (then (return $value)))
    (if (f64.ne $x $x) (then (return $old)))
    (local.set $x (f64.add $x $y))
    (if (f64.ne $x $x) (then (return 0xfff8000000000000L)))
    (return (i64.reinterpret_f64 $x))))
  (if ${isType('f16', 'bf16')} (then
    (local.set $x (call $tensor_half $type $old))
    (local.set $y (call $tensor_half $type $value))
    (if ${is('$op', operationOf('add'))} (then (local.set $x (f64.add $x $y))))
    (if ${is('$op', operationOf('min'))} (then (local.set $x (call $min_f64 $x $y))))
    (if ${is('$op', operationOf('max'))} (then (local.set $x (call $max_f64 $x $y))))
    (if ${isType('f16')} (then (return (i64.extend_i32_u (call $f64_to_f16 $x)))))
    (return (i64.extend_i32_u (call $f64_to_bf16 $x)))))
  (if ${is('$op', operationOf('add'))} (then (return (i64.add $old $value))))
  (if ${isType('s32')} (then
    (return (i64.extend_i32_u (i32.wrap_i64 (call $tensor_chosen $op 1
            (i64.extend_i32_s (i32.wrap_i64 $old)) (i64.extend_i32_s (i32.wrap_i64 $value))))))))
  (call $tensor_chosen $op ${isType('s64')} $old $value))
;; The less of two numbers, or the greater.
(func $tensor_chosen (param $op $signed i32) (param $a $b i64) (result i64) (local $less i32)
  (local.set $less (i64.lt_u $a $b))
  (if $signed (then (local.set $less (i64.lt_s $a $b))))
  (select $a $b (i32.eq $less ${is('$op', operationOf('min'))})))
(func $tensor_half (param $type i32) (param $bits i64) (result f64)
  (if ${isType('f16')} (then
    (return (f64.promote_f32 (call $f16_to_f32 (i32.wrap_i64 $bits))))))
  (f64.promote_f32 (f32.reinterpret_i32 (i32.shl (i32.wrap_i64 $bits) 16))))
`;

export const TENSOR_FUNCTIONS =
  VALIDITY + COPY + ELEMENTS + row({ touch: () => '', copied: () => '' });
/** The function of these that differs in code compiled with `check`. */
export const CHECKED_TENSOR_FUNCTIONS = row({
  touch: (address, bytes, access) => `
(call $check_touch ${address} ${bytes} ${access})`,
  copied: (to, from, bytes) => `
(call $check_copied ${to} ${from} ${bytes})`,
});
