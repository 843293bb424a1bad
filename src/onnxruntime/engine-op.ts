/** A run of an engine as an operation: its arguments are looked at when it is made, as far as they are known, and when it runs. */
import { CudaError } from '../core/index.js';
import type { Stream } from '../core/index.js';
import { checkOptions, checkSignal } from '../core/arguments.js';
import type { Engine, EngineInputs, EnqueueOptions, NamedTensors, TensorInfo } from '../engine/engine.js';
import { checkNames, planOutputs } from '../engine/run-checks.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { Applied, Collected } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { Later, whenKnown } from '../ops/node.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxContext } from './context.js';
import type { OnnxEngine } from './engine.js';
import { KeptRun } from './kept-run.js';

/** A run whose arguments are known to be right. */
export interface PlannedRun {
  /** In the model's order, without gaps. */
  readonly inputs: readonly AnyTensor[];
  /** Copies among them that are closed behind the run. */
  readonly temporaries: readonly AnyTensor[];
  readonly outputs: readonly PlannedOutput[];
  readonly signal: AbortSignal | undefined;
}

/** Operations of the same tensors that are remembered: as many as a program most often has in turns. */
const MOST_RECENT = 4;

/** A run on tensors that were given, all of them and without a signal: another of the same ones is the same. */
class RunOfTensors extends Applied<NamedTensors> {
  readonly from: readonly unknown[];
  readonly to: readonly unknown[];

  constructor(from: readonly unknown[], to: readonly unknown[], ...rest: ConstructorParameters<typeof Applied<NamedTensors>>) {
    super(...rest);
    this.from = from;
    this.to = to;
  }
}

/** The last operations that were made of tensors. Whoever makes one for each run has what is kept for it at hand. */
export class RecentOps {
  /** Weak: neither operations nor tensors are kept alive. */
  private readonly ops: WeakRef<RunOfTensors>[] = [];
  private next = 0;

  add(op: RunOfTensors): void {
    this.ops[this.next] = new WeakRef(op);
    this.next = (this.next + 1) % MOST_RECENT;
  }

  find({ inputs, outputs }: Pick<Engine, 'inputs' | 'outputs'>, from: EngineInputs, to: NamedTensors): RunOfTensors | undefined {
    for (let i = 0; i < this.ops.length; i++) {
      const op = this.ops[i]!.deref();
      if (op !== undefined && isOf(inputs, from, op.from) && isOf(outputs, to, op.to)) return op;
    }
    return undefined;
  }
}

/** Whether the object has exactly these open tensors, by the names of the infos. */
function isOf(infos: readonly TensorInfo[], given: Readonly<Record<string, unknown>>, tensors: readonly unknown[]): boolean {
  let count = 0;
  for (const name in given) if (Object.hasOwn(given, name)) count++;
  if (count !== infos.length) return false;
  for (let i = 0; i < infos.length; i++) {
    const tensor = tensors[i] as AnyTensor;
    if (given[infos[i]!.name] !== tensor || tensor.isClosed) return false;
  }
  return true;
}

/** `choose` is called when the operation runs, for the context that does it. */
export function engineOp(engine: OnnxEngine, what: string, inputs: EngineInputs, options: EnqueueOptions, recent: RecentOps, choose: (stream: Stream) => OnnxContext): DeviceOp<NamedTensors> {
  checkOptions('options', options, ['outputs', 'signal']);
  const { outputs: given = {}, signal } = options;
  checkSignal(signal);
  if (signal === undefined && typeof inputs === 'object' && typeof given === 'object') {
    const node = recent.find(engine, inputs, given);
    if (node !== undefined) return new DeviceOp(node);
  }
  checkNames(engine, inputs, given);
  const values = engine.inputs.map(({ name }) => inputs[name]!);
  // What an operation makes is looked at when it is there.
  const known = values.every((each) => !(each instanceof DeviceOp));
  if (known) planOutputs(engine, values, given);
  const outputs = engine.outputs.map(({ name }) => given[name]);
  // Not by the CUDA provider: how that takes it has not been seen.
  const mayKeep = known && signal === undefined && engine.provider === 'cpu' && outputs.every((output) => output !== undefined);
  let kept: KeptRun | undefined;
  const args: ConstructorParameters<typeof Applied<NamedTensors>> = [new Collected(values.map((each) => nodeOf(each)), what), engine.device, `${what}(…)`, (run, found) => {
    run.checkNotRecording('a run of ONNX Runtime', 'run it before the capture, or behind graph.launch()');
    if (run.mode === 'block') throw new CudaError('ERR_CUDA_UNSUPPORTED', `${what}: a run of ONNX Runtime needs the event loop, which sync() holds up: await the operation.`);
    if (kept?.isThere === true && choose(run.stream).resubmit(run.stream, kept)) return kept.value;
    const tensors = found as readonly AnyTensor[];
    const planned = planOutputs(engine, tensors, given);
    const dense = new Collected(tensors.map((tensor): ReturnType<typeof nodeOf<unknown>> => nodeOf<unknown>(tensor.isContiguous ? tensor : tensor.contiguous())), what).submit(run);
    return whenKnown(run, dense, (all) => {
      const placed = all as readonly AnyTensor[];
      const temporaries = placed.filter((tensor, i) => tensor !== tensors[i]);
      const submitted = choose(run.stream).submit(run, { inputs: placed, temporaries, outputs: planned, signal });
      if (mayKeep && temporaries.length === 0 && !(submitted instanceof Later)) kept = new KeptRun(engine, tensors, outputs, submitted);
      return submitted;
    });
  }, Object.values(given)];
  if (!mayKeep) return new DeviceOp(new Applied<NamedTensors>(...args));
  const node = new RunOfTensors(values, outputs, ...args);
  recent.add(node);
  return new DeviceOp(node);
}
