/** Tile kernels that several test files run. */
import { f32, inout, input, output, tileKernel } from 'async-cuda';

export const softmax = tileKernel(
  'softmax',
  { y: output(f32), x: input(f32) },
  ({ y, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    y.store(e / tile.sum(e, 1));
  },
  { tile: [1, null] },
);

export const scaled = tileKernel(
  'scaled',
  { y: inout(f32), x: input(f32), by: f32 },
  (args, tile) => {
    args.y.store(args.y.load() + tile.twice(args.x.load()) * args.by);
  },
  { tile: [8, 32], uses: { twice: (v: number) => v * 2 } },
);

export const columns = tileKernel(
  'columns',
  { most: output(f32), least: output(f32), x: input(f32) },
  ({ most, least, x }, { max, min }) => {
    const v = x.load();
    most.store(max(v, 0));
    least.store(min(v, 0));
  },
  { tile: [null, 16] },
);
