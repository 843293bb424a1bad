// Integer operations that WebAssembly lacks or that would trap.

const divisions = ['32', '64']
  .map((bits) => {
    const w = `i${bits}`;
    const l = bits === '64' ? 'L' : '';
    return `
(func $div_u${bits} (param $a $b ${w}) (result ${w})
  (if (${w}.eqz $b) (then (return -1${l})))
  (${w}.div_u $a $b))
(func $div_s${bits} (param $a $b ${w}) (result ${w})
  (if (${w}.eqz $b) (then (return -1${l})))
  (if (${w}.eq $b -1${l}) (then (return (${w}.sub 0${l} $a))))
  (${w}.div_s $a $b))
(func $rem_u${bits} (param $a $b ${w}) (result ${w})
  (if (${w}.eqz $b) (then (return $a)))
  (${w}.rem_u $a $b))
(func $rem_s${bits} (param $a $b ${w}) (result ${w})
  (if (${w}.eqz $b) (then (return $a)))
  (${w}.rem_s $a $b))`;
  })
  .join('\n');

export const INTEGER_FUNCTIONS = `${divisions}
(func $mul_hi_u64 (param $a $b i64) (result i64) (local $al $ah $bl $bh $middle $low i64)
  (local.set $al (i64.and $a 0xffffffffL)) (local.set $ah (i64.shr_u $a 32L))
  (local.set $bl (i64.and $b 0xffffffffL)) (local.set $bh (i64.shr_u $b 32L))
  (local.set $low (i64.mul $al $bl))
  (local.set $middle (i64.add (i64.mul $ah $bl) (i64.shr_u $low 32L)))
  (local.set $low (i64.add (i64.mul $al $bh) (i64.and $middle 0xffffffffL)))
  (i64.add (i64.mul $ah $bh) (i64.add (i64.shr_u $middle 32L) (i64.shr_u $low 32L))))
(func $mul_hi_s64 (param $a $b i64) (result i64)
  (i64.sub (i64.sub (call $mul_hi_u64 $a $b)
    (i64.and (i64.shr_s $a 63L) $b)) (i64.and (i64.shr_s $b 63L) $a)))
(func $saturate_s32 (param $x i64) (result i32)
  (if (i64.gt_s $x 0x7fffffffL) (then (return 0x7fffffff)))
  (if (i64.lt_s $x -0x80000000L) (then (return 0x80000000)))
  (i32.wrap_i64 $x))
(func $brev32 (param $x i32) (result i32)
  (local.set $x (i32.or (i32.and (i32.shr_u $x 1) 0x55555555) (i32.shl (i32.and $x 0x55555555) 1)))
  (local.set $x (i32.or (i32.and (i32.shr_u $x 2) 0x33333333) (i32.shl (i32.and $x 0x33333333) 2)))
  (local.set $x (i32.or (i32.and (i32.shr_u $x 4) 0x0f0f0f0f) (i32.shl (i32.and $x 0x0f0f0f0f) 4)))
  (i32.or (i32.and (i32.rotl $x 8) 0x00ff00ff) (i32.and (i32.rotr $x 8) 0xff00ff00)))
(func $brev64 (param $x i64) (result i64)
  (i64.or (i64.shl (i64.extend_i32_u (call $brev32 (i32.wrap_i64 $x))) 32L)
    (i64.extend_i32_u (call $brev32 (i32.wrap_i64 (i64.shr_u $x 32L))))))
;; prmt, general mode: each nibble of the selector picks a byte of b:a, and its top bit replicates
;; the byte's sign.
(func $prmt (param $a $b $s i32) (result i32) (local $all i64) (local $i $sel $byte $out i32)
  (local.set $all (i64.or (i64.extend_i32_u $a) (i64.shl (i64.extend_i32_u $b) 32L)))
  (loop $each
    (local.set $sel (i32.and (i32.shr_u $s (i32.shl $i 2)) 15))
    (local.set $byte (i32.and (i32.wrap_i64
          (i64.shr_u $all (i64.extend_i32_u (i32.shl (i32.and $sel 7) 3)))) 255))
    (if (i32.and $sel 8) (then (local.set $byte (select 255 0 (i32.and $byte 128)))))
    (local.set $out (i32.or $out (i32.shl $byte (i32.shl $i 3))))
    (local.set $i (i32.add $i 1))
    (br_if $each (i32.lt_u $i 4)))
  $out)
(func $bfe_u64 (param $a i64) (param $pos $len i32) (result i64)
  (if (i32.ge_u $pos 64) (then (return 0L)))
  (local.set $a (i64.shr_u $a (i64.extend_i32_u $pos)))
  (if (i32.ge_u $len 64) (then (return $a)))
  (i64.and $a (i64.sub (i64.shl 1L (i64.extend_i32_u $len)) 1L)))
;; The sign of a signed field is its top bit, or the top bit of the operand if the field extends
;; past it.
(func $bfe_s (param $a i64) (param $pos $len $width i32) (result i64) (local $top i32)
  (if (i32.eqz $len) (then (return 0L)))
  (local.set $top (i32.sub (i32.add $pos $len) 1))
  (if (i32.ge_u $top $width) (then (local.set $top (i32.sub $width 1))))
  (if (i32.gt_u $pos $top)
    (then (return (i64.shr_s (i64.shl $a (i64.extend_i32_u (i32.sub 64 $width))) 63L))))
  (i64.shr_s (i64.shl $a (i64.extend_i32_u (i32.sub 63 $top)))
    (i64.extend_i32_u (i32.add (i32.sub 63 $top) $pos))))
(func $bfi (param $a $b i64) (param $pos $len $width i32) (result i64) (local $mask i64)
  (if (i32.or (i32.ge_u $pos $width) (i32.eqz $len)) (then (return $b)))
  (local.set $mask (i64.shl (select -1L (i64.sub (i64.shl 1L (i64.extend_i32_u $len)) 1L)
        (i32.ge_u $len 64)) (i64.extend_i32_u $pos)))
  (i64.or (i64.and (i64.shl $a (i64.extend_i32_u $pos)) $mask) (i64.and $b (i64.xor $mask -1L))))
(func $zero_extend (param $a $width i32) (result i32)
  (select $a (i32.and $a (i32.sub (i32.shl 1 $width) 1)) (i32.ge_u $width 32)))
(func $sign_extend (param $a $width i32) (result i32)
  (if (i32.eqz $width) (then (return 0)))
  (if (i32.ge_u $width 32) (then (return $a)))
  (i32.shr_s (i32.shl $a (i32.sub 32 $width)) (i32.sub 32 $width)))
;; The offset-th set bit from \`base\` upwards, or downwards for a negative offset; the bit at base
;; counts as the first.
(func $fns (param $mask $base $offset i32) (result i32) (local $step $count i32)
  (if (i32.eqz $offset) (then
    (return (select $base -1 (i32.and (i32.lt_u $base 32) (i32.and (i32.shr_u $mask $base) 1))))))
  (local.set $step (select 1 -1 (i32.gt_s $offset 0)))
  (local.set $count (select $offset (i32.sub 0 $offset) (i32.gt_s $offset 0)))
  (loop $each
    (if (i32.ge_u $base 32) (then (return -1)))
    (if (i32.and (i32.shr_u $mask $base) 1) (then
      (local.set $count (i32.sub $count 1))
      (if (i32.eqz $count) (then (return $base)))))
    (local.set $base (i32.add $base $step))
    (br $each))
  -1)
(func $bmsk (param $pos $len i32) (result i32)
  (if (i32.or (i32.ge_u $pos 32) (i32.eqz $len)) (then (return 0)))
  (i32.shl (select -1 (i32.sub (i32.shl 1 $len) 1) (i32.ge_u $len 32)) $pos))
`;
