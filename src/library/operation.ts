/**
 * Operations of the library. Arguments that are values are checked at the call, and values that
 * operations give when the operation is run. The run then queues kernels in order on its stream.
 * Temporary tensors are closed after them, as everything that a step makes and does not give.
 */
import type { DType, DTypeName, CoreDevice } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { insteadOfComplex, isKernelDType } from '../ground/dtype.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { Tensor } from '../tensor/index.js';
import { contiguous, numel } from '../tensor/layouts.js';
import type { AnyTensor, KernelTensor, Shape } from '../tensor/index.js';

/** The tensors and launches of one run of an operation. */
export class Work {
  private readonly run: Run;
  private readonly steps: DeviceOp<unknown>[] = [];
  /** Whether memory was allocated in this run. */
  private allocates = false;

  constructor(run: Run) {
    this.run = run;
  }

  /** Allocates a contiguous result, which the caller of the operation closes. */
  result<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    return this.alloc(dtype, shape);
  }

  /**
   * Allocates a contiguous tensor that is closed after the run, since it is no part of its value.
   */
  temporary<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    return this.alloc(dtype, shape);
  }

  /** Gives the tensor if it is contiguous, else a contiguous copy. */
  dense<T extends AnyTensor>(tensor: T): T {
    if (tensor.isContiguous) return tensor;
    const copy = this.temporary(tensor.dtype, [...tensor.shape]);
    this.add(copy.copyFrom(tensor));
    return copy as unknown as T;
  }

  /** Adds a step, which is queued after those that were added before. */
  add(step: DeviceOp<unknown>): void {
    this.steps.push(step);
  }

  /**
   * Whether another run may queue the same steps: none of them uses memory that was allocated in
   * this run.
   */
  get isRepeatable(): boolean {
    return !this.allocates;
  }

  /** The added steps, in order. */
  collected(name: string): Collected {
    return new Collected(
      this.steps.map((step) => nodeOf(step)),
      name,
    );
  }

  /** Queues steps. */
  queue(steps: Collected): unknown {
    return steps.submit(this.run);
  }

  private alloc<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    this.allocates = true;
    return new Tensor<D, S>(this.run.alloc(dtype, numel(shape)), contiguous(shape), true);
  }
}

/** A run's work after the arguments were checked: it adds steps, and returns the value. */
export type Plan<T> = (work: Work) => T;

/**
 * An operation of tensors and numbers. `plan` checks the arguments in order and throws for wrong
 * ones: at the call where all of them are values, else when run.
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
  // Another run does the same to the same tensors: its launches are kept.
  let kept: { readonly steps: Collected; readonly result: T } | undefined;
  return new DeviceOp(
    new Applied<T>(collected, device, title, (run) => {
      if (kept !== undefined && !isAnyClosed(tensors))
        return after(run, kept.steps.repeat(run), kept.result);
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

function isAnyClosed(tensors: readonly Tensor[]): boolean {
  for (let i = 0; i < tensors.length; i++) if (tensors[i]!.isClosed) return true;
  return false;
}

/** An operation on a device that has no operands. */
export function making<T>(name: string, device: CoreDevice, plan: Plan<T>): DeviceOp<T> {
  return new DeviceOp(new Made<T>(device, name, (run) => queued(name, run, () => plan)));
}

/** @param keep receives the steps that another run may queue */
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
 * Checks that a function without options gets none: they would have no effect. Methods of arrays
 * pass two more arguments, which are allowed: `tensors.map(exp)`.
 *
 * @param more the first argument after the operands
 * @param further the one after it
 * @throws CudaArgumentError for one more argument
 */
export function checkNoOptions(name: string, more: unknown, further: unknown, fix = ''): void {
  if (more !== undefined && further === undefined)
    throw invalid('options', `nothing, since ${name}(…) takes no options`, more, fix);
}

/**
 * @throws CudaArgumentError for what is no tensor of numbers that kernels compute with,
 *   CudaDisposedError for a closed one
 */
export function checkTensor(
  name: string,
  argument: string,
  value: unknown,
): asserts value is KernelTensor {
  checkAnyTensor(name, argument, value);
  const { dtype } = value;
  if (!isKernelDType(dtype.name))
    throw invalid(
      argument,
      `a Tensor of numbers that kernels compute with, for ${name}(…)`,
      dtype.name,
      insteadOfComplex(dtype),
    );
}

/** @throws CudaArgumentError for what is no tensor, CudaDisposedError for a closed one */
export function checkAnyTensor(
  name: string,
  argument: string,
  value: unknown,
): asserts value is AnyTensor {
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
}
