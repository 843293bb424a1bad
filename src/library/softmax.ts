/** Softmax of rows, and its logarithm. */
import { i32, i64 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Shape, Tensor } from '../tensor/index.js';
import { checkGroup } from './element-types.js';
import type { FloatName } from './element-types.js';
import { KernelFamily } from './kernel-family.js';
import type { Input, Output } from './kernel-family.js';
import { checkNoOptions, checkTensor, operation } from './operation.js';
import { isWide } from './reduction-kernels.js';
import { accumulatorOf, longRowPlan, longestRow, rowPlan } from './rows.js';
import type { RowGpu } from './rows.js';

interface SoftmaxGpu extends RowGpu {
  readonly LOGARITHM: boolean;
}

interface SoftmaxArgs {
  readonly out: Output;
  readonly x: Input;
  readonly rows: number;
  /** Accesses that a row takes. */
  readonly units: number;
}

const inRegisters = new KernelFamily(
  'softmax',
  ({ out, x, rows, units }: SoftmaxArgs, gpu: SoftmaxGpu) => {
    const t = gpu.threadIdx.x % gpu.THREADS;
    const row = gpu.blockIdx.x * (gpu.blockDim.x / gpu.THREADS) + gpu.threadIdx.x / gpu.THREADS;
    const values = gpu.values();
    gpu.unroll(gpu.TIMES);
    for (let k = 0; k < gpu.TIMES; k++) {
      const unit = t + k * gpu.THREADS;
      gpu.unroll(gpu.WIDTH);
      for (let w = 0; w < gpu.WIDTH; w++) values[k * gpu.WIDTH + w] = -Infinity;
      if (row < rows && unit < units) {
        gpu.unroll(gpu.WIDTH);
        for (let w = 0; w < gpu.WIDTH; w++)
          values[k * gpu.WIDTH + w] = gpu.cast(x[(row * units + unit) * gpu.WIDTH + w]!);
      }
    }
    let greatest = gpu.cast(-Infinity);
    gpu.unroll(gpu.TIMES * gpu.WIDTH);
    for (let k = 0; k < gpu.TIMES * gpu.WIDTH; k++) greatest = Math.max(greatest, values[k]!);
    greatest = gpu.greatest(greatest);
    let sum = gpu.cast(0);
    gpu.unroll(gpu.TIMES * gpu.WIDTH);
    for (let k = 0; k < gpu.TIMES * gpu.WIDTH; k++) {
      const power = Math.exp(values[k]! - greatest);
      sum += power;
      values[k] = gpu.LOGARITHM ? values[k]! - greatest : power;
    }
    sum = gpu.total(sum);
    const last = gpu.LOGARITHM ? Math.log(sum) : 1 / sum;
    gpu.unroll(gpu.TIMES);
    for (let k = 0; k < gpu.TIMES; k++) {
      const unit = t + k * gpu.THREADS;
      if (row < rows && unit < units) {
        gpu.unroll(gpu.WIDTH);
        for (let w = 0; w < gpu.WIDTH; w++) {
          const value = values[k * gpu.WIDTH + w]!;
          out[(row * units + unit) * gpu.WIDTH + w] = gpu.LOGARITHM ? value - last : value * last;
        }
      }
    }
  },
);

/** The kernel for rows that do not fit in registers: it reads a row three times. */
const reading = new KernelFamily(
  'softmax_long',
  ({ out, x, units }: SoftmaxArgs, gpu: SoftmaxGpu) => {
    const first = gpu.blockIdx.x * units;
    let greatest = gpu.cast(-Infinity);
    for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS)
      greatest = Math.max(greatest, gpu.cast(x[first + i]!));
    greatest = gpu.greatest(greatest);
    let sum = gpu.cast(0);
    for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS)
      sum += Math.exp(gpu.cast(x[first + i]!) - greatest);
    sum = gpu.total(sum);
    const last = gpu.LOGARITHM ? Math.log(sum) : 1 / sum;
    for (let i = gpu.threadIdx.x; i < units; i += gpu.THREADS) {
      const value = gpu.cast(x[first + i]!) - greatest;
      out[first + i] = gpu.LOGARITHM ? value - last : Math.exp(value) * last;
    }
  },
);

type OfRows = <D extends FloatName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
) => DeviceOp<Tensor<D, S>>;

function softmaxes(name: string, LOGARITHM: boolean): OfRows {
  return ((given: unknown, more: unknown, further: unknown) => {
    checkNoOptions(
      name,
      more,
      further,
      'It is along the last axis: for another one give it x.transpose(axis, -1).',
    );
    return operation(name, [given], ([x]) => {
      checkTensor(name, 'x', x);
      checkGroup(name, 'x', x, 'floats');
      const count = lastExtent(name, x);
      return (work) => {
        const out = work.result(x.dtype, [...x.shape]) as unknown as KernelTensor;
        if (out.size === 0) return out;
        const dense = work.dense(x);
        const rows = x.size / count;
        const accumulator = accumulatorOf(x.dtype);
        const long = count > longestRow(accumulator);
        const plan = long
          ? longRowPlan(rows, count, accumulator)
          : rowPlan(rows, count, x.dtype.bytes, accumulator);
        const wide = isWide(x);
        const dtype: KernelDTypeName = x.dtype.name;
        const launch = (long ? reading : inRegisters).member(
          `${name}_${dtype}_${plan.key}${wide ? '_wide' : ''}`,
          () => {
            const whole = wide ? i64 : i32;
            return {
              signature: { out: output(x.dtype), x: input(x.dtype), rows: whole, units: whole },
              uses: { LOGARITHM, ...plan.uses },
              block: plan.block,
            };
          },
        );
        work.add(
          launch(
            { out, x: dense, rows, units: plan.units },
            { grid: plan.grid, ...(wide ? { index: 'i64' } : {}) },
          ),
        );
        return out;
      };
    });
  }) as OfRows;
}

/** Gives the extent of the last axis. @throws CudaArgumentError for a scalar @internal */
export function lastExtent(name: string, x: KernelTensor): number {
  const count = x.shape.at(-1);
  if (count === undefined) throw invalid('x', `at least one axis, for ${name}(…)`, x);
  return count;
}

/**
 * Softmax along the last axis: exp(x) divided by its sum, without overflow. It gives a new
 * contiguous tensor of x's shape and dtype. f64 is computed in f64, other dtypes in f32, and
 * rounded once. A row of up to 32768 elements (f64: 16384) is read once. For another axis pass
 * `x.transpose(axis, -1)`.
 *
 * @throws CudaArgumentError for a dtype that is no float's, and a scalar; at the call, or when run
 *   where an operation gives the operand
 *
 * @example
 * ```ts
 * using y = await softmax(device.tensor(f32, [1, 1, 3, 3], [2, 2]));
 * console.log((await y.read()).join(' ')); // 0.5 0.5 0.5 0.5
 * ```
 */
export const softmax = softmaxes('softmax', false);

/**
 * The logarithm of {@link softmax}, computed as x minus the logarithm of the sum, so that small
 * probabilities are exact.
 *
 * @example
 * ```ts
 * using y = await logSoftmax(device.tensor(f32, [0, 0]));
 * console.log(Array.from(await y.read(), (value) => value.toFixed(3)).join(' ')); // -0.693 -0.693
 * ```
 */
export const logSoftmax = softmaxes('log_softmax', true);
