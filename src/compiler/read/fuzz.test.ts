/** For every text, reading gives a tree or a KernelSourceError whose span lies in its text. */
import * as fc from '../../../test/fast-check.js';
import { describe, expect, it } from 'vitest';
import { KernelSourceError } from '../source-error.js';
import { readKernel } from './read-kernel.js';
import { sourceOf } from './reading.test-support.js';
import { printTree } from './tree-text.test-support.js';
import { checkTree } from './well-typed.test-support.js';
import { scaled } from '../../../test/random-runs.js';

const uses = {
  f: {
    text: '(v, gpu) => { if (v > 0) return gpu.g(v); return 1; }',
    uses: { g: { text: '(v) => v * v', uses: {} } },
  },
  N: 4,
  W: [1, 2.5, 3n],
  on: true,
};

/** Whether the text was read. */
function readsOrSaysWhy(text: string): boolean {
  try {
    const tree = readKernel(sourceOf(text, uses));
    printTree(tree);
    checkTree(tree);
    return true;
  } catch (error) {
    if (!(error instanceof KernelSourceError)) throw error;
    expect(error.what).not.toBe('');
    if (error.span === undefined) return false;
    expect(error.span.start).toBeGreaterThanOrEqual(0);
    expect(error.span.end).toBeGreaterThanOrEqual(error.span.start);
    expect(error.span.end).toBeLessThanOrEqual(error.text.length);
    return false;
  }
}

/** Numbers in the programs below. */
const numbers = fc.constantFrom(
  'x[i]',
  'y[0]',
  'y[k & 3]',
  'i',
  'k',
  'q.x',
  'q.n',
  'p[0].x',
  's_f32',
  's_i64',
  's_u64',
  's_u32',
  's_f64',
  's_bool',
  '0',
  '1',
  '2.5',
  '-1',
  '4294967295',
  '5n',
  'true',
  'gpu.N',
  'gpu.lane',
  'y.length',
  'm[i][1]',
  'tile[i & 3]',
);

const atom = fc.constantFrom(
  'y',
  'x[i]',
  'y[0]',
  'm',
  'm[0]',
  'm[i][k]',
  'p[i]',
  'p[0].x',
  'by',
  'by.n',
  'i',
  'k',
  'q',
  'q.x',
  's_f32',
  's_i64',
  's_u64',
  's_u32',
  's_f64',
  's_bool',
  '0',
  '1',
  '2.5',
  '-1',
  '4294967295',
  '5n',
  'true',
  'void 0',
  '"a"',
  'null',
  'gpu',
  'gpu.N',
  'gpu.W',
  'gpu.W[1]',
  'gpu.on',
  'gpu.lane',
  'gpu.threadIdx',
  'gpu.threadIdx.x',
  'gpu.warp',
  'gpu.local.f32(2, 2)',
  'gpu.shared.i32(4)',
  'tile',
  'tile[1]',
  'Math.PI',
  'Math',
  'args',
  'args.y',
  'y.length',
  'y.shape',
  'm.shape[1]',
  'nothing',
  'constructor',
  'gpu.constructor',
  'Math.toString',
  'y.__proto__',
  'gpu.shared.constructor',
  'console',
);

const expressionsOf = (atoms: fc.Arbitrary<string>) =>
  fc.letrec<{ any: string }>((tie) => {
    const any = tie('any');
    return {
      any: fc.oneof(
        { maxDepth: 4, depthSize: 'small' },
        atoms,
        fc
          .tuple(
            any,
            fc.constantFrom(
              '+',
              '-',
              '*',
              '/',
              '%',
              '**',
              '&',
              '|',
              '^',
              '<<',
              '>>',
              '>>>',
              '<',
              '<=',
              '===',
              '!==',
              '&&',
              '||',
              ',',
            ),
            any,
          )
          .map(([a, op, b]) => `(${a} ${op} ${b})`),
        fc
          .tuple(fc.constantFrom('-', '+', '!', '~', 'void ', '~~'), any)
          .map(([op, a]) => `${op}(${a})`),
        fc.tuple(any, any, any).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
        fc
          .tuple(
            fc.constantFrom('y[0]', 'k', 'q', 'q.x', 'p[0].x', 'p[i]', 'm[0][1]', 'tile[0]'),
            fc.constantFrom('=', '+=', '*=', '>>>=', '&&=', '||='),
            any,
          )
          .map(([a, op, b]) => `(${a} ${op} ${b})`),
        fc.tuple(fc.constantFrom('k++', '--k', 'y[k]++', '++q.x', 'p[0].n--')).map(([a]) => a),
        fc
          .tuple(
            fc.constantFrom(
              'gpu.f',
              'Math.max',
              'Math.floor',
              'Math.hypot',
              'Math.round',
              'Math.imul',
              'gpu.i32',
              'gpu.f16',
              'gpu.bits',
              'gpu.warp.sum',
              'gpu.block.sum',
              'gpu.atomicAdd',
              'gpu.warp.shuffle',
              'console.log',
              'gpu.clamp',
              'gpu.unroll',
            ),
            fc.array(any, { maxLength: 3 }),
          )
          .map(([f, args]) => `${f}(${args.join(', ')})`),
        ...(atoms === numbers
          ? [any.map((a) => `(x[0] > 1 && gpu.f(${a}) > 0 ? k = 1 : k++)`)]
          : [
              fc.tuple(any, any).map(([a, b]) => `${a}[${b}]`),
              any.map((a) => `({ x: ${a}, n: 1 })`),
            ]),
      ),
    };
  }).any;

const expression = fc.oneof(expressionsOf(atom), expressionsOf(numbers));

const statement = fc.letrec<{ any: string }>((tie) => {
  const any = tie('any');
  const block = fc.array(any, { maxLength: 3 }).map((all) => `{ ${all.join(' ')} }`);
  return {
    any: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      expression.map((value) => `${value};`),
      fc
        .tuple(
          fc.constantFrom('let', 'const', 'var'),
          fc.constantFrom('v', 'q', 'k', 'w'),
          expression,
        )
        .map(([kind, name, value]) => `{ ${kind} ${name} = ${value}; y[0] = ${name}; }`),
      fc.tuple(expression, block, block).map(([test, a, b]) => `if (${test}) ${a} else ${b}`),
      fc
        .tuple(expression, expression, block)
        .map(([test, update, body]) => `for (let k = 0; ${test}; ${update}) ${body}`),
      fc.tuple(expression, block).map(([test, body]) => `do ${body} while (${test});`),
      fc
        .tuple(expression, fc.array(fc.tuple(expression, block, fc.boolean()), { maxLength: 3 }))
        .map(
          ([value, cases]) =>
            `switch (${value}) { ` +
            cases
              .map(([test, body, leaves]) => `case ${test}: ${body} ${leaves ? 'break;' : ''} `)
              .join('') +
            'default: }',
        ),
      fc.constantFrom(
        'return;',
        'for (;;) { break; }',
        'a: { break a; }',
        'gpu.block.sync();',
        'var w;',
        'const { x: v } = gpu.threadIdx;',
      ),
    ),
  };
}).any;

describe('reading', () => {
  it('any text gives a tree or an error', { tags: 'random' }, () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: 'binary' }),
          fc.string().map((body) => `({ y }, gpu) => { ${body} }`),
        ),
        (text) => void readsOrSaysWhy(text),
      ),
      { numRuns: 2000 },
    );
  });

  it('any program gives a tree or an error', { tags: 'random' }, () => {
    let read = 0;
    fc.assert(
      fc.property(fc.array(statement, { maxLength: 5 }), (body) => {
        const done = readsOrSaysWhy(
          '(args, gpu) => { const { y, x, m, p, by, s_f32, s_i64, s_u64, s_u32, s_f64, ' +
            's_bool } = args; const i = gpu.globalId.x; let k = 0; let q = { x: 1, n: 2 }; ' +
            `const tile = gpu.shared.f32(4); ${body.join('\n')} }`,
        );
        if (done) read++;
      }),
      { numRuns: 3000 },
    );
    // Most random programs have an error; enough of them must have none.
    expect(read).toBeGreaterThan(scaled(200));
  });

  it('a program with changed characters gives a tree or an error', { tags: 'random' }, () => {
    const text =
      '({ y, x, p }, gpu) => { const i = gpu.globalId.x; let sum = 0; for (let k = 0; k < ' +
      'x.length; k++) { if (x[k] > 1) sum += x[k] * 2; else p[k] = { x: sum, n: 1 }; } y[i] ' +
      '= gpu.warp.sum(sum) + gpu.f(sum); }';
    fc.assert(
      fc.property(
        fc.nat(text.length),
        fc.nat(6),
        fc.string({ maxLength: 3 }),
        (at, cut, put) => void readsOrSaysWhy(text.slice(0, at) + put + text.slice(at + cut)),
      ),
      { numRuns: 3000 },
    );
  });
});
