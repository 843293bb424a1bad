import { describe, expect, it } from 'vitest';
import { bodyOf, errorOf } from './reading.test-support.js';

/** The value that a statement `TARGET = EXPRESSION` writes. */
const valueOf = (target: string, expression: string): string => {
  const lines = bodyOf(`${target}[0] = ${expression};`);
  expect(lines).toMatch(new RegExp(`^${target}\\[0\\] = `));
  return lines.slice(`${target}[0] = `.length);
};

describe('operators', () => {
  it.each([
    // Literals take the type of the other operand.
    ['y', '1', '1:f32'],
    ['y', '1 / 4', '0.25:f32'],
    ['y_f64', 's_f64 * 0.1', 'mul.f64(s_f64, 0.1:f64)'],
    ['y', 's_i32 * 0.5', 'mul.f32(f32(s_i32), 0.5:f32)'],
    ['y_u32', 's_u32 + 1', 'add.u32(s_u32, 1:u32)'],
    ['y_i64', 's_i32 + 4294967296', 'add.i64(i64(s_i32), 4294967296:i64)'],
    ['y_i64', 's_i32 * 5n', 'mul.i64(i64(s_i32), 5:i64)'],
    ['y', 's_bool ? 1 : 0.5', '(s_bool ? 1:f32 : 0.5:f32)'],
    ['y_f64', '-(s_bool ? 0.1 : 2)', '(s_bool ? -0.1:f64 : -2:f64)'],
    // Operands have a common type.
    ['y', 's_f16 + s_i64', 'add.f32(s_f16, f32(s_i64))'],
    ['y_f64', 's_f32 + s_f64', 'add.f64(f64(s_f32), s_f64)'],
    ['y_u32', 's_i32 + s_u32', 'add.u32(u32(s_i32), s_u32)'],
    ['y_i32', 's_bool + s_bool', 'add.i32(i32(s_bool), i32(s_bool))'],
    ['y_i32', 's_u8 * s_i8', 'mul.i32(s_u8, s_i8)'],
    // Division.
    ['y_i32', 's_i32 / 2', 'div.i32(s_i32, 2)'],
    ['y_i32', 's_i32 % 3', 'rem.i32(s_i32, 3)'],
    ['y', 's_f32 % 3', 'rem.f32(s_f32, 3:f32)'],
    // Squares.
    ['y', 's_f32 ** 2', 'mul.f32(s_f32, s_f32)'],
    ['y', '__pow(s_f32, 2)', 'mul.f32(s_f32, s_f32)'],
    // Shifts.
    ['y_i32', 's_i32 >> 2', 'shr.i32(s_i32, 2:u32)'],
    ['y_u32', 's_i32 >>> 2', 'shr.u32(u32(s_i32), 2:u32)'],
    ['y_u32', 's_i32 >>> 0', 'u32(s_i32)'],
    ['y_u32', 's_u32 >> 1', 'shr.u32(s_u32, 1:u32)'],
    ['y_i32', '1 << s_i32', 'shl.i32(1, u32(s_i32))'],
    ['y_u64', 's_i64 >>> 3', 'shr.u64(u64(s_i64), 3:u32)'],
    // JavaScript's ways to write a cast.
    ['y_i32', 's_f32 | 0', 'i32(s_f32)'],
    ['y_i32', '0 | s_f32', 'i32(s_f32)'],
    ['y_i32', '~~s_f32', 'i32(s_f32)'],
    ['y_i32', '~~~s_f32', 'not(i32(s_f32))'],
    ['y_i32', '~(~(~~s_f32))', 'not(not(i32(s_f32)))'],
    ['y_u32', 's_f32 >>> 0', 'u32(s_f32)'],
    ['y_i32', '~s_i32', 'not(s_i32)'],
    ['y_i32', '~5', '-6'],
    // Bits.
    ['y_i32', 's_i32 ^ 0xffffffff', 'xor.i32(s_i32, -1)'],
    ['y_u32', 's_u32 & 0xff00ff00', 'and.u32(s_u32, 4278255360:u32)'],
    ['y_i32', 's_bool | s_bool', 'or.i32(i32(s_bool), i32(s_bool))'],
    // Comparisons are by value.
    ['y_bool', 's_u32 < s_i32', 'lt.i64(i64(s_u32), i64(s_i32))'],
    ['y_bool', 's_u32 < 5', 'lt.u32(s_u32, 5:u32)'],
    ['y_bool', 's_i32 < 4294967295', 'lt.i64(i64(s_i32), 4294967295:i64)'],
    ['y_bool', 's_i64 < s_u64', 'or(lt.i64(s_i64, 0:i64), lt.u64(u64(s_i64), s_u64))'],
    ['y_bool', 's_u64 < s_i64', 'and(ge.i64(s_i64, 0:i64), gt.u64(u64(s_i64), s_u64))'],
    ['y_bool', 's_u64 !== s_i64', 'or(lt.i64(s_i64, 0:i64), ne.u64(u64(s_i64), s_u64))'],
    ['y_bool', 's_i32 === s_f32', 'eq.f32(f32(s_i32), s_f32)'],
    ['y_bool', 's_bool === true', 'eq.i32(i32(s_bool), 1)'],
    // Conditions.
    ['y_bool', '!s_i32', 'eq.i32(s_i32, 0)'],
    ['y_bool', '!s_f32', 'not(gt.f32(abs(s_f32), 0:f32))'],
    ['y_bool', '!(s_i32 === 1)', 'ne.i32(s_i32, 1)'],
    ['y_bool', '!0', 'true'],
    ['y_bool', 's_bool && s_i32 > 1', 'and(s_bool, gt.i32(s_i32, 1))'],
    ['y_i32', 's_i32 || 5', '(ne.i32(s_i32, 0) ? s_i32 : 5)'],
    ['y_i32', 'false || s_i32', 's_i32'],
    // Storage.
    ['y_u8', 's_i32', 's_i32'],
    ['y_f16', 's_f64', 'f32(s_f64)'],
    ['y_bool', 's_i32', 'bool(s_i32)'],
    ['y_i32', 's_i64', 'i32(s_i64)'],
    ['y', 's_bool', 'f32(s_bool)'],
  ])('%s[0] = %s', (target, expression, value) => {
    expect(valueOf(target, expression)).toBe(value);
  });

  it.each([
    ['y[0] / 0', 'This divides by zero: y[0] / 0'],
    ['y_i32[0] % 0', 'This divides by zero: y_i32[0] % 0'],
    ['y_i32[0] /= 0', 'This divides by zero: y_i32[0] /= 0'],
    ['y_i32[0] = 5 / 0', 'This divides by zero: 5 / 0'],
    ['y_i32[0] = -5 / 0', 'This divides by zero: -5 / 0'],
    ['y_i32[0] = 5 % 0', 'This divides by zero: 5 % 0'],
    ['y_i32[0] = 5n / 0n', 'This divides by zero: 5n / 0n'],
    ['y[0] = 5 / 0', 'This divides by zero: 5 / 0'],
    ['y[0] = 0 % 0', 'This divides by zero: 0 % 0'],
    ['const z = 0; y[0] = 1 / z', 'This divides by zero: 1 / z'],
    [
      'y_i32[0] = Infinity',
      'What is written to i32 elements is Infinity, and integers hold no infinity or NaN: Infinity',
    ],
    [
      'y_i32[0] = -1 / 0',
      'What is written to i32 elements is -Infinity, and integers hold no infinity or NaN: -1 / 0',
    ],
    [
      'y_i32[0] = NaN',
      'What is written to i32 elements is NaN, and integers hold no infinity or NaN: NaN',
    ],
    [
      'y_i32[0] & Infinity',
      'The right side of & is Infinity, and integers hold no infinity or NaN: Infinity',
    ],
    ['y[y[0]]', 'An index is f32, and has to be an integer: y[0]'],
    ['y[y[0] > 1]', 'An index is a boolean: y[0] > 1'],
    ['y[-1]', 'An index is negative: -1'],
    ['y_i32[0] = y[0]', 'What is written to i32 elements is f32, and has to be an integer: y[0]'],
    ['y_i32[0] = 0.5', 'What is written to i32 elements is f32, and has to be an integer: 0.5'],
    ['y[0] << 1', 'The left side of << is f32, and has to be an integer: y[0]'],
    ['y_i32[0] & y[0]', 'The right side of & is f32, and has to be an integer: y[0]'],
    ['~y[0]', 'The operand of ~ is f32, and has to be an integer: y[0]'],
    ['y[0] ?? 1', '?? has no use in a kernel: no value is null or undefined'],
    ['"a" + 1', 'Strings exist in console.log and console.assert only'],
  ])('refuses %s', (expression, what) =>
    expect(errorOf(`({ y, y_i32 }) => { ${expression}; }`).what).toBe(what),
  );

  it('infinity and NaN are read as minifiers write them', () => {
    expect(bodyOf('y[0] = 1 / 0; y[1] = -1 / 0; y[2] = -(1 / 0); y[3] = 0 / 0;')).toBe(
      'y[0] = Infinity:f32\ny[1] = -Infinity:f32\ny[2] = -Infinity:f32\ny[3] = NaN:f32',
    );
  });
});

describe('unsigned integers', () => {
  const names = '({ y, y_u32, y_u64, y_i32, s_u32, s_u64, s_i32, s_f32, s_bool }, gpu)';
  it.each([
    [
      's_u32 / -5',
      'An unsigned number is divided by a negative one, and u32 holds no negative numbers: ' +
        's_u32 / -5',
      'Write gpu.i32(s_u32) / -5.',
    ],
    [
      's_u64 % -5',
      'An unsigned number is taken modulo a negative one, and u64 holds no negative numbers: ' +
        's_u64 % -5',
      'Write gpu.i64(s_u64) % -5.',
    ],
    [
      's_u32 / gpu.i32(-5)',
      'An unsigned number is divided by a negative one',
      'Write gpu.i32(s_u32) / gpu.i32(-5).',
    ],
    [
      's_u32 / (s_bool ? 1 : -5)',
      'An unsigned number is divided by a negative one',
      'Write gpu.i32(s_u32) / (s_bool ? 1 : -5).',
    ],
    ['-5 / s_u32', 'A negative number is divided by an unsigned one', 'Write -5 / gpu.i32(s_u32).'],
    [
      '-s_u32 / 16',
      'A negated u32 has no sign, it is 2 ** 32 - u, and this computes with that: -s_u32 / 16',
      'Make it signed before it is negated: -gpu.i32(u).',
    ],
    [
      '-s_u32 / 16 * s_i32',
      'A negated u32 has no sign',
      'Make it signed before it is negated: -gpu.i32(u).',
    ],
    [
      '-s_u32 * s_i32 / 16',
      'A negated u32 has no sign',
      'Make it signed before it is negated: -gpu.i32(u).',
    ],
    [
      '-s_u64 % 16',
      'A negated u64 has no sign',
      'Make it signed before it is negated: -gpu.i64(u).',
    ],
    [
      '-s_u32 / s_f32',
      'A negated u32 has no sign',
      'Make it signed before it is negated: -gpu.i32(u).',
    ],
    [
      '-s_u32 * s_f32',
      'A negated u32 has no sign',
      'Make it signed before it is negated: -gpu.i32(u).',
    ],
  ])('%s is rejected', (expression, what, fix) => {
    const error = errorOf(`${names} => { y[0] = ${expression}; }`);
    expect(error.what).toContain(what);
    expect(error.fix).toBe(fix);
  });

  it.each([
    ['y_u32', '-s_u32', 'neg(s_u32)'],
    ['y_u32', 's_u32 & -s_u32', 'and.u32(s_u32, neg(s_u32))'],
    ['y_u32', 's_u32 + -1', 'add.u32(s_u32, 4294967295:u32)'],
    ['y_u32', 's_u32 * -1', 'mul.u32(s_u32, 4294967295:u32)'],
    ['y_u32', '-(s_u32 / 16)', 'neg(div.u32(s_u32, 16:u32))'],
    ['y_i32', 'gpu.i32(-s_u32) / 16', 'div.i32(i32(neg(s_u32)), 16)'],
    ['y_i32', 'gpu.i32(s_u32) / -5', 'div.i32(i32(s_u32), -5)'],
    ['y_i64', 's_u32 / -5000000000', 'div.i64(i64(s_u32), -5000000000:i64)'],
  ])('%s[0] = %s keeps its type', (target, expression, value) =>
    expect(valueOf(target, expression)).toBe(value),
  );

  it('may still become floats', () =>
    expect(bodyOf('let h = s_u32; y[0] = h / -5; h = s_f32;')).toContain('div.f32(h, -5:f32)'));
});

describe('multiply-adds', () => {
  it.each([
    ['x[0] * s_f32 + 1', 'fma.f32(x[0], s_f32, 1:f32)'],
    ['1 + x[0] * s_f32', 'fma.f32(x[0], s_f32, 1:f32)'],
    ['x[0] * s_f32 - y[1]', 'fma.f32(x[0], s_f32, neg(y[1]))'],
    ['y[1] - x[0] * s_f32', 'fma.f32(neg(x[0]), s_f32, y[1])'],
    ['x[0] * s_f32 + x[1] * x[2]', 'fma.f32(x[0], s_f32, mul.f32(x[1], x[2]))'],
    ['x[0] + s_i32 * s_i32', 'add.f32(x[0], f32(mul.i32(s_i32, s_i32)))'],
    ['Math.fround(x[0] * x[1]) + 1', 'add.f32(mul.f32(x[0], x[1]), 1:f32)'],
  ])('%s', (expression, value) => expect(valueOf('y', expression)).toBe(value));

  it('are fused into what is added to', () =>
    expect(bodyOf('y[0] += x[0] * x[1]; y[0] -= x[0] * x[1];')).toBe(
      'y[0] = fma.f32(x[0], x[1], y[0])\ny[0] = fma.f32(neg(x[0]), x[1], y[0])',
    ));
  it('are not fused across statements', () =>
    expect(bodyOf('const t = x[0] * x[1]; y[0] = t + 1;')).toBe(
      't: f32 = mul.f32(x[0], x[1])\ny[0] = add.f32(t, 1:f32)',
    ));
  it('are not fused with what a function returns', () => {
    expect(
      bodyOf('y[0] = gpu.square(x[0]) + 1;', { square: { text: '(v) => v * v', uses: {} } }),
    ).toBe('v: f32 = x[0]\ny[0] = add.f32(mul.f32(v, v), 1:f32)');
  });
});
