/** A run of an engine as an operation: inputs are checked, outputs are made, and the context's calls are queued. */
import type { DTypeName, Stream } from '../core/index.js';
import { DTYPES } from '../core/index.js';
import { invalid } from '../core/arguments.js';
import type { EngineInputs, EnqueueOptions, NamedTensors } from '../engine/engine.js';
import { Applied, Collected } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Later, NotLoaded } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { Tensor, numel, sameShape } from '../tensor/index.js';
import type { AnyTensor } from '../tensor/index.js';
import { contiguous } from '../tensor/layout.js';
import type { ExecutionContext } from './execution-context.js';
import { isDense } from './tensorrt-engine.js';
import type { TensorRTEngine } from './tensorrt-engine.js';

/** The context that is to run, now or once it is made. */
export type Choose = (stream: Stream) => ExecutionContext | Promise<ExecutionContext>;

export function engineOperation(engine: TensorRTEngine, inputs: EngineInputs, { outputs = {} }: EnqueueOptions, profile: number, choose: Choose): DeviceOp<NamedTensors> {
  const given = inputs as Readonly<Record<string, unknown>>;
  engine.checkNames('inputs', Object.keys(given), engine.inputs, true);
  engine.checkNames('options.outputs', Object.keys(outputs), engine.outputs, false);
  for (const port of engine.outputs) if (outputs[port.name] !== undefined) engine.checkTensor(`options.outputs.${port.name}`, port, outputs[port.name]);
  const values = engine.inputs.map(({ name }) => given[name]);
  const known = values.some((value) => value instanceof DeviceOp) ? undefined : engine.checkInputs(given, profile);
  const name = `enqueue of ${engine.toString()}`;
  return new DeviceOp(new Applied<NamedTensors>(new Collected(values.map((value) => nodeOf(value)), name), engine.device, name, (run, tensors) => {
    const checked = known ?? engine.checkInputs(Object.fromEntries(engine.inputs.map((port, i) => [port.name, tensors[i]])), profile);
    for (const tensor of checked) tensor.checkAlive();
    return submit(engine, checked, outputs, profile, choose, run);
  }, Object.values(outputs)));
}

function submit(engine: TensorRTEngine, inputs: readonly AnyTensor[], outputs: NamedTensors, profile: number, choose: Choose, run: Run): Submitted<NamedTensors> {
  engine.check();
  const shapes = engine.outputShapes(inputs, profile);
  if (shapes instanceof Promise) return once(run, shapes, () => submit(engine, inputs, outputs, profile, choose, run));
  const context = choose(run.stream);
  if (context instanceof Promise) return once(run, context, () => submit(engine, inputs, outputs, profile, choose, run));
  const made: AnyTensor[] = [];
  try {
    const dense = inputs.map((tensor) => {
      if (isDense(tensor)) return tensor;
      const copy = alloc(run, tensor.dtype.name, [...tensor.shape] as number[]);
      made.push(copy);
      const copied = nodeOf(copy.copyFrom(tensor as never)).submit(run);
      if (copied instanceof Later) throw invalid('inputs', 'contiguous tensors', tensor);
      return copy;
    });
    const results = engine.outputs.map((port, i): AnyTensor => {
      const to = outputs[port.name];
      if (to === undefined) return alloc(run, port.dtype, shapes[i]!);
      const argument = `options.outputs.${port.name}`;
      to.checkAlive();
      if (!sameShape(to.shape, shapes[i]!)) throw invalid(argument, `shape [${shapes[i]!.join(', ')}]`, [...to.shape]);
      if (!isDense(to)) throw invalid(argument, 'a contiguous tensor', to);
      return to;
    });
    context.queue(run.stream, dense, results);
    return Object.fromEntries(engine.outputs.map(({ name }, i) => [name, results[i]!]));
  } finally {
    if (!run.recording) for (const tensor of made) tensor.close();
  }
}

function once<T>(run: Run, ready: Promise<unknown>, next: () => Submitted<T>): Submitted<T> {
  // What is recorded cannot wait: it is recorded anew.
  if (run.recording) throw new NotLoaded(ready);
  run.loads++;
  return new Later(ready.then(() => run.settled(run.resume(next))), false);
}

function alloc(run: Run, dtype: DTypeName, shape: readonly number[]): AnyTensor {
  return new Tensor(run.alloc(DTYPES[dtype], numel(shape)), contiguous([...shape]), true);
}
