/** The nodes of the tree for tensors, structures and arrays. */
import { describe, expect, it } from 'vitest';
import { bodyOf, errorOf, wholeOf } from './reading.test-support.js';

const lines = (...of: string[]): string => of.join('\n');

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
