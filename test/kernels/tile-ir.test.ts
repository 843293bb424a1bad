/**
 * The Tile IR back end of tile kernels. Where NVIDIA's assembler is installed, every case is
 * assembled for two generations of GPUs; where there is none, these tests are skipped. On a GPU,
 * the results are compared with those of the library's own back end.
 *
 * A GPU's machine without the assembler runs what another has exported: both set
 * ASYNC_CUDA_TILEIR_CUBINS to the folder.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CudaCompileError, CudaError, Device, f32, input, output, tileKernel } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import { afterAll, describe, expect, test } from 'vitest';

import { failure, onCpu } from '../core/test-device.js';
import { haveAssembler as found } from './tile-ir-assembler.test-support.js';
import { TILE_IR_CASES } from './tile-ir.test-support.js';

const given = process.env['ASYNC_CUDA_TILEIR_CUBINS'] ?? '';
const folder = given === '' ? mkdtempSync(join(tmpdir(), 'async-cuda-cubins-')) : given;

afterAll(() => {
  if (given === '') rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!found)('assembled', () => {
  const targets = [
    [9, 0],
    [10, 0],
  ] as const;
  const each = TILE_IR_CASES.flatMap((row) => targets.map((target) => [row, target] as const));
  // Each takes the assembler seconds.
  for (const [row, capability] of each)
    test(
      `${row.name} for compute capability ${capability.join('.')}`,
      { tags: 'thorough' },
      async () => {
        const path = await row.kernel('tileir').exportCubin(folder, { capability }, row.lengths);
        // ELF's magic.
        expect(readFileSync(path).subarray(0, 4).toString('latin1')).toBe('\x7fELF');
        expect(path).toMatch(new RegExp(`[0-9a-f]{64}\\.sm_${capability.join('')}\\.cubin$`));
      },
    );
});

describe.skipIf(onCpu || (!found && given === ''))('on a GPU', () => {
  for (const row of TILE_IR_CASES)
    test(`${row.name}: the results of the other back end`, { timeout: 120_000 }, async () => {
      await using device = await Device.open('cuda');
      const results = new Map<string, ArrayLike<number>>();
      for (const backend of ['ptx', 'tileir'] as const) {
        const kernel = row.kernel(backend);
        const made = await kernel(await row.arguments(device));
        for (const name of Object.keys(row.within))
          results.set(`${backend} ${name}`, (await made[name]!.read()) as ArrayLike<number>);
      }
      for (const [name, within] of Object.entries(row.within)) {
        const [expected, got] = [results.get(`ptx ${name}`)!, results.get(`tileir ${name}`)!];
        expect(got.length).toBe(expected.length);
        let most = 0;
        for (let at = 0; at < got.length; at++) {
          const [a, b] = [Number(expected[at]), Number(got[at])];
          most = Math.max(most, Number.isNaN(b) ? Infinity : Math.abs(a - b) / (1 + Math.abs(a)));
        }
        expect(most, name).toBeLessThanOrEqual(within);
      }
      const { backend, registers } = await row.kernel('tileir').report(device, row.lengths);
      expect(backend).toBe('tileir');
      expect(registers).toBeGreaterThan(0);
    });
});

const rows = tileKernel(
  'rows',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => y.store(x.load() - tile.mean(x.load(), 1)),
  { tile: [1, null], backend: 'tileir' },
);

test('the CPU device runs the code of the library', async () => {
  await using device = await Device.open('cpu');
  using x = await device.tensor(f32, [1, 2, 3, 2, 4, 6], [2, 3]);
  using y = (await rows({ x })).y as Tensor<'f32', [2, 3]>;
  expect([...(await y.read())]).toEqual([-1, 0, 1, -2, 0, 2]);
  expect((await rows.report(device, [2, 3])).backend).toBe('ptx');
});

test('a back end that there is not, and tiles that it does not take, are errors', () => {
  const make = (options: object): unknown =>
    tileKernel(
      'k',
      { y: output(f32), x: input(f32) },
      ({ y, x }) => y.store(x.load()),
      options as never,
    );
  expect(() => make({ tile: [1, 64], backend: 'triton' })).toThrow(
    "options.backend: expected 'ptx' or 'tileir', got 'triton'",
  );
  expect(() => make({ tile: [1, 100], backend: 'tileir' })).toThrow(
    'options.tile[1]: expected a power of two',
  );
  expect(() => rows.with({ tile: [3, null] })).toThrow('changes.tile[0]: expected a power of two');
});

test('a GPU without the assembler gets an error that says what to install', async () => {
  const before = process.env['ASYNC_CUDA_TILEIRAS'];
  process.env['ASYNC_CUDA_TILEIRAS'] = join(folder, 'nowhere');
  try {
    const error = await failure(() => rows.exportCubin(folder, { capability: [8, 9] }, [5, 77]));
    expect(error).toBeInstanceOf(CudaError);
    expect(error.code).toBe('ERR_CUDA_NO_LIBRARY');
    expect(error.message).toContain('pip install nvidia-cuda-tileiras');
    expect(error.message).toContain('ASYNC_CUDA_TILEIRAS');
    expect(error.message).toContain('nowhere: no such file');
  } finally {
    if (before === undefined) delete process.env['ASYNC_CUDA_TILEIRAS'];
    else process.env['ASYNC_CUDA_TILEIRAS'] = before;
  }
});

test('a GPU that Tile IR is not assembled for is an error', async () => {
  const error = await failure(() => rows.exportCubin(folder, { capability: [7, 5] }, [2, 3]));
  expect(error.code).toBe('ERR_CUDA_UNSUPPORTED');
  expect(error.message).toContain('compute capabilities 8.0 and newer');
});

test('an exact product is an error that names the place', async () => {
  const exact = tileKernel(
    'exact',
    { c: output(f32), a: input(f32), b: input(f32) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k'))
        sum = tile.dot(a.load(part), b.load(part), sum, { precision: 'exact' });
      c.store(sum);
    },
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
      tile: { m: 64, n: 64, k: { walk: 32 } },
      backend: 'tileir',
    },
  );
  const lengths = { m: 64, n: 64, k: 64 };
  const error = await failure(() => exact.exportCubin(folder, { capability: [9, 0] }, lengths));
  expect(error).toBeInstanceOf(CudaCompileError);
  expect(error.message).toContain('Tile IR does not determine the order');
  expect((error as CudaCompileError).place?.file).toContain('tile-ir.test.ts');
});

test('a program of the wrong kind is an error with its message', async () => {
  const before = process.env['ASYNC_CUDA_TILEIRAS'];
  process.env['ASYNC_CUDA_TILEIRAS'] = process.execPath;
  try {
    const error = await failure(() => rows.exportCubin(folder, { capability: [8, 6] }, [5, 78]));
    expect(error).toBeInstanceOf(CudaCompileError);
    expect(error.message).toContain('assembler refused this kernel');
    expect(error.message).toContain('bad option');
    expect((error as CudaCompileError).place?.file).toContain('tile-ir.test.ts');
  } finally {
    if (before === undefined) delete process.env['ASYNC_CUDA_TILEIRAS'];
    else process.env['ASYNC_CUDA_TILEIRAS'] = before;
  }
});
