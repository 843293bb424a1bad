// Exactly rounded float arithmetic that WebAssembly lacks: fused multiply-add, directed rounding,
// halves. Rounding modes are numbers: 0 nearest even, 1 toward zero, 2 down, 3 up.

export const ROUNDING = { rn: 0, rz: 1, rm: 2, rp: 3 } as const;

/** TwoSum: $e becomes the exact error of $s = $p + $d; $t is scratch. */
const twoSum = (s: string, p: string, d: string, e: string, t: string): string => `
  (local.set ${t} (f64.sub ${s} ${p}))
  (local.set ${e} (f64.add (f64.sub ${p} (f64.sub ${s} ${t})) (f64.sub ${d} ${t})))`;

/** Round to odd: if $s is inexact and even, moves it one step toward the exact value $s + $e. */
const roundToOdd = (s: string, e: string): string => `
  (if (i32.and (f64.ne ${e} 0d) (i32.eqz (i32.and (i32.wrap_i64 (i64.reinterpret_f64 ${s})) 1)))
    (then (local.set ${s} (f64.reinterpret_i64 (i64.add (i64.reinterpret_f64 ${s})
      (select 1L -1L (i32.eq (f64.gt ${e} 0d) (f64.gt ${s} 0d))))))))`;

const fusedF32 = (name: string, type: 'f32' | 'f64', result: string): string => `
(func $${name} (param $a $b $c f32) (result ${type}) (local $p $d $s $t $e f64)
  (local.set $p (f64.mul (f64.promote_f32 $a) (f64.promote_f32 $b)))
  (local.set $d (f64.promote_f32 $c))
  (local.set $s (f64.add $p $d))
  (if (i32.eqz (f64.lt (f64.abs $s) inf_d)) (then (return ${result})))
  ${twoSum('$s', '$p', '$d', '$e', '$t')}
  ${roundToOdd('$s', '$e')}
  ${result})`;

export const FLOAT_FUNCTIONS = `
(func $flush_f64 (param $x f64) (result f64)
  (select (f64.copysign 0d $x) $x (f64.lt (f64.abs $x) 0x1p-1022d)))
(func $saturate_f32 (param $x f32) (result f32)
  (select (select $x 1f (f32.lt $x 1f)) 0f (f32.gt $x 0f)))
(func $saturate_f64 (param $x f64) (result f64)
  (select (select $x 1d (f64.lt $x 1d)) 0d (f64.gt $x 0d)))

;; fma.rn.f32: the product is exact in f64, and the sum is rounded to odd so that the second
;; rounding is the only one.
${fusedF32('fma_f32', 'f32', '(f32.demote_f64 $s)')}
;; The sum before that second rounding.
${fusedF32('fma_odd_f32', 'f64', '$s')}

;; .ftz for r, which was rounded from x to at least the least normal magnitude: zero if x, with an
;; exponent without limit, rounds to less. To nearest, the tie 2^-126 (1 - 2^-25) rounds up; in a
;; direction, 2^-126 (1 - 2^-24) needs no rounding.
(func $unless_tiny (param $r f32) (param $x f64) (param $mode i32) (result f32)
  (select (f32.copysign 0f $r) $r (select (f64.le (f64.abs $x) 0x1.fffffep-127d)
      (f64.lt (f64.abs $x) 0x1.ffffffp-127d) $mode)))
(func $unless_tiny_sum (param $r $a $b $c f32) (param $mode i32) (result f32)
  (call $unless_tiny $r (call $fma_odd_f32 $a $b $c) $mode))
;; A quotient below the limit is so far below it that every rounding with an exponent without limit
;; is, too.
(func $unless_tiny_quotient (param $r $a $b f32) (result f32)
  (select (f32.copysign 0f $r) $r (f64.lt (f64.abs (f64.promote_f32 $a))
      (f64.mul (f64.abs (f64.promote_f32 $b)) 0x1p-126d))))
(func $unless_tiny_sums (param $r $a $b $c v128) (result v128)
${[0, 1, 2, 3]
  .map(
    (lane) => `  (local.set $r (f32x4.replace_lane ${lane} $r (call $unless_tiny_sum
    ${['$r', '$a', '$b', '$c'].map((v) => `(f32x4.extract_lane ${lane} ${v})`).join(' ')} 0)))`,
  )
  .join('\n')}
  $r)

;; r has been rounded to nearest; cmp is the sign of r - exact. r moves back by one ulp if it is on
;; the wrong side.
(func $directed_f32 (param $r f32) (param $cmp $mode i32) (result f32) (local $bits i32)
  (local.set $bits (i32.reinterpret_f32 $r))
  (if (i32.eq $mode 1) (then (local.set $mode (select 3 2 (i32.lt_s $bits 0)))))
  (if (i32.eqz (select (i32.gt_s $cmp 0) (i32.lt_s $cmp 0) (i32.eq $mode 2))) (then (return $r)))
  (if (f32.eq $r 0f)
    (then (return (select (f32.reinterpret_i32 0x80000001) (f32.reinterpret_i32 1)
          (i32.gt_s $cmp 0)))))
  (f32.reinterpret_i32 (i32.add $bits (select -1 1 (i32.eq (i32.ge_s $bits 0) (i32.gt_s $cmp 0))))))
(func $directed_f64 (param $r f64) (param $cmp $mode i32) (result f64) (local $bits i64)
  (local.set $bits (i64.reinterpret_f64 $r))
  (if (i32.eq $mode 1) (then (local.set $mode (select 3 2 (i64.lt_s $bits 0L)))))
  (if (i32.eqz (select (i32.gt_s $cmp 0) (i32.lt_s $cmp 0) (i32.eq $mode 2))) (then (return $r)))
  (if (f64.eq $r 0d)
    (then (return (select (f64.reinterpret_i64 0x8000000000000001L) (f64.reinterpret_i64 1L)
          (i32.gt_s $cmp 0)))))
  (f64.reinterpret_i64 (i64.add $bits (select -1L 1L
        (i32.eq (i64.ge_s $bits 0L) (i32.gt_s $cmp 0))))))

;; The f32 nearest to the exact s + e in a direction; also the f32 of an f64 (e = 0).
(func $round_f32 (param $s $e f64) (param $mode i32) (result f32) (local $r f32) (local $d f64)
  (local $cmp i32)
  (local.set $r (f32.demote_f64 $s))
  (if (i32.eqz (f64.lt (f64.abs $s) inf_d)) (then (return $r)))
  (local.set $d (f64.promote_f32 $r))
  (local.set $cmp (i32.sub (f64.gt $d $s) (f64.lt $d $s)))
  (if (i32.eqz $cmp) (then (local.set $cmp (i32.sub (f64.lt $e 0d) (f64.gt $e 0d)))))
  (call $directed_f32 $r $cmp $mode))

(func $fma_directed_f32 (param $a $b $c f32) (param $mode i32) (result f32)
  (local $p $d $s $t $e f64)
  (local.set $p (f64.mul (f64.promote_f32 $a) (f64.promote_f32 $b)))
  (local.set $d (f64.promote_f32 $c))
  (local.set $s (f64.add $p $d))
  ${twoSum('$s', '$p', '$d', '$e', '$t')}
  ;; An exact zero from operands of different signs is -0 when rounding down.
  (if (i32.and (i32.eq $mode 2) (i32.and (f64.eq $s 0d) (f64.eq $e 0d))) (then
    (if (i64.lt_s (i64.xor (i64.reinterpret_f64 $p) (i64.reinterpret_f64 $d)) 0L)
      (then (return -0f)))))
  (call $round_f32 $s $e $mode))

(func $div_directed_f32 (param $a $b f32) (param $mode i32) (result f32) (local $r f32)
  (local $x $y f64)
  (local.set $r (f32.div $a $b))
  (if (i32.eqz (i32.and (i32.and (f32.lt (f32.abs $a) inf_f) (f32.lt (f32.abs $b) inf_f))
        (f32.ne $b 0f))) (then (return $r)))
  (if (f32.eq $a 0f) (then (return $r)))
  (local.set $x (f64.mul (f64.promote_f32 $r) (f64.promote_f32 $b)))
  (local.set $y (f64.promote_f32 $a))
  (if (f32.lt $b 0f) (then (local.set $x (f64.neg $x)) (local.set $y (f64.neg $y))))
  (call $directed_f32 $r (i32.sub (f64.gt $x $y) (f64.lt $x $y)) $mode))
(func $sqrt_directed_f32 (param $a f32) (param $mode i32) (result f32) (local $r f32) (local $x f64)
  (local.set $r (f32.sqrt $a))
  (if (i32.eqz (i32.and (f32.gt $a 0f) (f32.lt $a inf_f))) (then (return $r)))
  (local.set $x (f64.mul (f64.promote_f32 $r) (f64.promote_f32 $r)))
  (call $directed_f32 $r (i32.sub (f64.gt $x (f64.promote_f32 $a)) (f64.lt $x (f64.promote_f32 $a)))
    $mode))

;; fma.rn.f64 after Boldo and Melquiond: the exact product by Dekker's splitting, and sums rounded
;; to odd. The proof needs room around the exponents, so extreme operands take the integer path.
(func $fma_f64 (param $a $b $c f64) (result f64)
  (local $p $ah $al $bh $bl $q $th $tl $vh $vl $z $e $t f64)
  (local.set $p (f64.mul $a $b))
  (if (i32.eqz (i32.and
        (i32.and (i32.and (f64.lt (f64.abs $a) 0x1p500d) (f64.lt (f64.abs $b) 0x1p500d))
          (f64.lt (f64.abs $c) 0x1p1000d))
        (f64.gt (f64.abs $p) 0x1p-900d)))
    (then (return (call $fma_mode_f64 $a $b $c 0))))
  (local.set $t (f64.mul $a 134217729d)) (local.set $ah (f64.sub $t (f64.sub $t $a)))
  (local.set $al (f64.sub $a $ah))
  (local.set $t (f64.mul $b 134217729d)) (local.set $bh (f64.sub $t (f64.sub $t $b)))
  (local.set $bl (f64.sub $b $bh))
  (local.set $q (f64.add (f64.add (f64.add (f64.sub (f64.mul $ah $bh) $p) (f64.mul $ah $bl))
        (f64.mul $al $bh)) (f64.mul $al $bl)))
  (local.set $th (f64.add $c $q))
  ${twoSum('$th', '$c', '$q', '$tl', '$t')}
  (local.set $vh (f64.add $p $th))
  ${twoSum('$vh', '$p', '$th', '$vl', '$t')}
  (local.set $z (f64.add $tl $vl))
  ${twoSum('$z', '$tl', '$vl', '$e', '$t')}
  ${roundToOdd('$z', '$e')}
  (f64.add $vh $z))

;; fma.f64 in any mode, in integers: the 106-bit product and the addend are aligned in 192 bits.
(func $fma_mode_f64 (param $a $b $c f64) (param $mode i32) (result f64)
  (local $ma $mb $mc $hi $lo $xh $xl $sticky $bits i64)
  (local $ea $eb $ec $ep $sp $sc $shift $sign $e $up i32)
  (if (i32.eqz (i32.and (f64.lt (f64.abs $a) inf_d) (f64.lt (f64.abs $b) inf_d)))
    (then (return (f64.add (f64.mul $a $b) $c))))
  (if (i32.eqz (f64.lt (f64.abs $c) inf_d)) (then (return (f64.add $c 0d))))
  (local.set $sp (i64.lt_s (i64.xor (i64.reinterpret_f64 $a) (i64.reinterpret_f64 $b)) 0L))
  (local.set $sc (i64.lt_s (i64.reinterpret_f64 $c) 0L))
  (if (i32.or (f64.eq $a 0d) (f64.eq $b 0d)) (then
    (if (f64.ne $c 0d) (then (return $c)))
    (if (i32.eq $sp $sc) (then (return $c)))
    (return (select -0d 0d (i32.eq $mode 2)))))
  ;; The value is m * 2^(e - 1075), e >= 1.
  (local.set $ma (i64.and (i64.reinterpret_f64 $a) 0xfffffffffffffL))
  (local.set $ea (i32.and (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 $a) 52L)) 0x7ff))
  (if $ea (then (local.set $ma (i64.or $ma 0x10000000000000L))) (else (local.set $ea 1)))
  (local.set $mb (i64.and (i64.reinterpret_f64 $b) 0xfffffffffffffL))
  (local.set $eb (i32.and (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 $b) 52L)) 0x7ff))
  (if $eb (then (local.set $mb (i64.or $mb 0x10000000000000L))) (else (local.set $eb 1)))
  (local.set $mc (i64.and (i64.reinterpret_f64 $c) 0xfffffffffffffL))
  (local.set $ec (i32.and (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 $c) 52L)) 0x7ff))
  (if $ec (then (local.set $mc (i64.or $mc 0x10000000000000L))) (else (local.set $ec 1)))
  ;; The product in hi:lo, normalised so that its top bit is bit 125 (two spare bits for the sum);
  ;; ep is the exponent of bit 0.
  (local.set $hi (call $mul_hi_u64 $ma $mb))
  (local.set $lo (i64.mul $ma $mb))
  (local.set $ep (i32.sub (i32.add $ea $eb) 2150))
  (local.set $shift (i32.sub (call $clz128 $hi $lo) 2))
  (local.set $ep (i32.sub $ep $shift))
  (local.set $hi (call $shl128_hi $hi $lo $shift))
  (local.set $lo (call $shl128_lo $lo $shift))
  ;; The addend likewise in xh:xl.
  (local.set $ec (i32.sub $ec 1075))
  (if (i64.ne $mc 0L) (then
    (local.set $shift (i32.sub (call $clz128 0L $mc) 2))
    (local.set $ec (i32.sub $ec $shift))
    (local.set $xh (call $shl128_hi 0L $mc $shift))
    (local.set $xl (call $shl128_lo $mc $shift))
    ;; The operand with the larger exponent is in hi:lo.
    (if (i32.gt_s $ec $ep) (then
      (local.set $bits $hi) (local.set $hi $xh) (local.set $xh $bits)
      (local.set $bits $lo) (local.set $lo $xl) (local.set $xl $bits)
      (local.set $shift $ep) (local.set $ep $ec) (local.set $ec $shift)
      (local.set $shift $sp) (local.set $sp $sc) (local.set $sc $shift)))
    (local.set $shift (i32.sub $ep $ec))
    ;; The smaller one is shifted right; of the bits that fall off, only whether one is set is kept.
    (if (i32.ge_u $shift 128)
      (then (local.set $sticky 1L) (local.set $xh 0L) (local.set $xl 0L))
      (else
        (if $shift (then
          (local.set $sticky (i64.extend_i32_u (i32.or
            (i64.ne (call $shl128_hi $xh $xl (i32.sub 128 $shift)) 0L)
            (i64.ne (call $shl128_lo $xl (i32.sub 128 $shift)) 0L))))
          (local.set $bits (call $shr128_lo $xh $xl $shift))
          (local.set $xh (call $shr128_hi $xh $shift))
          (local.set $xl $bits)))))
    (if (i32.eq $sp $sc)
      (then
        (local.set $lo (i64.add $lo $xl))
        (local.set $hi (i64.add (i64.add $hi $xh) (i64.extend_i32_u (i64.lt_u $lo $xl)))))
      (else
        ;; Bits that fell off make the difference a little smaller.
        (local.set $bits (i64.sub (i64.sub $hi $xh) (i64.extend_i32_u (i64.lt_u $lo $xl))))
        (local.set $lo (i64.sub $lo $xl))
        (local.set $hi $bits)
        (if (i64.ne $sticky 0L) (then
          (local.set $hi (i64.sub $hi (i64.extend_i32_u (i64.eqz $lo))))
          (local.set $lo (i64.sub $lo 1L))))
        (if (i64.lt_s $hi 0L) (then
          ;; The exponents are equal, and the other operand is larger.
          (local.set $lo (i64.sub 0L $lo))
          (local.set $hi (i64.sub (i64.xor $hi -1L) (i64.extend_i32_u (i64.ne $lo 0L))))
          (local.set $hi (i64.add $hi 1L))
          (local.set $sp $sc)))
        (if (i32.and (i64.eqz (i64.or $hi $lo)) (i64.eqz $sticky)) (then
          (return (select -0d 0d (i32.eq $mode 2)))))))))
  ;; The top bit is normalised to bit 126; then 53 bits are kept, fewer for subnormals.
  (local.set $shift (i32.sub (call $clz128 $hi $lo) 1))
  (if (i32.lt_s $shift 0)
    (then
      (local.set $sticky (i64.or $sticky (i64.and $lo 1L)))
      (local.set $lo (i64.or (i64.shr_u $lo 1L) (i64.shl $hi 63L)))
      (local.set $hi (i64.shr_u $hi 1L)))
    (else
      (local.set $hi (call $shl128_hi $hi $lo $shift))
      (local.set $lo (call $shl128_lo $lo $shift))))
  (local.set $ep (i32.sub $ep $shift))
  ;; The biased exponent of the result: bit 126 has the weight 2^(ep+126).
  (local.set $e (i32.add $ep 1149))
  (local.set $sticky (i64.or $sticky (i64.extend_i32_u (i64.ne $lo 0L))))
  ;; hi has its top bit at 62: 53 bits are kept by a shift right by 10, or more for subnormals.
  (local.set $shift 10)
  (if (i32.lt_s $e 1) (then
    (local.set $shift (i32.sub 11 $e))
    (local.set $e 1)))
  (if (i32.gt_s $shift 63)
    (then (local.set $sticky 1L) (local.set $bits 0L) (local.set $hi 1L) (local.set $shift 2))
    (else (local.set $bits (i64.shr_u $hi (i64.extend_i32_u $shift)))))
  (local.set $xl (i64.and $hi (i64.sub (i64.shl 1L (i64.extend_i32_u $shift)) 1L)))
  (local.set $xh (i64.shl 1L (i64.extend_i32_u (i32.sub $shift 1))))
  (if (i32.eqz $mode)
    (then (local.set $up (i32.or (i64.gt_u $xl $xh)
      (i32.and (i64.eq $xl $xh) (i32.or (i64.ne $sticky 0L) (i32.wrap_i64 (i64.and $bits 1L)))))))
    (else (local.set $up (i32.and (i64.ne (i64.or $xl $sticky) 0L)
      (i32.or (i32.and (i32.eq $mode 2) $sp) (i32.and (i32.eq $mode 3) (i32.eqz $sp)))))))
  (local.set $bits (i64.add $bits (i64.extend_i32_u $up)))
  ;; The hidden bit adds one to the exponent.
  (if (i32.ge_s $e 2047) (then (local.set $bits 0x7ff0000000000000L))
    (else (local.set $bits (i64.add $bits (i64.shl (i64.extend_i32_u (i32.sub $e 1)) 52L)))))
  (if (i64.ge_u $bits 0x7ff0000000000000L) (then
    (local.set $bits (select 0x7fefffffffffffffL 0x7ff0000000000000L
      (i32.or (i32.eq $mode 1) (i32.or (i32.and (i32.eq $mode 2) (i32.eqz $sp))
          (i32.and (i32.eq $mode 3) $sp)))))))
  (f64.reinterpret_i64 (i64.or $bits (i64.shl (i64.extend_i32_u $sp) 63L))))

(func $clz128 (param $hi $lo i64) (result i32)
  (i32.wrap_i64 (select (i64.add 64L (i64.clz $lo)) (i64.clz $hi) (i64.eqz $hi))))
(func $shl128_hi (param $hi $lo i64) (param $n i32) (result i64)
  (if (i32.eqz $n) (then (return $hi)))
  (if (i32.ge_u $n 64)
    (then (return (select (i64.shl $lo (i64.extend_i32_u (i32.sub $n 64))) 0L (i32.lt_u $n 128)))))
  (i64.or (i64.shl $hi (i64.extend_i32_u $n)) (i64.shr_u $lo (i64.extend_i32_u (i32.sub 64 $n)))))
(func $shl128_lo (param $lo i64) (param $n i32) (result i64)
  (select (i64.shl $lo (i64.extend_i32_u $n)) 0L (i32.lt_u $n 64)))
(func $shr128_lo (param $hi $lo i64) (param $n i32) (result i64)
  (if (i32.eqz $n) (then (return $lo)))
  (if (i32.ge_u $n 64) (then (return (i64.shr_u $hi (i64.extend_i32_u (i32.sub $n 64))))))
  (i64.or (i64.shr_u $lo (i64.extend_i32_u $n)) (i64.shl $hi (i64.extend_i32_u (i32.sub 64 $n)))))
(func $shr128_hi (param $hi i64) (param $n i32) (result i64)
  (select (i64.shr_u $hi (i64.extend_i32_u $n)) 0L (i32.lt_u $n 64)))

;; A number with the sign of x*y - z. It is rounded away from zero, so that a tiny one does not
;; become zero.
(func $residual (param $x $y $z f64) (result f64) (local $d f64)
  (local.set $d (call $fma_mode_f64 $x $y (f64.neg $z) 3))
  (if (f64.gt $d 0d) (then (return $d)))
  (call $fma_mode_f64 $x $y (f64.neg $z) 2))
(func $div_directed_f64 (param $a $b f64) (param $mode i32) (result f64) (local $r $d f64)
  (local.set $r (f64.div $a $b))
  (if (i32.eqz (i32.and (i32.and (f64.lt (f64.abs $a) inf_d) (f64.lt (f64.abs $b) inf_d))
        (i32.and (f64.ne $b 0d) (f64.ne $a 0d)))) (then (return $r)))
  (if (f64.eq (f64.abs $r) inf_d) (then (return
        (call $directed_f64 $r (select 1 -1 (f64.gt $r 0d)) $mode))))
  ;; r*b - a, for a positive divisor.
  (local.set $d (call $residual $r $b $a))
  (if (f64.lt $b 0d) (then (local.set $d (f64.neg $d))))
  (call $directed_f64 $r (i32.sub (f64.gt $d 0d) (f64.lt $d 0d)) $mode))
(func $sqrt_directed_f64 (param $a f64) (param $mode i32) (result f64) (local $r $d f64)
  (local.set $r (f64.sqrt $a))
  (if (i32.eqz (i32.and (f64.gt $a 0d) (f64.lt $a inf_d))) (then (return $r)))
  (local.set $d (call $residual $r $r $a))
  (call $directed_f64 $r (i32.sub (f64.gt $d 0d) (f64.lt $d 0d)) $mode))

;; min and max of PTX return the operand that is a number, and order -0 below +0.
${['f32', 'f64']
  .map((t) =>
    ['min', 'max']
      .map(
        (op) => `
(func $${op}_${t} (param $a $b ${t}) (result ${t})
  (if (${t}.ne $a $a) (then (return $b)))
  (if (${t}.ne $b $b) (then (return $a)))
  (${t}.${op} $a $b))`,
      )
      .join(''),
  )
  .join('')}

(func $f16_to_f32 (param $h i32) (result f32) (local $m i32) (local $r f32)
  (local.set $m (i32.and $h 0x7fff))
  (if (i32.ge_u $m 0x7c00)
    (then (local.set $r (f32.reinterpret_i32 (i32.or 0x7f800000 (i32.shl (i32.and $m 0x3ff) 13)))))
    ;; After the shift the exponent is 112 too small; the multiplication corrects that, for
    ;; subnormals too.
    (else (local.set $r (f32.mul (f32.reinterpret_i32 (i32.shl $m 13)) 0x1p112f))))
  (f32.copysign $r (f32.reinterpret_i32 (i32.shl $h 16))))

;; An f64 as a smaller float of \`m\` mantissa bits and exponent bias \`bias\`, rounded once.
(func $f64_to_small (param $x f64) (param $m $bias $mode i32) (result i32)
  (local $bits $rest $half i64) (local $sign $out $inf $up $shift i32) (local $a $n f64)
  (local.set $sign (i64.lt_s (i64.reinterpret_f64 $x) 0L))
  (local.set $inf (i32.shl (i32.add (i32.shl $bias 1) 1) $m))
  (if (f64.ne $x $x) (then (return 0x7fff)))
  (local.set $a (f64.abs $x))
  (if (f64.eq $a inf_d) (then (return (i32.or $inf (i32.shl $sign 15)))))
  (block $rounded
    (local.set $bits (i64.reinterpret_f64 $a))
    (if (i32.le_s (i32.sub (i32.wrap_i64 (i64.shr_u $bits 52L)) 1023) (i32.sub 0 $bias)) (then
      ;; Subnormal: a multiple of 2^(1 - bias - m), which scales to an integer.
      (local.set $n (f64.mul $a (f64.reinterpret_i64
            (i64.shl (i64.extend_i32_u (i32.add 1022 (i32.add $bias $m))) 52L))))
      (local.set $out (i32.trunc_sat_f64_u (f64.floor $n)))
      (local.set $n (f64.sub $n (f64.floor $n)))
      (local.set $up (select
        (i32.or (f64.gt $n 0.5d) (i32.and (f64.eq $n 0.5d) (i32.and $out 1)))
        (i32.and (f64.ne $n 0d) (i32.or (i32.and (i32.eq $mode 2) $sign)
            (i32.and (i32.eq $mode 3) (i32.eqz $sign))))
        (i32.eqz $mode)))
      (br $rounded)))
    (local.set $shift (i32.sub 52 $m))
    (local.set $out (i32.wrap_i64 (i64.sub (i64.shr_u $bits (i64.extend_i32_u $shift))
          (i64.extend_i32_u (i32.shl (i32.sub 1023 $bias) $m)))))
    (local.set $rest (i64.and $bits (i64.sub (i64.shl 1L (i64.extend_i32_u $shift)) 1L)))
    (local.set $half (i64.shl 1L (i64.extend_i32_u (i32.sub $shift 1))))
    (local.set $up (select
      (i32.or (i64.gt_u $rest $half) (i32.and (i64.eq $rest $half) (i32.and $out 1)))
      (i32.and (i64.ne $rest 0L) (i32.or (i32.and (i32.eq $mode 2) $sign)
          (i32.and (i32.eq $mode 3) (i32.eqz $sign))))
      (i32.eqz $mode)))
    ;; Far too large: the exponent no longer fits.
    (if (i32.ge_s (i32.sub (i32.wrap_i64 (i64.shr_u $bits 52L)) 1023) (i32.add $bias 1)) (then
      (local.set $out (i32.sub $inf 1))
      (local.set $up (i32.or (i32.eqz $mode)
          (i32.or (i32.and (i32.eq $mode 2) $sign) (i32.and (i32.eq $mode 3) (i32.eqz $sign))))))))
  (i32.or (i32.add $out $up) (i32.shl $sign 15)))
;; To nearest, for numbers that are normal in the small format, as nearly all are: almost half a
;; unit is added, or exactly half if the last bit is odd.
${(
  [
    ['f16', 10, 15],
    ['bf16', 7, 127],
  ] as const
)
  .map(
    ([name, m, bias]) => `
(func $f64_to_${name} (param $x f64) (result i32) (local $bits i64)
  (local.set $bits (i64.and (i64.reinterpret_f64 $x) 0x7fffffffffffffffL))
  (if (i64.lt_u (i64.sub $bits ${BigInt(1024 - bias) << 52n}L) ${BigInt(2 * bias) << 52n}L) (then
    (return (i32.or (i32.and (i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 $x) 48L)) 0x8000)
      (i32.sub
        (i32.wrap_i64 (i64.shr_u (i64.add (i64.add $bits ${(1n << BigInt(51 - m)) - 1n}L)
              (i64.and (i64.shr_u $bits ${52 - m}L) 1L)) ${52 - m}L))
        ${(1023 - bias) << m})))))
  (call $f64_to_small $x ${m} ${bias} 0))`,
  )
  .join('')}

(func $fma_sum_f16 (param $a $b $c i32) (result f64)
  (f64.add (f64.mul (f64.promote_f32 (call $f16_to_f32 $a)) (f64.promote_f32 (call $f16_to_f32 $b)))
    (f64.promote_f32 (call $f16_to_f32 $c))))
(func $fma_f16 (param $a $b $c i32) (result i32) (call $f64_to_f16 (call $fma_sum_f16 $a $b $c)))
;; Sums below 2^-14 (1 - 2^-12) become zeros of their sign; see unless_tiny.
(func $fma_ftz_f16 (param $a $b $c i32) (result i32) (local $x f64)
  (local.set $x (call $fma_sum_f16 $a $b $c))
  (call $f64_to_f16 (select (f64.copysign 0d $x) $x (f64.lt (f64.abs $x) 0x1.ffep-15d))))
(func $bf16_to_f64 (param $h i32) (result f64)
  (f64.promote_f32 (f32.reinterpret_i32 (i32.shl $h 16))))
;; bf16 has the exponents of f32: the sum may need more than 53 bits, so it is rounded to odd.
(func $fma_bf16 (param $a $b $c i32) (result i32) (local $p $d $s $t $e f64)
  (local.set $p (f64.mul (call $bf16_to_f64 $a) (call $bf16_to_f64 $b)))
  (local.set $d (call $bf16_to_f64 $c))
  (local.set $s (f64.add $p $d))
  (if (f64.lt (f64.abs $s) inf_d) (then
    ${twoSum('$s', '$p', '$d', '$e', '$t')}
    ${roundToOdd('$s', '$e')}))
  (call $f64_to_bf16 $s))
`
  .replaceAll('inf_d', '(f64.const inf)')
  .replaceAll('inf_f', '(f32.const inf)');
