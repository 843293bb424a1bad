/**
 * How an operation of the library is made: its arguments are looked at at the call where they are
 * values, and when it is run where operations give them; then it queues its kernels in order on the
 * run's stream. What was only needed in between is closed behind them, as everything that a step
 * makes and does not give on.
 */
import type { DType, KernelDTypeName, CoreDevice } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { insteadOfComplex, isKernelDType } from '../ground/dtype.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { Tensor } from '../tensor/index.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { KernelTensor, Shape } from '../tensor/index.js';

/** Tensors and launches of one run of an operation. */
export class Work {
  private readonly run: Run;
  private readonly steps: DeviceOp<unknown>[] = [];
  /** Whether memory was allocated for this run. */
  private allocates = false;

  constructor(run: Run) {
    this.run = run;
  }

  /** A result: contiguous, and its receiver's to close. */
  result<D extends KernelDTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    return this.alloc(dtype, shape);
  }

  /** Contiguous memory that is closed behind the operation, since its value does not hold it. */
  temporary<D extends KernelDTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    return this.alloc(dtype, shape);
  }

  /** The tensor, or a copy of it that has no gaps. */
  dense<T extends KernelTensor>(tensor: T): T {
    if (tensor.isContiguous) return tensor;
    const copy = this.temporary(tensor.dtype, [...tensor.shape]);
    this.add(copy.copyFrom(tensor));
    return copy as unknown as T;
  }

  /** Queued behind what was added before. */
  add(step: DeviceOp<unknown>): void {
    this.steps.push(step);
  }

  /**
   * Whether another run may queue the same steps: none of them works on what was allocated for this
   * one.
   */
  get isRepeatable(): boolean {
    return !this.allocates;
  }

  /** What was added, in order. */
  collected(name: string): Collected {
    return new Collected(
      this.steps.map((step) => nodeOf(step)),
      name,
    );
  }

  /** Queues what was added. */
  queue(steps: Collected): unknown {
    return steps.submit(this.run);
  }

  private alloc<D extends KernelDTypeName, S extends Shape>(
    dtype: DType<D>,
    shape: S,
  ): Tensor<D, S> {
    this.allocates = true;
    return new Tensor<D, S>(this.run.alloc(dtype, numel(shape)), contiguous(shape), true);
  }
}

/** What a run does, once the arguments are known to be right. */
export type Plan<T> = (work: Work) => T;

/**
 * An operation of tensors and numbers. `plan` looks at the arguments, in their order, and throws
 * for wrong ones: at the call where all of them are values.
 */
export function operation<T>(
  name: string,
  inputs: readonly unknown[],
  plan: (values: readonly unknown[]) => Plan<T>,
): DeviceOp<T> {
  const device = inputs.find((input) => input instanceof Tensor)?.device;
  const collected = new Collected(
    inputs.map((input) => nodeOf(input)),
    name,
  );
  const title = `${name}(…)`;
  if (inputs.some((input) => input instanceof DeviceOp)) {
    return new DeviceOp(
      new Applied<T>(collected, device, title, (run, values) =>
        queued(name, run, () => plan(values)),
      ),
    );
  }
  const whole = plan(inputs);
  const tensors = inputs.filter((input) => input instanceof Tensor);
  // Run again, it does the same to the same tensors: their launches are ready.
  let kept: { readonly steps: Collected; readonly result: T } | undefined;
  return new DeviceOp(
    new Applied<T>(collected, device, title, (run) => {
      if (kept !== undefined && !tensors.some((tensor) => tensor.isClosed))
        return after(run, kept.steps.submit(run), kept.result);
      kept = undefined;
      return queued(
        name,
        run,
        () => whole,
        (steps, result) => {
          kept = { steps, result };
        },
      );
    }),
  );
}

/** An operation without operands, on a device. */
export function making<T>(name: string, device: CoreDevice, plan: Plan<T>): DeviceOp<T> {
  return new DeviceOp(new Made<T>(device, name, (run) => queued(name, run, () => plan)));
}

/** @param keep receives what another run may queue again */
function queued<T>(
  name: string,
  run: Run,
  planned: () => Plan<T>,
  keep?: (steps: Collected, result: T) => void,
): Submitted<T> {
  const work = new Work(run);
  const result = planned()(work);
  const steps = work.collected(name);
  if (work.isRepeatable) keep?.(steps, result);
  return after(run, work.queue(steps), result);
}

/**
 * Refuses the one argument more of a function that takes no options, which would be passed over
 * without a word. Methods of lists give two more: `tensors.map(exp)`.
 *
 * @param further the argument behind it
 */
export function checkNoOptions(name: string, more: unknown, further: unknown, fix = ''): void {
  if (more !== undefined && further === undefined)
    throw invalid('options', `nothing, since ${name}(…) takes no options`, more, fix);
}

/** @throws CudaArgumentError, CudaDisposedError for what is no tensor that is open */
export function checkTensor(
  name: string,
  argument: string,
  value: unknown,
): asserts value is KernelTensor {
  if (!(value instanceof Tensor)) {
    throw invalid(
      argument,
      `a Tensor, for ${name}(…)`,
      value,
      ArrayBuffer.isView(value) || Array.isArray(value)
        ? 'Copy it to the device first: device.tensor(dtype, array).'
        : '',
    );
  }
  value.checkAlive();
  const dtype = value.dtype as DType;
  if (!isKernelDType(dtype.name))
    throw invalid(
      argument,
      `a Tensor of numbers that kernels compute with, for ${name}(…)`,
      dtype.name,
      insteadOfComplex(dtype),
    );
}
