/** Products of matrices. */
import { bf16, f16, f32, f64 } from '../core/index.js';
import type { KernelDType, DType, KernelDTypeName } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import { broadcastAll } from '../tensor/layouts.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { checkTensor, operation } from './operation.js';
import { WIDE_FROM, multiply } from './product.js';
import type { TilePlan } from './tensor-core-product.js';
import type { WarpGroupPlan } from './warp-group-product.js';

/** dtypes of factors. */
export type FactorName = 'f16' | 'bf16' | 'f32' | 'f64';

/** Options of {@link matmul}. */
export interface MatmulOptions<R extends FactorName = FactorName> {
  /**
   * The dtype of the result: f16, bf16 or f32, to which sums are rounded once; f64 for factors of
   * f64. Default: the dtype of the factors.
   */
  readonly dtype?: DType<R>;
  /**
   * An existing contiguous tensor for the result, of its dtype and shape, which is no part of the
   * factors. Its owner closes it. A repeated run of the operation then only queues its launches.
   */
  readonly out?: OrOp<Tensor<R>>;
}

/** The shape of a product of matrices of these shapes; `number[]` for more than two axes. */
export type Multiplied<S extends Shape, T extends Shape> = S extends readonly [
  infer M extends number,
  number,
]
  ? T extends readonly [number, infer N extends number]
    ? [M, N]
    : number[]
  : number[];

/**
 * Multiplies matrices: a `[…, M, K]` and b `[…, K, N]` give a new contiguous tensor `[…, M, N]`.
 * Axes before the last two count matrices, and broadcast. Factors are any views of one dtype. Views
 * of f16 and bf16 are copied first, unless their rows or columns begin at multiples of 16 bytes.
 *
 * f16 and bf16 are multiplied on tensor cores (from compute capability 8.0 on) and summed in f32,
 * 16 products at a time. Results of a GPU and of the CPU device differ by the rounding of these
 * sums: within `K · 2^-22` of the sum of the products' magnitudes. An element of f32 or f64 is one
 * chain of fused multiply-adds in the order of K, with the same bits on every device.
 *
 * @throws CudaArgumentError for fewer than two axes, another dtype, factors whose dtypes or K
 *   differ, axes that do not broadcast; at the call, or when run where operations give the factors
 *
 * @example
 * ```ts
 * using a = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using b = await device.tensor(f32, [5, 6], [2, 1]);
 * using c = await matmul(a, b);
 * console.log(c.shape, (await c.read()).join(' ')); // [ 2, 1 ] 17 39
 * ```
 */
export function matmul<
  D extends FactorName,
  S extends Shape,
  T extends Shape,
  R extends FactorName = D,
>(
  a: OrOp<Tensor<D, S>>,
  b: OrOp<Tensor<NoInfer<D>, T>>,
  options?: MatmulOptions<R>,
): DeviceOp<Tensor<R, Multiplied<S, T>>>;
export function matmul(a: unknown, b: unknown, options: MatmulOptions = {}): unknown {
  return planned(a, b, options, undefined);
}

/** {@link matmul} with a given plan, for measurements and tests. @internal */
export function matmulBy(
  plan: TilePlan | WarpGroupPlan,
  a: OrOp<KernelTensor>,
  b: OrOp<KernelTensor>,
  options: MatmulOptions = {},
): DeviceOp<KernelTensor> {
  return planned(a, b, options, plan) as DeviceOp<KernelTensor>;
}

const FACTORS: readonly KernelDTypeName[] = ['f16', 'bf16', 'f32', 'f64'];
/** dtypes of results whose sums are f32. */
const NARROWER: readonly KernelDType[] = [f16, bf16, f32];

function planned(
  given: unknown,
  other: unknown,
  options: MatmulOptions,
  plan: TilePlan | WarpGroupPlan | undefined,
): unknown {
  checkOptions('options', options, ['dtype', 'out']);
  return operation('matmul', [given, other, options.out], ([a, b, into]) => {
    checkFactor('matmul', 'a', a);
    checkFactor('matmul', 'b', b);
    if (a.dtype !== b.dtype)
      throw invalid(
        'b',
        `a Tensor of ${a.dtype.name}, as a is, for matmul(…)`,
        b,
        `Convert it with convert(${a.dtype.name}).`,
      );
    const dtype = resultDtype(a.dtype, options.dtype);
    const [m, depth] = a.shape.slice(-2) as [number, number];
    const [k, n] = b.shape.slice(-2) as [number, number];
    if (depth !== k) {
      const fix =
        depth === n
          ? ': write matmul(a, b.transpose())'
          : m === k
            ? ': write matmul(a.transpose(), b)'
            : '';
      throw new CudaArgumentError(
        'b',
        `matmul: a has ${depth} columns and b ${k} rows (${showShape(a.shape)}, ` +
          `${showShape(b.shape)}). They have to be as many${fix}.`,
      );
    }
    const shape = [...batchOf(a, b), m, n];
    if (into !== undefined) checkOut('matmul', into, dtype, shape);
    return (work) => {
      const out = into ?? work.result(dtype, shape);
      if (out.size === 0) return out;
      if (k === 0) work.add((out as unknown as Tensor<'f32'>).fill(0));
      else multiply(work, out, a, b, plan);
      return out;
    };
  });
}

export function checkFactor(
  name: string,
  argument: string,
  value: unknown,
): asserts value is KernelTensor {
  checkTensor(name, argument, value);
  if (!FACTORS.includes(value.dtype.name))
    throw invalid(
      argument,
      `a Tensor of ${FACTORS.join(', ')}, for ${name}(…)`,
      value.dtype.name,
      'Convert it with convert(f32).',
    );
  if (value.rank < 2)
    throw invalid(
      argument,
      `at least two axes, for ${name}(…)`,
      value,
      'Make a row of it with unsqueeze(0), or a column with unsqueeze(1).',
    );
  if (value.shape.some((extent) => extent >= WIDE_FROM))
    throw invalid(
      argument,
      `axes of fewer than ${WIDE_FROM} elements, for ${name}(…)`,
      value,
      'Multiply parts of it.',
    );
}

/** @throws CudaArgumentError for another dtype or shape, or a view */
export function checkOut(
  name: string,
  value: unknown,
  dtype: KernelDType,
  shape: readonly number[],
): asserts value is KernelTensor {
  checkTensor(name, 'options.out', value);
  const isOf =
    value.dtype === dtype &&
    value.isContiguous &&
    value.rank === shape.length &&
    value.shape.every((extent, axis) => extent === shape[axis]);
  if (!isOf)
    throw invalid(
      'options.out',
      `a contiguous Tensor of ${dtype.name} and shape ${showShape(shape)}`,
      value,
      'Leave it out, and the result is a new tensor.',
    );
  value.checkWritable('options.out');
}

/** The dtype of a result, by that of the factors and the one that is asked for. */
export function resultDtype(factors: KernelDType, wanted: KernelDType | undefined): KernelDType {
  if (wanted === undefined || wanted === factors) return factors;
  const allowed = factors === f64 ? [f64] : NARROWER;
  if (!allowed.includes(wanted))
    throw invalid(
      'options.dtype',
      `${allowed.map(({ name }) => name).join(', ')}, for factors of ${factors.name}`,
      (wanted as KernelDType | null)?.name ?? wanted,
      'Convert the result with convert(…).',
    );
  return wanted;
}

function batchOf(a: KernelTensor, b: KernelTensor): number[] {
  const shapes = [a.shape.slice(0, -2), b.shape.slice(0, -2)];
  try {
    return broadcastAll(shapes);
  } catch {
    throw new CudaArgumentError(
      'b',
      `matmul: axes before the last two that do not broadcast: a: ${showShape(a.shape)}, b: ` +
        `${showShape(b.shape)}. From the end each of them has to be the same, or 1.`,
    );
  }
}
