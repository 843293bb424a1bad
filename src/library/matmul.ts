/** Products of matrices. */
import { bf16, f16, f32, f64, i32 } from '../core/index.js';
import type { KernelDType, DType, KernelDTypeName } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import { broadcastAll } from '../tensor/layouts.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { span } from '../tensor/layout.js';
import { showShape } from '../tensor/shape.js';
import { checkTensor, operation } from './operation.js';
import { NO_FINISH } from './finish.js';
import type { Scales } from './finish.js';
import {
  SMALL_PRODUCTS,
  checkedEngine,
  checkedScales,
  isSmall,
  isWhole,
  productByCublas,
  usesTensorCores,
} from './product-engine.js';
import type {
  ProductEngine,
  ProductPrecision,
  ProductScales,
  SmallFactorName,
  SmallProductName,
  WholeFactorName,
} from './product-engine.js';
import { WIDE_FROM, multiplyAndFinish } from './product.js';
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
  /**
   * `'own'`: our kernels, on every device. `'cublas'`: one call of NVIDIA's cuBLASLt, on GPUs where
   * it is installed, for what it can compute: the result is of the factors' dtype or of f32, and
   * factors and result are read and written where they are. Default: own.
   */
  readonly engine?: ProductEngine;
  /** How our kernels compute sums. Default: `'exact'` for f32 and f64, else `'tensor'`. */
  readonly precision?: ProductPrecision;
}

/** Options of {@link matmul} for factors of f8e4m3 and f8e5m2. */
export interface SmallMatmulOptions<R extends SmallProductName = SmallProductName> {
  /** What computes it, as of {@link MatmulOptions}. Default: own. */
  readonly engine?: ProductEngine;
  /** How our kernels compute sums. Default: `'tensor'`. */
  readonly precision?: ProductPrecision;
  /** The dtype of the result. Default: bf16, as of PyTorch's `torch.nn.functional.scaled_mm`. */
  readonly dtype?: DType<R>;
  /** An existing tensor for the result, as of {@link MatmulOptions}. */
  readonly out?: OrOp<Tensor<R>>;
  /** Factors of the operands, and of a result of 8 bits. */
  readonly scales?: ProductScales;
}

/** Options of {@link matmul} for factors of i8 and u8. */
export interface WholeMatmulOptions {
  /** An existing tensor of i32 for the result, as of {@link MatmulOptions}. */
  readonly out?: OrOp<Tensor<'i32'>>;
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
 * chain of fused multiply-adds in the order of K, with the same bits on every device; so are the
 * others with `precision: 'exact'`.
 *
 * On compute capability 9.0 factors of f8e4m3 and f8e5m2, which may differ, are multiplied on
 * tensor cores, too: 128 products at a time are added with 13 bits and these sums in f32, so that a
 * result is within 2^-10 of the sum of the products' magnitudes. f32 with `precision: 'tensor'` is
 * rounded to tf32, towards zero: a result is within 2^-9 of that sum. Elsewhere both are chains of
 * f32. i8 and u8 give their exact i32, modulo 2^32. Rows of a and columns of b of these dtypes are
 * copied unless they are contiguous and begin at multiples of 16 bytes.
 *
 * With `engine: 'cublas'` NVIDIA's cuBLASLt computes the product; its sums of f16, bf16, f32 and f8
 * are f32, in an order of its own. It takes f8 from compute capability 8.9 on: before Blackwell
 * where rows of a and columns of b are contiguous, and K and N are multiples of 16. The first
 * product of a form (dtypes, shapes, layouts) loads the library or makes a plan, off this thread.
 *
 * @throws CudaArgumentError for fewer than two axes, another dtype, factors whose dtypes or K
 *   differ, axes that do not broadcast, a product that the engine does not have; at the call, or
 *   when run where operations give the factors. With cuBLASLt it rejects with ERR_CUDA_UNSUPPORTED
 *   on a CPU device and where the library has no kernel, ERR_CUDA_NO_LIBRARY where it is not found
 *
 * @example
 * ```ts
 * using a = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using b = await device.tensor(f32, [5, 6], [2, 1]);
 * using c = await matmul(a, b);
 * console.log(c.shape, (await c.read()).join(' ')); // [ 2, 1 ] 17 39
 * ```
 *
 * @example Of 8 bits.
 * ```ts
 * using a = await device.randn(f32, [64, 128]).andThen((x) => x.convert(f8e4m3));
 * using b = await device.randn(f32, [32, 128]).andThen((x) => x.convert(f8e4m3));
 * using half = await device.tensor(f32, [0.5]);
 * using c = await matmul(a, b.transpose(), { scales: { a: half } });
 * console.log(c.dtype.name); // bf16
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
export function matmul<S extends Shape, T extends Shape, R extends SmallProductName = 'bf16'>(
  a: OrOp<Tensor<SmallFactorName, S>>,
  b: OrOp<Tensor<SmallFactorName, T>>,
  options?: SmallMatmulOptions<R>,
): DeviceOp<Tensor<R, Multiplied<S, T>>>;
export function matmul<S extends Shape, T extends Shape>(
  a: OrOp<Tensor<WholeFactorName, S>>,
  b: OrOp<Tensor<WholeFactorName, T>>,
  options?: WholeMatmulOptions,
): DeviceOp<Tensor<'i32', Multiplied<S, T>>>;
export function matmul(
  a: unknown,
  b: unknown,
  options: AnyOptions | WholeMatmulOptions = {},
): unknown {
  return planned(a, b, options as AnyOptions, undefined);
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

type AnyOptions = MatmulOptions | SmallMatmulOptions;

const CUBLAS_FACTORS: readonly KernelDTypeName[] = [
  'f16',
  'bf16',
  'f32',
  'f64',
  'f8e4m3',
  'f8e5m2',
];
const FACTORS: readonly KernelDTypeName[] = [...CUBLAS_FACTORS, 'i8', 'u8'];
/** dtypes of results whose sums are f32. */
const NARROWER: readonly KernelDType[] = [f16, bf16, f32];

function planned(
  given: unknown,
  other: unknown,
  options: AnyOptions,
  plan: TilePlan | WarpGroupPlan | undefined,
): unknown {
  checkOptions('options', options, ['dtype', 'out', 'engine', 'precision', 'scales']);
  const { engine, scaling: scales } = checkedEngine(options);
  const inputs = [given, other, options.out, ...scales];
  return operation('matmul', inputs, ([a, b, into, ...scaling]) => {
    checkFactor('matmul', 'a', a, engine);
    checkFactor('matmul', 'b', b, engine);
    if (!areTogether(a, b))
      throw invalid(
        'b',
        `a Tensor of ${a.dtype.name}, as a is, for matmul(…)`,
        b,
        toOneDtype('a', a, 'b', b),
      );
    const dtype = resultDtype(a, options.dtype);
    const scales = checkedScales('matmul', scaling, a, dtype);
    const finish = { ...NO_FINISH, scales };
    const tensor = usesTensorCores('matmul', a.dtype, options.precision);
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
    if (into !== undefined)
      checkOut('matmul', into, dtype, shape, { a, b, ...scalesByArgument(scales) });
    const byCublas =
      engine === 'cublas' && k > 0 && !shape.includes(0)
        ? productByCublas('matmul', { a, b, dtype, shape, finish })
        : undefined;
    return (work) => {
      const out = into ?? work.result(dtype, shape);
      if (out.size === 0) return out;
      if (byCublas !== undefined) byCublas(work, out);
      else multiplyAndFinish(work, out, a, b, { plan, tensor }, finish);
      return out;
    };
  });
}

/** Whether two factors are of one dtype, or of two that are multiplied with each other. */
export const areTogether = (a: KernelTensor, b: KernelTensor): boolean =>
  a.dtype === b.dtype || (isSmall(a) && isSmall(b)) || (isWhole(a) && isWhole(b));

/** How factors of two dtypes become of one, without a loss where one of them holds the other's. */
export function toOneDtype(
  nameA: string,
  { dtype: a }: KernelTensor,
  nameB: string,
  { dtype: b }: KernelTensor,
): string {
  if (a.bytes === b.bytes) return 'Convert both with convert(f32).';
  return a.bytes < b.bytes
    ? `Convert ${nameA} with convert(${b.name}).`
    : `Convert ${nameB} with convert(${a.name}).`;
}

/** Scales by the names of their arguments. */
export const scalesByArgument = (
  scales: Scales,
): Readonly<Record<string, KernelTensor | undefined>> =>
  Object.fromEntries(
    Object.entries(scales).map(([key, scale]) => [`options.scales.${key}`, scale]),
  );

export function checkFactorDtype(
  name: string,
  argument: string,
  value: KernelTensor,
  engine: ProductEngine,
): void {
  const allowed = engine === 'cublas' ? CUBLAS_FACTORS : FACTORS;
  if (!allowed.includes(value.dtype.name))
    throw invalid(
      argument,
      // cuBLASLt has no products of f64, and an error of their own says so.
      `a Tensor of ${allowed.filter((each) => engine === 'own' || each !== 'f64').join(', ')}, ` +
        `for ${name}(…)`,
      value.dtype.name,
      isWhole(value)
        ? "Leave { engine: 'cublas' } out: our kernels multiply it."
        : 'Convert it with convert(f32).',
    );
}

export function checkFactor(
  name: string,
  argument: string,
  value: unknown,
  engine: ProductEngine,
): asserts value is KernelTensor {
  checkTensor(name, argument, value);
  checkFactorDtype(name, argument, value, engine);
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
  operands: Readonly<Record<string, KernelTensor | undefined>>,
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
  for (const [operand, tensor] of Object.entries(operands)) {
    if (tensor === undefined) continue;
    if (tensor.device !== value.device)
      throw invalid('options.out', `a Tensor on the device of ${operand}`, value);
    if (shareBytes(tensor, value))
      throw invalid(
        'options.out',
        `a Tensor that has no memory in common with ${operand}`,
        value,
        'Elements are written while others are still read. Leave it out, or pass another one.',
      );
  }
}

/** Whether the ranges of memory from first to last element have a byte in common. */
function shareBytes(a: KernelTensor, b: KernelTensor): boolean {
  if (a.size === 0 || b.size === 0 || a.buffer.memory !== b.buffer.memory) return false;
  const [[startA, endA], [startB, endB]] = [a, b].map(({ buffer, layout, dtype }) => {
    const { start, end } = span(layout);
    return [buffer.byteOffset + start * dtype.bytes, buffer.byteOffset + end * dtype.bytes];
  }) as [[number, number], [number, number]];
  return startA < endB && startB < endA;
}

/** The dtype of a result, by that of the factors and the one that is asked for. */
export function resultDtype(factor: KernelTensor, wanted: KernelDType | undefined): KernelDType {
  const factors = factor.dtype;
  const isOfSmall = isSmall(factor);
  const isOfWhole = isWhole(factor);
  if (wanted === undefined) return isOfSmall ? bf16 : isOfWhole ? i32 : factors;
  if (wanted === factors && !isOfWhole) return factors;
  const allowed = isOfSmall
    ? SMALL_PRODUCTS
    : isOfWhole
      ? [i32]
      : factors === f64
        ? [f64]
        : NARROWER;
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
