/**
 * Products of matrices and linear layers as contenders: by our kernels, and by cuBLASLt through our
 * binding. The package is an argument, so that a test runs them from the sources.
 */
import type * as Root from 'async-cuda';
import type * as Library from 'async-cuda/library';

import type { Contender, Setup } from '../benchmark.js';
import { PeerAbsent } from '../peers/program.js';

/** The package's parts that contenders use. */
export interface Package {
  readonly root: typeof Root;
  readonly library: typeof Library;
}

/** What a contender needs of a benchmark's arguments. */
export type Conditions = Pick<Setup, 'device' | 'count'>;

/**
 * `[m, k] × [k, n]`, both by rows (f8: the second one by columns, and the result is of bf16); or a
 * linear layer of weights `[n, k]`, with bias and gelu.
 */
export interface ProductCase {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly dtype: 'f16' | 'bf16' | 'f8e4m3';
  readonly kind: 'product' | 'layer';
}

export const SAMPLES = 5;

/** Products between two events: some milliseconds, and enough to hide what queueing them takes. */
export function productsOf({ m, n, k }: Pick<ProductCase, 'm' | 'n' | 'k'>): number {
  return Math.max(20, Math.min(400, Math.round(4e12 / (2 * m * n * k))));
}

/**
 * Bits of an element of f16, as in bench/peers/c/cublas.c: of either sign, with magnitudes from 1/2
 * to 1. A GPU's clock depends on the values that it multiplies.
 */
export function elementBits(index: number): number {
  const bits = Math.imul(index + 1, 2654435761);
  return 0x3800 | ((bits >>> 16) & 0x3ff) | ((bits >>> 31) << 15);
}

/** The same of bf16. */
function wideElementBits(index: number): number {
  const bits = Math.imul(index + 1, 2654435761);
  return 0x3f00 | ((bits >>> 16) & 0x7f) | ((bits >>> 31) << 15);
}

/** The same of f8e4m3. */
function smallElementBits(index: number): number {
  const bits = Math.imul(index + 1, 2654435761);
  return 0x30 | ((bits >>> 16) & 0x7) | ((bits >>> 31) << 7);
}

const smallValueOf = (bits: number): number => (bits >> 7 ? -1 : 1) * (0.5 + (bits & 0x7) / 16);
const valueOf = (bits: number): number => (bits >> 15 ? -1 : 1) * (0.5 + (bits & 0x3ff) / 2048);
const wideValueOf = (bits: number): number => (bits >> 15 ? -1 : 1) * (0.5 + (bits & 0x7f) / 256);

const BITS = { f16: elementBits, bf16: wideElementBits, f8e4m3: smallElementBits };
const VALUES = { f16: valueOf, bf16: wideValueOf, f8e4m3: smallValueOf };
/** The relative error of a rounded result, twice. */
const ROUNDING = { f16: 2 ** -10, bf16: 2 ** -7, f8e4m3: 2 ** -7 };
/** The error of a sum, for each element of the common dimension. */
const SUMMING = { f16: 2e-5, bf16: 2e-5, f8e4m3: 2e-4 };
/** Where the second factor and the bias begin in the sequence of elements. */
const SECOND = 7;
const BIAS = 13;

const geluTanh = (x: number): number =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** @throws Error where an element of the result is wrong */
function proveElement(
  { n, k, dtype, kind }: ProductCase,
  row: number,
  column: number,
  got: number,
): void {
  const value = (index: number): number => VALUES[dtype](BITS[dtype](index));
  let sum = 0;
  for (let i = 0; i < k; i++)
    sum +=
      value(row * k + i) *
      value((kind === 'layer' || dtype === 'f8e4m3' ? column * k + i : i * n + column) + SECOND);
  const wanted = kind === 'layer' ? geluTanh(sum + value(column + BIAS)) : sum;
  if (!(Math.abs(got - wanted) <= 0.1 + k * SUMMING[dtype] + ROUNDING[dtype] * Math.abs(wanted)))
    throw new Error(`element [${row}][${column}] of the ${kind} is ${got}, not ${wanted}`);
}

/** @throws Error where an element of a product of square matrices of f16 is wrong */
export function prove(product: ArrayLike<number>, side: number): void {
  const given: ProductCase = { m: side, n: side, k: side, dtype: 'f16', kind: 'product' };
  for (const [row, column] of [
    [1, 3],
    [side - 1, side - 1],
    [side >> 1, 7],
  ] as const)
    proveElement(given, row, column, product[row * side + column]!);
}

/** The product as a user's tile kernel. */
export function tileProduct(
  { tileKernel, input, output, DTYPES }: typeof Root,
  name: 'f16' | 'bf16',
  backend: 'ptx' | 'tileir' = 'ptx',
) {
  const dtype = DTYPES[name as 'f16'];
  return tileKernel(
    'product',
    { c: output(dtype), a: input(dtype), b: input(dtype) },
    ({ c, a, b }, tile) => {
      let sum = 0;
      for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
      c.store(sum);
    },
    {
      axes: { c: ['m', 'n'], a: ['m', 'k'], b: ['k', 'n'] },
      // With 256 columns the assembler's code spills: 3,022 µs instead of 200 (H200, 4096³).
      tile: { m: 128, n: backend === 'ptx' ? 256 : 128, k: { walk: 64 } },
      backend,
    },
  );
}

/**
 * @throws PeerAbsent where cuBLASLt or Tile IR's assembler computes it, and is not there
 */
export async function startProduct(
  { root, library }: Package,
  { device, count }: Conditions,
  given: ProductCase,
  engine: 'own' | 'cublas' | 'tiles' | 'tileir',
): Promise<Contender> {
  const { m, n, k, dtype, kind } = given;
  const { stream } = device;
  const isSmall = dtype === 'f8e4m3';
  const empty = (shape: [number, number] | [number], name: ProductCase['dtype'] = dtype) => {
    const size = shape.reduce((product, extent) => product * extent, 1);
    return root.Tensor.of(device.alloc(root.DTYPES[name], size), shape) as Root.Tensor<
      'f16' | 'bf16',
      number[]
    >;
  };
  const filled = async (shape: [number, number] | [number], from: number) => {
    const tensor = empty(shape);
    const bits = isSmall ? new Uint8Array(tensor.size) : new Uint16Array(tensor.size);
    const bitsOf = BITS[dtype];
    for (let i = 0; i < bits.length; i++) bits[i] = bitsOf(i + from);
    await tensor.writeBits(bits as Uint16Array<ArrayBuffer>);
    return tensor;
  };
  const a = await filled([m, k], 0);
  const b = await filled(kind === 'layer' || isSmall ? [n, k] : [k, n], SECOND);
  const bias = await filled([n], BIAS);
  const out = empty([m, n], isSmall ? 'bf16' : dtype);
  const close = (): Promise<void> => {
    for (const { buffer } of [a, b, bias, out]) buffer.close();
    return Promise.resolve();
  };
  const op: { runOn: (on: typeof stream) => PromiseLike<unknown> } =
    engine === 'tiles' || engine === 'tileir'
      ? tileProduct(
          root,
          dtype as 'f16',
          engine === 'tiles' ? 'ptx' : 'tileir',
        )({ c: out, a, b } as never)
      : kind === 'layer'
        ? library.linear(a, b, { bias, activation: 'geluTanh', engine, out })
        : library.matmul(a, isSmall ? (b.transpose() as typeof b) : b, { engine, out });
  try {
    // Compiles the kernel, or opens the library and makes a plan.
    await op.runOn(stream);
  } catch (error) {
    await close();
    const isAbsent =
      ['cublas', 'tileir'].includes(engine) &&
      ['ERR_CUDA_NO_LIBRARY', 'ERR_CUDA_UNSUPPORTED'].includes((error as { code: string }).code);
    throw isAbsent ? new PeerAbsent((error as Error).message) : error;
  }
  const products = device.kind === 'cpu' ? 1 : productsOf(given);
  return {
    async round() {
      await out.fill(0).runOn(stream);
      await op.runOn(stream);
      for (const row of new Set([1, m >> 1, m - 1])) {
        const values = (await out.slice(row).read()) as ArrayLike<number>;
        for (const column of [3, n >> 1, n - 1]) proveElement(given, row, column, values[column]!);
      }
      const samples: number[] = [];
      for (let turn = 0; turn < count(SAMPLES); turn++) {
        const [begin, end] = [device.createEvent(), device.createEvent()];
        stream.record(begin);
        const queued = Array.from({ length: products }, () => op.runOn(stream));
        stream.record(end);
        samples.push(((await begin.elapsed(end)) * 1000) / products);
        await Promise.all(queued);
        begin.close();
        end.close();
      }
      return { samples };
    },
    close,
  };
}
