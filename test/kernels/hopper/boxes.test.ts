/** Tensors whose boxes kernels copy: their maps, views, captures, and tensors without a map. */
import { Device, f16, f32, inout, input, kernel, output } from 'async-cuda';
import type { Tensor } from 'async-cuda/tensor';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { onCpu } from '../../core/test-device.js';
import { openHopper } from './hopper-device.js';

/** Copies boxes of 64 × 64 through shared memory. */
const copy = kernel(
  'copy',
  { out: output(f16, 2), a: input(f16, 2) },
  ({ out, a }, gpu) => {
    const tile = gpu.dynamicShared.f16(64, 64);
    const full = gpu.shared.u64(1);
    const row = gpu.blockIdx.y * 64;
    const column = gpu.blockIdx.x * 64;
    if (gpu.threadIdx.x === 0) {
      gpu.barrier.init(full, 0, 1);
      gpu.fence.barriers();
      gpu.barrier.expect(full, 0, 8192);
      gpu.tensor.load(tile, 0, 64, a, full, 0, row, column);
    }
    gpu.block.sync();
    gpu.barrier.wait(full, 0, 0);
    for (let i = gpu.threadIdx.x; i < 4096; i += gpu.blockDim.x) {
      const line = i >> 6;
      const inLine = i & 63;
      const place = (((inLine >> 3) ^ (line & 7)) << 3) | (inLine & 7);
      const y = row + line;
      const x = column + inLine;
      if (y < out.shape[0]! && x < out.shape[1]!) out[y]![x] = tile[line]![place]!;
    }
  },
  { block: 128 },
);

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());
beforeEach(({ skip }) => {
  if (found === undefined) skip('the GPU is of another generation');
});

const launch = ([m, n]: readonly [number, number]) => ({
  grid: [Math.ceil(n / 64), Math.ceil(m / 64)] as const,
  sharedBytes: 8192,
});

async function made(m: number, n: number): Promise<Tensor<'f16', [number, number]>> {
  return await device.tensor(
    f16,
    Float32Array.from({ length: m * n }, (_, i) => i % 2047),
    [m, n],
  );
}

test(
  'a map belongs to a tensor and its shape, and an old one is made again',
  { tags: 'thorough' },
  async () => {
    // More tensors than one piece of memory has maps; memory is used again for others.
    for (let i = 0; i < 600; i++) {
      const [m, n] = [8 + (i % 13), 64] as const;
      using a = await made(m, n);
      using out = await device.zeros(f16, [m, n]);
      await copy({ out, a }, launch([m, n]));
      if (i % 50 === 0 || i > 590) expect(await out.read()).toEqual(await a.read());
    }
  },
);

test('a view', async () => {
  using a = await made(128, 128);
  const view = a.slice([32, 96], [64, 128]);
  using out = await device.zeros(f16, [64, 64]);
  await copy({ out, a: view }, launch([64, 64]));
  using own = await view.contiguous();
  expect(await out.read()).toEqual(await own.read());
});

test('views of one tensor in turns', async () => {
  const order = [0, 1, 1, 0, 2, 3, 4, 5, 0, 5, 1, 4, 4, 2];
  using a = await made(64, 64 + 8 * Math.max(...order));
  using out = await device.zeros(f16, [64, 64]);
  for (const number of order) {
    await copy({ out, a: a.slice(null, [8 * number, 8 * number + 64]) }, launch([64, 64]));
    using own = await a.slice(null, [8 * number, 8 * number + 64]).contiguous();
    expect(await out.read()).toEqual(await own.read());
  }
});

test('a captured launch makes its map in the graph', async () => {
  using a = await made(64, 64);
  using out = await device.zeros(f16, [64, 64]);
  await using graph = await copy({ out, a }, launch([64, 64])).capture();
  await out.fill(0);
  await graph.replay();
  expect(await out.read()).toEqual(await a.read());
  await a.fill(3);
  await graph.replay();
  expect((await out.read()).every((value) => value === 3)).toBe(true);
  // A launch outside of the graph makes a map of its own.
  await out.fill(0);
  await copy({ out, a }, launch([64, 64]));
  expect((await out.read()).every((value) => value === 3)).toBe(true);
});

test('a tensor whose rows begin anywhere has no map', async () => {
  using a = await made(10, 10);
  using out = await device.zeros(f16, [10, 10]);
  await expect(async () => copy({ out, a }, launch([10, 10]))).rejects.toMatchObject({
    code: 'ERR_CUDA_INVALID_ARGUMENT',
    argument: 'a',
    message: expect.stringMatching(
      /axis 0 has a stride of 20 bytes, which is no positive multiple of 16\. Copy/,
    ) as string,
  });
  using wide = await made(8, 16);
  const transposed = wide.transpose();
  using turned = await device.zeros(f16, [16, 8]);
  await expect(async () =>
    copy({ out: turned, a: transposed as never }, launch([16, 8])),
  ).rejects.toMatchObject({
    message: expect.stringContaining('the elements of its last axis are not adjacent') as string,
  });
});

test.runIf(onCpu)('another device does not compile it, and it is not simulated', async () => {
  await using other = await Device.open('cpu');
  using a = await other.zeros(f16, [64, 64]);
  using out = await other.zeros(f16, [64, 64]);
  await expect(async () => copy({ out, a }, launch([64, 64]))).rejects.toMatchObject({
    code: 'ERR_CUDA_COMPILE',
    message: expect.stringContaining('compute capability 9.0, and this code is for 8.0') as string,
  });
  const data = () => ({ data: new Uint16Array(4096), shape: [64, 64] });
  await expect(
    copy.simulate({ out: data(), a: data() } as never, { grid: 1, sharedBytes: 8192 }),
  ).rejects.toMatchObject({
    code: 'ERR_CUDA_COMPILE',
    message: expect.stringContaining('gpu.barrier.init is not simulated') as string,
  });
});

test('boxes that are added', async () => {
  const addLines = kernel(
    'add_lines',
    { out: inout(f32, 2) },
    ({ out }, gpu) => {
      const tile = gpu.dynamicShared.f32(8, 32);
      tile[gpu.threadIdx.x / 32]![gpu.threadIdx.x % 32] = gpu.threadIdx.x / 32;
      gpu.fence.async();
      gpu.block.sync();
      if (gpu.threadIdx.x === 0) {
        gpu.tensor.add(out, tile, 0, 8, 2, 0);
        gpu.tensor.commit();
        gpu.tensor.wait(0);
      }
    },
    { block: 256 },
  );
  using out = await device.full(f32, [9, 32], 5);
  await addLines({ out }, { grid: 3, sharedBytes: 1024 });
  const rows = Array.from({ length: 9 }, (_, row) => 5 + 3 * Math.max(0, row - 2));
  expect([...(await out.read())]).toEqual(rows.flatMap((row) => Array<number>(32).fill(row)));
});
