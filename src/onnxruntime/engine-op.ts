/** A run of an engine as an operation: its arguments are looked at when it is made, as far as they are known, and when it runs. */
import { CudaError } from '../core/index.js';
import { checkOptions, checkSignal } from '../core/arguments.js';
import type { EngineInputs, EnqueueOptions, NamedTensors } from '../engine/engine.js';
import { checkNames, planOutputs } from '../engine/run-checks.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { Applied, Collected } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxEngine } from './engine.js';

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
  checkNames(engine, inputs, given);
  const nodes = engine.inputs.map(({ name }) => inputs[name]!);
  // What an operation makes is looked at when it is there.
  const known = nodes.every((each) => !(each instanceof DeviceOp));
  if (known) planOutputs(engine, nodes, given);
  return new DeviceOp(new Applied<NamedTensors>(new Collected(nodes.map((each) => nodeOf(each)), what), engine.device, `${what}(…)`, (run, values) => {
    run.checkNotRecording('a run of ONNX Runtime', 'run it before the capture, or behind graph.launch()');
    if (run.mode === 'block') throw new CudaError('ERR_CUDA_UNSUPPORTED', `${what}: a run of ONNX Runtime needs the event loop, which sync() holds up: await the operation.`);
    const tensors = values as readonly AnyTensor[];
    const outputs = planOutputs(engine, tensors, given);
    const dense = new Collected(tensors.map((tensor): ReturnType<typeof nodeOf<unknown>> => nodeOf<unknown>(tensor.isContiguous ? tensor : tensor.contiguous())), what).submit(run);
    return whenKnown(run, dense, (all) => {
      const placed = all as readonly AnyTensor[];
      return submit(run, { inputs: placed, temporaries: placed.filter((tensor, i) => tensor !== tensors[i]), outputs, signal });
    });
  }, Object.values(given)));
}
