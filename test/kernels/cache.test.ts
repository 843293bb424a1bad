/** Compiled kernels are found in memory and on disk, by everything that they depend on. */
import { Device, f32, inout, kernel } from 'async-cuda';
import type { KernelFunction } from 'async-cuda';
import type { TensorParam } from 'async-cuda/kernels';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { compilations } from './stand-in-compiler.js';

vi.mock('../../src/kernels/compiler.js', () => import('./stand-in-compiler.js'));

let folder: string;
let device: Device;
beforeAll(async () => {
  device = Device.of(await openTestDevice());
});
afterAll(() => device.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'async-cuda-kernels-'));
  process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
  compilations.length = 0;
});
afterEach(async () => {
  delete process.env['ASYNC_CUDA_CACHE_DIR'];
  delete process.env['ASYNC_CUDA_CACHE_DISABLE'];
  // A file that no code waits for may still be written.
  await rm(folder, { recursive: true, force: true, maxRetries: 10 });
});

let made = 0;
/** A kernel whose text has never been compiled. */
function fresh(
  use = 0,
): KernelFunction<{ y: TensorParam<'f32', 'inout', 1>; a: typeof f32 }, { K: number | bigint }> {
  return kernel(
    'scale',
    { y: inout(f32), a: f32 },
    ({ y, a }, gpu) => {
      y[gpu.globalId.x] = a * gpu.K;
    },
    { uses: { K: ++made * 100 + use } },
  );
}

const CAPABILITY = { capability: [8, 0] } as const;
const kernels = async (): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.kernel'));
const onDisk = (count: number): Promise<void> =>
  vi.waitFor(async () => {
    expect(await kernels()).toHaveLength(count);
  });

/** As in another process: nothing is in memory. */
async function elsewhere(): Promise<typeof import('../../src/kernels/compiled-kernels.js')> {
  vi.resetModules();
  return import('../../src/kernels/compiled-kernels.js');
}

test('a kernel is compiled once for a target', async () => {
  const scale = fresh();
  const [one, two] = await Promise.all([
    scale.ptx(CAPABILITY),
    scale.with({ sharedBytes: 64 }).ptx(CAPABILITY),
  ]);
  expect(one).toBe(two);
  expect(compilations).toHaveLength(1);
});

test('constants, target, index type, checks and block are part of the key', async () => {
  const scale = fresh();
  await scale.ptx(CAPABILITY);
  await scale.with({ uses: { K: -0 } }).ptx(CAPABILITY);
  await scale.with({ uses: { K: 0 } }).ptx(CAPABILITY);
  await scale.with({ uses: { K: 0n } }).ptx(CAPABILITY);
  await scale.ptx({ capability: [9, 0] });
  await scale.ptx(CAPABILITY, { index: 'i64' });
  await scale.ptx(CAPABILITY, { checks: true });
  await scale.with({ block: 64 }).ptx(CAPABILITY);
  await scale.with({ uses: { K: 0 } }).ptx(CAPABILITY);
  const usual = { index: 'i32', aligned: true, checks: false, block: [256, 1, 1], lines: false };
  const own: unknown = expect.any(Number);
  expect(compilations.map(({ source, form }) => [source.uses['K'], form])).toEqual([
    [own, usual],
    [-0, usual],
    [0, usual],
    [0n, usual],
    [own, usual],
    [own, { ...usual, index: 'i64' }],
    [own, { ...usual, checks: true, lines: true }],
    [own, { ...usual, block: [64, 1, 1] }],
  ]);
});

test('another process finds it on disk, and compiles damaged files anew', async () => {
  const { Variant } = await import('../../src/kernels/variant.js');
  const variant = new Variant(
    { name: 'scale', text: `() => ${++made}`, signature: {}, site: [] },
    {},
  );
  const target = { capability: [8, 0] } as const;
  const form = {
    index: 'i32',
    aligned: true,
    checks: false,
    block: undefined,
    lines: false,
  } as const;
  const first = await (await elsewhere()).compiledKernel(variant, form, target);
  await onDisk(1);
  expect(await (await elsewhere()).compiledKernel(variant, form, target)).toEqual(first);
  expect(compilations).toHaveLength(1);
  const path = join(folder, (await kernels())[0]!);
  const whole = await readFile(path);
  await writeFile(path, whole.subarray(0, whole.length - 1));
  expect(await (await elsewhere()).compiledKernel(variant, form, target)).toEqual(first);
  expect(compilations).toHaveLength(2);
});

test('a thread that blocks finds it in memory, on disk, or compiles it', async () => {
  const { Variant } = await import('../../src/kernels/variant.js');
  const variant = new Variant(
    { name: 'scale', text: `() => ${++made}`, signature: {}, site: [] },
    {},
  );
  const target = { capability: [8, 0] } as const;
  const form = {
    index: 'i32',
    aligned: true,
    checks: false,
    block: undefined,
    lines: false,
  } as const;
  const one = await elsewhere();
  const first = one.compiledKernelNow(variant, form, target);
  expect(first?.entry).toBe('scale');
  expect(one.compiledKernelNow(variant, form, target)).toBe(first);
  expect(await one.compiledKernel(variant, form, target)).toBe(first);
  await onDisk(1);
  expect((await elsewhere()).compiledKernelNow(variant, form, target)).toEqual(first);
  expect(compilations).toHaveLength(1);
});

test('without the disk it is compiled by each process', async () => {
  process.env['ASYNC_CUDA_CACHE_DISABLE'] = '1';
  const scale = fresh();
  await scale.ptx(CAPABILITY);
  expect(await readdir(folder)).toEqual([]);
  process.env['ASYNC_CUDA_CACHE_DISABLE'] = '';
  process.env['ASYNC_CUDA_CACHE_DIR'] = join(folder, 'file', 'below');
  await writeFile(join(folder, 'file'), '');
  await fresh().ptx(CAPABILITY);
  expect(compilations).toHaveLength(2);
});

test('unaligned tensors, and blocks of the call, have code of their own', async () => {
  const scale = fresh();
  using y = await device.ones(f32, [100]);
  await scale({ y, a: 1 });
  await scale({ y: y.slice([4, 8]), a: 1 });
  await scale({ y: y.slice([1, 8]), a: 1 });
  await scale({ y, a: 1 }, { block: 32 });
  await scale({ y, a: 1 }, { block: [32, 1] });
  await scale({ y, a: 1 }, { block: 256 });
  for (let block = 1; block < 12; block++) await scale({ y, a: 1 }, { block });
  expect(compilations.map(({ form: { aligned, block } }) => [aligned, block])).toEqual([
    [true, [256, 1, 1]],
    [false, [256, 1, 1]],
    [true, [32, 1, 1]],
    ...[1, 2, 3, 4, 5, 6, 7].map((block) => [true, [block, 1, 1]]),
    [true, undefined],
  ]);
});

test('a device loads it once', async () => {
  const scale = fresh();
  await using other = Device.of(await openTestDevice());
  await scale.prepare(device);
  await scale.prepare(other);
  await scale.prepare(device);
  expect(compilations).toHaveLength(1);
  using y = await device.ones(f32, [1000]);
  expect(scale({ y, a: 3 }).sync().y).toBe(y);
  expect(new Set(await y.read())).toEqual(new Set([3]));
});
