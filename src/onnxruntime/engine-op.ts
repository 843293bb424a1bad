/** A run of an engine as an operation: its arguments are looked at when it is made, as far as they are known, and when it runs. */
import { CudaError } from '../core/index.js';
import { checkOptions, checkSignal, invalid } from '../core/arguments.js';
import type { EngineInputs, EnqueueOptions, NamedTensors, TensorInfo } from '../engine/engine.js';
import { checkTensor as checkTensorValue } from '../library/operation.js';
import { Applied, Collected } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxEngine } from './engine.js';
import { checkInputs, checkNames, checkOutputNames, checkTensor, knownShape } from './shapes.js';

/** Where an output goes: a tensor that was given, a new one of a known shape, or one that is made once the shape is known. */
export interface PlannedOutput {
  readonly info: TensorInfo;
  readonly given: AnyTensor | undefined;
  readonly shape: readonly number[] | undefined;
}

/** A run whose arguments are known to be right. */
export interface PlannedRun {
  /** In the model's order, without gaps. */
  readonly inputs: readonly AnyTensor[];
  /** Copies among them that are closed behind the run. */
  readonly temporaries: readonly AnyTensor[];
  readonly outputs: readonly PlannedOutput[];
  readonly signal: AbortSignal | undefined;
}

/** `submit` is called when the operation runs. */
export function engineOp(
  engine: OnnxEngine, what: string, inputs: EngineInputs, options: EnqueueOptions, submit: (run: Run, plan: PlannedRun) => Submitted<NamedTensors>,
): DeviceOp<NamedTensors> {
  checkOptions('options', options, ['outputs', 'signal']);
  const { outputs: given = {}, signal } = options;
  checkSignal(signal);
  checkNames(engine.inputs, inputs);
  if (typeof given !== 'object' || given === null) throw invalid('options.outputs', 'an object of tensors', given);
  checkOutputNames(engine.outputs, given);
  const nodes = engine.inputs.map(({ name }) => inputs[name]!);
  // What an operation makes is looked at when it is there.
  const known = nodes.every((each) => !(each instanceof DeviceOp));
  if (known) plannedOutputs(engine, nodes as readonly AnyTensor[], given);
  return new DeviceOp(new Applied<NamedTensors>(new Collected(nodes.map((each) => nodeOf(each)), what), engine.device, `${what}(…)`, (run, values) => {
    run.checkNotRecording('a run of ONNX Runtime', 'run it before the capture, or behind graph.launch()');
    if (run.mode === 'block') throw new CudaError('ERR_CUDA_UNSUPPORTED', `${what}: a run of ONNX Runtime needs the event loop, which sync() holds up: await the operation.`);
    const tensors = values as readonly AnyTensor[];
    const outputs = plannedOutputs(engine, tensors, given);
    const dense = new Collected(tensors.map((tensor): ReturnType<typeof nodeOf<unknown>> => nodeOf<unknown>(tensor.isContiguous ? tensor : tensor.contiguous())), what).submit(run);
    return whenKnown(run, dense, (all) => {
      const placed = all as readonly AnyTensor[];
      return submit(run, { inputs: placed, temporaries: placed.filter((tensor, i) => tensor !== tensors[i]), outputs, signal });
    });
  }, Object.values(given)));
}

/** @throws CudaArgumentError, CudaDisposedError for inputs that the model does not take, outputs that it does not give */
function plannedOutputs(engine: OnnxEngine, tensors: readonly AnyTensor[], given: Readonly<Record<string, AnyTensor>>): PlannedOutput[] {
  const inputs: Record<string, AnyTensor> = {};
  engine.inputs.forEach(({ name }, i) => {
    inputs[name] = checkOwn(engine, `inputs.${name}`, tensors[i]);
  });
  const extents = checkInputs(engine.inputs, inputs);
  return engine.outputs.map((info) => {
    const tensor = given[info.name];
    const shape = knownShape(info, extents);
    if (tensor === undefined) return { info, given: undefined, shape };
    const argument = `options.outputs.${info.name}`;
    checkOwn(engine, argument, tensor);
    checkTensor(argument, shape === undefined ? info : { ...info, shape }, tensor, new Map(extents));
    if (!tensor.isContiguous) throw invalid(argument, 'a contiguous tensor', tensor, 'Leave it out, and copy what the run gives.');
    const shared = Object.entries(inputs).find(([, input]) => input.buffer.memory === tensor.buffer.memory);
    if (shared !== undefined) throw invalid(argument, 'memory of its own', tensor, `It shares it with inputs.${shared[0]}.`);
    return { info, given: tensor, shape };
  });
}

function checkOwn(engine: OnnxEngine, argument: string, tensor: unknown): AnyTensor {
  checkTensorValue('engine.run', argument, tensor);
  if (tensor.device.runtime !== engine.device.runtime) throw invalid(argument, `a tensor of ${engine.device.name}`, tensor, 'Copy it first: tensor.to(device).');
  return tensor;
}
