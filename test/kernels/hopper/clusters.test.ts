/** Instructions of clusters and matrices in shared memory, in kernels of threads. */
import { Device, f16, f32, input, kernel, output } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { failure, onCpu, range } from '../../core/test-device.js';
import { hopperOptions, openHopper } from './hopper-device.js';
import { testDevice } from '../../core/test-device.js';

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());
beforeEach(({ skip }) => {
  if (found === undefined) skip('SKIPPED: the GPU is of another generation');
});

/** Each of two blocks copies half of the lines for both, and writes all of them. */
const both = kernel(
  'both',
  { out: output(f16, 3), a: input(f16, 2) },
  ({ out, a }, gpu) => {
    const lines = gpu.dynamicShared.f16(64, 64);
    const full = gpu.shared.u64(1);
    const { rank } = gpu.cluster;
    if (gpu.threadIdx.x === 0) {
      gpu.barrier.init(full, 0, 1);
      gpu.fence.barriers();
      gpu.barrier.expect(full, 0, 64 * 128);
    }
    gpu.cluster.sync();
    if (gpu.threadIdx.x === 0)
      gpu.tensor.multicast(3, lines, rank * 32, 32, a, full, 0, rank * 32, 0);
    gpu.barrier.wait(full, 0, 0);
    for (let i = gpu.threadIdx.x; i < 4096; i += 128) {
      const [line, column] = [i >> 6, i & 63];
      out[rank]![line]![column] = lines[line]![(((column >> 3) ^ (line & 7)) << 3) | (column & 7)]!;
    }
    gpu.cluster.sync();
  },
  { block: 128 },
);

test.each([false, true])('a copy to each block of a cluster, checked: %s', async (check) => {
  if (check && !onCpu) return;
  await using own = check
    ? await Device.open(testDevice, { ...hopperOptions, check: true })
    : undefined;
  const on = own ?? device;
  const values = range(4096).map((i) => i % 2039);
  using a = await on.tensor(f16, values, [64, 64]);
  using out = await on.zeros(f16, [2, 64, 64]);
  await both({ out, a }, { grid: 2, cluster: 2, sharedBytes: 8192 });
  expect([...(await out.read())]).toEqual([...values, ...values]);
});

const sums = kernel(
  'sums',
  { out: output(f32), x: input(f32) },
  ({ out, x }, gpu) => {
    const own = gpu.shared.f32(512);
    for (let i = 0; i < 4; i++)
      own[gpu.threadIdx.x * 4 + i] = x[gpu.blockIdx.x * 512 + gpu.threadIdx.x * 4 + i]!;
    gpu.cluster.sync();
    const part = gpu.local.f32(4);
    let sum = 0;
    for (let rank = 0; rank < 4; rank++) {
      gpu.cluster.load(part, own, gpu.threadIdx.x * 4, rank);
      for (let i = 0; i < 4; i++) sum += part[i]!;
    }
    out[gpu.blockIdx.x * 128 + gpu.threadIdx.x] = sum;
    gpu.cluster.sync();
  },
  { block: 128 },
);

test('reads of the other blocks of a cluster', async () => {
  const values = range(2048).map((i) => i % 101);
  using x = await device.tensor(f32, values);
  using out = await device.zeros(f32, [512]);
  await sums({ out, x }, { grid: 4, cluster: 4 });
  const wanted = range(128).map((thread) =>
    range(16).reduce((sum, i) => sum + values[(i >> 2) * 512 + thread * 4 + (i & 3)]!, 0),
  );
  expect([...(await out.read())]).toEqual(range(4).flatMap(() => wanted));
});

const stored = kernel(
  'stored',
  { out: output(f16), x: input(f16) },
  ({ out, x }, gpu) => {
    const tile = gpu.shared.f16(16, 16);
    const source = gpu.shared.f16(256);
    for (let i = gpu.lane; i < 256; i += 32) source[i] = x[i]!;
    gpu.warp.sync();
    const four = gpu.local.f16(8);
    gpu.warp.loadMatrices(four, source, (gpu.lane & 15) * 16 + (gpu.lane >> 4) * 8);
    gpu.warp.storeMatrices(tile[gpu.lane & 15]!, (gpu.lane >> 4) * 8, four);
    gpu.warp.sync();
    for (let i = gpu.lane; i < 256; i += 32) out[i] = tile[i >> 4]![i & 15]!;
  },
  { block: 32 },
);

test('matrices that are written as they were read', async () => {
  const values = range(256);
  using x = await device.tensor(f16, values);
  using out = await device.zeros(f16, [256]);
  await stored({ out, x }, { grid: 1 });
  expect([...(await out.read())]).toEqual(values);
});

test('copies to a tensor whose rows are no whole units are refused', async () => {
  const write = kernel(
    'write',
    { out: output(f16, 2) },
    ({ out }, gpu) => {
      const lines = gpu.dynamicShared.f16(8, 64);
      if (gpu.threadIdx.x === 0) {
        gpu.tensor.store(out, lines, 0, 8, 0, 0);
        gpu.tensor.commit();
        gpu.tensor.wait(0);
      }
    },
    { block: 32 },
  );
  using whole = await device.zeros(f16, [8, 64]);
  const view = whole.slice(null, [0, 12]) as unknown as typeof whole;
  const error = await failure(async () => {
    await write({ out: view }, { grid: 1, sharedBytes: 1024 });
  });
  expect(error.message).toContain('its rows have 24 bytes, which is no multiple of 16');
  await write({ out: whole }, { grid: 1, sharedBytes: 1024 });
});
