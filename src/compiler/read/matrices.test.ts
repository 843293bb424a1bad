import { describe, expect, it } from 'vitest';
import { readKernel } from './read-kernel.js';
import { bodyOf, errorOf } from './reading.test-support.js';

const inBody = (body: string): string =>
  '(a, gpu) => { const { x, y, y_f16, m } = a; const tile = gpu.shared.f16(64, 8); const f = ' +
  `gpu.local.f16(8), g = gpu.local.f16(4), s = gpu.local.f32(4); ${body} }`;
const refusal = (body: string): { what: string; fix: string; code: string } =>
  errorOf(inBody(body));

describe('operations on matrices', () => {
  it('take arrays and rows of them', () => {
    expect(
      bodyOf(
        'const f = gpu.local.bf16(2, 8), g = gpu.local.bf16(4), s = gpu.local.f32(3, 5, 4); ' +
          'gpu.warp.mma(s[i][2], f[1], g);',
      ),
    ).toContain(
      'product m16n8k16 bf16 local2[add.i32(mul.i32(i, 20), mul.i32(2, 4)) +4], ' +
        'local0[mul.i32(1, 8) +8], local1[0 +4]',
    );
    expect(
      bodyOf(
        'const tile = gpu.shared.f16(64, 8), f = gpu.local.f16(2, 4); ' +
          'gpu.warp.loadMatricesTransposed(f[1], tile[i], 0);',
      ),
    ).toContain('load transposed local1[mul.i32(1, 4) +4] from shared0[add.i32(mul.i32(i, 8), 0)]');
  });

  it('copies name elements of both, and their number', () => {
    expect(
      bodyOf(
        'const tile = gpu.shared.f32(64); gpu.async.copy(tile, i * 4, x, i, 4, 64 - i); ' +
          'gpu.async.commit(); gpu.async.wait(2);',
      ),
    ).toContain('copy 4 shared0[mul.i32(i, 4)] from x[i] given sub.i32(64, i)\ncommit\nwait 2');
    expect(
      bodyOf('const tile = gpu.dynamicShared.f32(); gpu.async.copy(tile, i * 4, m[i], 4, 2);'),
    ).toContain('copy 2 dynamic0[mul.i32(i, 4)] from m[');
  });
});

describe('what they reject, with what to write', () => {
  it.each([
    [
      'gpu.warp.mma(s, f, f)',
      'f',
      'Argument 3 of gpu.warp.mma (b) has 8 elements in each lane, and takes 4 beside an a of 8',
      'gpu.local.f16(4)',
    ],
    [
      'gpu.warp.mma(s, g, g)',
      'g',
      '(b) has 4 elements in each lane, and takes 2 beside an a of 4',
      'gpu.local.f16(2)',
    ],
    [
      'gpu.warp.mma(gpu.local.f32(8), f, g)',
      'gpu.local.f32(8)',
      '(sum) has 8 elements in each lane, and takes 4',
      'gpu.local.f32(4)',
    ],
    [
      'gpu.warp.mma(s, gpu.local.f16(6), g)',
      'gpu.local.f16(6)',
      '(a) has 6 elements in each lane, and takes 8 (16 × 16) or 4 (16 × 8)',
      'gpu.local.f16(8)',
    ],
    [
      'gpu.warp.mma(f, f, g)',
      'f',
      'sums in f32, and argument 1 is an array of f16',
      'gpu.local.f32(4)',
    ],
    [
      'gpu.warp.mma(s, gpu.local.f32(8), g)',
      'gpu.local.f32(8)',
      'multiplies f16 or bf16, and argument 2 is an array of f32',
      'gpu.warp.mmaTf32',
    ],
    [
      'gpu.warp.mma(s, f, gpu.local.bf16(4))',
      'gpu.local.bf16(4)',
      'its factors are f16 and bf16',
      'Declare both as f16',
    ],
    [
      'gpu.warp.mmaTf32(s, f, g)',
      'f',
      'multiplies f32, and argument 2 is an array of f16',
      'gpu.local.f32(4)',
    ],
    ['gpu.warp.mma(s, tile[0], g)', 'tile[0]', 'lies in shared memory', 'gpu.warp.loadMatrices'],
    [
      'gpu.warp.mma(s, gpu.local.f16(2, 8), g)',
      'gpu.local.f16(2, 8)',
      'has 2 axes',
      'an index for each axis but the last',
    ],
    ['gpu.warp.mma(s, 3, g)', '3', 'has to be the left factor', 'gpu.local.f16(8)'],
    [
      'gpu.warp.loadMatrices(s, tile[0], 0)',
      's',
      'takes elements of 16 bits, and argument 1 is an array of f32',
      'gpu.local.f16',
    ],
    [
      'gpu.warp.loadMatrices(gpu.local.f16(6), tile[0], 0)',
      'gpu.local.f16(6)',
      'takes 1, 2 or 4 matrices',
      'gpu.local.f16(8)',
    ],
    [
      'gpu.warp.loadMatrices(gpu.local.bf16(8), tile[0], 0)',
      'tile[0]',
      'reads f16 into an array of bf16',
      'Declare both as bf16',
    ],
    [
      'gpu.warp.loadMatrices(f, y_f16, 0)',
      'y_f16',
      'has to be a shared array',
      'gpu.dynamicShared',
    ],
    [
      'gpu.warp.loadMatrices(f, g, 0)',
      'g',
      'is a local array, and has to be a shared array',
      'gpu.shared.f16(LENGTH)',
    ],
    [
      'gpu.async.copy(tile[0], 0, x, 0, 4)',
      'x',
      'the tensor has elements of f32, the shared array of f16',
      'as f32',
    ],
    [
      'gpu.async.copy(tile[0], 0, y_f16, 0, 3)',
      '3',
      '3 elements of f16 are 6',
      'Copy 2 or 4 or 8 elements',
    ],
    ['gpu.async.copy(tile[0], 0, tile[1], 0, 8)', 'tile[1]', 'has to be a tensor', 'tile, i, x, j'],
    ['gpu.async.copy(y_f16, 0, tile[0], 0, 8)', 'y_f16', 'has to be a shared array', 'gpu.shared'],
    [
      'gpu.async.copy(tile[0], 0, y_f16, 0, gpu.lane)',
      'gpu.lane',
      'has to be known when the kernel is compiled',
      'uses',
    ],
    ['gpu.async.wait(gpu.lane)', 'gpu.lane', 'has to be known when the kernel is compiled', 'uses'],
    ['gpu.async.wait(-1)', '-1', 'from 0, and got -1', 'Write 0'],
  ])('%s', (text, code, what, fix) => {
    const error = refusal(`${text};`);
    expect(error.code).toBe(code);
    expect(error.what).toContain(what);
    expect(error.fix).toContain(fix);
  });

  it.each([
    'gpu.lane < 16',
    'gpu.threadIdx.x % 32 === 0',
    'gpu.threadIdx.x === 5',
    'gpu.lane !== 0 && gpu.warpIdx === 0',
  ])('where only some lanes reach them: if (%s)', (test) => {
    for (const call of ['gpu.warp.mma(s, f, g)', 'gpu.warp.loadMatrices(f, tile[0], 0)']) {
      expect(refusal(`if (${test}) { ${call}; }`)).toMatchObject({
        code: call,
        what: expect.stringContaining('Not all lanes of the warp reach this operation') as string,
      });
    }
  });

  it.each([
    'gpu.warpIdx < 2',
    'gpu.threadIdx.x < 64',
    'gpu.threadIdx.x / 32 % 2 === 1',
    'x[gpu.blockIdx.x] > 0',
  ])('but not where whole warps do: if (%s)', (test) => {
    readKernel({
      name: 'k',
      uses: {},
      indexType: 'i32',
      text: inBody(`if (${test}) gpu.warp.mma(s, f, g); y[gpu.lane] = s[0];`),
      signature: Object.fromEntries(
        (['x', 'y', 'y_f16', 'm'] as const).map((name) => [
          name,
          {
            kind: 'tensor',
            element: { storage: name === 'y_f16' ? 'f16' : 'f32' },
            access: 'inout',
            rank: 1,
          },
        ]),
      ),
    });
  });
});
