/** Tile kernels for each back end, with arguments, and how close their results have to be. */
import { bf16, f16, f32, i32, i8, inout, input, output, tileKernel } from 'async-cuda';
import type { Device, Tensor } from 'async-cuda';

type Backend = 'ptx' | 'tileir';
type Arguments = Readonly<Record<string, Tensor | number>>;

export interface TileIrCase {
  readonly name: string;
  /** The kernel; tests call it without types, since each has its own. */
  kernel(backend: Backend): AnyTiles;
  /** Lengths of the axes, by name or as rows and columns. */
  readonly lengths: Readonly<Record<string, number>> | readonly [number, number];
  arguments(device: Device): Promise<Arguments>;
  /** The outputs, and their largest difference from the other back end's, relative to 1 + |x|. */
  readonly within: Readonly<Record<string, number>>;
}

export interface AnyTiles {
  (args: Arguments): PromiseLike<Readonly<Record<string, Tensor>>>;
  exportCubin(folder: string, target: unknown, lengths: unknown): Promise<string>;
  report(device: Device, lengths: unknown): Promise<{ backend: string; registers: number }>;
}

const counted = (length: number): number[] => Array.from({ length }, (_, at) => at);

const random = async (
  device: Device,
  dtype: typeof f32 | typeof f16 | typeof bf16,
  shape: number[],
  seed: number,
): Promise<Tensor> => (await device.randn(dtype as typeof f32, shape, { seed })) as never;

const matmul = (backend: Backend) =>
  tileKernel(
    'matmul',
    { c: output(f16), a: input(f16), b: input(f16) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
      c.store(sum);
    },
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
      tile: { m: 128, n: 128, k: { walk: 64 } },
      backend,
    },
  );

const layer = (backend: Backend) =>
  tileKernel(
    'layer',
    { y: output(bf16), x: input(bf16), w: input(bf16), bias: input(f32) },
    ({ y, x, w, bias }, tile) => {
      let sum = 0;
      for (const part of tile.over('k'))
        sum = tile.dot(x.load(part), tile.transpose(w.load(part)), sum);
      const v = sum + bias.load();
      y.store(v / (1 + Math.exp(-v)));
    },
    {
      axes: { y: ['m', 'n'], x: ['m', 'k'], w: ['n', 'k'], bias: ['n'] },
      tile: { m: 128, n: 128, k: { walk: 64 } },
      backend,
    },
  );

const softmax = (backend: Backend) =>
  tileKernel(
    'softmax',
    { y: output(f32), x: input(f32) },
    ({ y, x }, tile) => {
      const v = x.load();
      const e = Math.exp(v - tile.max(v, 1));
      y.store(e / tile.sum(e, 1));
    },
    { tile: [1, null], backend },
  );

const product = (backend: Backend, name: 'f32' | 'i8') => {
  const dtype = (name === 'f32' ? f32 : i8) as typeof f32;
  return tileKernel(
    `product_${name}`,
    { c: output(f32), a: input(dtype), b: input(dtype) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
      c.store(sum);
    },
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
      tile: { m: 64, n: 64, k: { walk: 32 } },
      backend,
    },
  );
};

const factors = async (
  device: Device,
  dtype: typeof f16,
  [m, n, k]: number[],
): Promise<Arguments> => ({
  a: await random(device, dtype, [m!, k!], 1),
  b: await random(device, dtype, [k!, n!], 2),
});

export const TILE_IR_CASES: readonly TileIrCase[] = [
  {
    name: 'elements',
    kernel: (backend) =>
      tileKernel(
        'elements',
        { y: inout(f32), x: input(f32), n: input(i32), by: f32 },
        ({ y, x, n, by }, tile) => {
          const v = x.load();
          const whole = (n.load() >> 2) % 7;
          let w = v > 0 ? Math.tanh(v) * by : tile.twice(v) + whole;
          w += Math.sin(v) + Math.floor(v) + Math.log(Math.abs(v) + 1) + Math.sqrt(Math.abs(v));
          y.store(y.load() + w);
        },
        { tile: [8, 32], uses: { twice: (v: number) => (v < -1 ? v : v * 2) }, backend },
      ) as unknown as AnyTiles,
    lengths: [33, 100],
    arguments: async (device) => ({
      y: (await device.ones(f32, [33, 100])) as never,
      x: await random(device, f32, [33, 100], 3),
      n: (await device.tensor(i32, counted(3300), [33, 100])) as never,
      by: 3,
    }),
    within: { y: 2e-6 },
  },
  {
    name: 'softmax',
    kernel: (backend) => softmax(backend) as unknown as AnyTiles,
    lengths: [7, 1000],
    arguments: async (device) => ({ x: await random(device, f32, [7, 1000], 4) }),
    within: { y: 2e-6 },
  },
  {
    name: 'softmax of long rows',
    kernel: (backend) =>
      tileKernel(
        'long_softmax',
        { y: output(f32), x: input(f32) },
        ({ y, x }, tile) => {
          let most = -Infinity;
          let sum = 0;
          for (const part of tile.over('columns')) {
            const v = x.load(part);
            const higher = Math.max(most, tile.max(v, 1));
            sum = sum * Math.exp(most - higher) + tile.sum(Math.exp(v - higher), 1);
            most = higher;
          }
          for (const part of tile.over('columns'))
            y.store(Math.exp(x.load(part) - most) / sum, part);
        },
        { tile: [1, { walk: 256 }], backend },
      ) as unknown as AnyTiles,
    lengths: [3, 1000],
    arguments: async (device) => ({ x: await random(device, f32, [3, 1000], 5) }),
    within: { y: 2e-6 },
  },
  {
    name: 'matmul of whole tiles',
    kernel: (backend) => matmul(backend) as unknown as AnyTiles,
    lengths: { m: 256, n: 384, k: 192 },
    arguments: (device) => factors(device, f16, [256, 384, 192]),
    within: { c: 2e-3 },
  },
  {
    name: 'matmul',
    kernel: (backend) => matmul(backend) as unknown as AnyTiles,
    lengths: { m: 200, n: 136, k: 72 },
    arguments: (device) => factors(device, f16, [200, 136, 72]),
    within: { c: 2e-3 },
  },
  {
    name: 'linear layer with an activation',
    kernel: (backend) => layer(backend) as unknown as AnyTiles,
    lengths: { m: 100, n: 256, k: 128 },
    arguments: async (device) => ({
      x: await random(device, bf16, [100, 128], 6),
      w: await random(device, bf16, [256, 128], 7),
      bias: await random(device, f32, [256], 8),
    }),
    within: { y: 1e-2 },
  },
  {
    name: 'product of f32',
    kernel: (backend) => product(backend, 'f32') as unknown as AnyTiles,
    lengths: { m: 70, n: 50, k: 90 },
    arguments: (device) => factors(device, f32 as never, [70, 50, 90]),
    within: { c: 1e-5 },
  },
  {
    name: 'product of i8',
    kernel: (backend) => product(backend, 'i8') as unknown as AnyTiles,
    lengths: { m: 64, n: 64, k: 96 },
    arguments: async (device) => ({
      a: (await device.full(i8, [64, 96], -3)) as never,
      b: (await device.full(i8, [96, 64], 5)) as never,
    }),
    within: { c: 0 },
  },
  {
    name: 'attention',
    kernel: (backend) =>
      tileKernel(
        'attention',
        { out: output(f32), q: input(f16), k: input(f16), v: input(f16), scale: f32 },
        ({ out, q, k, v, scale }, tile) => {
          const queries = q.load();
          let most = -Infinity;
          let weight = 0;
          let sums = 0;
          for (const part of tile.over('keys')) {
            const scores = tile.dot(queries, tile.transpose(k.load(part))) * scale;
            const higher = Math.max(most, tile.max(scores, 1));
            const fade = Math.exp(most - higher);
            const share = Math.exp(scores - higher);
            weight = weight * fade + tile.sum(share, 1);
            sums = tile.dot(share, v.load(part), sums * fade);
            most = higher;
          }
          out.store(sums / weight);
        },
        {
          axes: {
            out: ['heads', 'queries', 'channels'],
            q: ['heads', 'queries', 'channels'],
            k: ['heads', 'keys', 'channels'],
            v: ['heads', 'keys', 'channels'],
          },
          tile: { heads: 1, queries: 64, keys: { walk: 32 }, channels: null },
          backend,
        },
      ) as unknown as AnyTiles,
    lengths: { heads: 2, queries: 70, keys: 100, channels: 64 },
    arguments: async (device) => ({
      q: await random(device, f16, [2, 70, 64], 9),
      k: await random(device, f16, [2, 100, 64], 10),
      v: await random(device, f16, [2, 100, 64], 11),
      scale: 0.125,
    }),
    within: { out: 1e-3 },
  },
  {
    name: 'sums and means',
    kernel: (backend) =>
      tileKernel(
        'sums',
        {
          mean: output(f32),
          least: output(i32),
          turned: output(f32),
          x: input(f32),
          n: input(i32),
        },
        ({ mean, least, turned, x, n }, tile) => {
          mean.store(tile.mean(x.load() + 1, 1));
          least.store(tile.min(n.load(), 1) + tile.sum(n.load(), 1));
          turned.store(tile.transpose(x.load()));
        },
        {
          axes: {
            mean: ['m', 1],
            least: ['m', 1],
            turned: ['c', 'm'],
            x: ['m', 'c'],
            n: ['m', 'c'],
          },
          tile: { m: 16, c: null },
          backend,
        },
      ) as unknown as AnyTiles,
    lengths: { m: 40, c: 50 },
    arguments: async (device) => ({
      x: await random(device, f32, [40, 50], 12),
      n: (await device.tensor(i32, counted(2000), [40, 50])) as never,
    }),
    within: { mean: 1e-6, least: 0, turned: 0 },
  },
];
