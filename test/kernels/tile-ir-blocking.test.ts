/**
 * Tile IR on a thread that blocks: `op.sync()` of a kernel with `{ backend: 'tileir' }`, and the
 * assembler that such a thread starts. A script in the assembler's place shows what is started, on
 * machines that have none.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { CudaError, Device, f16, f32, input, output, tileKernel } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

import { KernelSourceError } from '../../src/compiler/source-error.js';
import { assemblyOf, compiledKernelNow } from '../../src/kernels/compiled-kernels.js';
import { compilerPart } from '../../src/kernels/compiler-parts.js';
import { assemble } from '../../src/kernels/tile-assembler.js';
import { Variant } from '../../src/kernels/variant.js';
import type { CodeForm } from '../../src/kernels/variant.js';
import { failure, onCpu } from '../core/test-device.js';
import { haveAssembler } from './tile-ir-assembler.test-support.js';

const folder = mkdtempSync(join(tmpdir(), 'async-cuda-assembler-'));
beforeAll(async () => {
  // Otherwise machine code that an earlier run left on disk would not be assembled.
  vi.stubEnv('ASYNC_CUDA_CACHE_DISABLE', '1');
  await compilerPart('tileIrKernel');
  await compilerPart('compileError');
});
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const form: CodeForm = {
  index: 'i32',
  aligned: true,
  checks: false,
  block: [1, 1, 1],
  lines: false,
};
const target = { capability: [9, 0] } as const;

/** The kernel y = x + x under a name of its own, so that no test finds the code of another. */
const doubled = (name: string): Variant =>
  new Variant(
    {
      name,
      text: '({ y, x }, tile) => { y.store(x.load() + x.load()); }',
      site: [],
      signature: {
        y: { kind: 'tensor', element: { storage: 'f32' }, access: 'output', rank: 2 },
        x: { kind: 'tensor', element: { storage: 'f32' }, access: 'input', rank: 2 },
      },
      lowering: {
        to: 'tile-ir',
        form: {
          axes: [
            { name: 'rows', tile: 1, cut: 'blocks', divides: true },
            { name: 'columns', tile: 64, cut: 'blocks', divides: false },
          ],
          tensors: {
            y: { axes: [0, 1], strides: ['any', 'one'] },
            x: { axes: [0, 1], strides: ['any', 'one'] },
          },
          broadcast: true,
        },
      },
    },
    {},
  );

/** Runs the body with another program as the assembler. */
function withAssembler<T>(program: string, body: () => T): T {
  const before = process.env['ASYNC_CUDA_TILEIRAS'];
  process.env['ASYNC_CUDA_TILEIRAS'] = program;
  try {
    return body();
  } finally {
    if (before === undefined) delete process.env['ASYNC_CUDA_TILEIRAS'];
    else process.env['ASYNC_CUDA_TILEIRAS'] = before;
  }
}

/** Runs the body with a shell script as the assembler. */
function withScript<T>(script: string, body: () => T): T {
  const program = join(folder, 'tileiras');
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return withAssembler(program, body);
}

test.skipIf(process.platform === 'win32')(
  'it gives the bytecode to the assembler, and takes what that wrote',
  () => {
    // The arguments are those of the target, of optimisation, and the two files.
    const compiled = withScript('test "$2" = sm_90 && cp "$7" "$6"', () =>
      compiledKernelNow(doubled('copied'), form, target),
    )!;
    expect(Buffer.from(compiled.cubin!).toString('base64')).toBe(compiled.bytecode);
    expect(Buffer.from(compiled.cubin!).subarray(1, 7).toString()).toBe('TileIR');
  },
);

test.skipIf(process.platform === 'win32')(
  'what the assembler says where it refuses is in the error',
  async () => {
    const error = await failure(() =>
      withScript('echo "no such tile" >&2; exit 1', () =>
        compiledKernelNow(doubled('refused'), form, target),
      ),
    );
    expect(error.message).toContain('assembler refused this kernel: no such tile');
    expect(error).not.toBeInstanceOf(KernelSourceError);
    expect(error.code).toBe('ERR_CUDA_COMPILE');
  },
);

test('where there is no assembler the error says what to install', async () => {
  const error = await failure(() =>
    withAssembler(join(folder, 'nowhere'), () =>
      compiledKernelNow(doubled('missing'), form, target),
    ),
  );
  expect(error).toBeInstanceOf(CudaError);
  expect(error.code).toBe('ERR_CUDA_NO_LIBRARY');
  expect(error.message).toContain('nowhere: no such file');
});

test.runIf(haveAssembler)(
  'the machine code is that which a thread that awaits gets',
  { timeout: 60_000 },
  async () => {
    const variant = doubled('assembled');
    const compiled = compiledKernelNow(variant, form, target)!;
    const awaited = await assemble(assemblyOf(compiled, variant, form, target));
    expect(Buffer.from(compiled.cubin!).equals(awaited)).toBe(true);
    expect(Buffer.from(awaited).subarray(0, 4).toString('latin1')).toBe('\x7fELF');
  },
);

const product = tileKernel(
  'blocking_product',
  { c: output(f32), a: input(f16), b: input(f16) },
  ({ c, a, b }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
    c.store(sum);
  },
  {
    axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
    tile: { m: 64, n: 64, k: { walk: 64 } },
    backend: 'tileir',
  },
);

// A GPU runs the assembler's code, the CPU device that of the library.
test.skipIf(!onCpu && !haveAssembler)(
  'op.sync() computes a product',
  { timeout: 60_000 },
  async () => {
    await using device = await Device.open(onCpu ? 'cpu' : 'cuda');
    // Sources cannot be loaded by require().
    await compilerPart('readKernel');
    await compilerPart('emitKernel');
    await compilerPart('lowered');
    using a = device.full(f16, [70, 100], 2).sync();
    using b = device.full(f16, [100, 80], 0.5).sync();
    using c = product({ a, b }).sync().c as Tensor<'f32', [70, 80]>;
    const values = c.read().sync();
    expect(values).toHaveLength(70 * 80);
    expect(values.every((value) => value === 100)).toBe(true);
  },
);
