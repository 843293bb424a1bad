/** A batcher for an engine: tensors of one item in, tensors of one item out. */
import { CudaArgumentError, DTYPES } from '../../core/index.js';
import { checkOptions, invalid } from '../../core/arguments.js';
import { all } from '../../ops/index.js';
import type { DeviceOp } from '../../ops/index.js';
import { Tensor } from '../../tensor/index.js';
import type { AnyTensor } from '../../tensor/index.js';
import { uninitialized } from '../../tensor/make.js';
import type { Engine, NamedTensors, TensorInfo } from '../engine.js';
import { BATCHER_OPTIONS, Batcher } from './batcher.js';
import type { BatchRequestOptions, BatcherOptions } from './batcher.js';

/**
 * Runs an engine on batches of requests of one item each. The model's inputs and outputs have a first axis of any extent, the
 * batch; an item is all behind it: `[3, 224, 224]` of an input of `[-1, 3, 224, 224]`.
 *
 * ```ts
 * const batcher = new EngineBatcher(engine, { maxBatchSize: 32, maxQueueDelay: 5 });
 * using image = await letterboxNormalise(photograph, { width: 224, height: 224, dtype: f32 });
 * const { logits } = await batcher.run({ image }, { signal });
 * ```
 *
 * The tensors of a request stay the caller's, and may be closed once it has settled. The results are copies that the caller
 * closes. A batch is one run of {@link Engine.run}: its error is that of each of its callers.
 *
 * {@link close} does not close the engine.
 */
export class EngineBatcher extends Batcher<NamedTensors, NamedTensors> {
  readonly engine: Engine;

  /** @throws CudaArgumentError for a model that has no batch, or other extents that are not known */
  constructor(engine: Engine, options: BatcherOptions) {
    if (typeof (engine as Partial<Engine> | null)?.run !== 'function') throw invalid('engine', 'an Engine', engine, 'loadEngine(device, model) gives one.');
    if (options !== undefined) checkOptions('options', options, BATCHER_OPTIONS);
    for (const info of [...engine.inputs, ...engine.outputs]) checkBatched(info, engine.inputs.includes(info));
    super((items) => runBatch(engine, items), options);
    this.engine = engine;
  }

  /**
   * The model's outputs for one item.
   *
   * @param item a tensor for each input, on the engine's device, of the input's dtype, of its shape without the first axis
   * @throws CudaArgumentError. Rejects as {@link Batcher.run} does
   */
  override run(item: NamedTensors, options?: BatchRequestOptions): Promise<NamedTensors> {
    this.checkItem(item);
    return super.run(item, options);
  }

  protected override discard(result: NamedTensors): void {
    for (const tensor of Object.values(result)) tensor.close();
  }

  private checkItem(item: NamedTensors): void {
    const { inputs, device } = this.engine;
    const names = inputs.map(({ name }) => name);
    if (typeof item !== 'object' || item === null) throw invalid('item', `tensors by name: ${names.join(', ')}`, item);
    for (const name of Object.keys(item)) {
      if (!names.includes(name)) throw new CudaArgumentError(`item.${name}`, `item: the model has no input '${name}'. Its inputs are ${names.join(', ')}.`);
    }
    for (const { name, dtype, shape } of inputs) {
      const tensor: unknown = item[name];
      const argument = `item.${name}`;
      const expected = `a tensor of ${dtype} and [${shape.slice(1).join(', ')}], one item of the model's input`;
      if (!(tensor instanceof Tensor)) throw invalid(argument, expected, tensor);
      tensor.checkAlive();
      const given = tensor as AnyTensor;
      if (given.dtype.name !== dtype || !sameExtents(given.shape, shape.slice(1))) {
        const whole = given.shape.length === shape.length && given.shape[0] === 1 ? ' Without its first axis: tensor.squeeze(0).' : '';
        throw new CudaArgumentError(argument, `${argument}: expected ${expected}, got one of ${given.dtype.name} and [${given.shape.join(', ')}].${whole}`);
      }
      if (given.device.runtime !== device.runtime) throw new CudaArgumentError(argument, `${argument}: expected a tensor on the engine's device, got one on another. Copy it there: tensor.to(device).`);
    }
  }
}

function sameExtents(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, i) => extent === b[i]);
}

function checkBatched({ name, shape }: TensorInfo, isInput: boolean): void {
  const what = `engine: the ${isInput ? 'input' : 'output'} '${name}' is [${shape.join(', ')}]`;
  if (shape[0] !== -1) throw new CudaArgumentError('engine', `${what}: expected a first axis of any extent (-1), the batch. Export the model with a dynamic batch axis.`);
  // Of outputs the engine knows what the model says, which may be less than what comes out.
  if (isInput && shape.slice(1).includes(-1)) {
    throw new CudaArgumentError('engine', `${what}: expected the first extent only to be open, so that items fit together. For items of many sizes use Batcher with a function that brings them to one.`);
  }
}

/** One run: items copied into a batch, the engine, its outputs cut into items. */
function runBatch(engine: Engine, items: readonly NamedTensors[]): Promise<NamedTensors[]> {
  return outputsOf(engine, items, 0, {})
    .andThen((outputs) => all(items.map((_, i) => itemOf(outputs, i))).tap(() => close(Object.values(outputs))))
    .label(`batch of ${items.length}`)
    .run();
}

/** The engine on the batches of its inputs from the i-th on, beside those that `made` has: each is closed behind the run. */
function outputsOf(engine: Engine, items: readonly NamedTensors[], i: number, made: NamedTensors): DeviceOp<NamedTensors> {
  const input = engine.inputs[i];
  if (input === undefined) return engine.run(made);
  return stacked(engine, input, items).use((batch) => outputsOf(engine, items, i + 1, { ...made, [input.name]: batch }));
}

function stacked({ device }: Engine, { name, dtype, shape }: TensorInfo, items: readonly NamedTensors[]): DeviceOp<AnyTensor> {
  const size = [items.length, ...shape.slice(1)];
  return uninitialized(device, DTYPES[dtype], size).andThen((batch) => all(items.map((item, i) => (batch.slice(i) as AnyTensor).copyFrom(item[name]!))).map(() => batch as AnyTensor));
}

/** A copy of the i-th item of each output. */
function itemOf(outputs: NamedTensors, i: number): DeviceOp<NamedTensors> {
  const names = Object.keys(outputs);
  return all(names.map((name) => ((outputs[name] as AnyTensor).slice(i) as AnyTensor).dup())).map((parts) => Object.fromEntries(names.map((name, k) => [name, parts[k]!])));
}

function close(tensors: readonly AnyTensor[]): void {
  for (const tensor of tensors) tensor.close();
}
