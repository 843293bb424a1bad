/**
 * Compares tiles of a product of f16 matrices by Hopper's warp groups: each variant's TFLOPS and
 * those of cuBLAS, which is measured again after every eight of them.
 *
 *     npx tsx bench/kernels/warp-group-variants.ts [side=4096] [orders=nn,nt] [rows,columns,…]
 *
 * Runs the sources, not the built package: the plans are not public. The best go to `PLANS` in
 * src/library/warp-group-matmul.ts.
 */
import { Device, f16, Tensor } from '../../src/index.js';
import { sharedBytesOf, warpGroupProduct } from '../../src/library/warp-group-product.js';
import type { WarpGroupPlan } from '../../src/library/warp-group-product.js';
import { Programs } from '../peers/programs.js';
import { elementBits, prove } from './matrix-product.js';

const SAMPLES = 5;
const PRODUCTS = 20;

const [side = 4096, orders = 'nn', wanted = ''] = [
  Number(process.argv[2] ?? 4096),
  process.argv[3] ?? 'nn',
  process.argv[4] ?? '',
];
const variants: readonly WarpGroupPlan[] = [
  [128, 256],
  [128, 192],
  [128, 128],
  [64, 256],
].flatMap(([rows, columns]) =>
  [3, 4, 5, 6].flatMap((stages) =>
    [1, 2].flatMap((cluster) =>
      [2, 4, 8, 16].map((group) => ({ rows: rows!, columns: columns!, stages, cluster, group })),
    ),
  ),
);

await using device = await Device.open();
const { stream } = device.core;
const shared = device.properties.sharedMemoryPerBlockOptin;
const multiprocessors = device.properties.multiprocessorCount;
const flops = 2 * side ** 3;

/** A factor; `turned`: its columns are contiguous. */
async function factor(from: number, turned: boolean) {
  const bits = Uint16Array.from({ length: side * side }, (_, i) =>
    elementBits((turned ? (i % side) * side + Math.floor(i / side) : i) + from),
  );
  const tensor = Tensor.of(device.core.alloc(f16, side * side), [1, 1, side, side]);
  await tensor.writeBits(bits);
  return tensor;
}

const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
async function cublas(): Promise<number> {
  try {
    const { samples } = await (
      await programs.get('cuBLAS')
    ).round(`product ${SAMPLES} ${side} ${PRODUCTS}`);
    return flops / ([...samples].sort((a, b) => a - b)[samples.length >> 1]! * 1e6);
  } catch (error) {
    console.log(`cuBLAS: absent: ${(error as Error).message}`);
    return NaN;
  }
}

for (const order of orders.split(',')) {
  const [left, right] = [order[0] === 'n', order[1] === 't'];
  const [a, b] = [await factor(0, !left), await factor(7, right)];
  const out = Tensor.of(device.core.alloc(f16, side * side), [1, side, side]);
  let best = NaN;
  let count = 0;
  for (const plan of variants) {
    const { rows, columns, stages, cluster, group } = plan;
    const name = [rows, columns, stages, cluster, group].join();
    const tilesShared = sharedBytesOf(plan) + (rows / 64) * 2 * 64 * 128 + 2048;
    if (tilesShared > shared || !name.startsWith(wanted)) continue;
    if (count++ % 8 === 0) {
      best = await cublas();
      console.log(`cuBLAS: ${best.toFixed(1)} TFLOPS`);
    }
    const launch = warpGroupProduct({
      plan,
      dtype: f16,
      out: f16,
      leftByDepth: left,
      rightByDepth: right,
      copied: true,
    });
    const [down, across] = [Math.ceil(side / rows / cluster), Math.ceil(side / columns)];
    const tiles = down * across;
    const grid = Math.min(Math.floor(multiprocessors / cluster), tiles) * cluster;
    const op = launch(
      {
        ...{ out, a, b, m: side, n: side, k: side, down, across, tiles },
        ...{ inner: 1, outerA: 0, innerA: 0, outerB: 0, innerB: 0 },
      },
      { grid, sharedBytes: sharedBytesOf(plan), ...(cluster > 1 ? { cluster } : {}) },
    );
    try {
      await op.runOn(stream);
      prove(await out.read(), side);
      const rates: number[] = [];
      for (let k = 0; k < SAMPLES; k++) {
        const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
        stream.record(begin);
        const made = Array.from({ length: PRODUCTS }, () => op.runOn(stream));
        stream.record(end);
        rates.push((flops * PRODUCTS) / ((await begin.elapsed(end)) * 1e9));
        await Promise.all(made);
        begin.close();
        end.close();
      }
      const rate = rates.sort((x, y) => x - y)[SAMPLES >> 1]!;
      console.log(
        `${order} ${name.padEnd(18)} ${rate.toFixed(1).padStart(7)} TFLOPS  ` +
          `${(rate / best).toFixed(3)} of cuBLAS`,
      );
    } catch (error) {
      console.log(`${order} ${name}: ${(error as Error).message}`);
    }
  }
  for (const each of [a, b, out]) each.close();
}
await programs.close();
