/**
 * Compares tiles of a product of f16 matrices: each variant's TFLOPS and those of cuBLAS.
 *
 *     npx tsx bench/kernels/matmul-variants.ts [side=4096] [orders=nn,nt,tn,tt]
 *
 * Runs the sources, not the built package: the plans are not public. The best go to `PLANS` in
 * src/library/matmul.ts.
 */
import { Device, f16, Tensor } from '../../src/index.js';
import type { KernelTensor } from '../../src/tensor/index.js';
import { matmul, matmulBy } from '../../src/library/matmul.js';
import { sharedBytesOf, threadsOf } from '../../src/library/tensor-core-product.js';
import type { TilePlan } from '../../src/library/tensor-core-product.js';
import { Programs } from '../peers/programs.js';
import { elementBits, prove } from './product-contenders.js';

const SAMPLES = 5;
const PRODUCTS = 20;

const tiles: readonly Omit<TilePlan, 'group' | 'stages'>[] = [
  { rows: 128, columns: 256, depth: 32, warpRows: 64, warpColumns: 64 },
  { rows: 256, columns: 128, depth: 32, warpRows: 64, warpColumns: 64 },
  { rows: 128, columns: 256, depth: 64, warpRows: 64, warpColumns: 64 },
  { rows: 256, columns: 128, depth: 64, warpRows: 64, warpColumns: 64 },
  { rows: 128, columns: 128, depth: 32, warpRows: 64, warpColumns: 64 },
  { rows: 128, columns: 128, depth: 64, warpRows: 64, warpColumns: 64 },
  { rows: 128, columns: 128, depth: 32, warpRows: 64, warpColumns: 32 },
  { rows: 128, columns: 128, depth: 64, warpRows: 32, warpColumns: 64 },
  { rows: 64, columns: 64, depth: 32, warpRows: 32, warpColumns: 32 },
];
const variants: readonly TilePlan[] = tiles.flatMap((tile) =>
  [3, 4, 5].flatMap((stages) => [4, 8, 16].map((group) => ({ ...tile, stages, group }))),
);

const [side = 4096, orders = 'nn'] = [Number(process.argv[2] ?? 4096), process.argv[3] ?? 'nn'];
await using device = await Device.open();
const { stream } = device.core;
const shared = device.properties.sharedMemoryPerBlockOptin;
const flops = 2 * side ** 3;

/** A factor; `turned`: its columns are contiguous. */
async function factor(from: number, turned: boolean): Promise<KernelTensor> {
  const bits = Uint16Array.from({ length: side * side }, (_, i) =>
    elementBits((turned ? (i % side) * side + Math.floor(i / side) : i) + from),
  );
  const tensor = Tensor.of(device.core.alloc(f16, side * side), [side, side]);
  await tensor.writeBits(bits);
  return (turned ? tensor.transpose() : tensor) as unknown as KernelTensor;
}

/** TFLOPS: the median. */
async function measure(make: () => ReturnType<typeof matmulBy>): Promise<number> {
  const op = make();
  const first = await op.runOn(stream);
  prove((await first.read()) as ArrayLike<number>, side);
  first.close();
  const rates: number[] = [];
  for (let k = 0; k < SAMPLES; k++) {
    const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
    stream.record(begin);
    const made = Array.from({ length: PRODUCTS }, () => op.runOn(stream));
    stream.record(end);
    rates.push((flops * PRODUCTS) / ((await begin.elapsed(end)) * 1e9));
    for (const each of made) (await each).close();
    begin.close();
    end.close();
  }
  return rates.sort((a, b) => a - b)[SAMPLES >> 1]!;
}

const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
let best = NaN;
try {
  const { samples } = await (
    await programs.get('cuBLAS')
  ).round(`product ${SAMPLES} ${side} ${side} ${side} ${PRODUCTS}`);
  best = flops / ([...samples].sort((a, b) => a - b)[samples.length >> 1]! * 1e6);
  console.log(`cuBLAS: ${best.toFixed(1)} TFLOPS`);
} catch (error) {
  console.log(`cuBLAS: absent: ${(error as Error).message}`);
}
for (const order of orders.split(',')) {
  const [a, b] = [await factor(0, order[0] === 't'), await factor(7, order[1] === 't')];
  const show = (name: string, rate: number): void => {
    console.log(
      `${order} ${name.padEnd(40)} ${rate.toFixed(1).padStart(7)} TFLOPS  ` +
        `${(rate / best).toFixed(3)} of cuBLAS`,
    );
  };
  show(
    'as matmul chooses',
    await measure(() => matmul(a as never, b as never) as unknown as ReturnType<typeof matmulBy>),
  );
  for (const plan of variants) {
    if (sharedBytesOf(plan) > shared) continue;
    const name =
      `${plan.rows}x${plan.columns}x${plan.depth} by ${plan.warpRows}x${plan.warpColumns}, ` +
      `${plan.stages} stages, groups of ${plan.group}`;
    try {
      show(`${name} (${threadsOf(plan)})`, await measure(() => matmulBy(plan, a, b)));
    } catch (error) {
      console.log(`${order} ${name}: ${(error as Error).message}`);
    }
  }
  a.close();
  b.close();
}
await programs.close();
