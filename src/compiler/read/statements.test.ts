/** The nodes of the tree for variables, loops and branches. */
import { describe, expect, it } from 'vitest';
import { bodyOf, errorOf, wholeOf } from './reading.test-support.js';

const lines = (...of: string[]): string => of.join('\n');

describe('variables', () => {
  it('have the joined type of all assigned values', () => {
    expect(bodyOf('let sum = 0; for (let k = 0; k < 4; k++) sum += x[k]; y[0] = sum;')).toBe(
      lines(
        'sum: f32 = 0:f32',
        'k: i32 = 0',
        'loop 0 while lt.i32(k, 4)',
        '  sum: f32 = add.f32(sum, x[k])',
        'update',
        '  k: i32 = add.i32(k, 1)',
        'y[0] = sum',
      ),
    );
  });

  it('take the type of another that gets its own later', () => {
    expect(
      bodyOf('let a1 = 0, b1 = 0; for (;;) { y[0] = a1; a1 = b1; b1 = s_f64; if (s_bool) break; }'),
    ).toMatch(/^a1: f64 = 0:f64\nb1: f64 = 0:f64\n/);
  });

  it('start from a literal that only 32 bits without a sign hold', () => {
    expect(
      bodyOf('let h = 0x811c9dc5; h = Math.imul(h ^ y_u8[0], 0x01000193); y_u32[0] = h;'),
    ).toBe(
      lines(
        'h: u32 = 2166136261:u32',
        'h: u32 = mul.u32(xor.u32(h, u32(y_u8[0])), 16777619:u32)',
        'y_u32[0] = h',
      ),
    );
    expect(bodyOf('let h = 0xffffffff; h = s_i32; y_i64[0] = h;')).toBe(
      lines('h: i64 = 4294967295:i64', 'h: i64 = i64(s_i32)', 'y_i64[0] = h'),
    );
  });

  it('that are constants of literals adapt as the literal does', () => {
    expect(bodyOf('const k = 0.1; y_f64[0] = s_f64 * k; y[0] = k;')).toBe(
      lines('y_f64[0] = mul.f64(s_f64, 0.1:f64)', `y[0] = ${Math.fround(0.1)}:f32`),
    );
    expect(bodyOf('var n = 4; const l = gpu.local.f32(n); l[0] = 1;')).toBe(
      lines('clear local0', 'local0[0] = 1:f32'),
    );
  });

  it('of one name in several blocks are several, with `var` too', () => {
    expect(
      bodyOf('if (s_bool) { var v = x[0]; y[0] = v; } if (s_i32) { var v = s_i32; y[v] = 1; }'),
    ).toBe(
      lines(
        'if s_bool',
        '  v: f32 = x[0]',
        '  y[0] = v',
        'if ne.i32(s_i32, 0)',
        '  y[s_i32] = 1:f32',
      ),
    );
  });

  it('are declared side by side from a list', () => {
    const apart = bodyOf(
      'const r = x[0], n = y_i32[1]; let a1 = 0, b1 = r; for (let k = 0, m = n; k < m; k++) ' +
        'a1 += x[k]; y[0] = a1 + b1;',
    );
    expect(
      bodyOf(
        'const [r, n] = [x[0], y_i32[1]]; let [a1, b1] = [0, r]; for (let [k, m] = [0, n]; k ' +
          '< m; k++) a1 += x[k]; y[0] = a1 + b1;',
      ),
    ).toBe(apart);
    expect(bodyOf('const [[r], { y: n }] = [[x[0]], { x: 1, y: s_f32 }]; y[0] = r * n;')).toBe(
      lines('r: f32 = x[0]', 'y[0] = mul.f32(r, s_f32)'),
    );
  });

  it.each([
    'const [a1, b1] = [x[0]];',
    'const [a1] = [x[0], x[1]];',
    'const [, a1] = [x[0], x[1]];',
    'var [a1, b1] = [x[0], x[1]];',
    'let a1 = 1, b1 = 2; [a1, b1] = [b1, a1];',
  ])('are not declared from a list in any other way: %s', (code) => {
    expect(errorOf(`({ x }, gpu) => { ${code} }`).what).toBe(
      'Arrays cannot be written as literals in a kernel',
    );
  });

  it('need a value on every path', () => {
    expect(errorOf('({ y, s_i32 }) => { let z; if (s_i32) z = 1; y[0] = z; }')).toEqual({
      what: '`z` is read where it may have no value yet',
      fix: 'Give it one where it is declared, or on every path.',
      code: 'z',
    });
    expect(
      errorOf('({ y, s_i32 }) => { let z; for (let k = 0; k < s_i32; k++) z = 1; y[0] = z; }').what,
    ).toBe('`z` is read where it may have no value yet');
    expect(
      errorOf(
        '({ y, s_i32 }) => { let z; switch (s_i32) { case 1: z = 1; break; case 2: z = 2; } ' +
          'y[0] = z; }',
      ).what,
    ).toBe('`z` is read where it may have no value yet');
    expect(errorOf('({ y }) => { let z; y[0] = z; z = 1; }').what).toBe(
      '`z` is read before it has a value',
    );
    expect(bodyOf('let z; if (s_i32) z = 1; else z = 2; y[0] = z;')).toContain('y[0] = f32(z)');
    expect(bodyOf('let z; do { z = 1; if (s_bool) continue; } while (s_i32); y[0] = z;')).toContain(
      'y[0] = f32(z)',
    );
    expect(bodyOf('let z; for (;;) { if (s_bool) { z = 1; break; } } y[0] = z;')).toContain(
      'y[0] = f32(z)',
    );
    expect(bodyOf('let z; if (s_i32) z = 1; else return; y[0] = z;')).toContain('y[0] = f32(z)');
  });
});

describe('the order of evaluation', () => {
  it('is kept where an operand takes statements', () => {
    expect(bodyOf('let k = 0; y[k++] = y[k] + k++;')).toBe(
      lines(
        'k: i32 = 0',
        'before: i32 = k',
        'k: i32 = add.i32(before, 1)',
        'before2: f32 = y[k]',
        'before3: i32 = k',
        'k: i32 = add.i32(before3, 1)',
        'y[before] = add.f32(before2, f32(before3))',
      ),
    );
    expect(bodyOf('const v = y[0] + (y[0] = 2); y[1] = v;')).toBe(
      lines('before: f32 = y[0]', 'y[0] = 2:f32', 'v: f32 = add.f32(before, 2:f32)', 'y[1] = v'),
    );
  });

  it('computes the index of += once', () => {
    expect(bodyOf('y[s_i32 + 1] += 2;')).toBe(
      lines('index: i32 = add.i32(s_i32, 1)', 'y[index] = add.f32(y[index], 2:f32)'),
    );
  });

  it('evaluates only the side that is chosen', () => {
    expect(bodyOf('y[0] = s_bool ? (y[1] = 1) : 2;')).toBe(
      lines(
        'if s_bool',
        '  y[1] = 1:f32',
        '  either: i32 = 1',
        'else',
        '  either: i32 = 2',
        'y[0] = f32(either)',
      ),
    );
    expect(bodyOf('s_bool || (y[0] = 2); s_bool && s_i32 && (y[0] = 3);')).toBe(
      lines(
        'if s_bool',
        'else',
        '  y[0] = 2:f32',
        'if and(s_bool, ne.i32(s_i32, 0))',
        '  y[0] = 3:f32',
      ),
    );
  });
});

describe('loops', () => {
  it('with a test that takes statements', () => {
    expect(bodyOf('let k = 0; while (k++ < 5) y[k] = 1;')).toBe(
      lines(
        'k: i32 = 0',
        'loop 0',
        '  before: i32 = k',
        '  k: i32 = add.i32(before, 1)',
        '  if lt.i32(before, 5)',
        '  else',
        '    break 0',
        '  y[k] = 1:f32',
      ),
    );
    expect(bodyOf('let k = 5; do y[k] = 1; while (k-- > 0);')).toBe(
      lines(
        'k: i32 = 5',
        'loop 0 until not gt.i32(before, 0)',
        '  y[k] = 1:f32',
        'update',
        '  before: i32 = k',
        '  k: i32 = sub.i32(before, 1)',
      ),
    );
  });

  it('leave the one that is named', () => {
    expect(
      bodyOf(
        'outer: for (;;) { for (;;) { if (s_bool) break outer; if (s_i32) continue outer; ' +
          'break; } y[0] = 1; }',
      ),
    ).toBe(
      lines(
        'loop 0',
        '  loop 1',
        '    if s_bool',
        '      break 0',
        '    if ne.i32(s_i32, 0)',
        '      continue 0',
        '    break 1',
        '  y[0] = 1:f32',
      ),
    );
    expect(bodyOf('done: { if (s_bool) break done; y[0] = 1; }')).toBe(
      lines('group 0', '  if s_bool', '    break 0', '  y[0] = 1:f32'),
    );
  });

  it('are unrolled by the hint', () => {
    expect(bodyOf('gpu.unroll(4); for (let k = 0; k < 8; k++) y[k] = 0;')).toContain(
      'loop 0 while lt.i32(k, 8) unroll 4',
    );
    expect(
      bodyOf('gpu.unroll(); for (let k = 0; k < 8; k++) for (let j = 0; j < 2; j++) y[k] = 0;'),
    ).toMatch(/k, 8\) unroll 0\n(.*\n)* {2}loop 1 while lt.i32\(j, 2\)\n/);
  });

  it('leave out branches whose condition is a constant', () => {
    expect(
      bodyOf(
        'if (gpu.DEBUG) y[0] = gpu.nothing; else y[0] = 1; while (false) y[0] = 2; for (;;) ' +
          '{ y[0] = 3; return; }',
        { DEBUG: false },
      ),
    ).toBe(lines('y[0] = 1:f32', 'loop 0', '  y[0] = 3:f32', '  return'));
  });

  it('that never end make the rest unreachable', () =>
    expect(bodyOf('while (true) y[0] = 1; y[0] = nothing;')).toBe(
      lines('loop 0', '  y[0] = 1:f32'),
    ));
});

describe('switch', () => {
  it('is a chain of if', () => {
    expect(
      bodyOf(
        'switch (s_i32) { case 1: y[0] = 1; break; default: y[0] = 3; break; case 2: case 4: ' +
          'y[0] = 2; }',
      ),
    ).toBe(
      lines(
        'if eq.i32(s_i32, 1)',
        '  y[0] = 1:f32',
        'else',
        '  if or(eq.i32(s_i32, 2), eq.i32(s_i32, 4))',
        '    y[0] = 2:f32',
        '  else',
        '    y[0] = 3:f32',
      ),
    );
  });

  it('falls through to the next case', () => {
    expect(
      bodyOf('switch (s_i32) { case 1: y[0] = 1; case 2: y[1] = 2; break; default: y[2] = 3; }'),
    ).toBe(
      lines(
        'group 0',
        '  entry: i32 = (eq.i32(s_i32, 1) ? 0 : (eq.i32(s_i32, 2) ? 1 : 2))',
        '  if le.i32(entry, 0)',
        '    y[0] = 1:f32',
        '  if le.i32(entry, 1)',
        '    y[1] = 2:f32',
        '    break 0',
        '  if le.i32(entry, 2)',
        '    y[2] = 3:f32',
      ),
    );
  });

  it('of a constant is the case itself', () =>
    expect(
      bodyOf(
        'switch (gpu.N) { case 1: y[0] = 1; break; case 2: y[0] = 2; break; default: y[0] = 3; }',
        { N: 2 },
      ),
    ).toBe('y[0] = 2:f32'));
});

describe('silent errors are rejected', () => {
  it.each([
    [
      'let best = -1; for (let i = 0; i < 3; i++) if (y_u32[i] === 99) best = y_u32[i]; ' +
        'y_i32[0] = best',
      '`best` holds numbers of u32, and is given a negative one, which u32 does not hold',
    ],
    [
      'const v = s_u32 > 0 ? s_u32 : -1; y_i32[0] = v',
      'A negative number and numbers of u32 become one value here, and u32 holds no negative ones',
    ],
    [
      'let m = gpu.u64(0); m = Math.max(-1, s_u64); y_i32[0] = m',
      'A negative number and numbers of u64 become one value here',
    ],
    [
      'y_i32[0] = gpu.find(y_u32)',
      '`find_result` holds numbers of u32, and is given a negative one',
    ],
    [
      'if (s_u32 === -1) y_i32[0] = 1',
      'A number of u32 is compared with -1, and is never negative',
    ],
    [
      'const old = gpu.atomicCompareExchange(y_u32, 0, -1, 3); if (old === -1) y_i32[0] = 1',
      'A number of u32 is compared with -1',
    ],
    ['switch (s_u64) { case -3: y_i32[0] = 1; }', 'A number of u64 is compared with -3'],
    ['y_i32[0] = s_i32 / 2.0', '2.0 is a whole number, and this divides whole numbers'],
    ['y_i32[0] = 7.0 % s_u32', '7.0 is a whole number, and this divides whole numbers'],
    ['y_f32[0] = s_i32 * 1.0 / 2', '1.0 is a whole number, and this computes with whole numbers'],
    ['y_f32[0] = (s_i32 + 0.0) / 2', '0.0 is a whole number, and this computes with whole numbers'],
    [
      'y_f32[0] = Math.round(s_i32 / 2)',
      'A quotient of whole numbers is whole, and nothing is left to round: Math.round(s_i32 / 2)',
    ],
    ['y_f32[0] = -s_u32', 'A negated u32 has no sign'],
    ['y_f32[0] = gpu.f32(-s_u32)', 'A negated u32 has no sign'],
    ['y_f32[0] = -s_u32 + 0.5', 'A negated u32 has no sign'],
    ['y_f32[0] = 0.5 - -s_u32', 'A negated u32 has no sign'],
    ['if (-s_u32 < 0) y_f32[0] = 1', 'A negated u32 has no sign'],
  ])('%s', (code, what) => {
    const error = errorOf(
      `({ y: y_f32, y_i32, y_u32, s_i32, s_u32, s_u64 }, gpu) => { ${code}; }`,
      {
        find: {
          text: '(a) => { for (let i = 0; i < 3; i++) if (a[i] === 5) return a[i]; return -1; }',
          uses: {},
        },
      },
    );
    expect(error.what).toContain(what);
    expect(error.fix).toMatch(/gpu\.(i32|i64|f32)\(/);
  });

  it.each([
    'y_u32[0] = -1',
    'y_u32[0] = s_u32 & -8',
    'y_u32[0] = s_u32 + -1',
    'const none = 0xffffffff; if (s_u32 === none) y_i32[0] = 1',
    'if (gpu.i32(s_u32) === -1) y_i32[0] = 1',
    'let m = -1; if (s_i32 > m) m = s_i32; y_i32[0] = m',
    'y[0] = x[0] / 2.0',
    'let f = 0.0; f += x[0]; y[0] = f',
  ])('but not %s', (code) => {
    wholeOf(`({ y, x, y_i32, y_u32, s_i32, s_u32 }, gpu) => { ${code}; }`);
  });

  it('|0, >>> 0 and ~~ keep 32 of 64 bits', () => {
    expect(
      bodyOf(
        'y_i32[0] = (s_i32 + 0xd76aa478) | 0; y_u32[0] = s_i64 >>> 0; y_i32[1] = ~~s_u64; ' +
          'y_i64[0] = s_i64 | 1;',
      ),
    ).toBe(
      lines(
        'y_i32[0] = i32(add.i64(i64(s_i32), 3614090360:i64))',
        'y_u32[0] = u32(s_i64)',
        'y_i32[1] = i32(s_u64)',
        'y_i64[0] = or.i64(s_i64, 1:i64)',
      ),
    );
  });
});

describe('syntax that kernels do not have', () => {
  it.each([
    'try { } catch { }',
    'class A { }',
    'const f = () => 1',
    'function f() { }',
    'new Array(4)',
    'throw 1',
    'y[0] = /a/',
    'y[0] = null',
    'delete y[0]',
    '"a" in y',
    'y[0] = typeof 1',
    'for (const k in y) { }',
    'y?.length',
    'this.x',
    'f`a`',
    'const [a] = y',
    'y[0] = `${y[1]}`',
    'Math.max(...y)',
    'y[0] = y[1] ?? 2',
    'with (y) { }',
    'y.push(1)',
    'using z = 1',
    'import("a")',
    'new.target',
  ])('%s has its own message', (code) => {
    const { what, fix } = errorOf(`function ({ y }, gpu) { ${code}; }`);
    expect(what).not.toMatch(/^This is not known/);
    expect(fix).toMatch(/\.$/);
  });
});
