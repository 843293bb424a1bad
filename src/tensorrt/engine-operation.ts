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

/** Says which context is to run, when a run begins. */
export interface Chooser {
  /** Now, or once it is made, or is free. */
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
  // What makes one has functions within, so that its variables would be made anew for each call of
  // it.
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
  // Run again on the same tensors, it most often has nothing to look at but whether they are there.
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

/** A run all of whose tensors were given: whatever of it is the same each time. */
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
  // Also behind each wait: what has been queued TensorRT does not give up.
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
    // Closed behind the run, as what a step makes and does not give on.
    const copy = madeTensor(run, tensor.dtype.name, tensor.shape);
    const copied = nodeOf(copy.copyFrom(tensor as never)).submit(run);
    if (copied instanceof Later) throw invalid('inputs', 'contiguous tensors', tensor);
    return copy;
  });
  const results = engine.outputs.map((port, i): AnyTensor => {
    const to = valueNamed(outputs, port.name) as AnyTensor | undefined;
    if (to === undefined) {
      const { shape, bytes } = shapes[i]!;
      // For one whose shape the run says there is as much as it may take.
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

/** A run that is queued is waited for until the signal aborts. */
function follow(run: Run, root: number, signal: AbortSignal | undefined): void {
  // What is recorded is run by the graph.
  if (run.recording || signal === undefined) return;
  const { stream } = run;
  const pending = new Pending(stream, root, stream.mark);
  run.dependOn(unlessAborted(signal, () => pending.then()));
}

/**
 * @throws CudaError, CudaArgumentError where outputs whose shapes only the run says cannot be had
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
 * A run whose outputs get their shapes from it: they are copied from the memory that was kept
 * ready, which is given back.
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
  const told = context.queueOpen(run.stream, placed, room);
  return run.goOn(
    new Later(
      unlessAborted(signal, () => told),
      false,
    ),
    (shapes) => {
      const value = results.map((result, i) => {
        const shape = shapes.get(i);
        if (shape === undefined) return result;
        const tensor = madeTensor(run, result.dtype.name, shape);
        // Memory that has just been made: the copy waits for nothing.
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
  // What is recorded cannot wait: it is recorded anew.
  if (run.recording) throw new NotLoaded(ready);
  run.loads++;
  return run.goOn(new Later(ready, false), next);
}
