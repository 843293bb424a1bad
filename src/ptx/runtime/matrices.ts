// The matrix operations of a warp, after all its lanes have arrived: products of dense matrices
// that the lanes wrote to the warp's area, and moves of 8 x 8 tiles between lanes and memory. Sums
// run over the common dimension in ascending order, begin with the accumulator, and are rounded to
// the accumulator's arithmetic at each step.

import { WARP_OPERATIONS as OP } from '../analysis/cuts.js';
import { MAIL } from '../emit/frame-layout.js';

/**
 * The arithmetic of a product, in the low byte of the mailbox's `lane`; f64 has four numbers, one
 * for each rounding.
 */
export const PRODUCT = { f32: 0, f64: 1, s32: 5, s32sat: 6, xor: 7, and: 8 } as const;
/** Sparse A, in the second byte: how many elements of a chunk are kept, and in which units. */
export const SPARSITY = { none: 0, twoOfFour: 1, oneOfTwo: 2, pairs: 3 } as const;
/** The layout of a register's bytes in a tile, for ldmatrix and stmatrix. */
export const TILE = { plain: 0, transposed16: 1, transposed8: 2, columns8: 3 } as const;

const EIGHT = [0, 1, 2, 3, 4, 5, 6, 7];

interface Arithmetic {
  name: string;
  /** The type of the matrices in memory. */
  type: 'f32' | 'f64' | 'i32';
  accumulator?: 'i64';
  step: (accumulator: string, x: string, y: string) => string;
}

/** D = A * B + C over dense row-major matrices; n is a multiple of 8. */
function multiply({ name, type, accumulator, step }: Arithmetic): string {
  const bytes = type === 'f64' ? 8 : 4;
  const log2 = Math.log2(bytes);
  const widen = accumulator
    ? (value: string) => `(i64.extend_i32_s ${value})`
    : (value: string) => value;
  const finish = accumulator
    ? (value: string) => `(call $clamp_s32 ${value})`
    : (value: string) => value;
  const at = (t: number): string => `offset=${t * bytes}`;
  const eight = (text: (t: number) => string): string => EIGHT.map(text).join('\n      ');
  return `
(func $${name} (param $a $b $c $d $m $n $k $mode i32)
  (local $j $p $q $end $row i32) (local $x ${type})
  (local ${EIGHT.map((t) => `$s${t}`).join(' ')} ${accumulator ?? type})
  (local.set $row (i32.shl $n ${log2}))
  (block $done (loop $rows
    (br_if $done (i32.eqz $m))
    (local.set $end (i32.add $a (i32.shl $k ${log2})))
    (local.set $j 0)
    (loop $columns
      ${eight((t) => `(local.set $s${t} ${widen(`(${type}.load ${at(t)} (i32.add $c $j))`)})`)}
      (local.set $p $a)
      (local.set $q (i32.add $b $j))
      (loop $sum
        (local.set $x (${type}.load $p))
        ${eight((t) => `(local.set $s${t} ${step(`$s${t}`, '$x', `(${type}.load ${at(t)} $q)`)})`)}
        (local.set $p (i32.add $p ${bytes}))
        (local.set $q (i32.add $q $row))
        (br_if $sum (i32.lt_u $p $end)))
      ${eight((t) => `(${type}.store ${at(t)} (i32.add $d $j) ${finish(`$s${t}`)})`)}
      (local.set $j (i32.add $j ${8 * bytes}))
      (br_if $columns (i32.lt_u $j $row)))
    (local.set $a $end)
    (local.set $c (i32.add $c $row))
    (local.set $d (i32.add $d $row))
    (local.set $m (i32.sub $m 1))
    (br $rows))))`;
}

const bits = (operation: 'xor' | 'and'): Arithmetic => ({
  name: `multiply_${operation}`,
  type: 'i32',
  step: (sum, x, y) => `(i32.add ${sum} (i32.popcnt (i32.${operation} ${x} ${y})))`,
});

const PRODUCTS: readonly [number, Arithmetic][] = [
  [
    PRODUCT.f32,
    {
      name: 'multiply_f32',
      type: 'f32',
      step: (sum, x, y) => `(f32.add ${sum} (f32.mul ${x} ${y}))`,
    },
  ],
  [
    PRODUCT.s32,
    {
      name: 'multiply_s32',
      type: 'i32',
      step: (sum, x, y) => `(i32.add ${sum} (i32.mul ${x} ${y}))`,
    },
  ],
  [
    PRODUCT.s32sat,
    {
      name: 'multiply_s32sat',
      type: 'i32',
      accumulator: 'i64',
      step: (sum, x, y) => `(i64.add ${sum} (i64.extend_i32_s (i32.mul ${x} ${y})))`,
    },
  ],
  [PRODUCT.xor, bits('xor')],
  [PRODUCT.and, bits('and')],
  // The four roundings of f64.
  [
    PRODUCT.f64,
    {
      name: 'multiply_f64',
      type: 'f64',
      step: (sum, x, y) => `(call $fma_mode_f64 ${x} ${y} ${sum} $mode)`,
    },
  ],
];

/** The first of the two rows of a transposed tile from which a lane's register $j comes. */
const ROW_OF_PAIR = '(i32.add (i32.shl $j 3) (i32.shl (i32.and $lane 3) 1))';

const rowAddress = (row: string): string => `(call $tile_row $mail $group ${row})`;

/** The row of a tile's byte and its place in the row, for byte $e of register $j of lane $lane. */
const TILE_BYTE = `
      (local.set $g (i32.shr_u $lane 2))
      (local.set $t (i32.and $lane 3))
      (local.set $row (i32.add (i32.shl $j 3) $g))
      (local.set $column (i32.add (i32.shl $t 2) $e))
      (if (i32.eq $tile ${TILE.transposed8}) (then
        (local.set $row (i32.add (i32.shl (i32.shr_u $j 1) 4) (i32.add (i32.shl $t 2) $e)))
        (local.set $column (i32.add $g (i32.shl (i32.and $j 1) 3)))))
      (if (i32.eq $tile ${TILE.columns8}) (then
        (local.set $row (i32.add (i32.shl $j 3) (i32.add (i32.shl $t 1) (i32.and $e 1))))
        (local.set $column (i32.add $g (i32.shl (i32.shr_u $e 1) 3)))))`;

export const MATRIX_FUNCTIONS = `
(func $apply_matrix_warp (param $mail $group $op i32)
  (if (i32.or (i32.eq $op ${OP['mma']!}) (i32.eq $op ${OP['wgmma']!}))
    (then (call $apply_product $mail $group) (return)))
  (if (i32.eq $op ${OP['ldmatrix']!}) (then (call $apply_tiles $mail $group 0) (return)))
  (if (i32.eq $op ${OP['stmatrix']!}) (then (call $apply_tiles $mail $group 1) (return)))
  (if (i32.eq $op ${OP['movmatrix']!}) (then (call $transpose_tile $mail $group) (return)))
  (call $apply_warp $mail $group $op))

(func $apply_product (param $mail $group i32)
  (local $box $m $n $k $batch $kind $mode $bytes $a $b $c $d $sizeA $sizeB $sizeC $sparse
    $metadata i32)
  (local.set $box (i32.add $mail (i32.shl (i32.ctz $group) 5)))
  (local.set $a (i32.load offset=${MAIL.value} $box))
  (local.set $k (i32.load16_u offset=${MAIL.value + 4} $box))
  (local.set $batch (i32.load16_u offset=${MAIL.value + 6} $box))
  (local.set $kind (i32.load8_u offset=${MAIL.lane} $box))
  (local.set $sparse (i32.load8_u offset=${MAIL.lane + 1} $box))
  (local.set $m (i32.load16_u offset=${MAIL.clamp} $box))
  (local.set $n (i32.load16_u offset=${MAIL.clamp + 2} $box))
  (local.set $mode (i32.sub $kind ${PRODUCT.f64}))
  (local.set $bytes (select 8 4 (i32.lt_u $mode 4)))
  (local.set $sizeA (i32.mul (i32.mul $m (i32.shr_u $k (i32.ne $sparse 0))) $bytes))
  (local.set $sizeB (i32.mul (i32.mul $k $n) $bytes))
  (local.set $sizeC (i32.mul (i32.mul $m $n) $bytes))
  (local.set $metadata $a)
  (local.set $a (i32.add $a (i32.load8_u offset=${MAIL.result} $box)))
  (local.set $b (i32.add $a (i32.mul $sizeA $batch)))
  (local.set $c (i32.add $b (i32.mul $sizeB $batch)))
  (local.set $d (i32.add $c (i32.mul $sizeC $batch)))
  (if $sparse (then
    (local.set $a (call $expand_sparse $a $metadata (i32.add $d $sizeC) $m $k $sparse
      (i32.load8_u offset=${MAIL.lane + 2} $box) (i32.load8_u offset=${MAIL.lane + 3} $box)))))
  (loop $each
    (block $multiplied
      ${PRODUCTS.slice(0, -1)
        .map(
          ([code, { name }]) =>
            `(if (i32.eq $kind ${code}) (then (call $${name} $a $b $c $d $m $n $k $mode) (br ` +
            '$multiplied)))',
        )
        .join('\n      ')}
      (call $${PRODUCTS.at(-1)![1].name} $a $b $c $d $m $n $k $mode))
    (local.set $a (i32.add $a $sizeA))
    (local.set $b (i32.add $b $sizeB))
    (local.set $c (i32.add $c $sizeC))
    (local.set $d (i32.add $d $sizeC))
    (local.set $batch (i32.sub $batch 1))
    (br_if $each $batch)))

${PRODUCTS.map(([, arithmetic]) => multiply(arithmetic)).join('\n')}

(func $clamp_s32 (param $x i64) (result i32)
  (if (i64.gt_s $x 0x7fffffffL) (then (return 0x7fffffff)))
  (if (i64.lt_s $x -0x80000000L) (then (return 0x80000000)))
  (i32.wrap_i64 $x))

;; PTX ISA, "Sparse matrix storage". The metadata of rows g and g + 8 is a string of 2-bit indices
;; in the words of the lanes from 4g + \`lane\` on, in units of \`unit\` bits: the first columns of
;; row g, those of row g + 8, the next ones.
(func $expand_sparse (param $a $metadata $out $m $k $kind $lane $unit i32) (result i32)
  (local $to $i $p $half $at $bit $index $column i32)
  (local.set $to $out)
  (memory.fill $out 0 (i32.shl (i32.mul $m $k) 2))
  (local.set $half (i32.shr_u $k 1))
  (loop $rows
    (local.set $p 0)
    (loop $columns
      ;; The 2-bit index: one for each element, the upper one of two, or one for each pair of
      ;; elements.
      (local.set $index $p)
      (if (i32.eq $kind ${SPARSITY.oneOfTwo}) (then (local.set $index (i32.add (i32.shl $p 1) 1))))
      (if (i32.eq $kind ${SPARSITY.pairs}) (then (local.set $index (i32.shr_u $p 1))))
      (local.set $bit (i32.shl $index 1))
      (local.set $at (i32.add
        (i32.mul (i32.add (i32.shl (i32.div_u $bit $unit) 1) (i32.shr_u $i 3)) $unit)
        (i32.rem_u $bit $unit)))
      (local.set $at (i32.and (i32.shr_u
        (i32.load (i32.add $metadata (i32.shl
              (i32.add (i32.add (i32.shl (i32.and $i 7) 2) $lane) (i32.shr_u $at 5)) 2)))
        (i32.and $at 31)) 3))
      (local.set $column (i32.add (i32.shl (i32.shr_u $p 1) 2) $at))
      (if (i32.eq $kind ${SPARSITY.oneOfTwo})
        (then (local.set $column (i32.add (i32.shl $p 1) (i32.shr_u $at 1)))))
      (if (i32.eq $kind ${SPARSITY.pairs}) (then
        (local.set $column (i32.add (i32.shl (i32.shr_u $p 2) 3)
            (i32.add (i32.shl $at 1) (i32.and $p 1))))))
      (i32.store (i32.add $to (i32.shl $column 2)) (i32.load $a))
      (local.set $a (i32.add $a 4))
      (local.set $p (i32.add $p 1))
      (br_if $columns (i32.lt_u $p $half)))
    (local.set $to (i32.add $to (i32.shl $k 2)))
    (local.set $i (i32.add $i 1))
    (br_if $rows (i32.lt_u $i $m)))
  $out)

;; The address of a row of a tile, which its lane wrote; 0 if that lane has exited.
(func $tile_row (param $mail $group $lane i32) (result i32)
  (if (i32.eqz (i32.and (i32.shr_u $group $lane) 1)) (then (return 0)))
  (i32.load offset=${MAIL.value} (i32.add $mail (i32.shl $lane 5))))

;; Moves tiles, whose rows of 16 bytes are anywhere, to or from 16 bytes for each lane in the warp's
;; area.
(func $apply_tiles (param $mail $group $store i32)
  (local $box $area $count $tile $width $lane $j $e $g $t $row $column $address $word $cell
    $bit i32)
  (local.set $box (i32.add $mail (i32.shl (i32.ctz $group) 5)))
  (local.set $area (i32.load offset=${MAIL.lane} $box))
  (local.set $count (i32.load8_u offset=${MAIL.clamp} $box))
  (local.set $tile (i32.load8_u offset=${MAIL.clamp + 1} $box))
  (local.set $width (i32.load8_u offset=${MAIL.clamp + 2} $box))
  (loop $lanes
    (local.set $j 0)
    (loop $registers
      (local.set $cell (i32.add $area (i32.add (i32.shl $lane 4) (i32.shl $j 2))))
      (local.set $word 0)
      (local.set $e 0)
      (block $whole
        ;; Rows of a tile that is not transposed: four bytes at once.
        (if (i32.and (i32.eqz $tile) (i32.eq $width 8)) (then
          (local.set $address ${rowAddress('(i32.add (i32.shl $j 3) (i32.shr_u $lane 2))')})
          (br_if $whole (i32.eqz $address))
          (local.set $address (i32.add $address (i32.shl (i32.and $lane 3) 2)))
          (if $store
            (then (i32.store $address (i32.load $cell)))
            (else (local.set $word (i32.load $address))))
          (br $whole)))
        ;; Transposed halves: two at once, for loads and stores.
        (if (i32.eq $tile ${TILE.transposed16}) (then
          ${[0, 1]
            .map(
              (h) => `(local.set $address ${rowAddress(`(i32.add ${ROW_OF_PAIR} ${h})`)})
          (if $address (then
            (local.set $address (i32.add $address (i32.shl (i32.shr_u $lane 2) 1)))
            (if $store
              (then (i32.store16 $address (i32.load16_u offset=${2 * h} $cell)))
              (else (local.set $word (i32.or $word
                    (i32.shl (i32.load16_u $address) ${16 * h})))))))`,
            )
            .join('\n          ')}
          (br $whole)))
        (loop $bytes
          ${TILE_BYTE}
          (local.set $address ${rowAddress('$row')})
          (if $address (then
            (if $store
              (then (i32.store8 (i32.add $address $column) (i32.load8_u (i32.add $cell $e))))
              (else
                (local.set $bit (i32.mul $column $width))
                (local.set $address (i32.add $address (i32.shr_u $bit 3)))
                (local.set $row (i32.load8_u $address))
                ;; Six bits may extend into the next byte, which is in the same row.
                (if (i32.eq $width 6) (then (local.set $row
                      (i32.or $row (i32.shl (i32.load8_u offset=1 $address) 8)))))
                (local.set $row (i32.and (i32.shr_u $row (i32.and $bit 7))
                    (i32.sub (i32.shl 1 $width) 1)))
                (local.set $word (i32.or $word (i32.shl $row (i32.shl $e 3))))))))
          (local.set $e (i32.add $e 1))
          (br_if $bytes (i32.lt_u $e 4))))
      (if (i32.eqz $store) (then (i32.store $cell $word)))
      (local.set $j (i32.add $j 1))
      (br_if $registers (i32.lt_u $j $count)))
    (local.set $lane (i32.add $lane 1))
    (br_if $lanes (i32.lt_u $lane 32))))

;; An 8 x 8 tile of 16-bit elements, transposed between the lanes: words in at 0, out at 128.
(func $transpose_tile (param $mail $group i32) (local $area $lane $h $row i32)
  (local.set $area (i32.load offset=${MAIL.lane} (i32.add $mail (i32.shl (i32.ctz $group) 5))))
  (loop $lanes
    (local.set $h 0)
    (loop $halves
      (local.set $row (i32.add (i32.shl (i32.and $lane 3) 1) $h))
      (i32.store16 offset=128 (i32.add $area (i32.add (i32.shl $lane 2) (i32.shl $h 1)))
        (i32.load16_u (i32.add $area (i32.add (i32.shl $row 4) (i32.shl (i32.shr_u $lane 2) 1)))))
      (local.set $h (i32.add $h 1))
      (br_if $halves (i32.lt_u $h 2)))
    (local.set $lane (i32.add $lane 1))
    (br_if $lanes (i32.lt_u $lane 32))))

;; Floats of at most a byte: sign, \`exponents\` bits with bias 2^(exponents-1)-1, \`fractions\`
;; bits; no infinities.
(func $small_float (param $bits $exponents $fractions i32) (result f32) (local $e $f i32)
  (local $x f32)
  (local.set $e (i32.and (i32.shr_u $bits $fractions) (i32.sub (i32.shl 1 $exponents) 1)))
  (local.set $f (i32.and $bits (i32.sub (i32.shl 1 $fractions) 1)))
  (if $e
    (then (local.set $f (i32.or $f (i32.shl 1 $fractions))))
    (else (local.set $e 1)))
  ;; f * 2^(e - bias - fractions)
  (local.set $x (f32.mul (f32.convert_i32_u $f) (f32.reinterpret_i32 (i32.shl
    (i32.sub (i32.sub (i32.add $e 128) (i32.shl 1 (i32.sub $exponents 1))) $fractions) 23))))
  (select (f32.neg $x) $x (i32.and (i32.shr_u $bits (i32.add $exponents $fractions)) 1)))
(func $e4m3_to_f32 (param $bits i32) (result f32)
  (if (i32.eq (i32.and $bits 0x7f) 0x7f) (then (return (f32.const nan))))
  (call $small_float $bits 4 3))
`;
