/**
 * A matrix product in TypeScript with Hopper's instructions: a warp group copies boxes of the
 * factors, two multiply them.
 */
import { Device, f16, f32, i32 } from 'async-cuda';
import { input, kernel, output } from 'async-cuda/kernels';
import type { GpuWith } from 'async-cuda/kernels';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { onCpu } from '../../core/test-device.js';
import { openHopper } from './hopper-device.js';
import { tagsOf } from '../../random-runs.js';
import type { BodyArguments } from '../../../src/kernels/body-types.js';

const STAGES = 3;
const ROWS = 128;
const COLUMNS = 64;
const DEPTH = 64;
const LINES = ROWS + COLUMNS;

/** a: [m][k], b: [n][k], out: [m][n] */
const PARAMS = { out: output(f32, 2), a: input(f16, 2), b: input(f16, 2), k: i32 };
const OPTIONS = { block: 384, uses: { STAGES, ROWS, COLUMNS, LINES } } as const;
const BODY = (
  { out, a, b, k }: BodyArguments<typeof PARAMS>,
  gpu: GpuWith<typeof OPTIONS.uses>,
): void => {
  const lines = gpu.dynamicShared.f16(gpu.STAGES * gpu.LINES, 64);
  const full = gpu.shared.u64(gpu.STAGES);
  const empty = gpu.shared.u64(gpu.STAGES);
  if (gpu.threadIdx.x === 0) {
    for (let s = 0; s < gpu.STAGES; s++) {
      gpu.barrier.init(full, s, 1);
      gpu.barrier.init(empty, s, 2);
    }
    gpu.fence.barriers();
  }
  gpu.block.sync();
  const group = gpu.warpIdx >> 2;
  const row = gpu.blockIdx.y * gpu.ROWS;
  const column = gpu.blockIdx.x * gpu.COLUMNS;
  const steps = (k + 63) >> 6;
  if (group === 0) {
    gpu.group.fewerRegisters(40);
    if (gpu.threadIdx.x === 0) {
      let stage = 0;
      let parity = 1;
      for (let step = 0; step < steps; step++) {
        gpu.barrier.wait(empty, stage, parity);
        gpu.barrier.expect(full, stage, gpu.LINES * 128);
        const line = stage * gpu.LINES;
        gpu.tensor.load(lines, line, gpu.ROWS, a, full, stage, row, step * 64);
        gpu.tensor.load(lines, line + gpu.ROWS, gpu.COLUMNS, b, full, stage, column, step * 64);
        stage++;
        if (stage === gpu.STAGES) {
          stage = 0;
          parity ^= 1;
        }
      }
    }
  } else {
    gpu.group.moreRegisters(232);
    const sums = gpu.local.f32(gpu.COLUMNS / 2);
    let stage = 0;
    let parity = 0;
    let before = 0;
    let step = 0;
    do {
      gpu.barrier.wait(full, stage, parity);
      const line = stage * gpu.LINES;
      gpu.group.begin();
      gpu.unroll();
      for (let part = 0; part < 4; part++)
        gpu.group.mma(
          sums,
          lines,
          line + (group - 1) * 64,
          part * 16,
          lines,
          line + gpu.ROWS,
          part * 16,
        );
      gpu.group.commit();
      gpu.group.wait(1);
      // One thread tells that the whole group has read the stage before.
      if (step > 0 && gpu.threadIdx.x % 128 === 0) gpu.barrier.arrive(empty, before);
      before = stage;
      stage++;
      if (stage === gpu.STAGES) {
        stage = 0;
        parity ^= 1;
      }
      step++;
    } while (step < steps);
    gpu.group.wait(0);
    const thread = gpu.threadIdx.x % 128;
    const r = row + (group - 1) * 64 + (thread >> 5) * 16 + (gpu.lane >> 2);
    const c = column + (gpu.lane % 4) * 2;
    const [m, n] = [out.shape[0]!, out.shape[1]!];
    gpu.unroll();
    for (let i = 0; i < gpu.COLUMNS / 2; i++) {
      const y = r + 8 * ((i >> 1) & 1);
      const x = c + 8 * (i >> 2) + (i & 1);
      if (y < m && x < n) out[y]![x] = sums[i]!;
    }
  }
};

const product = kernel('product', PARAMS, BODY, OPTIONS);

async function run(
  device: Device,
  [m, n, k]: readonly [number, number, number],
  multiply = product,
): Promise<{ got: Float32Array; wanted: Float32Array }> {
  const a = Float32Array.from({ length: m * k }, (_, i) => ((i * 7) % 13) - 6);
  const b = Float32Array.from({ length: n * k }, (_, i) => ((i * 5) % 11) - 5);
  const wanted = new Float32Array(m * n);
  for (let i = 0; i < m; i++)
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let p = 0; p < k; p++) sum += a[i * k + p]! * b[j * k + p]!;
      wanted[i * n + j] = sum;
    }
  using left = await device.tensor(f16, a, [m, k]);
  using right = await device.tensor(f16, b, [n, k]);
  using out = await device.zeros(f32, [m, n]);
  await multiply(
    { out, a: left, b: right, k },
    {
      grid: [Math.ceil(n / COLUMNS), Math.ceil(m / ROWS)],
      sharedBytes: STAGES * LINES * DEPTH * 2,
    },
  );
  return { got: (await out.read()) as Float32Array, wanted };
}

describe.runIf(onCpu)('under the checker', () => {
  test('the product is right', async () => {
    await using device = await Device.open('cpu', { computeCapability: '9.0', check: true });
    const { got, wanted } = await run(device, [128, 64, 320]);
    expect(got).toEqual(wanted);
  });

  /** The same kernel with a piece of its text replaced. */
  const planted = (from: RegExp, to: string): typeof product => {
    const text = BODY.toString();
    expect(text).toMatch(from);
    // eslint-disable-next-line @typescript-eslint/no-implied-eval
    const body = new Function(`return ${text.replace(from, to)}`)() as typeof BODY;
    return kernel('planted', PARAMS, body, OPTIONS);
  };

  test.each([
    ['does not wait for its boxes', /gpu\.barrier\.wait\(full, stage, parity\);/, ''],
    ['releases boxes that it still reads', /gpu\.group\.wait\(1\);/, ''],
  ])('a product that %s', async (_, from, to) => {
    await using device = await Device.open('cpu', { computeCapability: '9.0', check: true });
    await expect(run(device, [128, 64, 512], planted(from, to))).rejects.toMatchObject({
      code: 'ERR_CUDA_CHECK',
      message: expect.stringContaining('race') as string,
    });
  });
});

describe('on a device of compute capability 9.0', () => {
  let device: Device | undefined;
  beforeAll(async () => {
    device = await openHopper();
  });
  afterAll(() => device?.close());

  const SIZES = [
    [128, 64, 512],
    [128, 64, 64],
    [256, 192, 320],
    [100, 40, 72],
    [130, 72, 8],
  ] as const;
  for (const sizes of SIZES)
    test(sizes.join(' × '), { tags: tagsOf(SIZES, sizes, 2) }, async ({ skip }) => {
      if (device === undefined) return skip('the GPU is of another generation');
      const { got, wanted } = await run(device, sizes);
      expect(got).toEqual(wanted);
    });
});
