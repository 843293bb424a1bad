// Texture fetches by the CUDA programming guide ("Texture Fetching"), and accesses to the texels of
// surfaces. Where the guide leaves something open they do what measurements of an H200 show: the
// weights of linear filtering are integers with the sum 256, texels of 8 and 16 bits are filtered
// as integers of 16 bits, and the border's colour becomes a texel.

import { ACCESS } from '../check.js';
import { CTX, FAULT, NULL_PAGE } from '../context.js';
import { TEXTURE as T, TEXTURE_MAGIC } from '../texture-descriptor.js';

/** CUarray_format. */
const FORMAT = { u8: 1, u16: 2, u32: 3, s8: 8, s16: 9, s32: 10, half: 16, float: 32 } as const;
/** CU_TRSF_* */
const FLAG = { integer: 1, normalized: 2, srgb: 16 } as const;
/** The kind of a fetch: the dimensions in bits 0 and 1, then these. */
export const GEOMETRY = { layered: 4, cube: 8 } as const;
/** A distance in texels that is far outside every texture. */
const FARTHEST = 2 ** 30;
const CHANNELS = [0, 1, 2, 3];
const AXES = ['x', 'y', 'z'] as const;

/** Code that runs if the format has channel `c`. */
const ifChannel = (c: number, code: string): string =>
  c === 0 ? code : `(if (i32.gt_u ${field(T.channels)} ${c}) (then ${code}))`;

/** Adds the weighted texel at $i, $j, $k to the sum of channel `c`. */
const addTexel = (c: number): string => `(local.set $r${c} (f64.add $r${c} (f64.mul $w
        (call $filter_texel (call $texel $ctx $d $s ${c} $i $j $k) $m${c}))))`;

const field = (offset: number, of = '$d'): string => `(i32.load offset=${offset} ${of})`;
const eq = (a: string, b: number | string): string => `(i32.eq ${a} ${b})`;

/** Narrow formats, and the divisor if they are read as numbers in [0, 1] or [-1, 1]. */
const NARROW: readonly [format: number, load: string, most: number][] = [
  [FORMAT.u8, 'i32.load8_u', 255],
  [FORMAT.s8, 'i32.load8_s', 127],
  [FORMAT.u16, 'i32.load16_u', 65535],
  [FORMAT.s16, 'i32.load16_s', 32767],
];

/** `touch` runs for every channel that is read from memory. */
const channel = (touch: string): string => `
;; A channel of the texel at an address, as the bits of a 32-bit register.
(func $channel (param $d $at $c i32) (result i32) (local $format $v i32) (local $x f32)
  (local.set $format ${field(T.format)})
  (if (i32.ge_u $c ${field(T.channels)}) (then
    (return (select (select ${0x3f800000} 1 (call $reads_float $d)) 0 ${eq('$c', 3)}))))
  (if (i32.eqz $at) (then (return 0)))${touch}
  (if (i32.or ${eq('$format', FORMAT.float)}
      (i32.or ${eq('$format', FORMAT.u32)} ${eq('$format', FORMAT.s32)}))
    (then (return (i32.load (i32.add $at (i32.shl $c 2))))))
  (if ${eq('$format', FORMAT.half)} (then
    (return (i32.reinterpret_f32 (call $f16_to_f32 (i32.load16_u (i32.add $at (i32.shl $c 1))))))))
  (block $read
    ${NARROW.map(
      ([format, load, most]) => `
    (if ${eq('$format', format)} (then
      (local.set $v (${load} (i32.add $at ${load.includes('16') ? '(i32.shl $c 1)' : '$c'})))
      (local.set $x (f32.div (f32.convert_i32_s $v) ${most}f))
      (br $read)))`,
    ).join('')})
  (if (i32.and ${field(T.flags)} ${FLAG.integer}) (then (return $v)))
  ;; The least number of a signed format is below -1.
  (local.set $x (f32.max $x -1f))
  (if (i32.and (i32.ne (i32.and ${field(T.flags)} ${FLAG.srgb}) 0)
      (i32.and (i32.lt_u $c 3) ${eq('$format', FORMAT.u8)}))
    (then (local.set $x (call $srgb_to_linear $x))))
  (i32.reinterpret_f32 $x))`;

const CHANNEL_BYTES = `(i32.div_u ${field(T.texelBytes)} ${field(T.channels)})`;

/** The function below that differs in code compiled with `check`. */
export const CHECKED_TEXTURE_FUNCTIONS = channel(`
  (call $check_touch (i32.add $at (i32.mul $c ${CHANNEL_BYTES})) ${CHANNEL_BYTES} ${ACCESS.read})`);

export const TEXTURE_FUNCTIONS = `
;; The descriptor of a handle; a fault and 0 if the handle names none of that kind.
(func $texture (param $handle i64) (param $kind $ctx $thread $line i32) (result i32)
  (if (call $is_texture $handle $kind $ctx) (then (return (i32.wrap_i64 $handle))))
  (call $fault $ctx ${FAULT.outOfBounds} $thread $line $handle)
  0)
(func $is_texture (param $handle i64) (param $kind $ctx i32) (result i32) (local $d i32)
  (block $bad
    (br_if $bad (i64.ge_u (i64.sub $handle ${NULL_PAGE}L)
      (i64.sub (i64.add (i64.extend_i32_u (i32.sub (i32.load offset=${CTX.memoryTop} $ctx) 1)) 1L)
        ${NULL_PAGE + T.bytes}L)))
    (local.set $d (i32.wrap_i64 $handle))
    (br_if $bad (i32.and $d 15))
    (br_if $bad (i32.ne ${field(T.magic)} ${TEXTURE_MAGIC}))
    (br_if $bad (i32.ne ${field(T.kind)} $kind))
    (return 1))
  0)

;; The address of a texel that exists; 0 if the descriptor points outside memory.
(func $texel_address (param $ctx $d $i $j $k i32) (result i32) (local $at i32)
  (local.set $at (i32.add (i32.add ${field(T.data)} (i32.mul $k ${field(T.slicePitch)}))
    (i32.add (i32.mul $j ${field(T.pitch)}) (i32.mul $i ${field(T.texelBytes)}))))
  (select 0 $at (i32.gt_u (i32.sub $at ${NULL_PAGE})
      (i32.sub (i32.load offset=${CTX.memoryTop} $ctx) ${NULL_PAGE + 16}))))

;; 1 if a channel reads as a float.
(func $reads_float (param $d i32) (result i32)
  (i32.or (i32.ge_u ${field(T.format)} ${FORMAT.half})
    (i32.and (i32.eqz (i32.and ${field(T.flags)} ${FLAG.integer}))
      (i32.and (i32.ne ${field(T.format)} ${FORMAT.u32})
        (i32.ne ${field(T.format)} ${FORMAT.s32})))))

(func $srgb_to_linear (param $x f32) (result f32)
  (if (f32.le $x 0.04045f) (then (return (f32.div $x 12.92f))))
  (f32.demote_f64 (call $exp2 (f64.mul 2.4d
        (call $log2 (f64.div (f64.add (f64.promote_f32 $x) 0.055d) 1.055d))))))

${channel('')}

;; A channel of the border's colour, converted to the texture's format. If integers are read, it is
;; the low bits of the float; values in the middle between two, or slightly above it, round down.
(func $border (param $d i32) (param $x f32) (result i32) (local $format $h i32) (local $most f64)
  (local $v f64)
  (local.set $format ${field(T.format)})
  (if (i32.eqz (call $reads_float $d)) (then
    (local.set $h (i32.reinterpret_f32 $x))
    ${(
      [
        [FORMAT.u8, '(i32.and $h 255)'],
        [FORMAT.s8, '(i32.shr_s (i32.shl $h 24) 24)'],
        [FORMAT.u16, '(i32.and $h 65535)'],
        [FORMAT.s16, '(i32.shr_s (i32.shl $h 16) 16)'],
      ] as const
    )
      .map(
        ([format, bits]) => `
    (if ${eq('$format', format)} (then (local.set $h ${bits})))`,
      )
      .join('')}
    (return $h)))
  ;; Halves are truncated, and a number that is too large becomes the largest half.
  (if (i32.and ${eq('$format', FORMAT.half)} (f32.lt (f32.abs $x) ${Infinity}f)) (then
    (local.set $h (call $f64_to_f16 (f64.promote_f32 (f32.abs $x))))
    (if (f32.gt (call $f16_to_f32 $h) (f32.abs $x)) (then (local.set $h (i32.sub $h 1))))
    (return (i32.or (i32.reinterpret_f32 (call $f16_to_f32 $h))
        (i32.and (i32.reinterpret_f32 $x) 0x80000000)))))
  (if (i32.ge_u $format ${FORMAT.half}) (then (return (i32.reinterpret_f32 $x))))
  (if (f32.ne $x $x) (then (return 0)))
  ${NARROW.map(
    ([format, , most]) => `
  (if ${eq('$format', format)} (then (local.set $most ${most}d)))`,
  ).join('')}
  (local.set $v (f64.mul (f64.min (f64.promote_f32 (f32.abs $x)) 1d) $most))
  (if (f32.lt $x 0f) (then
    (if ${eq(`(i32.and $format ${FORMAT.s8})`, 0)} (then (return 0)))
    (return
      (i32.reinterpret_f32 (f32.neg (f32.demote_f64
            (f64.div (f64.ceil (f64.sub $v 0.525d)) $most)))))))
  (i32.reinterpret_f32 (f32.demote_f64 (f64.div (f64.ceil (f64.sub $v 0.525d)) $most))))

;; For a channel that is filtered as an integer, the integer that reads as 1; else 0.
(func $filter_most (param $d $c i32) (result f64) (local $format i32)
  (local.set $format ${field(T.format)})
  (if (i32.ge_u $format ${FORMAT.half}) (then (return 0d)))
  (if ${eq('$format', FORMAT.s8)} (then (return 127d)))
  (if ${eq('$format', FORMAT.s16)} (then (return 32767d)))
  (if (i32.and (i32.ne (i32.and ${field(T.flags)} ${FLAG.srgb}) 0)
      (i32.and (i32.lt_u $c 3) ${eq('$format', FORMAT.u8)})) (then (return 0d)))
  65535d)

;; A texel as that integer, or as it reads.
(func $filter_texel (param $x i32) (param $most f64) (result f64) (local $v f64)
  (local.set $v (f64.promote_f32 (f32.reinterpret_i32 $x)))
  (select (f64.nearest (f64.mul $v $most)) $v (f64.gt $most 0d)))

;; The sum of texels, times 256, as a fetch returns it. Ties round up; those of floats round away
;; from zero.
(func $filtered (param $d i32) (param $sum $most f64) (result i32)
  (local.set $sum (f64.div $sum 256d))
  (if (f64.eq $most 127d) (then
    (local.set $sum (f64.div (f64.mul $sum 32767d) 127d))
    (local.set $most 32767d)))
  (if (f64.gt $most 0d) (then
    (return (i32.reinterpret_f32 (f32.demote_f64
          (f64.div (f64.floor (f64.add $sum 0.5d)) $most))))))
  (if ${eq(field(T.format), FORMAT.half)} (then
    (return (i32.reinterpret_f32 (call $f16_to_f32
          (call $f64_to_f16 (f64.mul $sum ${1 + 2 ** -40}d)))))))
  (i32.reinterpret_f32 (f32.demote_f64 (f64.mul $sum ${1 + 2 ** -40}d))))

;; The position between texels, counted from the middle of the first. A clamped position is on no
;; texel but the last.
(func $filter_place (param $s $axis $n $offset i32) (param $x f32) (result f64) (local $u f64)
  (local $mode i32)
  (local.set $u (f64.sub (f64.add (call $coordinate $s $axis $n $x)
        (f64.convert_i32_s $offset)) 0.5d))
  (local.set $mode (i32.load offset=${T.addressMode} (i32.add $s (i32.shl $axis 2))))
  (if (i32.or ${eq('$mode', 1)} (i32.and (i32.ne $mode 3)
        (i32.eqz (i32.and ${field(T.flags, '$s')} ${FLAG.normalized})))) (then
    (local.set $u (f64.max (f64.min $u (f64.convert_i32_s (i32.sub $n 1))) 0d))))
  $u)
(func $filter_weight (param $u f64) (result i32)
  (i32.trunc_sat_f64_s (f64.floor (f64.add (f64.mul (f64.sub $u (f64.floor $u)) 256d) 0.5d))))

;; The weight of a corner, in 256ths: split by z, then x, then y, and rounded each time.
(func $corner_weight (param $corner $dims $ax $ay $az i32) (result i32) (local $w $x $y i32)
  (local.set $w 256)
  (if (i32.ge_u $dims 3) (then (local.set $w (select $az (i32.sub 256 $az) (i32.and $corner 4)))))
  (local.set $x (i32.shr_u (i32.add (i32.mul $ax $w) 128) 8))
  (local.set $w (select $x (i32.sub $w $x) (i32.and $corner 1)))
  (if (i32.lt_u $dims 2) (then (return $w)))
  (if (i32.eqz (i32.and $corner 1)) (then (local.set $ay (i32.sub 256 $ay))))
  (local.set $y (i32.shr_u (i32.add (i32.mul $w $ay) 128) 8))
  (select $y (i32.sub $w $y) (i32.ne (i32.and $corner 1) (i32.eqz (i32.and $corner 2)))))

;; Like $channel, for a texel with these indices; -1 among them is the border.
(func $texel (param $ctx $d $s $c $i $j $k i32) (result i32)
  (if (i32.lt_s (i32.or (i32.or $i $j) $k) 0) (then
    (if ${field(T.linear)} (then (return 0)))
    (return (call $border $d (f32.load offset=${T.border} (i32.add $s (i32.shl $c 2)))))))
  (call $channel $d (call $texel_address $ctx $d $i $j $k) $c))

;; A coordinate in texels: a normalised one is wrapped or mirrored, and scaled. One far outside is
;; moved close enough for the texels next to it to have indices.
(func $coordinate (param $s $axis $n i32) (param $x f32) (result f64) (local $u $whole f64)
  (local $mode i32)
  (local.set $u (f64.promote_f32 $x))
  (if (i32.eqz (i32.and ${field(T.flags, '$s')} ${FLAG.normalized}))
    (then (return (call $near $u))))
  (local.set $mode (i32.load offset=${T.addressMode} (i32.add $s (i32.shl $axis 2))))
  (local.set $whole (f64.floor $u))
  (if ${eq('$mode', 0)} (then (local.set $u (f64.sub $u $whole))))
  (if ${eq('$mode', 2)} (then
    (local.set $u (f64.sub $u $whole))
    ;; Odd periods are reversed.
    (if (f64.ne (f64.mul (f64.floor (f64.mul $whole 0.5d)) 2d) $whole)
      (then (local.set $u (f64.sub 1d $u))))))
  (call $near (f64.mul $u (f64.convert_i32_s $n))))
(func $near (param $u f64) (result f64) (f64.max (f64.min $u ${FARTHEST}d) -${FARTHEST}d))

;; The index of a texel; -1 for the border. Wrapping and mirroring apply to normalised coordinates.
(func $index (param $s $axis $i $n i32) (result i32) (local $mode i32)
  (if (i32.lt_u $i $n) (then (return $i)))
  (local.set $mode (i32.load offset=${T.addressMode} (i32.add $s (i32.shl $axis 2))))
  (if ${eq('$mode', 3)} (then (return -1)))
  (if (i32.and ${field(T.flags, '$s')} ${FLAG.normalized}) (then
    (if ${eq('$mode', 0)} (then
      (local.set $i (i32.rem_s $i $n))
      (return (i32.add $i (select $n 0 (i32.lt_s $i 0))))))
    (if ${eq('$mode', 2)} (then
      (local.set $i (i32.rem_s $i (i32.shl $n 1)))
      (local.set $i (i32.add $i (select (i32.shl $n 1) 0 (i32.lt_s $i 0))))
      (return (select $i (i32.sub (i32.sub (i32.shl $n 1) 1) $i) (i32.lt_s $i $n)))))))
  (select 0 (i32.sub $n 1) (i32.lt_s $i 0)))

;; tex with integer coordinates: the texel itself.
(func $tex_s32 (param $ctx $d $s $geometry $layer $x $y $z i32) (result i32 i32 i32 i32)
  (if ${field(T.linear)}
    (then (local.set $x (select $x -1 (i32.lt_u $x ${field(T.width)}))))
    (else (local.set $x (call $index $s 0 $x ${field(T.width)}))))
  (local.set $y (select (call $index $s 1 $y ${field(T.height)}) 0
      (i32.ge_u (i32.and $geometry 3) 2)))
  (local.set $z (call $slice $d $s $geometry $layer $z))
  ${CHANNELS.map((c) => `(call $texel $ctx $d $s ${c} $x $y $z)`).join(' ')})

;; The index in depth, or the layer: layers are clamped in every mode.
(func $slice (param $d $s $geometry $layer $z i32) (result i32)
  (if (i32.and $geometry ${GEOMETRY.layered}) (then
    (if (i32.lt_s $layer 0) (then (return 0)))
    (return (select $layer (i32.sub ${field(T.depth)} 1) (i32.lt_u $layer ${field(T.depth)})))))
  (if (i32.lt_u (i32.and $geometry 3) 3) (then (return $layer)))
  (call $index $s 2 $z ${field(T.depth)}))

;; tex with float coordinates, point or linear; \`ox\` to \`oz\` are offsets in texels.
(func $tex_f32 (param $ctx $d $s $geometry $layer i32) (param $x $y $z f32) (param $ox $oy $oz i32)
  (result i32 i32 i32 i32)
  (local ${AXES.map((axis) => `$u${axis}`).join(' ')} $w f64)
  (local ${CHANNELS.map((c) => `$r${c} $m${c}`).join(' ')} f64)
  (local $dims $corner $i $j $k $n ${AXES.map((axis) => `$a${axis}`).join(' ')} i32)
  (local.set $dims (i32.and $geometry 3))
  (if (i32.eqz ${field(T.filter, '$s')}) (then
    (local.set $ux (call $coordinate $s 0 ${field(T.width)} $x))
    (if (i32.ge_u $dims 2) (then (local.set $uy (call $coordinate $s 1 ${field(T.height)} $y))))
    (if (i32.ge_u $dims 3) (then (local.set $uz (call $coordinate $s 2 ${field(T.depth)} $z))))
    (local.set $i (call $index $s 0 (i32.add (i32.trunc_sat_f64_s (f64.floor $ux)) $ox)
        ${field(T.width)}))
    (if (i32.ge_u $dims 2) (then (local.set $j
          (call $index $s 1 (i32.add (i32.trunc_sat_f64_s (f64.floor $uy)) $oy)
            ${field(T.height)}))))
    (local.set $k (call $slice $d $s $geometry $layer
        (i32.add (i32.trunc_sat_f64_s (f64.floor $uz)) $oz)))
    ${CHANNELS.map((c) => `(call $texel $ctx $d $s ${c} $i $j $k)`).join(' ')}
    (return)))
  ${AXES.map(
    (axis, index) => `
  (if (i32.gt_u $dims ${index}) (then
    (local.set $u${axis} (call $filter_place $s ${index}
        ${field([T.width, T.height, T.depth][index]!)} $o${axis} $${axis}))
    (local.set $a${axis} (call $filter_weight $u${axis}))
    (local.set $u${axis} (f64.floor $u${axis}))))`,
  ).join('')}
  ${CHANNELS.map((c) => `(local.set $m${c} (call $filter_most $d ${c}))`).join(' ')}
  (local.set $n (i32.shl 1 $dims))
  (loop $corners
    (local.set $w (f64.convert_i32_s (call $corner_weight $corner $dims $ax $ay $az)))
    (if (f64.gt $w 0d) (then
      (local.set $i (call $index $s 0 (i32.add (i32.trunc_sat_f64_s $ux)
            (i32.and $corner 1)) ${field(T.width)}))
      (if (i32.ge_u $dims 2) (then
        (local.set $j (call $index $s 1 (i32.add (i32.trunc_sat_f64_s $uy)
              (i32.shr_u (i32.and $corner 2) 1)) ${field(T.height)}))))
      (local.set $k (call $slice $d $s $geometry $layer
          (i32.add (i32.trunc_sat_f64_s $uz) (i32.shr_u $corner 2))))
      ${CHANNELS.map((c) => ifChannel(c, addTexel(c))).join('\n      ')}))
    (local.set $corner (i32.add $corner 1))
    (br_if $corners (i32.lt_u $corner $n)))
  ;; Channels that the format lacks have their defaults.
  ${CHANNELS.map(
    (c) => `(select (call $filtered $d $r${c} $m${c})
    (call $channel $d 0 ${c}) (i32.gt_u ${field(T.channels)} ${c}))`,
  ).join(' ')})

;; A direction selects the face of a cube, which is a layer, and a position on it.
(func $tex_cube (param $ctx $d $s $geometry $layer i32) (param $x $y $z f32)
  (result i32 i32 i32 i32)
  (local $m $u $v f32) (local $face i32)
  (local.set $m (f32.max (f32.max (f32.abs $x) (f32.abs $y)) (f32.abs $z)))
  (block $chosen
    (if (f32.eq (f32.abs $x) $m) (then
      (local.set $face (f32.lt $x 0f))
      (local.set $u (select $z (f32.neg $z) $face))
      (local.set $v (f32.neg $y))
      (br $chosen)))
    (if (f32.eq (f32.abs $y) $m) (then
      (local.set $face (f32.lt $y 0f))
      (local.set $u $x)
      (local.set $v (select (f32.neg $z) $z $face))
      (local.set $face (i32.add $face 2))
      (br $chosen)))
    (local.set $face (f32.lt $z 0f))
    (local.set $u (select (f32.neg $x) $x $face))
    (local.set $v (f32.neg $y))
    (local.set $face (i32.add $face 4)))
  (call $tex_f32 $ctx $d $s ${2 | GEOMETRY.layered}
    (i32.add (i32.mul (select $layer 0 (i32.and $geometry ${GEOMETRY.layered})) 6) $face)
    (f32.mul (f32.add (f32.div $u $m) 1f) 0.5f)
    (f32.mul (f32.add (f32.div $v $m) 1f) 0.5f) 0f 0 0 0))

;; tld4: one channel of the four texels of linear filtering, counter-clockwise from the lower left
;; one.
(func $tex_gather (param $ctx $d $s $geometry $layer $c i32) (param $x $y f32) (param $ox $oy i32)
  (result i32 i32 i32 i32)
  (local $i $j $i1 $j1 $k i32)
  (local.set $i (i32.add $ox (i32.trunc_sat_f64_s
        (f64.floor (f64.sub (call $coordinate $s 0 ${field(T.width)} $x) 0.5d)))))
  (local.set $j (i32.add $oy (i32.trunc_sat_f64_s
        (f64.floor (f64.sub (call $coordinate $s 1 ${field(T.height)} $y) 0.5d)))))
  (local.set $i1 (call $index $s 0 (i32.add $i 1) ${field(T.width)}))
  (local.set $j1 (call $index $s 1 (i32.add $j 1) ${field(T.height)}))
  (local.set $i (call $index $s 0 $i ${field(T.width)}))
  (local.set $j (call $index $s 1 $j ${field(T.height)}))
  (local.set $k (call $slice $d $s $geometry $layer 0))
  (call $texel $ctx $d $s $c $i $j1 $k) (call $texel $ctx $d $s $c $i1 $j1 $k)
  (call $texel $ctx $d $s $c $i1 $j $k) (call $texel $ctx $d $s $c $i $j $k))

;; The address of a surface's bytes: 0 for none, which .zero reads as zero and .trap refuses.
;; \`clamp\`: 1 moves it to the nearest.
(func $surface_place (param $ctx $d $x $y $z $bytes $clamp i32) (result i32) (local $row $at i32)
  (local.set $row (i32.mul ${field(T.width)} ${field(T.texelBytes)}))
  (if $clamp (then
    (local.set $x (select 0 (select $x (i32.sub $row $bytes) (i32.le_s (i32.add $x $bytes) $row))
        (i32.lt_s $x 0)))
    (local.set $y (select 0 (select $y (i32.sub ${field(T.height)} 1)
          (i32.lt_s $y ${field(T.height)})) (i32.lt_s $y 0)))
    (local.set $z (select 0 (select $z (i32.sub ${field(T.depth)} 1)
          (i32.lt_s $z ${field(T.depth)})) (i32.lt_s $z 0)))))
  ;; Accesses are whole units within a row.
  (if (i32.or (i32.or (i32.ge_u $y ${field(T.height)}) (i32.ge_u $z ${field(T.depth)}))
        (i32.or (i32.lt_s $x 0) (i32.gt_s $x (i32.sub $row $bytes)))) (then (return 0)))
  (local.set $at (i32.add (i32.add ${field(T.data)} (i32.mul $z ${field(T.slicePitch)}))
      (i32.add (i32.mul $y ${field(T.pitch)}) $x)))
  (select 0 $at (i32.gt_u (i32.sub $at ${NULL_PAGE})
      (i32.sub (i32.load offset=${CTX.memoryTop} $ctx) ${NULL_PAGE + 16}))))

;; sured: writes the result of \`operation\` on the cell and the value. 0 add, 1 and 2 signed min
;; and max, 3 and 4 unsigned, 5 and, 6 or.
${(['i32', 'i64'] as const)
  .map(
    (type) => `(func $surface_reduce_${type} (param $at i32) (param $v ${type})
  (param $operation i32) (local $old $new ${type})
  (loop $again
    (local.set $old (${type}.atomic.load $at))
    (local.set $new (${type}.add $old $v))
    ${(['lt_s', 'gt_s', 'lt_u', 'gt_u'] as const)
      .map(
        (comparison, index) => `(if ${eq('$operation', index + 1)}
      (then (local.set $new (select $v $old (${type}.${comparison} $v $old)))))`,
      )
      .join('\n    ')}
    (if ${eq('$operation', 5)} (then (local.set $new (${type}.and $old $v))))
    (if ${eq('$operation', 6)} (then (local.set $new (${type}.or $old $v))))
    (br_if $again (${type}.ne (${type}.atomic.rmw.cmpxchg $at $old $new) $old))))`,
  )
  .join('\n')}

;; sust.p: a 32-bit value becomes a channel of the surface's format, limited to its range.
(func $store_channel (param $d $at $c $v i32) (local $format i32)
  (local.set $format ${field(T.format)})
  (if (i32.ge_u $c ${field(T.channels)}) (then (return)))
  (if (i32.or ${eq('$format', FORMAT.float)}
      (i32.or ${eq('$format', FORMAT.u32)} ${eq('$format', FORMAT.s32)}))
    (then (i32.store (i32.add $at (i32.shl $c 2)) $v) (return)))
  (if ${eq('$format', FORMAT.half)} (then
    (i32.store16 (i32.add $at (i32.shl $c 1))
      (call $f64_to_f16 (f64.promote_f32 (f32.reinterpret_i32 $v)))) (return)))
  ${(
    [
      [FORMAT.u8, 0, 255, 8],
      [FORMAT.u16, 0, 65535, 16],
      [FORMAT.s8, -128, 127, 8],
      [FORMAT.s16, -32768, 32767, 16],
    ] as const
  )
    .map(
      ([format, least, most, bits]) => `
  (if ${eq('$format', format)} (then
    ${
      least
        ? `(if (i32.lt_s $v ${least}) (then (local.set $v ${least})))
    (if (i32.gt_s $v ${most}) (then (local.set $v ${most})))`
        : `(if (i32.gt_u $v ${most}) (then (local.set $v ${most})))`
    }
    (i32.store${bits} (i32.add $at ${bits === 16 ? '(i32.shl $c 1)' : '$c'}) $v)))`,
    )
    .join('')})

;; txq and suq: names with OpenCL's numbers.
(func $channel_type (param $d i32) (result i32) (local $format i32)
  (local.set $format ${field(T.format)})
  (if ${eq('$format', FORMAT.half)} (then (return 0x10dd)))
  (if ${eq('$format', FORMAT.float)} (then (return 0x10de)))
  (if (call $reads_float $d) (then
    (return (i32.add (select 0x10d0 0x10d2 (i32.ge_u $format ${FORMAT.s8}))
        (i32.sub (i32.and $format 7) (i32.lt_u $format ${FORMAT.s8}))))))
  (select (i32.add 0x10d7 (i32.sub $format ${FORMAT.s8}))
    (i32.add 0x10da (i32.sub $format ${FORMAT.u8})) (i32.ge_u $format ${FORMAT.s8})))
`;
