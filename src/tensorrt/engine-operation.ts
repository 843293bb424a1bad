/**
 * A run of an engine as an operation: inputs are checked, outputs are made, and the context's calls
 * are queued.
 */
import type { Stream } from '../core/index.js';
import { CudaError, DTYPES, Pending } from '../core/index.js';
import { unlessAborted } from '../core/aborting.js';
import { checkOptions, checkSignal, invalid, valueNamed } from '../ground/arguments.js';
import type { EngineInputs, InferOptions, NamedTensors } from '../engine/engine.js';
import { RunOfTensors } from '../engine/recent-ops.js';
import type { RecentOps } from '../engine/recent-ops.js';
import { madeTensor, namedTensors } from '../engine/run-outputs.js';
import { checkNames, checkTensor, planOutputs } from '../engine/run-checks.js';
import type { ExtentRange } from '../engine/run-checks.js';
import { Applied, Collected, Ready } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Later, NotLoaded } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { Tensor } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';
import { contiguous } from '../tensor/layout.js';
import type { ExecutionContext } from './execution-context.js';
import type { TensorRTEngine } from './tensorrt-engine.js';
import { placedRun, type PlacedRun, isDense } from './placed-run.js';

/** Chooses the context of a run when that begins. */
export interface Chooser {
  /** Returns the context now, or once it is made, or is free. */
  contextFor(stream: Stream): ExecutionContext | Promise<ExecutionContext>;
}

export function engineOperation(
  engine: TensorRTEngine,
  inputs: EngineInputs,
  options: InferOptions | undefined,
  profile: number,
  recent: RecentOps,
  chooser: Chooser,
): DeviceOp<NamedTensors> {
  const known = recent.find(inputs, options);
  // `newOperation` has closures, whose variables would otherwise be allocated at each call of this
  // function.
  return known === undefined
    ? newOperation(engine, inputs, options, profile, recent, chooser)
    : new DeviceOp(known);
}

function newOperation(
  engine: TensorRTEngine,
  inputs: EngineInputs,
  options: InferOptions = {},
  profile: number,
  recent: RecentOps,
  chooser: Chooser,
): DeviceOp<NamedTensors> {
  checkOptions('options', options, ['outputs', 'signal']);
  const { outputs = {}, signal } = options;
  checkSignal(signal);
  checkNames(engine, inputs, outputs);
  const range = (input: number): ExtentRange | undefined => {
    const of = engine.ranges[input]![profile];
    return of === undefined ? undefined : { min: of.min, max: of.max, of: `profile ${profile}` };
  };
  const values = engine.inputs.map(({ name }) => inputs[name]!);
  const known = values.some((value) => value instanceof DeviceOp)
    ? undefined
    : (values as readonly AnyTensor[]);
  if (known !== undefined) planOutputs(engine, known, outputs, range);
  const name = `enqueue of ${engine.toString()}`;
  // A repeated run on the same tensors usually has to check only that they are open.
  const last: { again: Again | undefined } | undefined =
    known === undefined ? undefined : { again: undefined };
  const args: ConstructorParameters<typeof Applied<NamedTensors>> = [
    known === undefined
      ? new Collected(
          values.map((value) => nodeOf(value)),
          name,
        )
      : new Ready(known),
    engine.device,
    name,
    (run, tensors) => {
      const again = last?.again;
      if (again !== undefined) {
        engine.check();
        signal?.throwIfAborted();
        const { tensors: there } = again;
        for (let i = 0; i < there.length; i++) there[i]!.checkAlive();
        if (chooser.contextFor(run.stream) === again.context) {
          follow(run, again.context.queue(run.stream, again.placed), signal);
          return again.value;
        }
      }
      const given = known ?? (tensors as readonly AnyTensor[]);
      if (known === undefined) planOutputs(engine, given, outputs, range);
      return submit(engine, given, { outputs, signal }, profile, chooser, run, last);
    },
    Object.values(outputs),
  ];
  if (known === undefined || signal !== undefined)
    return new DeviceOp(new Applied<NamedTensors>(...args));
  const node = new RunOfTensors(inputs, outputs, ...args);
  recent.add(node);
  return new DeviceOp(node);
}

/** The parts of a run that are the same each time, where all of its tensors were given. */
interface Again {
  readonly context: ExecutionContext;
  readonly tensors: readonly AnyTensor[];
  readonly placed: PlacedRun;
  readonly value: NamedTensors;
}

function submit(
  engine: TensorRTEngine,
  inputs: readonly AnyTensor[],
  options: InferOptions,
  profile: number,
  chooser: Chooser,
  run: Run,
  last?: { again: Again | undefined },
): Submitted<NamedTensors> {
  const { outputs = {}, signal } = options;
  engine.check();
  // The signal is checked again after each wait: TensorRT does not cancel queued work.
  signal?.throwIfAborted();
  for (const tensor of inputs) tensor.checkAlive();
  const shapes = engine.outputShapes(inputs, profile);
  if (shapes instanceof Promise)
    return once(run, shapes, () => submit(engine, inputs, options, profile, chooser, run, last));
  const open = shapes.flatMap(({ shape }, i) => (shape.includes(-1) ? [i] : []));
  if (open.length > 0) checkOpen(engine, open, outputs, run);
  const context = chooser.contextFor(run.stream);
  if (context instanceof Promise)
    return once(run, context, () => submit(engine, inputs, options, profile, chooser, run, last));
  const ready = open.length > 0 ? context.readyFor(open) : undefined;
  if (ready !== undefined)
    return once(run, ready, () => submit(engine, inputs, options, profile, chooser, run, last));
  const { mark } = run;
  const dense = inputs.map((tensor) => {
    if (isDense(tensor)) return tensor;
    // The copy is closed after the run, as memory that a step makes and does not pass on.
    const copy = madeTensor(run, tensor.dtype.name, tensor.shape);
    const copied = nodeOf(copy.copyFrom(tensor as never)).submit(run);
    if (copied instanceof Later) throw invalid('inputs', 'contiguous tensors', tensor);
    return copy;
  });
  const results = engine.outputs.map((port, i): AnyTensor => {
    const to = valueNamed(outputs, port.name) as AnyTensor | undefined;
    if (to === undefined) {
      const { shape, bytes } = shapes[i]!;
      // An output whose shape only the run gives gets memory for its greatest size.
      return madeTensor(
        run,
        port.dtype,
        open.includes(i) ? [Math.max(1, Math.ceil(bytes / DTYPES[port.dtype].bytes))] : shape,
      );
    }
    const argument = `options.outputs.${port.name}`;
    to.checkAlive();
    checkTensor(argument, { ...port, shape: shapes[i]!.shape }, to);
    if (!isDense(to))
      throw invalid(
        argument,
        'a contiguous tensor from the first element of its memory on',
        to,
        'Leave it out, and copy what the run gives.',
      );
    return to;
  });
  const placed = placedRun(dense, results);
  if (open.length > 0) return opened(run, engine, context, placed, results, open, signal);
  follow(run, context.queue(run.stream, placed), signal);
  const value = namedTensors(engine.outputs, results);
  if (last !== undefined && !run.recording && run.mark === mark)
    last.again = { context, tensors: [...inputs, ...results], placed, value };
  return value;
}

/** Waits for a queued run until the signal aborts. */
function follow(run: Run, root: number, signal: AbortSignal | undefined): void {
  // A recorded run is executed by the graph.
  if (run.recording || signal === undefined) return;
  const { stream } = run;
  const pending = new Pending(stream, root, stream.mark);
  run.dependOn(unlessAborted(signal, () => pending.then()));
}

/**
 * Checks that a run with such outputs, whose shapes only it gives, is possible.
 *
 * @throws CudaError in a capture and in sync(), CudaArgumentError for a tensor that is given for
 * one
 */
function checkOpen(
  engine: TensorRTEngine,
  open: readonly number[],
  outputs: NamedTensors,
  run: Run,
): void {
  const names = open.map((i) => engine.outputs[i]!.name);
  const what =
    `a run of ${engine.toString()}, whose output '${names[0]}' has a shape that depends on the ` +
    `inputs' values,`;
  run.checkNotRecording(what, 'run it before the capture, or after graph.replay()');
  if (run.mode === 'block')
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${what} needs the event loop, which sync() holds up: await the operation.`,
    );
  for (const name of names) {
    const given = valueNamed(outputs, name);
    if (given !== undefined)
      throw invalid(
        `options.outputs.${name}`,
        'nothing: its shape is known when it is there',
        given,
        'Leave it out, and use what the run gives.',
      );
  }
}

/**
 * Queues a run whose outputs get their shapes from it: they are copied from the memory of the
 * greatest size, which is then freed.
 */
function opened(
  run: Run,
  engine: TensorRTEngine,
  context: ExecutionContext,
  placed: PlacedRun,
  results: readonly AnyTensor[],
  open: readonly number[],
  signal: AbortSignal | undefined,
): Later<NamedTensors> {
  const room = new Map(open.map((i): [number, number] => [i, results[i]!.buffer.byteLength]));
  const shapesOfRun = context.queueOpen(run.stream, placed, room);
  return run.goOn(
    new Later(
      unlessAborted(signal, () => shapesOfRun),
      false,
    ),
    (shapes) => {
      const value = results.map((result, i) => {
        const shape = shapes.get(i);
        if (shape === undefined) return result;
        const tensor = madeTensor(run, result.dtype.name, shape);
        // The tensor's memory is new: the copy waits for nothing.
        if (tensor.size > 0)
          nodeOf(
            tensor.copyFrom(new Tensor(result.buffer, contiguous([...shape]), false) as never),
          ).submit(run);
        return tensor;
      });
      return namedTensors(engine.outputs, value);
    },
  );
}

function once<T>(run: Run, ready: Promise<unknown>, next: () => Submitted<T>): Submitted<T> {
  // A recording cannot wait: it is recorded anew.
  if (run.recording) throw new NotLoaded(ready);
  run.loads++;
  return run.goOn(new Later(ready, false), next);
}
