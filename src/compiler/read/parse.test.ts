import { describe, expect, it } from 'vitest';
import { errorOf, wholeOf } from './reading.test-support.js';

const saxpy = `(s_f32: f32, y.pointer, y.length, x.pointer)
i: i32 = globalId.x
if lt.i32(i, y.length)
  y[i] = fma.f32(s_f32, x[i], y[i])`;

describe('the forms that a function can have', () => {
  it.each([
    [
      'an arrow function',
      '({ y, x, s_f32 }, gpu) => { const i = gpu.globalId.x; if (i < y.length) y[i] = s_f32 ' +
        '* x[i] + y[i]; }',
    ],
    [
      'a function',
      'function ({ y, x, s_f32 }, gpu) { const i = gpu.globalId.x; if (i < y.length) y[i] = ' +
        's_f32 * x[i] + y[i]; }',
    ],
    [
      'a function with a name',
      'function body({ y, x, s_f32 }, gpu) { const i = gpu.globalId.x; if (i < y.length) ' +
        'y[i] = s_f32 * x[i] + y[i]; }',
    ],
    [
      'a method',
      'body({ y, x, s_f32 }, gpu) { const i = gpu.globalId.x; if (i < y.length) y[i] = s_f32 ' +
        '* x[i] + y[i]; }',
    ],
    [
      'a method with a computed name',
      '["my body"]({ y, x, s_f32 }, gpu) { const i = gpu.globalId.x; if (i < y.length) y[i] ' +
        '= s_f32 * x[i] + y[i]; }',
    ],
    [
      'names of its own',
      '({ y: out, x: from, s_f32: by }, { globalId }) => { const i = globalId.x; if (i < ' +
        'out.length) out[i] = by * from[i] + out[i]; }',
    ],
    [
      'arguments in one name',
      '(args, gpu) => { const i = gpu.globalId.x; if (i < args.y.length) args.y[i] = ' +
        'args["s_f32"] * args.x[i] + args.y[i]; }',
    ],
    [
      'ES5',
      'function (_a, _b) { "use strict"; var y = _a.y, x = _a.x, s_f32 = _a.s_f32; var ' +
        'globalId = _b.globalId; var i = globalId.x; if (i < y.length) y[i] = s_f32 * x[i] + ' +
        'y[i]; }',
    ],
    [
      'names taken apart in the body',
      '(args, gpu) => { const { y, x, s_f32 } = args; const { globalId: { x: i } } = gpu; if ' +
        '(i < y.length) y[i] = s_f32 * x[i] + y[i]; }',
    ],
    [
      'a name wrapper',
      '__name(({ y, x, s_f32 }, gpu) => { const i = gpu.globalId.x; if (i < y.length) y[i] = ' +
        's_f32 * x[i] + y[i]; }, "body")',
    ],
    [
      'comments around it',
      '/* a */ ({ y, x, s_f32 }, gpu) => { const i = gpu.globalId.x; if (i < y.length) y[i] ' +
        '= s_f32 * x[i] + y[i]; } // b',
    ],
  ])('%s', (_name, text) => expect(wholeOf(text)).toBe(saxpy));

  it('an expression as its body', () => {
    expect(wholeOf('({ y }, gpu) => y[gpu.globalId.x] = 2')).toBe(
      '(y.pointer)\ny[globalId.x] = 2:f32',
    );
    expect(wholeOf('({ y }, gpu) => void (gpu.lane < 3 && (y[0] = 2))')).toBe(
      '(y.pointer)\nif lt.i32(lane, 3)\n  y[0] = 2:f32',
    );
  });

  it('no parameters', () => expect(wholeOf('() => {}')).toBe('()'));
});

describe('what is no kernel', () => {
  it.each([
    ['async () => {}', 'A kernel cannot be async'],
    ['async body() {}', 'A kernel cannot be async'],
    ['function* () {}', 'A kernel cannot be a generator'],
    ['*body() {}', 'A kernel cannot be a generator'],
    ['function () { [native code] }', 'This function has no source text: it is native or bound'],
    ['class {}', "This is not a function that can be read: Unexpected keyword 'class'"],
    ['', 'This is not a function that can be read: Unexpected token'],
    [
      '({ y = 1 }) => {}',
      'Parameters of a kernel have no default values: every one is given at the launch',
    ],
    [
      '(args = {}) => {}',
      'Parameters of a kernel have no default values: every one is given at the launch',
    ],
    ['({ ...rest }) => {}', '... is not supported in a kernel'],
    ['(a, b, c) => {}', 'A kernel has two parameters, its arguments and gpu'],
    ['({}, gpu) => 5', 'A kernel gives no value back: 5'],
    ['() => {}) (() => {}', 'This is not a function that can be read: Unexpected token'],
  ])('%s', (text, what) => expect(errorOf(text).what).toBe(what));

  it('gives the place', () => {
    expect(errorOf('({ y }, gpu) => { y[0] = y[0] + foo; }')).toEqual({
      what: '`foo` is not defined in a kernel: its text is compiled without its surroundings',
      fix: 'Give it through uses: { foo } and write gpu.foo.',
      code: 'foo',
    });
    expect(errorOf('body({ y }, gpu) { y[0] = 1 + foo; }').code).toBe('foo');
  });

  it("names the kernel's form of JavaScript's conversions", () => {
    expect(errorOf('({ y }, gpu) => { y[0] = Number(y[1] > 0); }').fix).toBe(
      'Write gpu.f32(x), gpu.f64(x) or gpu.i32(x).',
    );
    expect(errorOf('({ y }, gpu) => { y[0] = BigInt(3); }').fix).toBe(
      'Write gpu.i64(x) or gpu.u64(x).',
    );
    expect(errorOf('({ y }, gpu) => { if (isNaN(y[0])) y[0] = 0; }').fix).toBe('Write x !== x.');
  });

  it('a source that is nested too deeply, with the place', () => {
    const text = `({ y }) => { y[1] = 2; y[0] = ${'('.repeat(60_000)}1${')'.repeat(60_000)}; }`;
    const error = errorOf(text);
    expect(error.what).toBe('This kernel is nested too deeply to be read');
    expect(error.code).toBe('(');
  });

  it('a statement of very many operators is the place where there are no brackets', () => {
    const text = `({ y }) => { y[1] = 2; y[0] = ${'- '.repeat(60_000)}1; y[2] = 3; }`;
    const error = errorOf(text);
    expect(error.what).toBe('This kernel is nested too deeply to be read');
    expect(error.code!.startsWith('y[0] = - -')).toBe(true);
  });
});
