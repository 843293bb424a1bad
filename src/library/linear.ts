/** Linear layers: a product with what follows it. */
import { f64 } from '../core/index.js';
import type { DType, KernelDType } from '../core/index.js';
import { CudaArgumentError } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { showShape } from '../tensor/shape.js';
import { checkActivation } from './activations.js';
import type { ActivationName } from './activations.js';
import type { Finish } from './finish.js';
import {
  areTogether,
  checkFactor,
  checkFactorDtype,
  checkOut,
  resultDtype,
  scalesByArgument,
  toOneDtype,
} from './matmul.js';
import type { FactorName } from './matmul.js';
import { checkTensor, operation } from './operation.js';
import type { Work } from './operation.js';
import {
  checkedEngine,
  checkedScales,
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
} from './product-engine.js';
import { multiplyAndFinish } from './product.js';

/** Options of {@link linear}. */
export interface LinearOptions<R extends FactorName = FactorName> {
  /** A value for each row of the weights: `[N]`, of f16, bf16 or f32; f64 beside factors of f64. */
  readonly bias?: OrOp<Tensor<FactorName>>;
  /** The function of each element: `relu`, `gelu`, `geluTanh` or `silu` of the library. */
  readonly activation?: ActivationName;
  /** The dtype of the result, as of {@link matmul}. Default: the dtype of `x`. */
  readonly dtype?: DType<R>;
  /** An existing contiguous tensor for the result, as of {@link matmul}. */
  readonly out?: OrOp<Tensor<R>>;
  /**
   * What computes it, as of {@link matmul}. With `'cublas'` the bias is of the result's dtype, and
   * bias, `relu` and `geluTanh` are part of the library's call; `gelu` and `silu`, with a bias of
   * any dtype, are computed by our kernel from its sums of f32. Default: own.
   */
  readonly engine?: ProductEngine;
  /** How our kernels compute sums, as of {@link matmul}. */
  readonly precision?: ProductPrecision;
}

/** Options of {@link linear} for x and weights of f8e4m3 and f8e5m2. */
export interface SmallLinearOptions<R extends SmallProductName = SmallProductName> {
  /** What computes it, as of {@link LinearOptions}. */
  readonly engine?: ProductEngine;
  /** How our kernels compute sums, as of {@link matmul}. */
  readonly precision?: ProductPrecision;
  /**
   * A value for each row of the weights: `[N]`, of f16, bf16 or f32. For cuBLASLt it is of f16
   * where the result is, else of bf16, except before `gelu` and `silu`.
   */
  readonly bias?: OrOp<Tensor<'f16' | 'bf16' | 'f32'>>;
  /** The function of each element, as of {@link LinearOptions}. */
  readonly activation?: ActivationName;
  /** The dtype of the result. Default: bf16, as of PyTorch's `torch.nn.functional.scaled_mm`. */
  readonly dtype?: DType<R>;
  /** An existing tensor for the result, as of {@link LinearOptions}. */
  readonly out?: OrOp<Tensor<R>>;
  /** Factors of x (`a`), of the weights (`b`), and of a result of 8 bits. */
  readonly scales?: ProductScales;
}

/** The shape of `x` with another last axis; `number[]` for other than two axes. */
export type Mapped<S extends Shape, W extends Shape> = S extends readonly [
  infer M extends number,
  number,
]
  ? W extends readonly [infer N extends number, number]
    ? [M, N]
    : number[]
  : number[];

/**
 * A linear layer: x `[…, K]` and weights `[N, K]` give `activation(x · weightsᵀ + bias)` as a new
 * contiguous tensor `[…, N]`. Sums, bias and activation are computed in f32 (f64 for factors of
 * f64), and rounded once. On Hopper's tensor cores all of it is one kernel; elsewhere a product and
 * an elementwise kernel. Precision and dtypes are those of {@link matmul}; in the one kernel, the
 * activation of a result of 16 bits is within 2^-16 of its value before it is rounded.
 *
 * @throws CudaArgumentError for a wrong rank, dtype or number of columns, a bias of another length,
 *   an unknown activation, a product that the engine does not have; at the call, or when run where
 *   operations give the arguments
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4], [2, 2]);
 * using weights = await device.tensor(f32, [1, 0, 0, 1, -1, -1], [3, 2]);
 * using bias = await device.tensor(f32, [0, 0.5, 0]);
 * using y = await linear(x, weights, { bias, activation: 'relu' });
 * console.log(y.shape, (await y.read()).join(' ')); // [ 2, 3 ] 1 2.5 0 3 4.5 0
 * ```
 *
 * @example By cuBLASLt, as one call.
 * ```ts no-run
 * using x = await device.randn(f16, [32, 64]);
 * using weights = await device.randn(f16, [48, 64]);
 * using bias = await device.zeros(f16, [48]);
 * using y = await linear(x, weights, { bias, activation: 'geluTanh', engine: 'cublas' });
 * console.log(y.shape); // [ 32, 48 ]
 * ```
 */
export function linear<
  D extends FactorName,
  S extends Shape,
  W extends Shape,
  R extends FactorName = D,
>(
  x: OrOp<Tensor<D, S>>,
  weights: OrOp<Tensor<NoInfer<D>, W>>,
  options?: LinearOptions<R>,
): DeviceOp<Tensor<R, Mapped<S, W>>>;
export function linear<S extends Shape, W extends Shape, R extends SmallProductName = 'bf16'>(
  x: OrOp<Tensor<SmallFactorName, S>>,
  weights: OrOp<Tensor<SmallFactorName, W>>,
  options?: SmallLinearOptions<R>,
): DeviceOp<Tensor<R, Mapped<S, W>>>;
export function linear(
  x: unknown,
  weights: unknown,
  options: LinearOptions | SmallLinearOptions = {},
): unknown {
  checkOptions('options', options, OPTIONS);
  const { engine, scaling: scales } = checkedEngine(options);
  const { activation } = options;
  checkActivation(activation);
  const inputs = [x, weights, options.bias, options.out, ...scales];
  return operation('linear', inputs, ([first, second, bias, into, ...scaling]) => {
    const [given, w] = checkedOperands(first, second, engine);
    const [n, k] = w.shape as [number, number];
    if (bias !== undefined) checkBias(bias, n, given.dtype);
    const dtype = resultDtype(given, options.dtype);
    const shape = [...given.shape.slice(0, -1), n];
    const scales = checkedScales('linear', scaling, given, dtype);
    if (into !== undefined)
      checkOut('linear', into, dtype, shape, {
        ...{ x: given, weights: w },
        'options.bias': bias as KernelTensor | undefined,
        ...scalesByArgument(scales),
      });
    const finish: Finish = {
      bias: bias as KernelTensor | undefined,
      activation,
      scales,
    };
    const tensor = usesTensorCores('linear', given.dtype, options.precision);
    const isByCublas = engine === 'cublas' && k > 0 && !shape.includes(0);
    const byCublas = isByCublas
      ? productByCublas('linear', {
          a: given.rank === 1 ? given.unsqueeze(0) : given,
          b: w.transpose(),
          dtype,
          shape: given.rank === 1 ? [1, n] : shape,
          finish,
        })
      : undefined;
    return (work) => {
      const out = into ?? work.result(dtype, shape);
      if (out.size === 0) return out;
      if (byCublas === undefined) apply(work, out, given, w, finish, tensor);
      else byCublas(work, out.rank === 1 ? out.unsqueeze(0) : out);
      return out;
    };
  });
}

/** Gives x and the weights. @throws CudaArgumentError where they do not fit */
function checkedOperands(
  x: unknown,
  weights: unknown,
  engine: ProductEngine,
): readonly [x: KernelTensor, weights: KernelTensor] {
  checkFactor('linear', 'weights', weights, engine);
  checkTensor('linear', 'x', x);
  checkFactorDtype('linear', 'x', x, engine);
  if (x.rank < 1 || weights.rank !== 2)
    throw invalid(
      x.rank < 1 ? 'x' : 'weights',
      x.rank < 1 ? 'at least one axis, for linear(…)' : 'two axes [N, K], for linear(…)',
      x.rank < 1 ? x : weights,
    );
  const [n, k] = weights.shape as [number, number];
  if (isWhole(weights))
    throw invalid(
      'weights',
      'a Tensor of floats, for linear(…)',
      weights,
      'Write matmul(x, weights.transpose()), whose result is i32.',
    );
  if (!areTogether(x, weights))
    throw invalid(
      'weights',
      `a Tensor of ${x.dtype.name}, as x is, for linear(…)`,
      weights,
      toOneDtype('x', x, 'weights', weights),
    );
  if (x.shape.at(-1) !== k)
    throw new CudaArgumentError(
      'weights',
      `linear: x has ${x.shape.at(-1)!} columns and the weights ${k} ` +
        `(${showShape(x.shape)}, ${showShape(weights.shape)}). They have to be as many` +
        `${x.shape.at(-1) === n ? ': write linear(x, weights.transpose())' : '.'}`,
    );
  return [x, weights];
}

const OPTIONS = ['bias', 'activation', 'dtype', 'out', 'engine', 'precision', 'scales'];

const BIASES: readonly string[] = ['f16', 'bf16', 'f32'];

function checkBias(value: unknown, n: number, factors: KernelDType): void {
  checkTensor('linear', 'options.bias', value);
  const allowed = factors === f64 ? ['f64'] : BIASES;
  if (value.rank !== 1 || value.shape[0] !== n || !allowed.includes(value.dtype.name))
    throw invalid(
      'options.bias',
      `a Tensor of ${allowed.join(', ')} of shape [${n}], a value for each row of the weights`,
      value,
    );
}

function apply(
  work: Work,
  out: KernelTensor,
  given: KernelTensor,
  weights: KernelTensor,
  finish: Finish,
  tensor: boolean,
): void {
  const [n, k] = weights.shape as unknown as [number, number];
  const rows = out.size / n;
  const x = work.dense(given).reshape([rows, k] as never) as unknown as KernelTensor;
  const flat = out.reshape([rows, n] as never) as unknown as KernelTensor;
  multiplyAndFinish(
    work,
    flat,
    x,
    weights.transpose(),
    { tensor },
    { ...finish, bias: finish.bias && work.dense(finish.bias) },
  );
}
