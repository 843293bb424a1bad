/** The engines of products of matrices: our kernels, and NVIDIA's cuBLASLt. */
import { bf16, f16, f32, f64, f8e4m3, f8e5m2, i8, u8 } from '../core/index.js';
import type { DType, KernelDType } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { cublasProduct, whyNotCublas } from '../cublas/index.js';
import type { PlannedProduct, Product } from '../cublas/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { OrOp } from '../ops/index.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { AnyTensor, KernelTensor, Tensor } from '../tensor/index.js';
import { NO_SCALES, finishProduct } from './finish.js';
import type { Finish, Scales } from './finish.js';
import { checkTensor } from './operation.js';
import type { Work } from './operation.js';

/** What computes a product: our kernels, or NVIDIA's cuBLASLt. */
export type ProductEngine = 'own' | 'cublas';
/** dtypes of factors of 8 bits. */
export type SmallFactorName = 'f8e4m3' | 'f8e5m2';
/** dtypes of products of factors of 8 bits. */
export type SmallProductName = 'f16' | 'bf16' | 'f32' | SmallFactorName;

/** Scales of factors of 8 bits: tensors of one f32 each. Default of each: 1. */
export interface ProductScales {
  /** The first factor is this times its elements. */
  readonly a?: OrOp<Tensor<'f32'>>;
  /** The second factor is this times its elements. */
  readonly b?: OrOp<Tensor<'f32'>>;
  /** A result of 8 bits is multiplied by this before it is rounded. */
  readonly out?: OrOp<Tensor<'f32'>>;
}

/**
 * How sums of products of floats are computed. `'tensor'`: by tensor cores, where the device has
 * them for the dtype; f32 is then rounded to tf32, towards zero. `'exact'`: each sum is one chain
 * of fused multiply-adds of f32, with the same bits on every device.
 */
export type ProductPrecision = 'tensor' | 'exact';

/** Options of both engines. */
interface EngineOptions {
  readonly engine?: ProductEngine;
  readonly scales?: ProductScales;
  readonly precision?: ProductPrecision;
}

const PRECISIONS: readonly ProductPrecision[] = ['tensor', 'exact'];

const ENGINES: readonly ProductEngine[] = ['own', 'cublas'];
const SCALES = ['a', 'b', 'out'] as const;

/** dtypes that a product of factors of 8 bits may have. */
export const SMALL_PRODUCTS: readonly KernelDType[] = [f16, bf16, f32, f8e4m3, f8e5m2];

/** dtypes of whole factors. */
export type WholeFactorName = 'i8' | 'u8';

export const isWhole = ({ dtype }: KernelTensor): boolean => dtype === i8 || dtype === u8;

export function isSmall({ dtype }: KernelTensor): boolean {
  return dtype === f8e4m3 || dtype === f8e5m2;
}

/**
 * Gives the engine, and the scales as further inputs of the operation.
 *
 * @throws CudaArgumentError for an unknown engine, and for scales that it does not have
 */
export function checkedEngine({ engine = 'own', scales, precision }: EngineOptions): {
  readonly engine: ProductEngine;
  readonly scaling: readonly unknown[];
} {
  if (!(ENGINES as readonly unknown[]).includes(engine))
    throw invalid('options.engine', `one of ${ENGINES.join(', ')}`, engine);
  if (precision !== undefined && (engine !== 'own' || !PRECISIONS.includes(precision)))
    throw invalid(
      'options.precision',
      engine === 'own' ? `one of ${PRECISIONS.join(', ')}` : `nothing, with the engine ${engine}`,
      precision,
      'Leave it out for the default.',
    );
  if (scales === undefined) return { engine, scaling: [] };
  checkOptions('options.scales', scales, SCALES);
  return { engine, scaling: SCALES.map((name) => scales[name]) };
}

/** @throws CudaArgumentError where `options.precision` is given, and none of them */
export function checkPrecision(precision: ProductPrecision | undefined): void {
  if (precision !== undefined && !PRECISIONS.includes(precision))
    throw invalid(
      'options.precision',
      `one of ${PRECISIONS.join(', ')}`,
      precision,
      'Leave it out for the default.',
    );
}

/** Whether tensor cores may compute a product by our kernels; integers are exact anyway. */
export function usesTensorCores(
  name: string,
  dtype: KernelDType,
  precision: ProductPrecision | undefined,
): boolean {
  if (dtype === f64 && precision === 'tensor')
    throw invalid(
      'options.precision',
      `exact, for factors of f64 of ${name}(…)`,
      precision,
      'Convert the factors with convert(f32).',
    );
  if (precision === undefined) return dtype !== f32 && dtype !== f64;
  return precision === 'tensor' || dtype.kind !== 'float';
}

/** A product by cuBLASLt. */
export interface EngineProduct {
  readonly a: KernelTensor;
  readonly b: KernelTensor;
  readonly dtype: KernelDType;
  readonly shape: readonly number[];
  readonly finish: Finish;
}

/**
 * Gives what queues the product and what follows it. One call of the library has all of it, except
 * for `gelu` and `silu`, which it does not have: our kernel applies these to sums of f32.
 *
 * @throws CudaArgumentError, which says why, where the library cannot compute it
 */
export function productByCublas(
  name: string,
  { a, b, dtype, shape, finish }: EngineProduct,
): (work: Work, out: KernelTensor) => void {
  const { bias, activation, scales } = finish;
  // The binding takes those that there are.
  const given = Object.fromEntries(
    Object.entries(scales).filter(([, scale]) => scale !== undefined),
  ) as NonNullable<Product['scales']>;
  const isOurs = activation === 'gelu' || activation === 'silu';
  if (isOurs && scales.out !== undefined)
    throw invalid(
      'options.scales.out',
      `nothing beside the activation ${activation}, which cuBLASLt does not have`,
      scales.out,
      "Scale the result of f32, or take the activation 'geluTanh'.",
    );
  const product = {
    a: a as AnyTensor,
    b: b as AnyTensor,
    ...(bias === undefined || isOurs ? {} : { bias: bias as AnyTensor }),
    ...(activation === 'relu' ? { activation } : {}),
    // The library's gelu is the approximation by tanh.
    ...(activation === 'geluTanh' ? { activation: 'gelu' as const } : {}),
    ...(Object.keys(given).length === 0 ? {} : { scales: given }),
  };
  const direct = isOurs ? f32 : dtype;
  const reason = whyNotCublas({ ...product, out: planned(direct, shape) });
  if (reason !== undefined)
    throw new CudaArgumentError(
      'options.engine',
      `options.engine: cuBLASLt has no such ${name}(…). ${reason}` +
        (isSmall(a) ? '' : ' Or leave the engine out: our kernels compute it.'),
    );
  return (work, out) => {
    if (!isOurs) {
      work.add(cublasProduct({ ...product, out: out }));
      return;
    }
    const sums = work.temporary(f32, [...shape]) as unknown as KernelTensor;
    work.add(cublasProduct({ ...product, out: sums }));
    const after: Finish = { bias: bias && work.dense(bias), activation, scales: NO_SCALES };
    work.add(finishProduct(sums, out, after, shape.at(-1)!));
  };
}

/** A contiguous result that does not exist yet. */
function planned(dtype: DType, shape: readonly number[]): PlannedProduct['out'] {
  return { dtype, shape, rank: shape.length, size: numel(shape), layout: contiguous([...shape]) };
}

/**
 * Gives the scales from the values of what {@link checkedEngine} gives.
 *
 * @throws CudaArgumentError for another dtype or size, and where there is nothing to scale
 */
export function checkedScales(
  name: string,
  scaling: readonly unknown[],
  a: KernelTensor,
  dtype: KernelDType,
): Scales {
  const rows = SCALES.flatMap((key, at) => {
    const scale = scaling[at];
    if (scale === undefined) return [];
    const argument = `options.scales.${key}`;
    if (!isSmall(a))
      throw invalid(argument, `nothing, for factors of ${a.dtype.name}`, scale, 'Leave it out.');
    if (key === 'out' && dtype.bytes > 1)
      throw invalid(
        argument,
        `nothing, where the result is ${dtype.name}`,
        scale,
        'Only a result of f8e4m3 or f8e5m2 is scaled.',
      );
    checkTensor(name, argument, scale);
    if (scale.dtype !== f32 || scale.size !== 1)
      throw invalid(
        argument,
        'a Tensor of f32 of one element',
        scale,
        'Write device.tensor(f32, [scale]).',
      );
    return [[key, scale] as const];
  });
  return { ...NO_SCALES, ...Object.fromEntries(rows) };
}
