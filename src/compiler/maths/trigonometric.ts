/**
 * sin, cos, tan: x = k·π/2 + r, then a polynomial in r. Up to a bound, k·π/2 is subtracted by
 * multiply-adds with π/2 in three parts (Cody and Waite); beyond it, x is multiplied by as many
 * bits of 2/π as determine the fraction, in integers (Payne and Hanek). Both give r as a sum of two
 * floats.
 */
import { horner } from './polynomial.js';

/**
 * (sin(r) - r) / r³, (cos(r) - 1 + r²/2) / r⁴ and (tan(r) - r) / r³ for |r| <= π/4, in r². Within
 * 2^-32.5, 2^-32.9, 2^-32.9; 2^-63.2, 2^-63.8, 2^-63.6.
 */
const sine32 = [-0.16666667, 0.008333379, -0.0001985304, 2.8320078e-6];
const cosine32 = [0.041666646, -0.0013887306, 2.443165e-5];
const tangent32 = [
  0.3333333, 0.13333434, 0.053951044, 0.0220105, 0.008232927, 0.005197419, -0.00081496657,
  0.0021356696,
];
const sine64 = [
  -0.16666666666666666, 0.008333333333333044, -0.00019841269840966061, 2.755731907655285e-6,
  -2.5052071750483828e-8, 1.6054434594445253e-10, -7.396332371652442e-13,
];
const cosine64 = [
  0.04166666666666659, -0.0013888888888872186, 2.480158728829532e-5, -2.755731401507116e-7,
  2.087567807289235e-9, -1.1357335830595679e-11,
];
const tangent64 = [
  0.3333333333333333, 0.13333333333333813, 0.05396825396789105, 0.02186948854924766,
  0.008863235256029457, 0.0035921317187879906, 0.0014558005464409929, 0.0005902483943244803,
  0.00023807955055421117, 0.0001005885570556607, 2.978051141081308e-5, 3.392696714403017e-5,
  -1.8063732627770875e-5, 2.557950360620636e-5, -1.2519636278674297e-5, 4.5255116284906146e-6,
];

/**
 * Bits of 2/π after the point, after a first word of zeros. The largest f32 takes 6 words of 32,
 * the largest f64 19 of 64.
 */
const twoOverPi32 = [
  '0',
  '0xa2f9836e',
  '0x4e441529',
  '0xfc2757d1',
  '0xf534ddc0',
  '0xdb629599',
  '0x3c439041',
];
const twoOverPi64 = [
  '0',
  '0xa2f9836e4e441529n',
  '0xfc2757d1f534ddc0n',
  '0xdb6295993c439041n',
  '0xfe5163abdebbc561n',
  '0xb7246e3a424dd2e0n',
  '0x06492eea09d1921cn',
  '0xfe1deb1cb129a73en',
  '0xe88235f52ebb4484n',
  '0xe99c7026b45f7e41n',
  '0x3991d639835339f4n',
  '0x9c845f8bbdf9283bn',
  '0x1ff897ffde05980fn',
  '0xef2f118b5a0a6d1fn',
  '0x6d367ecf27cb09b7n',
  '0x4f463f669e5fea2dn',
  '0x7527bac7ebe5f17bn',
  '0x3d0739f78a5292ean',
  '0x6bfb5fb11f8d5d08n',
];

/**
 * Selects four words, from the one that the bits of `place` above the word's width name, as `word0`
 * to `word3`: halves are selected, bit by bit.
 */
function chooseWords(words: readonly string[], type: 'u32' | 'u64', widthBits: number): string {
  const lines: string[] = [];
  let names = words.map((word) => `gpu.${type}(${word})`);
  const steps = Math.ceil(Math.log2(words.length - 3));
  for (let step = steps - 1; step >= 0; step--) {
    const jump = 1 << step;
    lines.push(`const jump${jump} = (place & ${1 << (widthBits + step)}) !== 0;`);
    const wanted = 3 + jump;
    const next: string[] = [];
    for (let index = 0; index < wanted && index < names.length; index++) {
      const name = step === 0 ? `word${index}` : `choice${jump}At${index}`;
      const chosen = index + jump < names.length ? `jump${jump} ? ${names[index + jump]} : ` : '';
      lines.push(`const ${name} = ${chosen}${names[index]};`);
      next.push(name);
    }
    names = next;
  }
  return lines.join('\n    ');
}

/**
 * From `x`: `r` and `low`, whose sum is x less a multiple of π/2 by at most π/4 or a little more,
 * and `quadrant`, whose last two bits are that multiple's. The first multiply-add is exact: its
 * result has no bits below the last of π/2's first part or of x. `low` is the error of the others.
 */
const reduce32 = `
  const shifted = x * 0.63661975 + 12582912.0;
  const k = shifted - 12582912.0;
  const first = k * -1.5707964 + x;
  const product = k * -4.371139e-8;
  const lost = k * -4.371139e-8 - product;
  const deep = k * -1.7151245e-15 + lost;
  let quadrant = gpu.i32(gpu.bits(shifted));
  let r = first - product;
  let low = first - r - product - deep;
  if (Math.abs(x) > 105615.0) {
    const word = gpu.bits(x);
    const exponent = gpu.i32((word >>> 23) & 0xff);
    const place = exponent - 128;
    const mantissa = (word << 8) | 0x80000000;
    ${chooseWords(twoOverPi32, 'u32', 5)}
    const turn = place & 31;
    const back = 31 - turn;
    const a0 = (word0 << turn) | ((word1 >>> 1) >>> back);
    const a1 = (word1 << turn) | ((word2 >>> 1) >>> back);
    const a2 = (word2 << turn) | ((word3 >>> 1) >>> back);
    const middle = mantissa * a1;
    const fraction = middle + gpu.mulhi(mantissa, a2);
    const carry = fraction < middle ? gpu.u32(1) : 0;
    const top = mantissa * a0 + gpu.mulhi(mantissa, a1) + carry;
    const over = (top << 2) | (fraction >>> 30);
    const up = (over & 0x80000000) !== 0;
    const flip = up ? gpu.u32(0xffffffff) : 0;
    const high = over ^ flip;
    const rest = (fraction << 2) ^ flip;
    const zeros = gpu.clz(high);
    const normal = (high << zeros) | ((rest >>> 1) >>> (31 - zeros));
    const main = gpu.f32(normal & 0xffffff00);
    const small = gpu.f32(normal & 0xff);
    const arc = main * 1.5707964;
    const arcLost = main * 1.5707964 - arc;
    const arcLow = main * -4.371139e-8 + arcLost;
    const arcRest = small * 1.5707964 + arcLow;
    const sum = arc + arcRest;
    const sumLow = arc - sum + arcRest;
    const scale = gpu.fromBits((95 - zeros) << 23);
    const negative = x < 0.0;
    const signedScale = up === negative ? scale : -scale;
    const multiple = gpu.i32(top >>> 30) + (up ? gpu.i32(1) : 0);
    quadrant = negative ? -multiple : multiple;
    r = exponent === 255 ? NaN : sum * signedScale;
    low = sumLow * signedScale;
  }`;
const reduce64 = `
  const shifted = x * 0.6366197723675814 + 6755399441055744.0;
  const k = shifted - 6755399441055744.0;
  const first = k * -1.5707963267948966 + x;
  const product = k * 6.123233995736766e-17;
  const lost = k * 6.123233995736766e-17 - product;
  const deep = k * -1.4973849048591698e-33 + lost;
  let quadrant = gpu.i32(gpu.bits(shifted));
  let r = first - product;
  let low = first - r - product - deep;
  if (Math.abs(x) > 536870912.0) {
    const word = gpu.bits(x);
    const exponent = gpu.i32(word >>> 52) & 0x7ff;
    const place = exponent - 1024;
    const mantissa = (word << 11) | 0x8000000000000000n;
    ${chooseWords(twoOverPi64, 'u64', 6)}
    const turn = place & 63;
    const back = 63 - turn;
    const a0 = (word0 << turn) | ((word1 >>> 1) >>> back);
    const a1 = (word1 << turn) | ((word2 >>> 1) >>> back);
    const a2 = (word2 << turn) | ((word3 >>> 1) >>> back);
    const middle = mantissa * a1;
    const fraction = middle + gpu.mulhi(mantissa, a2);
    const carry = fraction < middle ? gpu.u64(1) : 0;
    const top = mantissa * a0 + gpu.mulhi(mantissa, a1) + carry;
    const over = (top << 2) | (fraction >>> 62);
    const up = (over & 0x8000000000000000n) !== 0;
    const flip = up ? gpu.u64(0xffffffffffffffffn) : 0;
    const high = over ^ flip;
    const rest = (fraction << 2) ^ flip;
    const zeros = gpu.clz(high);
    const normal = (high << zeros) | ((rest >>> 1) >>> (63 - zeros));
    const main = gpu.f64(normal & 0xfffffffffffff800n);
    const small = gpu.f64(normal & 0x7ff);
    const arc = main * 1.5707963267948966;
    const arcLost = main * 1.5707963267948966 - arc;
    const arcLow = main * 6.123233995736766e-17 + arcLost;
    const arcRest = small * 1.5707963267948966 + arcLow;
    const sum = arc + arcRest;
    const sumLow = arc - sum + arcRest;
    const scale = gpu.fromBits(gpu.i64(959 - zeros) << 52);
    const negative = x < 0.0;
    const signedScale = up === negative ? scale : -scale;
    const multiple = gpu.i32(top >>> 62) + (up ? gpu.i32(1) : 0);
    quadrant = negative ? -multiple : multiple;
    r = exponent === 2047 ? NaN : sum * signedScale;
    low = sumLow * signedScale;
  }`;

/**
 * From `r` and `low`: `sine` and `cosine` of their sum. 1 - r²/2 is kept with its rounding error.
 */
const both = (sine: readonly number[], cosine: readonly number[]): string => `
  const square = r * r;
  const cube = square * r;
  const sineBend = cube * ${horner('square', sine)} + low;
  const sine = r + sineBend;
  const half = square * 0.5;
  const near = 1.0 - half;
  const nearLost = 1.0 - near - half;
  const cosineBend = square * square * ${horner('square', cosine)} + nearLost;
  const cosine = near + (cosineBend - r * low);`;
/** The sine of the sum with `turns` quarter turns. */
const turned = (turns: string): string => `
  const turns = ${turns};
  const value = (turns & 1) !== 0 ? cosine : sine;
  const result = (turns & 2) !== 0 ? -value : value;`;

const sinOf = (
  reduce: string,
  sine: readonly number[],
  cosine: readonly number[],
): string => `(x, gpu) => {${reduce}${both(sine, cosine)}${turned('quadrant')}
  return x === 0.0 ? x : result;
}`;
const cosOf = (
  reduce: string,
  sine: readonly number[],
  cosine: readonly number[],
): string => `(x, gpu) => {${reduce}${both(sine, cosine)}${turned('quadrant + 1')}
  return result;
}`;
/** The tangent. An odd multiple gives -1 / tangent: the quotient is corrected by its remainder. */
const tanOf = (reduce: string, tangent: readonly number[]): string => `(x, gpu) => {${reduce}
  const square = r * r;
  const cube = square * r;
  const lowBent = low * square + low;
  const bend = cube * ${horner('square', tangent)} + lowBent;
  const tangent = r + bend;
  const tangentLow = r - tangent + bend;
  const quotient = -1.0 / tangent;
  const left = quotient * tangent + 1.0;
  const leftAll = quotient * tangentLow + left;
  const turned = quotient * leftAll + quotient;
  return x === 0.0 ? x : (quadrant & 1) !== 0 ? turned : tangent;
}`;

export const trigonometricTexts = {
  sin: { f32: sinOf(reduce32, sine32, cosine32), f64: sinOf(reduce64, sine64, cosine64) },
  cos: { f32: cosOf(reduce32, sine32, cosine32), f64: cosOf(reduce64, sine64, cosine64) },
  tan: { f32: tanOf(reduce32, tangent32), f64: tanOf(reduce64, tangent64) },
};
