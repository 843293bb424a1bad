/**
 * Products of grouped rows and convolutions as contenders. The package is an argument, so that a
 * test runs them from the sources.
 */
import type { Tensor } from 'async-cuda';

import type { Contender } from '../benchmark.js';
import { timed } from './attention-contender.js';
import type { Conditions, Package } from './product-contenders.js';

export { RUNS, SAMPLES } from './attention-contender.js';

/** Rows of bf16 `[ends.at(-1), k]` by matrices `[ends.length, n, k]`, transposed. */
export interface GroupedCase {
  readonly k: number;
  readonly n: number;
  readonly ends: readonly number[];
}

/** Images `[images, side, side, channels]` of bf16, square weights, half of them as padding. */
export interface ConvolutionCase {
  readonly images: number;
  readonly channels: number;
  readonly side: number;
  readonly results: number;
  readonly weights: number;
  readonly stride: number;
}

/** Twice the relative error of bf16, of the result and of the sums of magnitudes. */
const isNear = (got: number, wanted: number, terms: number): boolean =>
  Math.abs(got - wanted) <= 0.01 + 2 ** -7 * Math.abs(wanted) + terms * 2 ** -16;

/** @throws Error where the element is not the sum */
function prove(what: string, got: number, wanted: number, terms: number): void {
  if (!isNear(got, wanted, terms)) throw new Error(`${what} is ${got}, not ${wanted}`);
}

export async function startGrouped(
  { root, library }: Package,
  { device, count }: Conditions,
  { k, n, ends }: GroupedCase,
): Promise<Contender> {
  const m = ends.at(-1)!;
  const normal = <S extends number[]>(shape: S, seed: number) =>
    library.randomNormal(device, root.bf16, shape, { seed });
  const a = await normal([m, k], 1);
  const b = await normal([ends.length, n, k], 2);
  const offsets = root.Tensor.of(device.alloc(root.i32, ends.length), [ends.length]);
  await offsets.write(new Int32Array(ends));
  const out = root.Tensor.of(device.alloc(root.bf16, m * n), [m, n]);
  const op = library.groupedMatmul(a, b.transpose(), offsets, { out });
  const proof = async (out: Tensor<'bf16', number[]>): Promise<void> => {
    for (const [group, end] of ends.entries()) {
      const row = end - 1;
      if (row < (ends[group - 1] ?? 0)) continue;
      const column = (group * 37) % n;
      const [x, y] = (await Promise.all([a.slice(row).read(), b.slice(group, column).read()])) as [
        Float32Array,
        Float32Array,
      ];
      const wanted = x.reduce((sum, value, i) => sum + value * y[i]!, 0);
      const got = (await out.slice(row, [column, column + 1]).read()) as Float32Array;
      prove(`element [${row}][${column}]`, got[0]!, wanted, k);
    }
  };
  return timed(
    device,
    count,
    op as never,
    proof as never,
    [a, b, offsets].map(closing),
    out as never,
  );
}

export async function startConvolution(
  { root, library }: Package,
  { device, count }: Conditions,
  { images, channels, side, results, weights, stride }: ConvolutionCase,
): Promise<Contender> {
  const normal = <S extends number[]>(shape: S, seed: number) =>
    library.randomNormal(device, root.bf16, shape, { seed });
  const x = await normal([images, side, side, channels], 1);
  const w = await normal([results, weights, weights, channels], 2);
  const bias = await normal([results], 3);
  const padding = weights >> 1;
  const extent = Math.floor((side + 2 * padding - weights) / stride) + 1;
  const shape = [images, extent, extent, results];
  const out = root.Tensor.of(
    device.alloc(
      root.bf16,
      shape.reduce((size, each) => size * each, 1),
    ),
    shape,
  );
  const op = library.convolution2d(x, w.permute([0, 3, 1, 2]), {
    ...{ layout: 'NHWC', stride, padding, bias, out },
  });
  const proof = async (out: Tensor<'bf16', number[]>): Promise<void> => {
    const [, height, width] = out.shape as [number, number, number, number];
    for (const [y, z, result] of [
      [0, 0, 0],
      [height - 1, width - 1, results - 1],
      [height >> 1, 1 % width, results >> 1],
    ] as const) {
      const image = images - 1;
      const [given, factors, biases, got] = (await Promise.all([
        x.slice(image).read(),
        w.slice(result).read(),
        bias.read(),
        out.slice(image, y, z).read(),
      ])) as [Float32Array, Float32Array, Float32Array, Float32Array];
      let wanted = biases[result]!;
      for (let r = 0; r < weights; r++)
        for (let s = 0; s < weights; s++) {
          const [row, column] = [y * stride - padding + r, z * stride - padding + s];
          if (row < 0 || row >= side || column < 0 || column >= side) continue;
          for (let c = 0; c < channels; c++)
            wanted +=
              given[(row * side + column) * channels + c]! *
              factors[(r * weights + s) * channels + c]!;
        }
      prove(`element [${y}][${z}][${result}]`, got[result]!, wanted, weights ** 2 * channels);
    }
  };
  return timed(device, count, op as never, proof as never, [x, w, bias].map(closing), out as never);
}

const closing = (tensor: { readonly buffer: { close(): void } }): { close(): void } => ({
  close: () => {
    tensor.buffer.close();
  },
});
