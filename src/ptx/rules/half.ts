// f16 and bf16 arithmetic, single and packed: computed in f64 and rounded once.

import type { Emitter } from '../emit/emitter.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { flushHalf, widenHalf } from './half-values.js';
import type { Rule } from './rule.js';

export const isHalf = (type: ScalarType): boolean => /^(b?f16)(x2)?$/.test(type.name);

/** The unpacked type of a packed one. */
const single = (type: ScalarType): ScalarType => scalarType(type.name.replace('x2', ''));
const oneBits = (type: ScalarType): number => (type.name === 'bf16' ? 0x3f80 : 0x3c00);

/**
 * Runs `body` for each half: the operands' bits are in i32 locals, and it leaves the result's bits.
 */
function perHalf(
  e: Emitter,
  first: number,
  count: number,
  body: (type: ScalarType, operands: number[]) => void,
): void {
  const { code } = e;
  const type = e.type();
  const half = single(type);
  const wholes = Array.from({ length: count }, (_, index) => {
    const local = e.temp('i32');
    e.push(e.arg(first + index), type);
    code.set(local);
    return local;
  });
  if (type === half) {
    body(half, wholes);
    e.pop(e.arg(0), half);
    return;
  }
  const operands = wholes.map(() => e.temp('i32'));
  const result = e.temp('i32');
  for (const shift of [0, 16]) {
    wholes.forEach((whole, index) => {
      code.get(whole);
      if (shift) code.i32(16).op('i32.shr_u');
      else code.i32(0xffff).op('i32.and');
      code.set(operands[index]!);
    });
    body(half, operands);
    if (shift) code.i32(16).op('i32.shl').get(result).op('i32.or');
    else code.set(result);
  }
  e.pop(e.arg(0), type);
}

/** Saturation to [0, 1] and .relu of the half on the stack. */
function finish(e: Emitter, type: ScalarType): void {
  const { code } = e;
  if (!e.has('sat') && !e.has('relu')) return;
  const bits = e.temp('i32');
  const one = oneBits(type);
  const infinity = type.name === 'bf16' ? 0x7f80 : 0x7c00;
  code.set(bits);
  if (e.has('sat')) {
    // Negative values and NaN become zero.
    code.get(bits).i32(one).get(bits).i32(one).op('i32.lt_u').op('select');
    code.i32(0).get(bits).i32(infinity).op('i32.le_u').op('select');
  } else {
    // Negative numbers become zero; NaN becomes the canonical NaN.
    code.i32(0x7fff);
    code.i32(0).get(bits).get(bits).i32(0x8000).op('i32.and').op('select');
    code.get(bits).i32(0x7fff).op('i32.and').i32(infinity).op('i32.gt_u').op('select');
  }
}

/** a*b+c, in which a constant may replace any of the three. */
export const fused =
  (shape: 'add' | 'sub' | 'mul' | 'fma'): Rule =>
  (e) => {
    const { code } = e;
    e.argCount(shape === 'fma' ? 4 : 3);
    perHalf(e, 1, shape === 'fma' ? 3 : 2, (type, [a, b, c]) => {
      const use = (local: number): void => {
        code.get(local);
        if (e.has('ftz')) flushHalf(e, type);
      };
      use(a!);
      if (shape === 'add' || shape === 'sub') {
        code.i32(oneBits(type));
        use(b!);
        if (shape === 'sub') code.i32(0x8000).op('i32.xor');
      } else {
        use(b!);
        if (shape === 'fma') use(c!);
        // Adding a zero of the product's sign keeps the product's own zero.
        else code.get(a!).get(b!).op('i32.xor').i32(0x8000).op('i32.and');
      }
      e.call(type.name === 'bf16' ? 'fma_bf16' : e.has('ftz') ? 'fma_ftz_f16' : 'fma_f16');
      finish(e, type);
      if (!e.has('oob')) return;
      // An operand 0xffff, which a tensor copy writes for an element out of bounds, makes the
      // result zero.
      const value = e.temp('i32');
      code
        .set(value)
        .i32(0)
        .get(value)
        .get(a!)
        .i32(0xffff)
        .op('i32.eq')
        .get(b!)
        .i32(0xffff)
        .op('i32.eq')
        .op('i32.or')
        .op('select');
    });
  };

export const minMax =
  (name: 'min' | 'max') =>
  (e: Emitter): void => {
    const { code } = e;
    e.argCount(3);
    perHalf(e, 1, 2, (type, [a, b]) => {
      const infinity = type.name === 'bf16' ? 0x7f80 : 0x7c00;
      for (const local of [a!, b!]) {
        code.get(local);
        if (e.has('ftz')) flushHalf(e, type);
        if (e.has('abs')) code.i32(0x7fff).op('i32.and');
        widenHalf(e, type);
      }
      // The result is one of the operands, so narrowing it is exact.
      if (e.has('NaN')) code.op(`f32.${name}`);
      else e.call(`${name}_f32`);
      code.op('f64.promote_f32');
      e.call(type.name === 'bf16' ? 'f64_to_bf16' : 'f64_to_f16');
      if (e.has('xorsign')) {
        const bits = e.temp('i32');
        code
          .set(bits)
          .get(bits)
          .get(a!)
          .get(b!)
          .op('i32.xor')
          .i32(0x8000)
          .op('i32.and')
          .op('i32.or')
          .get(bits);
        code.get(bits).i32(0x7fff).op('i32.and').i32(infinity).op('i32.le_u').op('select');
      }
    });
  };

export const sign =
  (operation: 'abs' | 'neg'): Rule =>
  (e) => {
    e.argCount(2);
    perHalf(e, 1, 1, (type, [a]) => {
      e.code.get(a!);
      if (e.has('ftz')) flushHalf(e, type);
      if (operation === 'abs') e.code.i32(0x7fff).op('i32.and');
      else e.code.i32(0x8000).op('i32.xor');
    });
  };

export const approximate =
  (name: 'exp2' | 'tanh'): Rule =>
  (e) => {
    e.argCount(2);
    perHalf(e, 1, 1, (type, [a]) => {
      e.code.get(a!);
      if (e.has('ftz')) flushHalf(e, type);
      widenHalf(e, type);
      e.code.op('f64.promote_f32');
      e.call(name);
      e.call(type.name === 'bf16' ? 'f64_to_bf16' : 'f64_to_f16');
      if (e.has('ftz')) flushHalf(e, type);
    });
  };
