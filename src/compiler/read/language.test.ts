/** The nodes of the tree for each part of the language. */
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
  ])('are not in any other way: %s', (code) => {
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

describe('tensors', () => {
  it('with several axes are indexed by strides', () => {
    expect(wholeOf('({ m }, gpu) => { const r = gpu.lane; m[r][2] = m.shape[0]; }')).toBe(
      lines(
        '(m.pointer, m.extent0, m.stride0, m.stride1)',
        'r: i32 = lane',
        'm[add.i32(mul.i32(m.stride0, r), mul.i32(m.stride1, 2))] = f32(m.extent0)',
      ),
    );
  });

  it('have rows, lengths and shapes', () => {
    expect(
      bodyOf(
        'let k = s_i32; const row = m[k]; k = 0; y[0] = row[k] + row.length + m.length + ' +
          'y.shape[0] + m.shape.length;',
      ),
    ).toBe(
      lines(
        'k: i32 = s_i32',
        'index: i32 = k',
        'k: i32 = 0',
        'y[0] = add.f32(add.f32(add.f32(add.f32(m[add.i32(mul.i32(m.stride0, index), ' +
          'mul.i32(m.stride1, k))], f32(m.extent1)), f32(m.length)), f32(y.length)), 2:f32)',
      ),
    );
  });

  it('of 2^31 elements and more have i64 indices', () => {
    expect(bodyOf('if (gpu.globalId.x < y.length) m[gpu.globalId.x][i] = 0;', {}, 'i64')).toBe(
      lines(
        'if lt.i64(globalId.x, y.length)',
        '  m[add.i64(mul.i64(m.stride0, globalId.x), mul.i64(m.stride1, i64(i)))] = 0:f32',
      ),
    );
  });

  it.each([
    ['y[0] = m[0]', 'm[0] is a row of a tensor, where a number is needed'],
    ['m[0] = 1', 'This is a row of a tensor, and cannot be assigned as a whole: m[0]'],
    ['y[0] = y', 'y is a tensor, where a number is needed'],
    ['x[0] = 1', 'x is an input, and this writes to it: x[0]'],
    ['x[0]++', 'x is an input, and this writes to it: x[0]'],
    ['y.length = 1', 'This cannot be assigned to: y.length belongs to a tensor'],
    ['m.shape[2]', 'm has 2 axes here, and this reads axis 2'],
    [
      'm.shape[y_i32[0]]',
      'The axis of a shape has to be known when the kernel is compiled: y_i32[0]',
    ],
    ['y.map(1)', 'A tensor has no map in a kernel'],
    ['for (const v of x) y[0] = v', 'for-of is not supported in a kernel'],
    [
      'let t = y; t = x',
      '`t` would hold a tensor, and a variable that is assigned can hold numbers, booleans ' +
        'and structures',
    ],
  ])('refuses %s', (code, what) =>
    expect(errorOf(`({ y, x, m, y_i32 }) => { ${code}; }`).what).toBe(what),
  );
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
  ])('and not %s', (code) => {
    wholeOf(`({ y, x, y_i32, y_u32, s_i32, s_u32 }, gpu) => { ${code}; }`);
  });

  it('of 64 bits |0, >>> 0 and ~~ leave 32', () => {
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

describe('structures', () => {
  it('lie in memory, and are parameters', () => {
    expect(
      wholeOf('({ p, by }) => { const q = p[1]; q.x += by.x; p[0].n = by.n; p[2] = q; }'),
    ).toBe(
      lines(
        '(p.pointer, by.x: f32, by.n: i32)',
        'p[1].x = add.f32(p[1].x, by.x)',
        'p[0].n = by.n',
        'value: f32 = p[1].x',
        'value2: i32 = p[1].n',
        'p[2].x = value',
        'p[2].n = value2',
      ),
    );
  });

  it('are split into their fields', () => {
    expect(
      bodyOf('let q = { x: 0, n: s_i32 }; if (s_bool) q = { x: x[0], n: 1 }; q.n++; y[q.n] = q.x;'),
    ).toBe(
      lines(
        'q_x: f32 = 0:f32',
        'q_n: i32 = s_i32',
        'if s_bool',
        '  x: f32 = x[0]',
        '  q_x: f32 = x',
        '  q_n: i32 = 1',
        'q_n: i32 = add.i32(q_n, 1)',
        'y[q_n] = q_x',
      ),
    );
  });

  it('swap', () =>
    expect(bodyOf('let q = { x: 1, y: s_f32 }; q = { x: q.y, y: q.x }; y[0] = q.x;')).toBe(
      lines(
        'q_x: f32 = 1:f32',
        'q_y: f32 = s_f32',
        'x: f32 = q_y',
        'y: f32 = q_x',
        'q_x: f32 = x',
        'q_y: f32 = y',
        'y[0] = q_x',
      ),
    ));

  it('come back from functions', () => {
    expect(
      bodyOf('const s = gpu.sincos(x[0]); y[0] = s.a + s.b;', {
        sincos: { text: '(v) => ({ a: v + 1, b: v * 2 })', uses: {} },
      }),
    ).toBe(
      lines(
        'v: f32 = x[0]',
        's_a: f32 = add.f32(v, 1:f32)',
        's_b: f32 = mul.f32(v, 2:f32)',
        'y[0] = add.f32(s_a, s_b)',
      ),
    );
    expect(
      bodyOf('const s = gpu.f(x[0]); y[0] = s.a;', {
        f: { text: '(v) => { if (v > 0) return { a: v }; return { a: 0 }; }', uses: {} },
      }),
    ).toBe(
      lines(
        'v: f32 = x[0]',
        'group 0',
        '  if gt.f32(v, 0:f32)',
        '    f_result_a: f32 = v',
        '    break 0',
        '  f_result_a: f32 = 0:f32',
        's_a: f32 = f_result_a',
        'y[0] = s_a',
      ),
    );
  });

  it.each([
    ['y[0] = p[0]', 'p[0] is a structure, where a number is needed'],
    ['y[0] = p[0].z', 'This structure has no field z: it has x, n'],
    ['by.x = 1', 'This cannot be assigned to: by.x belongs to a structure'],
    ['p[0] = { x: 1 }', 'An element with the fields x, n cannot become a structure of x'],
    ['const q = { f() {} }', 'Structures in a kernel have no methods'],
    ['let q = { x: 1 }; q = { z: 2 }', '`q` holds a structure of x, and this assigns one of z'],
    ['let q = { x: 1 }; q = 2', '`q` holds a structure of x, and this assigns the number 2'],
  ])('refuses %s', (code, what) =>
    expect(errorOf(`({ y, p, by }) => { ${code}; }`).what).toBe(what),
  );
});

describe('arrays of the kernel', () => {
  it('are one run of elements', () => {
    expect(
      wholeOf(
        '({ y }, gpu) => { const t = gpu.shared.f32(4, 8); const r = t[gpu.lane]; r[2] = ' +
          't.length + r.length; y[0] = t[1][7]; }',
      ),
    ).toBe(
      lines(
        '(y.pointer)',
        'shared f32[32] shared0',
        'index: i32 = mul.i32(lane, 8)',
        'shared0[add.i32(index, 2)] = 12:f32',
        'y[0] = shared0[add.i32(mul.i32(1, 8), 7)]',
      ),
    );
    expect(wholeOf('({ y }, gpu) => { const d = gpu.dynamicShared.u8(); d[0] = 1; }')).toBe(
      lines('()', 'dynamic u8[0] dynamic0', 'dynamic0[0] = 1'),
    );
  });

  it('of dynamic shared memory have as many elements as the launch gives bytes for', () => {
    expect(
      bodyOf(
        'const d = gpu.dynamicShared.f16(); y_i32[0] = d.length; y_i32[1] = ' +
          'gpu.dynamicShared.bool().length;',
      ),
    ).toBe(
      lines(
        'y_i32[0] = div.i32(dynamicSharedBytes, 2)',
        'y_i32[1] = div.i32(dynamicSharedBytes, 1)',
      ),
    );
  });

  it('of dynamic shared memory may have axes too', () => {
    expect(
      bodyOf('const d = gpu.dynamicShared.f32(4, 8); d[gpu.lane][1] = d.length + d[0].length;'),
    ).toBe('dynamic0[add.i32(mul.i32(lane, 8), 1)] = 12:f32');
    expect(errorOf('({ y }, gpu) => { gpu.dynamicShared.f32(0); }').what).toBe(
      'gpu.dynamicShared.f32 takes lengths from 1, and got 0',
    );
  });

  it('of a thread are zeros where they are declared', () =>
    expect(bodyOf('for (;;) { const l = gpu.local.i32(2); l[0]++; }')).toBe(
      lines('loop 0', '  clear local0', '  local0[0] = add.i32(local0[0], 1)'),
    ));

  it.each([
    [
      'gpu.local.f32(y_i32[0])',
      'Argument 1 of gpu.local.f32 has to be known when the kernel is compiled: y_i32[0]',
    ],
    [
      'gpu.local.f32(1e6)',
      'gpu.local.f32 of 1000000 elements takes 4000000 bytes, and local memory has 524288 here',
    ],
    [
      'gpu.shared.f32(1e5)',
      'gpu.shared.f32 of 100000 elements takes 400000 bytes, and shared memory has 49152 here',
    ],
    ['gpu.shared.f32(0)', 'gpu.shared.f32 takes lengths from 1, and got 0'],
    [
      'gpu.shared.f32(8000); gpu.shared.f32(8000)',
      "With this gpu.shared.f32 the kernel's shared arrays take 64000 bytes, and shared " +
        'memory has 49152 here',
    ],
    [
      'const l = gpu.local.f32(4); l[4] = 1',
      'Index 4 is beyond the array, which has 4 elements there',
    ],
    ['const l = [1, 2]', 'Arrays cannot be written as literals in a kernel'],
  ])('refuses %s', (code, what) =>
    expect(errorOf(`({ y_i32 }, gpu) => { ${code}; }`).what).toBe(what),
  );
});

describe('uses', () => {
  it('are literals and lists of them', () =>
    expect(
      bodyOf('y[0] = gpu.W[1] * x[0] + gpu.W.length; y_u64[0] = gpu.BIG;', {
        W: [1, 0.5],
        BIG: 2n ** 63n,
      }),
    ).toBe(lines('y[0] = fma.f32(0.5:f32, x[0], 2:f32)', `y_u64[0] = ${2n ** 63n}:u64`)));
  it('are chosen by an index that the kernel computes, as literals', () => {
    expect(
      bodyOf('y[0] = gpu.W[gpu.lane] * x[0]; y_i32[0] = gpu.W[gpu.lane];', { W: [1, 2, 4] }),
    ).toBe(
      lines(
        'y[0] = mul.f32((lt.i32(lane, 1) ? 1:f32 : (lt.i32(lane, 2) ? 2:f32 : 4:f32)), x[0])',
        'y_i32[0] = (lt.i32(lane, 1) ? 1 : (lt.i32(lane, 2) ? 2 : 4))',
      ),
    );
    expect(bodyOf('y[0] = gpu.W[y_i32[0]];', { W: [1, 0.5] })).toBe(
      lines('index: i32 = y_i32[0]', 'y[0] = (lt.i32(index, 1) ? 1:f32 : 0.5:f32)'),
    );
    expect(bodyOf('if (gpu.W[gpu.lane]) y[0] = 1;', { W: [true, false] })).toBe(
      lines('if (lt.i32(lane, 1) ? true : false)', '  y[0] = 1:f32'),
    );
    expect(
      errorOf('(a, gpu) => { gpu.W[gpu.lane]; }', { W: Array.from({ length: 65 }, () => 1) }).what,
    ).toBe(
      'The list gpu.W has 65 items, and with an index that the kernel computes it may have 1 ' +
        'to 64: gpu.lane',
    );
    expect(errorOf('({ x }, gpu) => { gpu.W[x[0]]; }', { W: [1, 2] }).what).toBe(
      'An index is f32, and has to be an integer: x[0]',
    );
  });
  it('are no functions of Number, which have other names', () => {
    expect(errorOf('({ y }) => { y[0] = Number.isNaN(y[0]) ? 1 : 0; }').fix).toBe('Write x !== x.');
    expect(errorOf('({ y }) => { y[0] = Number.EPSILON; }').fix).toBe(
      'Give it through uses: { EPSILON: Number.EPSILON } and write gpu.EPSILON.',
    );
  });
  it('are what a device function itself has', () => {
    expect(
      bodyOf('y[0] = gpu.f(s_f64);', {
        f: {
          text: '(v, gpu) => v * gpu.K + gpu.g(v, 1)',
          uses: { K: 3, g: { text: '(a, b) => a - b', uses: {} } },
        },
        K: 7,
      }),
    ).toBe('y[0] = f32(fma.f64(s_f64, 3:f64, sub.f64(s_f64, 1:f64)))');
    expect(
      errorOf('(a, gpu) => { gpu.f(); }', { f: { text: '(gpu) => gpu.K', uses: {} }, K: 7 }).what,
    ).toBe('gpu has no K, and the device function gpu.f does not use one');
  });
  it('take tensors and arrays', () =>
    expect(
      bodyOf('gpu.add(y, m[1], 2);', {
        add: { text: '(to, from, k) => { to[k] += from[k]; }', uses: {} },
      }),
    ).toBe('y[2] = add.f32(y[2], m[add.i32(mul.i32(m.stride0, 1), mul.i32(m.stride1, 2))])'));
  it('without a function are named', () => {
    expect(errorOf('({ y }, gpu) => { y[0] = gelu(1); }').fix).toBe(
      'Give it through uses: { gelu } and write gpu.gelu.',
    );
    expect(errorOf('({ y }, gpu) => { y[0] = (0, maths_1.gelu)(1); }').what).toBe(
      '`maths_1.gelu` is not defined in a kernel: its text is compiled without its surroundings ' +
        'and imports',
    );
    expect(errorOf('({ y }, gpu) => { y[0] = x.size; }').fix).toBe(
      'Give it through uses: { size: x.size } and write gpu.size.',
    );
    expect(errorOf('({ y }, gpu) => { y[0] = gpu.gelu(1); }').fix).toBe(
      'Give it through uses: { gelu }.',
    );
  });
  it('are rejected if they call themselves', () => {
    const f = {
      text: '(v, gpu) => gpu.g(v)',
      uses: {} as Record<string, { text: string; uses: object }>,
    };
    f.uses.g = { text: '(v, gpu) => gpu.f(v)', uses: { f } };
    expect(errorOf('({ y }, gpu) => { y[0] = gpu.f(y[1]); }', { f } as never).what).toBe(
      'A device function cannot call itself: gpu.f → gpu.g → gpu.f',
    );
  });
  it.each([
    [
      'a function of its own name',
      'gpu.fact(5)',
      { fact: 'function fact(n) { return n <= 1 ? 1 : n * fact(n - 1); }' },
      'fact → fact',
      'fact',
    ],
    [
      'one that a minifier renamed',
      'gpu.fact(5)',
      { fact: 'function e(n) { return n <= 1 ? 1 : n * e(n - 1); }' },
      'fact → fact',
      'e',
    ],
    [
      'an arrow function by the name that it is used by',
      'gpu.fact(5)',
      { fact: '(n) => n <= 1 ? 1 : n * fact(n - 1)' },
      'fact → fact',
      'fact',
    ],
    [
      'by gpu, though it does not use itself',
      'gpu.fact(5)',
      { fact: '(n, gpu) => n <= 1 ? 1 : n * gpu.fact(n - 1)' },
      'fact → fact',
      'gpu.fact',
    ],
    [
      'two by their names',
      'gpu.f(5)',
      { f: '(n) => g(n)', g: '(n) => f(n - 1)' },
      'f → g → f',
      'g',
    ],
    [
      'three, of which two by gpu',
      'gpu.f(5)',
      { f: '(n, gpu) => gpu.g(n)', g: '(n, gpu) => gpu.h(n)', h: '(n) => f(n - 1)' },
      'f → g → h → f',
      'gpu.g',
    ],
  ])('may not call themselves: %s', (_, call, uses, cycle, code) => {
    const error = errorOf(
      `({ y }, gpu) => { y[0] = ${call}; }`,
      Object.fromEntries(Object.entries(uses).map(([name, text]) => [name, { text, uses: {} }])),
    );
    expect(error).toEqual({
      what: `A device function cannot call itself: ${cycle}`,
      fix: 'Functions are put in place of their calls: write a loop.',
      code,
    });
  });
  it('and a kernel does not either', () => {
    expect(errorOf('function me({ y }, gpu) { y[0] = 1; me({ y }, gpu); }').what).toBe(
      'A kernel cannot call itself: k → k',
    );
    // Its name on the device is not defined in its body.
    expect(errorOf('({ y }, gpu) => { y[0] = k(1); }').fix).toBe(
      'Give it through uses: { k } and write gpu.k.',
    );
    expect(errorOf('({ y }, gpu) => { y[0] = gpu.k(1); }').fix).toBe(
      'Give it through uses: { k }.',
    );
  });
  it.each([
    ['(v) => { if (v > 0) return 1; }', 'gpu.f gives a value on some paths only'],
    [
      '(v) => { for (;;) { if (v > 0) return 1; else break; } }',
      'gpu.f gives a value on some paths only',
    ],
    ['(a, b, gpu) => a', 'gpu.f takes 2 arguments and gpu, and got 1'],
    [
      '(a, b) => a * b',
      'b is gpu in this call of gpu.f, which gives no argument for it, where a number is needed',
    ],
    ['() => 1', 'gpu.f takes 0 arguments, and got 1'],
    ['(v) => {}', 'gpu.f(y[1]) has no value, where a number is needed'],
    [
      '(v = 1) => v',
      'Parameters of a kernel have no default values: every one is given at the launch',
    ],
  ])('refuses %s', (text, what) =>
    expect(errorOf('({ y }, gpu) => { y[0] = gpu.f(y[1]); }', { f: { text, uses: {} } }).what).toBe(
      what,
    ),
  );
  it('end in a loop that only returns leave', () =>
    expect(
      bodyOf('y[0] = gpu.f(x[0]);', {
        f: { text: '(v) => { while (true) { if (v > 1) return v; v *= 2; } }', uses: {} },
      }),
    ).toContain('y[0] = f_result'));
});

describe('barriers', () => {
  it.each([
    'if (gpu.threadIdx.x < 5) gpu.block.sync()',
    'const first = gpu.threadIdx.x === 0; if (first) { gpu.block.sync() }',
    'if (gpu.lane & 1) y[0] = gpu.block.sum(1)',
    'if (gpu.lane === 0 && y[0] > 1 ? false : gpu.warpIdx === 1) {} else if (gpu.warpIdx === ' +
      '1) gpu.block.any(true)',
    'for (let k = 0; k < 8; k++) { if (gpu.threadIdx.x === 3) break; gpu.block.sync(); }',
    'for (let k = 0; k < 8; k++) { gpu.block.sync(); if (k < 5) { if (gpu.threadIdx.x === 3) ' +
      'break; } }',
    'for (let k = 0; k < 8; k++) { if (gpu.lane > 3) continue; y[0] = gpu.block.sum(1); }',
    'a: for (;;) { for (;;) { if (gpu.lane > 3) break a; if (y[0] > 1) break; } ' +
      'gpu.block.sync(); }',
    'if (gpu.threadIdx.x === 3) gpu.grid.sync()',
  ])('are rejected where not all threads reach them: %s', (code) => {
    expect(errorOf(`({ y }, gpu) => { ${code}; }`).what).toBe(
      'Not all threads of the block reach this barrier: a condition on the way to it ' +
        'depends on the thread',
    );
  });
  it.each([
    'if (y.length > 5) gpu.block.sync()',
    'if (gpu.globalId.x < y.length) gpu.block.sync()',
    'if (gpu.threadIdx.x < 1024) gpu.block.sync()',
    'if (gpu.blockIdx.x === 0) gpu.block.sync()',
    'if (gpu.lane === 0) gpu.warp.sync(1)',
    'if (gpu.threadIdx.x > 20) return; gpu.block.sync()',
    'for (let k = 0; k < 8; k++) { gpu.block.sync(); if (gpu.lane > 3) continue; y[0] = 1; }',
    'for (;;) { if (gpu.lane > 3) break; y[0] = 1; } gpu.block.sync()',
    'for (let k = 0; k < 8; k++) { if (y[0] > 3) break; gpu.block.sync(); }',
  ])('are accepted where all threads may reach them: %s', (code) => {
    expect(wholeOf(`({ y }, gpu) => { ${code}; }`)).toContain('barrier');
  });
  it.each([
    'y[0] = gpu.warp.sum(1)',
    'y[0] = gpu.warp.shuffle(2, 0)',
    'if (gpu.warp.any(x[0] > 0)) y[0] = 1',
    'gpu.warp.sync()',
  ])('of a whole warp are rejected where not all lanes reach them: %s', (code) => {
    for (const test of ['gpu.lane < 5', 'gpu.threadIdx.x !== 7']) {
      const error = errorOf(`({ y, x }, gpu) => { if (${test}) { ${code}; } }`);
      expect(error.what).toBe(
        'Not all lanes of the warp reach this operation: the condition around it depends on the ' +
          'lane',
      );
      expect(error.fix).toContain('pass their mask');
    }
    for (const test of ['gpu.warpIdx === 0', 'gpu.threadIdx.x < 32', 'x[gpu.threadIdx.x] > 0'])
      wholeOf(`({ y, x }, gpu) => { if (${test}) { ${code}; } }`);
  });
  it('with a mask are accepted', () =>
    expect(
      wholeOf(
        '({ y, x }, gpu) => { if (gpu.lane < 5) y[0] = gpu.warp.shuffle(x[gpu.lane], 0, 31); }',
      ),
    ).toContain('31'));
  it('of the grid are rejected where not all blocks reach them', () =>
    expect(errorOf('({ y }, gpu) => { if (gpu.blockIdx.x === 0) gpu.grid.sync(); }').what).toBe(
      'Not all blocks of the grid reach this barrier: a condition on the way to it depends ' +
        'on the block',
    ));
  it('of the grid make the kernel cooperative', () =>
    expect(wholeOf('({ y }, gpu) => { gpu.grid.sync(); }')).toBe('()\ncooperative\nbarrier grid'));
});

describe('gpu', () => {
  it.each([
    ['y[0] = gpu.f16(s_f64)', 'y[0] = narrow.f16(f32(s_f64))'],
    ['y_i32[0] = gpu.i8(s_f32)', 'y_i32[0] = narrow.i8(i32(s_f32))'],
    ['y_i32[0] = gpu.i32(2.7) + gpu.i32(1e300)', 'y_i32[0] = add.i32(2, 2147483647)'],
    ['y_u32[0] = gpu.bits(s_f32)', 'y_u32[0] = bits.u32(s_f32)'],
    ['y[0] = gpu.fromBits(0xff800000)', 'y[0] = bits.f32(4286578688:u32)'],
    ['y_f64[0] = gpu.fromBits(s_u64)', 'y_f64[0] = bits.f64(s_u64)'],
    ['y[0] = gpu.clamp(s_f32, 0, 1)', 'y[0] = min.f32(max.f32(s_f32, 0:f32), 1:f32)'],
    ['y[0] = gpu.fma(s_f32, 2, s_i32)', 'y[0] = fma.f32(s_f32, 2:f32, f32(s_i32))'],
    [
      'y_i32[0] = gpu.popcount(s_u64) + gpu.clz(s_u32)',
      'y_i32[0] = add.i32(popc(s_u64), clz(s_u32))',
    ],
    ['y_u32[0] = gpu.mulhi(s_u32, 3)', 'y_u32[0] = mulhi.u32(s_u32, 3:u32)'],
    [
      'y[0] = gpu.fast.exp(s_f32)',
      `y[0] = approx.ex2(mul.f32(s_f32, ${Math.fround(Math.LOG2E)}:f32))`,
    ],
    ['y[0] = gpu.rsqrt(s_f32)', 'y[0] = div.f32(1:f32, sqrt(s_f32))'],
    ['y[0] = gpu.atomicAdd(y, 1, 2)', 'before: f32 = atomic.add.f32(y[1], 2:f32)\ny[0] = before'],
    ['gpu.atomicCompareExchange(y_i32, 0, 1, 2)', 'before: i32 = atomic.cas.i32(y_i32[0], 1, 2)'],
    [
      'gpu.volatileStore(y, 0, gpu.volatileLoad(y_i32, 1))',
      'seen: i32 = volatile y_i32[1]\nvolatile y[0] = f32(seen)',
    ],
    [
      'gpu.streamingStore(y, 0, gpu.streamingLoad(x, 1))',
      'seen: f32 = streaming x[1]\nstreaming y[0] = seen',
    ],
    [
      'y_u32[0] = gpu.warp.ballot(s_i32, 0xff)',
      'vote: u32 = vote.ballot(ne.i32(s_i32, 0), 255:u32)\ny_u32[0] = vote',
    ],
    ['y_i32[0] = gpu.block.count(s_bool)', 'voted: i32 = barrier.count(s_bool)\ny_i32[0] = voted'],
    ['gpu.fence.block(); gpu.trap()', 'fence block\ntrap'],
    [
      'const s = gpu.warp; y[0] = s.shuffleXor(s_f32, 1)',
      'shuffled: f32 = shuffle.bfly.f32(s_f32, 1, 4294967295:u32)\ny[0] = shuffled',
    ],
    ['y_i32[0] = gpu.warpSize', 'y_i32[0] = 32'],
    ['y_i64[0] = gpu.clock()', 'clock: i64 = clock\ny_i64[0] = clock'],
  ])('%s', (code, tree) => expect(bodyOf(`${code};`)).toBe(tree));

  it.each([
    ['y[0] = gpu.threadidx.x', 'gpu has no threadidx', 'Write gpu.threadIdx.'],
    ['y[0] = gpu.threadIdx.X', 'gpu.threadIdx has no X', 'Write gpu.threadIdx.x.'],
    [
      'y[0] = Date.now()',
      '`Date.now` is not defined in a kernel',
      'gpu.globalTimer() gives nanoseconds, gpu.clock() cycles.',
    ],
    [
      'gpu.unroll(); y[0] = 1',
      'No loop follows this: gpu.unroll()',
      'Write it before the loop, in the same block.',
    ],
    [
      'for (let i = 0; i < 4; i++) { gpu.unroll(4); y[i] = 1 }',
      'No loop follows this: gpu.unroll(4)',
      'Write it before the loop, in the same block.',
    ],
    [
      'if (y[0] > 0) { gpu.unroll(); } for (let i = 0; i < 4; i++) y[i] = 1',
      'No loop follows',
      'Write it before the loop, in the same block.',
    ],
    [
      'gpu.atomicOr(y_f16, 0, 1)',
      'gpu.atomicOr cannot change f16',
      'For floats use gpu.atomicCompareExchange in a loop.',
    ],
    [
      'gpu.atomicOr(y, 0, 1)',
      'gpu.atomicOr cannot change f32',
      'For floats use gpu.atomicCompareExchange in a loop.',
    ],
    [
      'gpu.atomicAdd(y_u8, 0, 1)',
      'gpu.atomicAdd cannot change u8: it is for i16, u16, i32, u32, i64, u64, f16, bf16, f32, f64',
      'Use elements of 16 bits or more for what is changed together.',
    ],
  ])('%s names the alternative', (code, what, fix) => {
    const error = errorOf(`({ y, y_f16, y_u8 }, gpu) => { ${code}; }`);
    expect(error.what).toContain(what);
    expect(error.fix).toBe(fix);
  });

  it('sums a warp by a butterfly, of 32 lanes or fewer', () => {
    expect(
      bodyOf('y[0] = gpu.warp.sum(s_f32);')
        .split('\n')
        .filter((line) => line.includes('shuffle.bfly'))
        .map((line) => /v, (\d+),/.exec(line)![1]),
    ).toEqual(['16', '8', '4', '2', '1', '16', '8', '4', '2', '1']);
  });

  it.each([
    ['gpu.warp.nothing()', 'gpu.warp has no nothing'],
    [
      'gpu.atomicAdd(y[0], 1, 2)',
      'gpu.atomicAdd takes a tensor or an array, its index and a value, and got a number (f32)',
    ],
    [
      'gpu.atomicAnd(y, 0, 2)',
      'gpu.atomicAnd cannot change f32: it is for i16, u16, i32, u32, i64, u64',
    ],
    ['gpu.atomicMax(x, 0, 1)', 'x is an input, and this writes to it: gpu.atomicMax(x, 0, 1)'],
    ['gpu.fast.sin(s_f64)', 'gpu.fast.sin works in f32, and argument 1 is f64'],
    ['gpu.bits(s_i32)', 'gpu.bits takes a float, and got i32'],
    ['gpu.block.sum()', 'gpu.block.sum takes 1 argument, and got 0'],
    ['y[0] = gpu.threadIdx', 'gpu.threadIdx is a group of names, where a number is needed'],
    ['y[0] = gpu.f32', 'gpu.f32 is a function, where a number is needed'],
    ['gpu.atomicAdd(x, 0, 1)', 'x is an input, and this writes to it: gpu.atomicAdd(x, 0, 1)'],
  ])('refuses %s', (code, what) =>
    expect(errorOf(`({ y, x, s_i32, s_f64 }, gpu) => { ${code}; }`).what).toBe(what),
  );

  it('rejects an integer that becomes a float later', () =>
    expect(
      bodyOf('let o = 0; for (let k = 0; k < 2; k++) { y_u32[k] = gpu.bits(o); o = x[k]; }'),
    ).toContain('y_u32[k] = bits.u32(o)'));
});

describe('Math', () => {
  it.each([
    ['Math.max(s_f32, 1, s_i32)', 'max.f32(max.f32(s_f32, 1:f32), f32(s_i32))'],
    ['Math.floor(s_f32)', 'floor(s_f32)'],
    ['Math.trunc(s_i32 / 2)', 'f32(div.i32(s_i32, 2))'],
    ['Math.sqrt(s_i32)', 'sqrt(f32(s_i32))'],
    ['Math.sqrt(4)', '2:f32'],
    ['Math.fround(s_f64)', 'f32(s_f64)'],
    ['Math.imul(s_i32, 0x9e3779b9)', 'f32(mul.i32(s_i32, -1640531527))'],
    ['Math.clz32(s_u32)', 'f32(clz(i32(s_u32)))'],
    ['Math.abs(s_u32)', 'f32(s_u32)'],
    ['Math.PI', `${Math.fround(Math.PI)}:f32`],
    [
      'Math.round(s_f32)',
      'copysign.f32((ge.f32(sub.f32(s_f32, r), 0.5:f32) ? add.f32(r, 1:f32) : r), s_f32)',
    ],
  ])('%s', (code, tree) =>
    expect(bodyOf(`y[0] = ${code};`).split('\n').at(-1)).toBe(`y[0] = ${tree}`),
  );

  it('has no random numbers', () =>
    expect(errorOf('({ y }) => { y[0] = Math.random(); }').fix).toBe(
      'Use a generator that counts, such as Philox: its numbers are the same on every device.',
    ));
});

describe('console', () => {
  it('prints as printf does', () => {
    expect(bodyOf("console.log('a%', s_i32, s_u32, s_i64, s_f32, s_bool, `t`);")).toBe(
      'print "a%% %d %u %lld %g %d t\\n", s_i32, s_u32, s_i64, f64(s_f32), i32(s_bool)',
    );
  });
  it('asserts', () => {
    expect(bodyOf("console.assert(s_i32 < 5, 'too large'); console.assert(true);")).toBe(
      'assert lt.i32(s_i32, 5), "too large"',
    );
    expect(errorOf("({ y }, gpu) => { console.assert(y[0] < 5, 'too large', y[0]); }").what).toBe(
      'console.assert takes 1 to 2 arguments, and got 3',
    );
    expect(errorOf('({ y }) => { console.warn(1); }').what).toBe(
      'console.warn is not supported in a kernel',
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
  ])('%s has a sentence of its own', (code) => {
    const { what, fix } = errorOf(`function ({ y }, gpu) { ${code}; }`);
    expect(what).not.toMatch(/^This is not known/);
    expect(fix).toMatch(/\.$/);
  });
});
