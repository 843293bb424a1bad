// The .approx functions, well inside the error that the PTX ISA allows. They are computed in f64
// and rounded once, except ex2 of singles, which every expf uses: it is computed in singles, so
// that a vector has four.

/** A polynomial of a variable, as text; the coefficients are in ascending order. */
export function horner(
  type: 'f64' | 'f32' | 'f32x4' | 'f64x2',
  variable: string,
  coefficients: readonly number[],
): string {
  const suffix = type.startsWith('f64') ? 'd' : 'f';
  const constant = (value: number): string =>
    type.includes('x') ? `(${type}.splat ${value}${suffix})` : `${value}${suffix}`;
  return coefficients
    .slice(0, -1)
    .reduceRight(
      (inner, coefficient) =>
        `(${type}.add ${constant(coefficient)} (${type}.mul ${variable} ${inner}))`,
      constant(coefficients.at(-1)!),
    );
}

const factorial = (n: number): number => (n < 2 ? 1 : n * factorial(n - 1));
export const EXP2_SERIES = Array.from({ length: 12 }, (_, n) => Math.LN2 ** n / factorial(n));
/**
 * (2^x - 1) / x for |x| <= 1/2, as singles: a minimax polynomial. In singles without fma, 2^x is
 * within 1.2 ulp, and nine in ten results are the nearest.
 */
export const EXP2_SINGLES = [
  0.6931471824645996, 0.24022650718688965, 0.055503569543361664, 0.009618083015084267,
  0.0013390863314270973, 0.00015453163359779865,
];
/** Beyond it the result is infinite or zero. */
export const EXP2_LIMIT = 160;
/** 1.5 * 2^23: the low bits of a sum with it are the integer. */
export const INTEGER_SINGLE = 12582912;
export const INTEGER_SINGLE_BITS = 0x4b400000;
/** log2(m) = 2/ln2 * (s + s^3/3 + …), s = (m-1)/(m+1) */
export const LOG2_SERIES = Array.from({ length: 12 }, (_, n) => 2 / Math.LN2 / (2 * n + 1));
export const SINE_SERIES = Array.from({ length: 8 }, (_, n) => (-1) ** n / factorial(2 * n + 1));
export const COSINE_SERIES = Array.from({ length: 8 }, (_, n) => (-1) ** n / factorial(2 * n));
const LARGEST_ANGLE = 2 ** 48;
/** The greatest number whose reciprocal is no subnormal, as div.approx.f32 multiplies by it. */
export const GREATEST_DIVISOR = 2 ** 126;
/**
 * The sine of a smaller number is that number, to the last place of a single; zeros keep their
 * sign.
 */
export const LEAST_ANGLE = 2 ** -27;
/**
 * The least normal single: the sine of a smaller number is a zero of its sign, with .ftz and
 * without, as measured on an H200.
 */
export const LEAST_SINGLE = 2 ** -126;

export const APPROXIMATION_FUNCTIONS = `
(func $exp2 (param $x f64) (result f64) (local $n f64)
  (if (f64.ne $x $x) (then (return $x)))
  ;; Far more than singles can represent, and still within the exponents of a double.
  (if (f64.gt $x 1000d) (then (return (f64.const inf))))
  (if (f64.lt $x -1000d) (then (return 0d)))
  (local.set $n (f64.nearest $x))
  (local.set $x (f64.sub $x $n))
  (f64.mul ${horner('f64', '$x', EXP2_SERIES)}
    (f64.reinterpret_i64 (i64.shl (i64.add (i64.trunc_sat_f64_s $n) 1023L) 52L))))

;; The power of two is two factors: one number may be less than the least normal one, or more than
;; the greatest.
(func $exp2_single (param $x f32) (result f32) (local $n f32) (local $i $h i32)
  (local.set $x (select ${EXP2_LIMIT}f $x (f32.gt $x ${EXP2_LIMIT}f)))
  (local.set $x (select ${-EXP2_LIMIT}f $x (f32.lt $x ${-EXP2_LIMIT}f)))
  (local.set $n (f32.nearest $x))
  (local.set $x (f32.sub $x $n))
  (local.set $i (i32.sub (i32.reinterpret_f32 (f32.add $n ${INTEGER_SINGLE}f))
      ${INTEGER_SINGLE_BITS}))
  (local.set $h (i32.shr_s $i 1))
  (f32.mul
    (f32.mul
      (f32.add 1f (f32.mul $x ${horner('f32', '$x', EXP2_SINGLES)}))
      (f32.reinterpret_i32 (i32.shl (i32.add $h 127) 23)))
    (f32.reinterpret_i32 (i32.shl (i32.add (i32.sub $i $h) 127) 23))))

(func $log2 (param $x f64) (result f64) (local $bits $e i64) (local $s $s2 f64)
  (if (i32.or (f64.ne $x $x) (f64.lt $x 0d)) (then (return (f64.const nan))))
  (if (f64.eq $x 0d) (then (return (f64.const -inf))))
  (if (f64.eq $x (f64.const inf)) (then (return $x)))
  (local.set $bits (i64.reinterpret_f64 $x))
  ;; The exponent for which the mantissa is between sqrt(1/2) and sqrt(2).
  (local.set $e (i64.shr_s (i64.sub $bits 0x3fe6a09e667f3bcdL) 52L))
  (local.set $x (f64.reinterpret_i64 (i64.sub $bits (i64.shl $e 52L))))
  (local.set $s (f64.div (f64.sub $x 1d) (f64.add $x 1d)))
  (local.set $s2 (f64.mul $s $s))
  (f64.add (f64.convert_i64_s $e) (f64.mul $s ${horner('f64', '$s2', LOG2_SERIES)})))

;; quadrant 0 is the sine, 1 the cosine; pi/2 is subtracted in two pieces. From ${LARGEST_ANGLE} on,
;; a double has no fraction of a quadrant left: the difference may be anything, and the polynomial
;; infinite. Such angles count as whole turns.
(func $sine (param $x f64) (param $quadrant i32) (result f64) (local $n $x2 f64) (local $q i32)
  (if (i32.eqz (f64.lt (f64.abs $x) (f64.const inf))) (then (return (f64.const nan))))
  (if (i32.and (i32.eqz $quadrant) (f64.lt (f64.abs $x) ${LEAST_ANGLE}d))
    (then (return (select (f64.copysign 0d $x) $x (f64.lt (f64.abs $x) ${LEAST_SINGLE}d)))))
  (local.set $x (select $x 0d (f64.lt (f64.abs $x) ${LARGEST_ANGLE}d)))
  (local.set $n (f64.nearest (f64.mul $x ${2 / Math.PI}d)))
  (local.set $q (i32.add (i32.wrap_i64 (i64.trunc_sat_f64_s $n)) $quadrant))
  (local.set $n (f64.sub (f64.sub $x (f64.mul $n 1.5707963267341256d))
      (f64.mul $n 6.077100506506192e-11d)))
  (local.set $x2 (f64.mul $n $n))
  (local.set $x (if (result f64) (i32.and $q 1)
    (then ${horner('f64', '$x2', COSINE_SERIES)})
    (else (f64.mul $n ${horner('f64', '$x2', SINE_SERIES)}))))
  (select (f64.neg $x) $x (i32.and $q 2)))

(func $tanh (param $x f64) (result f64) (local $a $t f64)
  (local.set $a (f64.abs $x))
  (if (f64.ne $x $x) (then (return $x)))
  (if (f64.lt $a 0.0009765625d) (then (return
        (f64.mul $x (f64.sub 1d (f64.div (f64.mul $x $x) 3d))))))
  (local.set $t (call $exp2 (f64.mul $a ${-2 * Math.LOG2E}d)))
  (f64.copysign (f64.div (f64.sub 1d $t) (f64.add 1d $t)) $x))
`;
