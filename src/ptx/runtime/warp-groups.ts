// The operands of wgmma in shared memory: matrices that a descriptor of 64 bits describes. When all
// four warps of a group have arrived, each of them computes its 16 rows by itself: it copies the
// matrices to its area as numbers, and then its product is one as mma's. They have to wait for one
// another: after a product a single thread may tell others that the group has read its operands.
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout". Memory is made of units of
// 16 bytes. A line of units is a row of A or a column of B, or if the matrix is transposed, an
// index of the common dimension. Eight lines are adjacent; swizzling exchanges units of a line.

import { ACCESS, ACCESS_SPACES, IN_FLIGHT } from '../check.js';
import { CTX } from '../context.js';
import { MAIL, SCRATCH } from '../emit/frame-layout.js';

/**
 * The product's header: for A and B, how the address of a unit follows from its line and its number
 * in the line; then a word of `GROUP_FLAGS`, the types of A and B, and the warp's number in its
 * group.
 */
export const GROUP_HEADER = { a: 0, b: 32, flags: 64, typeA: 68, typeB: 72, warp: 76 } as const;
/** The fields of one operand. */
const PLACE = {
  start: 0,
  /** Bytes from one of eight lines to the next, and from eight lines to the next eight. */
  line: 4,
  lines: 8,
  /** Units that are adjacent, as a power of two, and bytes from so many units to the next. */
  adjacent: 12,
  units: 16,
  /** Which bits of a line's number are added to the unit's, and the number at which they are 0. */
  swizzle: 20,
  base: 24,
} as const;

export const GROUP_FLAGS = {
  negatedA: 1,
  negatedB: 2,
  sharedA: 4,
  transposedA: 8,
  transposedB: 16,
};

/** The types of elements in shared memory. */
export const GROUP_TYPES: readonly string[] = [
  'f16',
  'bf16',
  'tf32',
  'e4m3',
  'e5m2',
  's8',
  'u8',
  'b1',
];
const typeNumber = (name: string): number => GROUP_TYPES.indexOf(name);

const READ =
  ACCESS.read |
  (IN_FLIGHT.product << ACCESS.inFlightShift) |
  (ACCESS_SPACES.indexOf('shared') << ACCESS.spaceShift);

/** `touch` reports the 16 bytes at $at. */
const operandFunctions = (touch: string): string => `
;; Writes where an operand is, and checks the units of every 32nd line from \`line\` up to \`end\`.
;; Returns the address of one outside of the block's shared memory, or 0.
(func $place_group_operand (param $ctx $place i32) (param $descriptor i64)
  (param $transposed $line $end $unit $units i32) (result i32)
  (local $shared $bytes $lead $stride $span $adjacent $at $i i32)
  (local.set $shared (i32.load offset=${CTX.shared} $ctx))
  (local.set $bytes (i32.load offset=${CTX.sharedBytes} $ctx))
  ;; 18 bits of the address: less than their range is shared memory.
  (i32.store offset=${PLACE.start} $place (i32.add $shared (i32.and 0x3ffff
    (i32.sub (i32.shl (i32.wrap_i64 $descriptor) 4) $shared))))
  (local.set $lead (i32.and 0x3fff0 (i32.wrap_i64 (i64.shr_u $descriptor 12L))))
  (local.set $stride (i32.and 0x3fff0 (i32.wrap_i64 (i64.shr_u $descriptor 28L))))
  ;; 128 bytes, 64, 32, or none: 16.
  (local.set $adjacent (i32.and 3 (i32.sub 4 (i32.wrap_i64 (i64.shr_u $descriptor 62L)))))
  (local.set $span (i32.shl 16 $adjacent))
  (i32.store offset=${PLACE.swizzle} $place (i32.sub (i32.shl 1 $adjacent) 1))
  (i32.store offset=${PLACE.base} $place
    (i32.and 7 (i32.wrap_i64 (i64.shr_u $descriptor 49L))))
  (i32.store offset=${PLACE.line} $place $span)
  (i32.store offset=${PLACE.lines} $place $stride)
  (i32.store offset=${PLACE.units} $place $lead)
  (i32.store offset=${PLACE.adjacent} $place $adjacent)
  ;; Without swizzling the two strides of a transposed matrix have exchanged meanings. Swizzled
  ;; lines along the common dimension have no units beyond the span.
  (if (i32.and $transposed (i32.eqz $adjacent)) (then
    (i32.store offset=${PLACE.lines} $place $lead)
    (i32.store offset=${PLACE.units} $place $stride)))
  (if (i32.and (i32.eqz $transposed) (i32.ne $adjacent 0))
    (then (i32.store offset=${PLACE.adjacent} $place 31)))
  (block $checked (loop $lines
    (br_if $checked (i32.ge_u $line $end))
    (local.set $i $unit)
    (loop $each
      (local.set $at (call $group_unit $place $line $i))
      (if (i32.ge_u (i32.sub $at $shared) (i32.and $bytes -16)) (then (return $at)))
      ${touch}
      (local.set $i (i32.add $i 1))
      (br_if $each (i32.lt_u $i (i32.add $unit $units))))
    (local.set $line (i32.add $line 32))
    (br $lines)))
  0)
`;

export const GROUP_OPERAND_FUNCTIONS = operandFunctions('');
/** The same in code compiled with \`check\`. */
export const CHECKED_GROUP_OPERAND_FUNCTIONS = operandFunctions(
  `(call $check_touch $at 16 ${READ})`,
);

/** The mailbox of a lane in a warp of the block. */
const groupBox = (warp: string): string =>
  `(i32.add (i32.add $boxes (i32.shl ${warp} 10)) (i32.shl $lane 5))`;

export const GROUP_FUNCTIONS = `
;; Whether the four warps of the group have arrived at the product at which the warp of the mailbox
;; waits. The last one reads the operands of all four: a thread that has passed the product may
;; write to them, since its group has read them. \`boxes\`: the block's mailboxes; \`first\`: the
;; warp's first thread.
(func $group_arrived (param $ctx $boxes $first $lane i32) (result i32)
  (local $counts $own $at $end $box i32)
  (local.set $box ${groupBox('(i32.shr_u $first 5)')})
  (if (i32.eq (i32.load offset=${MAIL.result + 4} $box) 2) (then (return 1)))
  (local.set $counts (i32.add (i32.load offset=${CTX.scratch} $ctx) ${SCRATCH.products}))
  (local.set $own (i32.add $counts (i32.shr_u $first 5)))
  ;; The warp counts itself once.
  (if (i32.eqz (i32.load offset=${MAIL.result + 4} $box)) (then
    (i32.store offset=${MAIL.result + 4} $box 1)
    (i32.store8 $own (i32.add (i32.load8_u $own) 1))))
  (local.set $at (i32.and (i32.shr_u $first 5) -4))
  (local.set $end (i32.add $at 4))
  (if (i32.gt_u $end (i32.shr_u (i32.add (i32.load offset=${CTX.threads} $ctx) 31) 5))
    (then (local.set $end (i32.shr_u (i32.add (i32.load offset=${CTX.threads} $ctx) 31) 5))))
  (loop $each
    ;; A warp is at most one product behind or ahead.
    (if (i32.eq 255 (i32.and 255
        (i32.sub (i32.load8_u (i32.add $counts $at)) (i32.load8_u $own)))) (then (return 0)))
    (local.set $at (i32.add $at 1))
    (br_if $each (i32.lt_u $at $end)))
  (local.set $at (i32.and (i32.shr_u $first 5) -4))
  (loop $each
    (i32.store offset=${MAIL.result + 4} ${groupBox('$at')} 2)
    (call $read_group_operands (i32.add $boxes (i32.shl $at 10)) (i32.shl 1 $lane))
    (local.set $at (i32.add $at 1))
    (br_if $each (i32.lt_u $at $end)))
  1)

(func $group_unit (param $place $line $unit i32) (result i32) (local $at i32)
  (local.set $at (i32.add
    (i32.add (i32.load offset=${PLACE.start} $place)
      (i32.add
        (i32.mul (i32.and $line 7) (i32.load offset=${PLACE.line} $place))
        (i32.mul (i32.shr_u $line 3) (i32.load offset=${PLACE.lines} $place))))
    (i32.add
      (i32.shl (i32.and $unit (i32.sub (i32.shl 1 (i32.load offset=${PLACE.adjacent} $place)) 1)) 4)
      (i32.mul (i32.shr_u $unit (i32.load offset=${PLACE.adjacent} $place))
        (i32.load offset=${PLACE.units} $place)))))
  (i32.xor $at (i32.shl (i32.and (i32.load offset=${PLACE.swizzle} $place)
    (i32.sub (i32.shr_u $at 7) (i32.load offset=${PLACE.base} $place))) 4)))

;; Copies A, if it is in shared memory, and B to the warp's area as numbers. A's rows begin at 16
;; for each warp of the group.
(func $read_group_operands (param $mail $group i32)
  (local $box $header $n $k $flags $warp $a $b $sign i32)
  (local.set $box (i32.add $mail (i32.shl (i32.ctz $group) 5)))
  (local.set $header (i32.load offset=${MAIL.value} $box))
  (local.set $k (i32.load16_u offset=${MAIL.value + 4} $box))
  (local.set $n (i32.load16_u offset=${MAIL.clamp + 2} $box))
  (local.set $warp (i32.load offset=${GROUP_HEADER.warp} $header))
  (local.set $flags (i32.load offset=${GROUP_HEADER.flags} $header))
  (local.set $a (i32.add $header (i32.load8_u offset=${MAIL.result} $box)))
  (local.set $b (i32.add $a (i32.shl $k 6)))
  (local.set $sign (i32.shl (i32.and $flags ${GROUP_FLAGS.negatedA}) 31))
  (if (i32.and $flags ${GROUP_FLAGS.sharedA})
    (then
      (if (i32.and $flags ${GROUP_FLAGS.transposedA})
        (then (call $read_group_matrix $header $a 0 $k (i32.shl $warp 1) 2 4 (i32.shl $k 2)
          (i32.load offset=${GROUP_HEADER.typeA} $header) $sign))
        (else (call $read_group_matrix $header $a (i32.shl $warp 4) 16 0 2 (i32.shl $k 2) 4
          (i32.load offset=${GROUP_HEADER.typeA} $header) $sign))))
    (else (if $sign (then (call $negate_numbers $a (i32.shl $k 4))))))
  (local.set $sign (i32.shl (i32.and $flags ${GROUP_FLAGS.negatedB}) 30))
  (if (i32.and $flags ${GROUP_FLAGS.transposedB})
    (then (call $read_group_matrix (i32.add $header ${GROUP_HEADER.b}) $b 0 $k 0
      (i32.shr_u $n 3) (i32.shl $n 2) 4 (i32.load offset=${GROUP_HEADER.typeB} $header) $sign))
    (else (call $read_group_matrix (i32.add $header ${GROUP_HEADER.b}) $b 0 $n 0 2 4
      (i32.shl $n 2) (i32.load offset=${GROUP_HEADER.typeB} $header) $sign))))

;; \`count\` lines of \`units\` units. Numbers are at distances of \`step\` along a line, and of
;; \`stride\` from line to line.
(func $read_group_matrix
  (param $place $out $line $count $unit $units $stride $step $type $sign i32)
  (local $end $last $at $to $bytes $stop i32)
  (local.set $bytes (select 1 2 (i32.ge_u $type ${typeNumber('e4m3')})))
  (if (i32.or (i32.eq $type ${typeNumber('tf32')}) (i32.eq $type ${typeNumber('b1')}))
    (then (local.set $bytes 4)))
  (local.set $end (i32.add $line $count))
  (local.set $last (i32.add $unit $units))
  (loop $lines
    (local.set $to $out)
    (local.set $unit (i32.sub $last $units))
    (loop $each
      (local.set $at (call $group_unit $place $line $unit))
      (local.set $stop (i32.add $at 16))
      (loop $elements
        (i32.store $to (i32.xor $sign (call $group_element $at $type)))
        (local.set $to (i32.add $to $step))
        (local.set $at (i32.add $at $bytes))
        (br_if $elements (i32.lt_u $at $stop)))
      (local.set $unit (i32.add $unit 1))
      (br_if $each (i32.lt_u $unit $last)))
    (local.set $out (i32.add $out $stride))
    (local.set $line (i32.add $line 1))
    (br_if $lines (i32.lt_u $line $end))))

;; The bits of the number that an element represents.
(func $group_element (param $at $type i32) (result i32)
  (if (i32.eq $type ${typeNumber('f16')})
    (then (return (i32.reinterpret_f32 (call $f16_to_f32 (i32.load16_u $at))))))
  (if (i32.eq $type ${typeNumber('bf16')}) (then (return (i32.shl (i32.load16_u $at) 16))))
  (if (i32.eq $type ${typeNumber('tf32')}) (then (return (i32.and (i32.load $at) 0xffffe000))))
  (if (i32.eq $type ${typeNumber('e4m3')})
    (then (return (i32.reinterpret_f32 (call $e4m3_to_f32 (i32.load8_u $at))))))
  (if (i32.eq $type ${typeNumber('e5m2')})
    (then (return (i32.reinterpret_f32 (call $f16_to_f32 (i32.shl (i32.load8_u $at) 8))))))
  (if (i32.eq $type ${typeNumber('s8')}) (then (return (i32.load8_s $at))))
  (if (i32.eq $type ${typeNumber('u8')}) (then (return (i32.load8_u $at))))
  (i32.load $at))

(func $negate_numbers (param $at $count i32) (local $end i32)
  (local.set $end (i32.add $at (i32.shl $count 2)))
  (loop $each
    (f32.store $at (f32.neg (f32.load $at)))
    (local.set $at (i32.add $at 4))
    (br_if $each (i32.lt_u $at $end))))
`;
