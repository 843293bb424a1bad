/** Products in JavaScript, and operands with any order of their elements. */
import type { Device } from 'async-cuda';
import type { f32 } from 'async-cuda';
import type { DType } from 'async-cuda/core';
import type { AnyTensor } from 'async-cuda/tensor';

import type { Product } from '../../src/cublas/index.js';

/** Values in the order of rows. */
export interface Values {
  readonly shape: readonly number[];
  readonly data: ArrayLike<number>;
}

const made: AnyTensor[] = [];

/** The tensor, which {@link closeMade} closes. */
export function keep<T extends AnyTensor>(tensor: T): T {
  made.push(tensor);
  return tensor;
}

/** Closes all tensors that were made here. */
export function closeMade(): void {
  for (const tensor of made.splice(0)) tensor.close();
}

/**
 * A tensor whose rows are contiguous, or with `columns` its columns; {@link closeMade} closes it.
 */
export async function matrix(
  device: Device,
  dtype: DType,
  { shape, data }: Values,
  columns = false,
): Promise<AnyTensor> {
  if (!columns)
    return keep(await device.tensor(dtype as typeof f32, [...(data as number[])], [...shape]));
  const [rows, width] = shape.slice(-2) as [number, number];
  const other: number[] = [];
  for (let first = 0; first < data.length; first += rows * width)
    for (let j = 0; j < width; j++)
      for (let i = 0; i < rows; i++) other.push(data[first + i * width + j]!);
  const turned = [...shape.slice(0, -2), width, rows];
  const tensor = keep(await device.tensor(dtype as typeof f32, other, turned));
  return tensor.transpose() as unknown as AnyTensor;
}

/** Small whole numbers, which every dtype has. */
export function numbers(shape: readonly number[], seed: number): Values {
  const size = shape.reduce((product, extent) => product * extent, 1);
  return { shape, data: Array.from({ length: size }, (_, i) => ((i * 7 + seed * 5) % 9) - 4) };
}

/** The parts of a product in JavaScript. */
export interface HostProduct extends Pick<Product, 'alpha' | 'beta' | 'activation'> {
  readonly a: Values;
  readonly b: Values;
  readonly c?: Values;
  readonly bias?: Values;
}

/** The batch of both factors has one axis at most. */
export function multiplied(product: HostProduct): { values: number[]; shape: number[] } {
  const { a, b, c, bias, alpha = 1, beta = c === undefined ? 0 : 1, activation } = product;
  const [m, k] = a.shape.slice(-2) as [number, number];
  const n = b.shape.at(-1)!;
  const batch = Math.max(a.shape.at(-3) ?? 1, b.shape.at(-3) ?? 1);
  const values: number[] = [];
  for (let t = 0; t < batch; t++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        const [ofA, ofB] = [(a.shape.at(-3) ?? 1) > 1 ? t : 0, (b.shape.at(-3) ?? 1) > 1 ? t : 0];
        for (let s = 0; s < k; s++)
          sum += a.data[(ofA * m + i) * k + s]! * b.data[(ofB * k + s) * n + j]!;
        sum = alpha * sum + beta * (c?.data[(t * m + i) * n + j] ?? 0) + (bias?.data[j] ?? 0);
        values.push(activated(sum, activation));
      }
  const isBatched = a.shape.length > 2 || b.shape.length > 2;
  return { values, shape: [...(isBatched ? [batch] : []), m, n] };
}

function activated(x: number, activation: Product['activation']): number {
  if (activation === 'relu') return Math.max(0, x);
  if (activation === 'gelu')
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  return x;
}
