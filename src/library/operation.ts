/**
 * How an operation of the library is made: its arguments are looked at at the call where they are values, and when it is run
 * where operations give them; then it queues its kernels in order on the run's stream, and closes behind them what was only
 * needed in between.
 */
import type { DType, DTypeName, Device } from '../core/index.js';
import { invalid } from '../core/arguments.js';
import { Applied, Collected, Made } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Later, after } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { Tensor, contiguous, numel } from '../tensor/index.js';
import type { AnyTensor, Shape } from '../tensor/index.js';

/** Results that were allocated for their operations, not given to be written. */
const results = new WeakSet<object>();
const isResult = (value: unknown): boolean => value instanceof Tensor && results.has(value);

/** Tensors and launches of one run of an operation. */
export class Work {
  private readonly run: Run;
  private readonly steps: DeviceOp<unknown>[] = [];
  private readonly temporaries: AnyTensor[] = [];
  private readonly made: AnyTensor[] = [];

  constructor(run: Run) {
    this.run = run;
  }

  /** A result: contiguous, and its receiver's to close. */
  result<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    const tensor = this.alloc(dtype, shape);
    this.made.push(tensor);
    this.run.closeWhereOthersFail(tensor);
    return tensor;
  }

  /** Contiguous memory that is closed behind the operation. */
  temporary<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    const tensor = this.alloc(dtype, shape);
    this.temporaries.push(tensor);
    return tensor;
  }

  /** What the operation gives: a tensor that was made earlier may be written by it, and is somebody's. */
  note(result: AnyTensor): void {
    if (this.made.includes(result)) results.add(result);
    else results.delete(result);
  }

  /** Closes them behind the operation. */
  take(tensors: readonly AnyTensor[]): void {
    this.temporaries.push(...tensors);
  }

  /** The tensor, or a copy of it that has no gaps. */
  dense<T extends AnyTensor>(tensor: T): T {
    if (tensor.isContiguous) return tensor;
    const copy = this.temporary(tensor.dtype, [...tensor.shape]);
    this.add(copy.copyFrom(tensor));
    return copy as unknown as T;
  }

  /** Queued behind what was added before. */
  add(step: DeviceOp<unknown>): void {
    this.steps.push(step);
  }

  /** Whether another run may queue the same steps: none of them works on what was allocated for this one. */
  get isRepeatable(): boolean {
    return this.temporaries.length === 0 && this.made.length === 0;
  }

  /** What was added, in order. */
  collected(name: string): Collected {
    return new Collected(this.steps.map((step) => nodeOf(step)), name);
  }

  /** Queues what was added. */
  queue(steps: Collected): unknown {
    const done = steps.submit(this.run);
    this.closeBehind(this.temporaries, done);
    // Of what fails later, a library that is not there, say, nobody receives the results.
    if (done instanceof Later) done.promise.catch(() => { this.closeBehind(this.made, undefined); });
    return done;
  }

  /** Gives back what was allocated before something failed. */
  abandon(): void {
    this.closeBehind([...this.temporaries, ...this.made], undefined);
  }

  private closeBehind(tensors: readonly AnyTensor[], done: unknown): void {
    // What was allocated for a graph is the graph's.
    if (this.run.recording || tensors.length === 0) return;
    const close = (): void => { for (const each of tensors) each.close(); };
    if (done instanceof Later) done.promise.then(close, close);
    else close();
  }

  private alloc<D extends DTypeName, S extends Shape>(dtype: DType<D>, shape: S): Tensor<D, S> {
    return new Tensor<D, S>(this.run.alloc(dtype, numel(shape)), contiguous(shape), true);
  }
}

/** What a run does, once the arguments are known to be right. */
export type Plan<T> = (work: Work) => T;

/**
 * An operation of tensors and numbers. `plan` looks at the arguments, in their order, and throws for wrong ones: at the
 * call where all of them are values.
 */
export function operation<T>(name: string, inputs: readonly unknown[], plan: (values: readonly unknown[]) => Plan<T>): DeviceOp<T> {
  const device = inputs.find((input) => input instanceof Tensor)?.device;
  const collected = new Collected(inputs.map((input) => nodeOf(input)), name);
  const title = `${name}(…)`;
  if (inputs.some((input) => input instanceof DeviceOp)) {
    const nodes = inputs.map((input) => (input instanceof DeviceOp ? nodeOf(input) : undefined));
    return new DeviceOp(new Applied<T>(collected, device, title, (run, values) => {
      // What an operand's operation made for this run has no other owner: mul(x, 2) in add(mul(x, 2), 1).
      const own = values.filter((value, i): value is AnyTensor => value instanceof Tensor && nodes[i]?.isNew?.(value) === true);
      return queued(name, run, () => plan(values), undefined, own);
    }, undefined, isResult));
  }
  const whole = plan(inputs);
  const tensors = inputs.filter((input) => input instanceof Tensor);
  // Run again, it does the same to the same tensors: their launches are ready.
  let kept: { readonly steps: Collected; readonly result: T } | undefined;
  return new DeviceOp(new Applied<T>(collected, device, title, (run) => {
    if (kept !== undefined && !tensors.some((tensor) => tensor.isClosed)) return after(kept.steps.submit(run), kept.result);
    kept = undefined;
    return queued(name, run, () => whole, (steps, result) => { kept = { steps, result }; });
  }, undefined, isResult));
}

/** An operation without operands, on a device. */
export function making<T>(name: string, device: Device, plan: Plan<T>): DeviceOp<T> {
  return new DeviceOp(new Made<T>(device, name, (run) => queued(name, run, () => plan), undefined, isResult));
}

/**
 * @param keep is told what another run may queue again
 * @param own is closed behind the operation, or where it fails
 */
function queued<T>(name: string, run: Run, planned: () => Plan<T>, keep?: (steps: Collected, result: T) => void, own: readonly AnyTensor[] = []): Submitted<T> {
  const work = new Work(run);
  work.take(own);
  try {
    const result = planned()(work);
    if (result instanceof Tensor) work.note(result);
    const steps = work.collected(name);
    if (work.isRepeatable) keep?.(steps, result);
    return after(work.queue(steps), result);
  } catch (error) {
    work.abandon();
    throw error;
  }
}

/**
 * Refuses the one argument more of a function that takes no options, which would be passed over without a word. Methods of lists
 * give two more: `tensors.map(exp)`.
 *
 * @param further the argument behind it
 */
export function checkNoOptions(name: string, more: unknown, further: unknown, fix = ''): void {
  if (more !== undefined && further === undefined) throw invalid('options', `nothing, since ${name}(…) takes no options`, more, fix);
}

/** @throws CudaArgumentError, CudaDisposedError for what is no tensor that is open */
export function checkTensor(name: string, argument: string, value: unknown): asserts value is AnyTensor {
  if (!(value instanceof Tensor)) {
    throw invalid(argument, `a Tensor, for ${name}(…)`, value, ArrayBuffer.isView(value) || Array.isArray(value) ? 'Copy it to the device first: device.tensor(dtype, array).' : '');
  }
  value.checkAlive();
}
