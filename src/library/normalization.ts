/** Layer norm and RMS norm of rows. */
import { f64, i32, i64 } from '../core/index.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { checkGroup } from './element-types.js';
import type { FloatName } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import { isWide } from './reduction-kernels.js';
import { accumulatorOf, longRowPlan, longestRow, rowPlan } from './rows.js';
import type { RowGpu, RowPlan } from './rows.js';
import { lastExtent } from './softmax.js';

interface NormGpu extends RowGpu {
  /** Whether the mean is subtracted. */
  readonly CENTRED: boolean;
  readonly WEIGHT: boolean;
  readonly BIAS: boolean;
  /** Whether elements are f64. */
  readonly DOUBLE: boolean;
  /**
   * From this number on the mean of squares plus eps is as exact as the sum: no square was below
   * the range.
   */
  readonly LEAST: number;
  /**
   * The largest ratio of the mean's square to that sum at which the rounding of the mean affects
   * the last bits of the result only.
   */
  readonly FAR: number;
  exactRow(
    out: Output,
    x: Input,
    weight: Input,
    bias: Input,
    eps: number,
    first: number,
    length: number,
    t: number,
  ): void;
}

interface ExactGpu
  extends
    Pick<NormGpu, 'CENTRED' | 'WEIGHT' | 'BIAS' | 'DOUBLE' | 'THREADS' | 'total' | 'greatest'>,
    Gpu {}

/**
 * Reads a row again and computes it in f64: for rows whose squares leave the accumulator's range,
 * or whose mean is large relative to the deviation. A row of f64 is scaled by a power of two, so
 * that squares neither overflow nor underflow, and its mean is computed in two parts.
 */
const exactRow = (
  out: Output,
  x: Input,
  weight: Input,
  bias: Input,
  eps: number,
  first: number,
  length: number,
  t: number,
  gpu: ExactGpu,
): void => {
  let scale = gpu.f64(1);
  if (gpu.DOUBLE) {
    let greatest = gpu.f64(0);
    for (let i = t; i < length; i += gpu.THREADS)
      greatest = Math.max(greatest, Math.abs(x[first + i]!));
    greatest = gpu.greatest(greatest);
    const exponent = Math.min(Math.max(gpu.i32(gpu.bits(greatest) >>> 52), 1), 2045);
    scale = gpu.fromBits(gpu.u64(2046 - exponent) << 52);
    // With eps, squares of smaller elements have no effect, and the square of the scale has to be
    // finite.
    if (eps > 0) scale = Math.min(scale, gpu.f64(3.273390607896142e150));
  }
  const count = gpu.f64(length);
  let mean = gpu.f64(0);
  let low = gpu.f64(0);
  if (gpu.CENTRED) {
    for (let i = t; i < length; i += gpu.THREADS) mean += gpu.f64(x[first + i]!) * scale;
    mean = gpu.total(mean) / count;
    if (gpu.DOUBLE) {
      for (let i = t; i < length; i += gpu.THREADS) low += gpu.f64(x[first + i]!) * scale - mean;
      low = gpu.total(low) / count;
    }
  }
  let squares = gpu.f64(0);
  for (let i = t; i < length; i += gpu.THREADS) {
    const scaled = gpu.f64(x[first + i]!) * scale;
    const value = scaled - mean - low;
    squares += value * value;
  }
  const inverse = 1 / Math.sqrt(gpu.total(squares) / count + eps * scale * scale);
  for (let i = t; i < length; i += gpu.THREADS) {
    const scaled = gpu.f64(x[first + i]!) * scale;
    const value = (scaled - mean - low) * inverse * (gpu.WEIGHT ? gpu.f64(weight[i]!) : 1);
    out[first + i] = gpu.BIAS ? value + gpu.f64(bias[i]!) : value;
  }
};

interface NormArgs {
  readonly out: Output;
  readonly x: Input;
  readonly weight: Input;
  readonly bias: Input;
  readonly eps: number;
  readonly rows: number;
  /** Accesses that a row takes. */
  readonly units: number;
}

const inRegisters = new KernelFamily(
  'norm',
  ({ out, x, weight, bias, eps, rows, units }: NormArgs, gpu: NormGpu) => {
    const t = gpu.threadIdx.x % gpu.THREADS;
    const row = gpu.blockIdx.x * (gpu.blockDim.x / gpu.THREADS) + gpu.threadIdx.x / gpu.THREADS;
    const values = gpu.values();
    const count = gpu.cast(units * gpu.WIDTH);
    let mean = gpu.cast(0);
    gpu.unroll(gpu.TIMES);
    for (let k = 0; k < gpu.TIMES; k++) {
      const unit = t + k * gpu.THREADS;
      if (row < rows && unit < units) {
        gpu.unroll(gpu.WIDTH);
        for (let w = 0; w < gpu.WIDTH; w++) {
          const value = gpu.cast(x[(row * units + unit) * gpu.WIDTH + w]!);
          values[k * gpu.WIDTH + w] = value;
          mean += value;
        }
      }
    }
    mean = gpu.CENTRED ? gpu.total(mean) / count : gpu.cast(0);
    let squares = gpu.cast(0);
    gpu.unroll(gpu.TIMES);
    for (let k = 0; k < gpu.TIMES; k++) {
      const unit = t + k * gpu.THREADS;
      if (row < rows && unit < units) {
        gpu.unroll(gpu.WIDTH);
        for (let w = 0; w < gpu.WIDTH; w++) {
          const value = values[k * gpu.WIDTH + w]! - mean;
          values[k * gpu.WIDTH + w] = value;
          squares += value * value;
        }
      }
    }
    const spread = gpu.total(squares) / count + gpu.cast(eps);
    // The same for all threads of the row.
    if (
      spread >= gpu.cast(gpu.LEAST) &&
      spread < Infinity &&
      mean * mean <= spread * gpu.cast(gpu.FAR)
    ) {
      const scale = 1 / Math.sqrt(spread);
      gpu.unroll(gpu.TIMES);
      for (let k = 0; k < gpu.TIMES; k++) {
        const unit = t + k * gpu.THREADS;
        if (row < rows && unit < units) {
          gpu.unroll(gpu.WIDTH);
          for (let w = 0; w < gpu.WIDTH; w++) {
            const column = unit * gpu.WIDTH + w;
            const value =
              values[k * gpu.WIDTH + w]! * scale * (gpu.WEIGHT ? gpu.cast(weight[column]!) : 1);
            out[(row * units + unit) * gpu.WIDTH + w] = gpu.BIAS
              ? value + gpu.cast(bias[column]!)
              : value;
          }
        }
      }
    } else
      gpu.exactRow(
        out,
        x,
        weight,
        bias,
        eps,
        row * units * gpu.WIDTH,
        row < rows ? units * gpu.WIDTH : 0,
        t,
      );
  },
);

/** The kernel for rows that do not fit in registers: it reads a row three times. */
const reading = new KernelFamily(
  'norm_long',
  ({ out, x, weight, bias, eps, units }: NormArgs, gpu: NormGpu) => {
    const first = gpu.blockIdx.x * units;
    const count = gpu.cast(units);
    let mean = gpu.cast(0);
    if (gpu.CENTRED) {
      for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS) mean += gpu.cast(x[first + i]!);
      mean = gpu.total(mean) / count;
    }
    let squares = gpu.cast(0);
    for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS) {
      const value = gpu.cast(x[first + i]!) - mean;
      squares += value * value;
    }
    const spread = gpu.total(squares) / count + gpu.cast(eps);
    if (
      spread >= gpu.cast(gpu.LEAST) &&
      spread < Infinity &&
      mean * mean <= spread * gpu.cast(gpu.FAR)
    ) {
      const scale = 1 / Math.sqrt(spread);
      for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS) {
        const value =
          (gpu.cast(x[first + i]!) - mean) * scale * (gpu.WEIGHT ? gpu.cast(weight[i]!) : 1);
        out[first + i] = gpu.BIAS ? value + gpu.cast(bias[i]!) : value;
      }
    } else gpu.exactRow(out, x, weight, bias, eps, first, units, gpu.threadIdx.x);
  },
);

/** Far above the range where squares lose bits: f32's least number is 2^-149, f64's 2^-1074. */
const LEAST = { f32: 2 ** -80, f64: 2 ** -900 } as const;
/** The ratio for a mean of 4 deviations. */
const FAR = 16;

/** The functions by which the threads of a row combine values. */
const sharing = ({ THREADS, total, greatest }: RowPlan['uses']): RowPlan['uses'] => ({
  THREADS: THREADS!,
  total: total!,
  greatest: greatest!,
});

/** Options of {@link rmsNorm}. */
export interface RmsNormOptions<D extends FloatName> {
  /** Factors, one for each element of the last axis, of x's dtype. Default: 1. */
  readonly weight?: OrOp<Tensor<D>>;
  /** Added to the mean of the squares. Default: 1e-6 for rmsNorm, 1e-5 for layerNorm. */
  readonly eps?: number;
}

/** Options of {@link layerNorm}. */
export interface LayerNormOptions<D extends FloatName> extends RmsNormOptions<D> {
  /** Summands, one for each element of the last axis, of x's dtype. Default: 0. */
  readonly bias?: OrOp<Tensor<D>>;
}

function norm(
  name: string,
  CENTRED: boolean,
  given: unknown,
  options: LayerNormOptions<FloatName>,
  defaultEps: number,
): DeviceOp<KernelTensor> {
  checkOptions('options', options, CENTRED ? ['weight', 'bias', 'eps'] : ['weight', 'eps']);
  const { eps = defaultEps } = options;
  if (!(typeof eps === 'number' && eps >= 0))
    throw invalid('options.eps', 'a number of at least 0', eps);
  return operation(name, [given, options.weight, options.bias], ([x, weight, bias]) => {
    checkTensor(name, 'x', x);
    checkGroup(name, 'x', x, 'floats');
    const count = lastExtent(name, x);
    for (const [argument, each] of [
      ['options.weight', weight],
      ['options.bias', bias],
    ] as const) {
      if (each === undefined) continue;
      checkTensor(name, argument, each);
      if (each.dtype !== x.dtype || each.rank !== 1 || each.shape[0] !== count)
        throw invalid(
          argument,
          `a Tensor of ${x.dtype.name} and [${count}], the last axis of x`,
          each,
        );
    }
    return (work) => {
      const out = work.result(x.dtype, [...x.shape]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      const dense = work.dense(x);
      const [weights, biases] = [weight, bias].map((each) =>
        each === undefined ? undefined : work.dense(each as KernelTensor),
      );
      const rows = x.size / count;
      const accumulator = accumulatorOf(x.dtype);
      const long = count > longestRow(accumulator);
      const plan = long
        ? longRowPlan(rows, count, accumulator)
        : rowPlan(rows, count, x.dtype.bytes, accumulator);
      const wide = isWide(x);
      const key =
        `${name}_${x.dtype.name}_${plan.key}${weights === undefined ? '' : '_w'}` +
        `${biases === undefined ? '' : '_b'}${wide ? '_wide' : ''}`;
      const launch = (long ? reading : inRegisters).member(key, () => {
        const whole = wide ? i64 : i32;
        const of = input(x.dtype);
        return {
          signature: {
            out: output(x.dtype),
            x: of,
            weight: of,
            bias: of,
            eps: f64,
            rows: whole,
            units: whole,
          },
          uses: {
            CENTRED,
            WEIGHT: weights !== undefined,
            BIAS: biases !== undefined,
            ...plan.uses,
            DOUBLE: accumulator === 'f64',
            LEAST: LEAST[accumulator],
            FAR,
            exactRow: deviceFunction(exactRow as never, {
              uses: {
                CENTRED,
                WEIGHT: weights !== undefined,
                BIAS: biases !== undefined,
                DOUBLE: accumulator === 'f64',
                ...sharing(plan.uses),
              },
            }) as DeviceFunction,
          },
          block: plan.block,
        };
      });
      // Without a weight or a bias x is passed, which is not read there.
      work.add(
        launch(
          {
            out,
            x: dense,
            weight: weights ?? dense,
            bias: biases ?? dense,
            eps,
            rows,
            units: plan.units,
          },
          { grid: plan.grid, ...(wide ? { index: 'i64' } : {}) },
        ),
      );
      return out;
    };
  });
}

/**
 * Layer norm: (x - mean) / sqrt(variance + eps) · weight + bias, with mean and variance of each row
 * of the last axis. It gives a new contiguous tensor of x's shape and dtype. f64 is computed in
 * f64, other dtypes in f32, and rounded once. A row of up to 32768 elements (f64: 16384) is read
 * once. Rows whose squares would leave the range, and rows whose mean is more than 4 deviations
 * from 0, are computed in f64, and read several times.
 *
 * @throws CudaArgumentError for a dtype that is no float's, for a scalar, for weight or bias of
 *   another dtype or length; at the call, or when run where operations give the operands
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 3, 10, 30], [2, 2]);
 * using y = await layerNorm(x, { eps: 0 });
 * console.log((await y.read()).join(' ')); // -1 1 -1 1
 * ```
 */
export function layerNorm<D extends FloatName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: LayerNormOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, S>> {
  return norm('layer_norm', true, x, options, 1e-5) as never;
}

/**
 * RMS norm: x / sqrt(mean of squares + eps) · weight, with the mean of each row of the last axis.
 * Otherwise it is like {@link layerNorm}.
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [3, 3, 5, -5], [2, 2]);
 * using weight = await device.tensor(f32, [1, 2]);
 * using y = await rmsNorm(x, { weight, eps: 0 });
 * console.log((await y.read()).join(' ')); // 1 2 1 -2
 * ```
 */
export function rmsNorm<D extends FloatName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
  options: RmsNormOptions<NoInfer<D>> = {},
): DeviceOp<Tensor<D, S>> {
  return norm('rms_norm', false, x, options, 1e-6) as never;
}
