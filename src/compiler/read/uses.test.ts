/** The nodes of the tree for constants and device functions. */
import { describe, expect, it } from 'vitest';
import { bodyOf, errorOf } from './reading.test-support.js';

const lines = (...of: string[]): string => of.join('\n');

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
  it('are named in the error where a function is missing', () => {
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
