/**
 * Compares forms of a sum, and of kernels that read and write each element once: elements of a
 * thread, threads of a block, blocks of a multiprocessor, and whether caches are bypassed.
 *
 *     npx tsx bench/kernels/reduce-variants.ts [elements=67108864] [text in names]
 */
import { Device, Tensor, elementKernel, f32, inout, input, kernel } from '../../src/index.js';
import type { Gpu } from '../../src/index.js';
import { compare } from './variants.js';
import type { Variant } from './variants.js';

interface Floats {
  readonly length: number;
  readonly [index: number]: number;
}

interface SumGpu extends Gpu {
  /** Runs of four elements that a thread reads before it adds. */
  readonly TIMES: number;
  readonly STREAMING: boolean;
  /**
   * Whether a block reads contiguous elements, or all blocks stride through the elements together.
   */
  readonly APART: boolean;
}

/** For a multiple of all threads' elements. */
const sums = (
  { out, x }: { out: Record<number, number> & { readonly length: number }; x: Floats },
  gpu: SumGpu,
): void => {
  const values = gpu.local.f32(4 * gpu.TIMES);
  const parts = gpu.local.f32(4);
  const units = x.length / 4;
  const each = gpu.blockDim.x * gpu.TIMES;
  const chunk = units / gpu.gridDim.x;
  const end = gpu.APART ? (gpu.blockIdx.x + 1) * chunk : units;
  const step = gpu.APART ? each : each * gpu.gridDim.x;
  for (
    let unit = (gpu.APART ? gpu.blockIdx.x * chunk : gpu.blockIdx.x * each) + gpu.threadIdx.x;
    unit < end;
    unit += step
  ) {
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++)
        values[j * 4 + k] = gpu.STREAMING
          ? gpu.streamingLoad(x, (unit + j * gpu.blockDim.x) * 4 + k)
          : x[(unit + j * gpu.blockDim.x) * 4 + k]!;
    }
    gpu.unroll(gpu.TIMES);
    for (let j = 0; j < gpu.TIMES; j++) {
      for (let k = 0; k < 4; k++) parts[k] = parts[k]! + values[j * 4 + k]!;
    }
  }
  const sum = gpu.block.sum(parts[0]! + parts[1]! + (parts[2]! + parts[3]!));
  if (gpu.threadIdx.x === 0) gpu.atomicAdd(out, 0, sum);
};

interface EachGpu extends Gpu {
  readonly TIMES: number;
  readonly STREAMING: boolean;
}

/** For a multiple of a block's elements. */
const each = (
  { y, x }: { y: Record<number, number> & { readonly length: number }; x: Floats },
  gpu: EachGpu,
): void => {
  const left = gpu.local.f32(4 * gpu.TIMES);
  const right = gpu.local.f32(4 * gpu.TIMES);
  const first = gpu.blockIdx.x * (gpu.blockDim.x * gpu.TIMES) + gpu.threadIdx.x;
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    for (let k = 0; k < 4; k++)
      left[j * 4 + k] = gpu.STREAMING
        ? gpu.streamingLoad(x, (first + j * gpu.blockDim.x) * 4 + k)
        : x[(first + j * gpu.blockDim.x) * 4 + k]!;
  }
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    for (let k = 0; k < 4; k++)
      right[j * 4 + k] = gpu.STREAMING
        ? gpu.streamingLoad(y, (first + j * gpu.blockDim.x) * 4 + k)
        : y[(first + j * gpu.blockDim.x) * 4 + k]!;
  }
  gpu.unroll(gpu.TIMES);
  for (let j = 0; j < gpu.TIMES; j++) {
    for (let k = 0; k < 4; k++) {
      const value = 2.5 * left[j * 4 + k]! + right[j * 4 + k]!;
      if (gpu.STREAMING) gpu.streamingStore(y, (first + j * gpu.blockDim.x) * 4 + k, value);
      else y[(first + j * gpu.blockDim.x) * 4 + k] = value;
    }
  }
};

/** As in `typescript.ts`. */
const reduce = kernel('reduce', { out: inout(f32), x: input(f32) }, ({ out, x }, gpu) => {
  let total = 0;
  for (let i = gpu.globalId.x; i < x.length; i += gpu.globalSize.x) total += x[i]!;
  total = gpu.block.sum(total);
  if (gpu.threadIdx.x === 0) gpu.atomicAdd(out, 0, total);
});
const saxpyOfElements = elementKernel(
  'saxpy',
  { y: inout(f32), a: f32, x: input(f32) },
  ({ y, a, x }) => a * x + y,
);

type Made = (
  args: unknown,
  options?: unknown,
) => { runOn(on: Device['core']['stream']): PromiseLike<unknown> };

const N = Number(process.argv[2] ?? 64 * 2 ** 20);
const wanted = process.argv[3] ?? '';
await using device = await Device.open();
const { core } = device;
const { stream } = core;
const multiprocessors = device.kind === 'cuda' ? device.properties.multiprocessorCount : 2;
const [a, b, sum] = [core.alloc(f32, N), core.alloc(f32, N), core.alloc(f32, 1)];
const host = new Float32Array(N).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 8) / 2 ** 24);
const tensors = { x: Tensor.of(a, [N]), y: Tensor.of(b, [N]), out: Tensor.of(sum, [1]) };
await a.write(stream, host);
const exact = host.reduce((total, value) => total + value, 0);

const ofSum = (name: string, op: ReturnType<Made>): Variant => ({
  name,
  launch: () => op.runOn(stream),
  async prove() {
    await sum.fill(stream, 0);
    await op.runOn(stream);
    const [found] = await sum.read(stream);
    if (Math.abs(found! / exact - 1) > 1e-4) throw new Error(`the sum is ${found}, not ${exact}`);
  },
});
const ofEach = (name: string, op: ReturnType<Made>): Variant => ({
  name,
  launch: () => op.runOn(stream),
  async prove() {
    await b.write(stream, host);
    await op.runOn(stream);
    const found = await b.read(stream);
    for (let i = 0; i < N; i++)
      if (Math.abs(found[i]! - 3.5 * host[i]!) > 1e-5)
        throw new Error(`y[${i}] is ${found[i]}, not ${3.5 * host[i]!}`);
  },
});

const ofSums: Variant[] = [
  ofSum(
    'as it is',
    (reduce as unknown as Made)({ out: tensors.out, x: tensors.x }, { grid: 132 * 8, block: 256 }),
  ),
];
for (const [block, times, perMultiprocessor] of [
  [256, 1, 8],
  [256, 2, 8],
  [256, 4, 8],
  [256, 4, 4],
  [256, 8, 4],
  [512, 1, 4],
  [512, 2, 4],
  [512, 4, 4],
  [512, 4, 2],
  [512, 8, 2],
  [1024, 1, 2],
  [1024, 2, 2],
  [1024, 4, 2],
  [1024, 4, 1],
  [128, 4, 16],
  [128, 8, 8],
  [256, 4, 16],
  [256, 4, 32],
  [512, 2, 8],
  [512, 4, 16],
  [1024, 2, 8],
  [256, 8, 32],
  [128, 4, 64],
  [128, 8, 64],
] as const) {
  for (const streaming of [false, true]) {
    // A number of blocks that divides the elements: the power of two above.
    for (const grid of [multiprocessors * perMultiprocessor, 128 * perMultiprocessor]) {
      for (const apart of [false, true]) {
        const blocks = Math.max(1, Math.min(grid, N / (4 * block * times)));
        if (apart && N % (blocks * 4 * block * times) !== 0) continue;
        // Threads read TIMES runs without a check of the bounds.
        if (N % (4 * block * times) !== 0) continue;
        const made = kernel(
          `sum_${block}_${times}`,
          { out: inout(f32), x: input(f32) },
          sums as never,
          { uses: { TIMES: times, STREAMING: streaming, APART: apart } },
        ) as unknown as Made;
        ofSums.push(
          ofSum(
            `sum ${block} x ${times * 4}, ${blocks} ` +
              `blocks${apart ? ', apart' : ''}${streaming ? ', streaming' : ''}`,
            made({ out: tensors.out, x: tensors.x }, { grid: blocks, block }),
          ),
        );
      }
    }
  }
}
const ofSaxpy: Variant[] = [
  ofEach('as it is', (saxpyOfElements as unknown as Made)({ y: tensors.y, a: 2.5, x: tensors.x })),
];
for (const block of [128, 256, 512, 1024]) {
  for (const times of [1, 2, 4]) {
    for (const streaming of [false, true]) {
      const made = kernel(
        `each_${block}_${times}`,
        { y: inout(f32), x: input(f32) },
        each as never,
        { uses: { TIMES: times, STREAMING: streaming } },
      ) as unknown as Made;
      ofSaxpy.push(
        ofEach(
          `each ${block} x ${times * 4}${streaming ? ', streaming' : ''}`,
          made({ y: tensors.y, x: tensors.x }, { grid: N / (4 * block * times), block }),
        ),
      );
    }
  }
}
const named = ({ name }: Variant): boolean => name.includes(wanted);
await compare(device, `sum of ${N} f32`, 4 * N, ofSums.filter(named));
await compare(device, `saxpy of ${N} f32`, 12 * N, ofSaxpy.filter(named));
for (const buffer of [a, b, sum]) buffer.close();
