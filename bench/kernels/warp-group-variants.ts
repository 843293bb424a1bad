/**
 * Compares tiles of products of f16 matrices by Hopper's warp groups: the time of each variant and
 * that of cuBLAS, which is measured again after every eight of them.
 *
 *     npx tsx bench/kernels/warp-group-variants.ts SHAPES [orders=nn,nt,tn,tt] [PLANS]
 *
 * SHAPES: 4096x4096x4096,16x4096x4096. PLANS, rows:columns:stages:splits:group, of which
 * each part may be several numbers: 128:128,256:4:1:8,16. Without them the plan that matmul
 * chooses is measured. Runs the sources, not the built package: the plans are not public. The best
 * go to `PLANS` in src/library/warp-group-matmul.ts.
 */
import { Device, f16, Tensor } from '../../src/index.js';
import type { KernelTensor } from '../../src/tensor/index.js';
import { matmul, matmulBy } from '../../src/library/matmul.js';
import { planFor } from '../../src/library/warp-group-matmul.js';
import type { WarpGroupPlan } from '../../src/library/warp-group-product.js';
import { Programs } from '../peers/programs.js';
import { elementBits, prove } from './product-contenders.js';

const SAMPLES = 5;

const [shapes = '4096x4096x4096', orders = 'nn', wanted = ''] = process.argv.slice(2);
const NAMES = ['rows', 'columns', 'stages', 'splits', 'group'] as const;
const variants = wanted
  .split(' ')
  .filter((text) => text !== '')
  .flatMap((text) =>
    text
      .split(':')
      .map((part) => part.split(',').map(Number))
      .reduce<number[][]>(
        (all, values) => all.flatMap((some) => values.map((value) => [...some, value])),
        [[]],
      ),
  )
  .map((values) => Object.fromEntries(NAMES.map((name, i) => [name, values[i]])));

await using device = await Device.open();
const { stream } = device.core;

/** A factor; `turned`: its columns are contiguous. */
async function factor(rows: number, columns: number, from: number, turned: boolean) {
  const bits = Uint16Array.from({ length: rows * columns }, (_, i) =>
    elementBits((turned ? (i % rows) * columns + Math.floor(i / rows) : i) + from),
  );
  const tensor = Tensor.of(
    device.core.alloc(f16, rows * columns),
    turned ? [columns, rows] : [rows, columns],
  );
  await tensor.writeBits(bits);
  return (turned ? tensor.transpose() : tensor) as unknown as KernelTensor;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1]!;

const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
for (const shape of shapes.split(',')) {
  const [m, n, k] = shape.split('x').map(Number) as [number, number, number];
  const flops = 2 * m * n * k;
  const products = Math.max(20, Math.min(400, Math.round(4e12 / flops)));
  const cublas = async (): Promise<number> => {
    const { samples } = await (
      await programs.get('cuBLAS')
    ).round(`product ${SAMPLES} ${m} ${n} ${k} ${products}`);
    return median(samples);
  };
  for (const order of orders.split(',')) {
    const a = await factor(m, k, 0, order[0] === 't');
    const b = await factor(k, n, 7, order[1] === 't');
    const out = Tensor.of(device.core.alloc(f16, m * n), [m, n]);
    let best = NaN;
    let count = 0;
    for (const plan of [undefined, ...variants] as (WarpGroupPlan | undefined)[]) {
      if (count++ % 8 === 0) {
        best = await cublas();
        console.log(`${shape} cuBLAS: ${best.toFixed(2)} µs, ${(flops / best / 1e6).toFixed(1)}`);
      }
      const { rows, columns, stages, splits, group } =
        plan ?? planFor(m, n, k, 1, device.properties.multiprocessorCount);
      const name = [rows, columns, stages, splits, group].join(':');
      try {
        const op = (
          plan === undefined
            ? matmul(a as never, b as never, { out: out as never })
            : matmulBy(plan, a, b, { out: out as never })
        ) as ReturnType<typeof matmulBy>;
        await op.runOn(stream);
        if (m === n && n === k) prove((await out.read()) as ArrayLike<number>, m);
        let queued = 0;
        const times: number[] = [];
        for (let i = 0; i < SAMPLES; i++) {
          const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
          stream.record(begin);
          const from = performance.now();
          const made = Array.from({ length: products }, () => op.runOn(stream));
          queued = ((performance.now() - from) * 1000) / products;
          stream.record(end);
          times.push(((await begin.elapsed(end)) * 1000) / products);
          await Promise.all(made);
          begin.close();
          end.close();
        }
        const time = median(times);
        console.log(
          `${shape} ${order} ${name.padEnd(20)}${plan === undefined ? '*' : ' '} ` +
            `${time.toFixed(2).padStart(8)} µs ${(flops / time / 1e6).toFixed(1).padStart(6)} ` +
            `TFLOPS, ${(best / time).toFixed(3)} of cuBLAS's speed, ` +
            `queued in ${queued.toFixed(2)} µs`,
        );
      } catch (error) {
        console.log(`${shape} ${order} ${name}: ${(error as Error).message}`);
      }
    }
    for (const each of [a, b, out]) each.close();
  }
}
await programs.close();
