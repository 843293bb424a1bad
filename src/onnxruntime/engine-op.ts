/**
 * A run of an engine as an operation. Its arguments are checked when it is made, as far as they are
 * known, and when it runs.
 */
import { CudaError, bool, u8 } from '../core/index.js';
import type { Stream } from '../core/index.js';
import { checkOptions, checkSignal } from '../ground/arguments.js';
import type { EngineInputs, InferOptions, NamedTensors } from '../engine/engine.js';
import { RunOfTensors } from '../engine/recent-ops.js';
import type { RecentOps } from '../engine/recent-ops.js';
import { checkNames, planOutputs } from '../engine/run-checks.js';
import type { PlannedOutput } from '../engine/run-checks.js';
import { Applied, Collected, Ready } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import { whenKnown } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import type { AnyTensor } from '../tensor/index.js';
import type { OnnxContext } from './context.js';
import type { OnnxEngine } from './engine.js';
import { LineRun, shapesOf } from './line-run.js';

/** A run whose arguments have been checked. */
export interface PlannedRun {
  /** The inputs in the model's order, without gaps. */
  readonly inputs: readonly AnyTensor[];
  readonly outputs: readonly PlannedOutput[];
  readonly signal: AbortSignal | undefined;
}

/** Chooses the context of a run when that begins. */
export interface Chooser {
  contextFor(stream: Stream): OnnxContext;
}

export function engineOp(
  engine: OnnxEngine,
  what: string,
  inputs: EngineInputs,
  options: InferOptions | undefined,
  recent: RecentOps,
  chooser: Chooser,
): DeviceOp<NamedTensors> {
  const known = recent.find(inputs, options);
  // `newOp` has closures, whose variables would otherwise be allocated at each call of this
  // function.
  return known === undefined
    ? newOp(engine, what, inputs, options, recent, chooser)
    : new DeviceOp(known);
}

/**
 * Returns a tensor that the library can use: without gaps, and for bool with bytes of 0 and 1,
 * since the library computes with the bytes. On the device every byte except 0 is true.
 */
function placeable(tensor: AnyTensor): AnyTensor | DeviceOp<AnyTensor> {
  if (tensor.dtype.name === 'bool')
    return (tensor.reinterpret(u8 as never) as AnyTensor).convert(bool);
  return tensor.isContiguous ? tensor : tensor.contiguous();
}

function newOp(
  engine: OnnxEngine,
  what: string,
  inputs: EngineInputs,
  options: InferOptions = {},
  recent: RecentOps,
  chooser: Chooser,
): DeviceOp<NamedTensors> {
  checkOptions('options', options, ['outputs', 'signal']);
  const { outputs: given = {}, signal } = options;
  checkSignal(signal);
  checkNames(engine, inputs, given);
  const values = engine.inputs.map(({ name }) => inputs[name]!);
  // The results of operations are checked when they exist.
  const known = values.every((each) => !(each instanceof DeviceOp));
  if (known)
    planOutputs(engine, values, given, undefined, seenBy(engine, values as readonly AnyTensor[]));
  // A run in a line cannot be ended, so a run with a signal is not in one.
  const inLine = signal === undefined;
  let kept: LineRun | undefined;
  let doubts = 0;
  const anew = (run: Run, tensors: readonly AnyTensor[]): Submitted<NamedTensors> => {
    const { outputShapes } = engine;
    const planned = outputShapes.planned(
      shapesOf(tensors),
      planOutputs(engine, tensors, given, undefined, seenBy(engine, tensors)),
    );
    const dense = new Collected(
      tensors.map((tensor): ReturnType<typeof nodeOf<unknown>> =>
        nodeOf<unknown>(placeable(tensor)),
      ),
      what,
    ).submit(run);
    return whenKnown(run, dense, (all) => {
      const placed = all as readonly AnyTensor[];
      // Copies without gaps are closed after the run, as memory that a step makes and does not pass
      // on.
      const copies = placed.some((tensor, i) => tensor !== tensors[i]);
      const context = chooser.contextFor(run.stream);
      const line = inLine ? LineRun.of(engine, placed, planned) : undefined;
      if (known && !copies) [kept, doubts] = [line, outputShapes.doubts];
      const given = line === undefined ? undefined : context.submitInLine(run, line);
      return given ?? context.submit(run, { inputs: placed, outputs: planned, signal });
    });
  };
  const args: ConstructorParameters<typeof Applied<NamedTensors>> = [
    known
      ? new Ready(values)
      : new Collected(
          values.map((each) => nodeOf(each)),
          what,
        ),
    engine.device,
    `${what}(…)`,
    (run, found) => {
      run.checkNotRecording(
        'a run of ONNX Runtime',
        'run it before the capture, or after graph.replay()',
      );
      if (run.mode === 'block')
        throw new CudaError(
          'ERR_CUDA_UNSUPPORTED',
          `${what}: a run of ONNX Runtime needs the event loop, which sync() holds up: await ` +
            'the operation.',
        );
      const again =
        kept?.isOpen === true && doubts === engine.outputShapes.doubts
          ? chooser.contextFor(run.stream).submitInLine(run, kept)
          : undefined;
      return again ?? anew(run, found as readonly AnyTensor[]);
    },
    Object.values(given),
  ];
  if (!known || !inLine) return new DeviceOp(new Applied<NamedTensors>(...args));
  const node = new RunOfTensors(inputs, given, ...args);
  recent.add(node);
  return new DeviceOp(node);
}

/**
 * Returns the shapes that outputs are known to have on these inputs. The inputs may be of any type:
 * they have not been checked.
 */
function seenBy(
  engine: OnnxEngine,
  tensors: readonly AnyTensor[],
): (output: number) => readonly number[] | undefined {
  let inputs: string | undefined;
  return (output) => engine.outputShapes.of((inputs ??= shapesOf(tensors)), output);
}
