/** A batcher for an engine: its items and its results are tensors of one item. */
import { CudaArgumentError, CudaError, DTYPES } from '../../core/index.js';
import { checkOptions, invalid, valueNamed } from '../../ground/arguments.js';
import { messageOf } from '../../ground/other-realms.js';
import { allOf } from '../../ops/index.js';
import type { DeviceOp } from '../../ops/index.js';
import { Tensor } from '../../tensor/index.js';
import type { AnyTensor } from '../../tensor/index.js';
import { uninitialized } from '../../tensor/make.js';
import type { Engine, NamedTensors, TensorInfo } from '../engine.js';
import { BATCHER_OPTIONS, Batcher, ItemFailure } from './batcher.js';
import type { BatchRequestOptions, BatcherOptions } from './batcher.js';

/**
 * Runs an engine on batches of requests of one item each. The model's inputs and outputs have a
 * first axis of any extent, the batch; an item has the remaining axes: `[3, 224, 224]` for an input
 * of `[-1, 3, 224, 224]`. Where more extents are open, items of one shape form a batch, and each
 * shape has a batch and a delay of its own.
 *
 * The tensors of a request remain the caller's, and may be closed once it has settled. The results
 * are copies that the caller closes. A batch is one run of {@link Engine.infer}. If that fails, its
 * requests run one by one: those that can run get their results, and each of the others gets an
 * error of its own, whose message names the request and whose `cause` is the run's error.
 *
 * {@link close} does not close the engine.
 *
 * @example
 * ```ts no-run
 * await using engine = await loadEngine(device, 'classifier.onnx');
 * await using batcher = new EngineBatcher(engine, { maxBatchSize: 32, maxQueueDelay: 5 });
 * using image = await device.zeros(f32, [3, 224, 224]);
 * const { logits } = await batcher.run({ image });
 * console.log(await logits!.read()); // the classes' values
 * logits!.close();
 * ```
 */
export class EngineBatcher extends Batcher<NamedTensors, NamedTensors> {
  readonly engine: Engine;

  /** @throws CudaArgumentError for a model whose inputs and outputs have no batch axis */
  constructor(engine: Engine, options: BatcherOptions) {
    if (typeof (engine as Partial<Engine> | null)?.infer !== 'function')
      throw invalid('engine', 'an Engine', engine, 'loadEngine(device, model) gives one.');
    if (options !== undefined) checkOptions('options', options, BATCHER_OPTIONS);
    for (const info of [...engine.inputs, ...engine.outputs])
      checkBatched(info, engine.inputs.includes(info));
    checkNotInItems(engine);
    super((items) => runBatch(engine, items), options);
    this.engine = engine;
  }

  /**
   * Returns the model's outputs for one item.
   *
   * @param item a tensor for each input, on the engine's device, of the input's dtype, and of its
   *   shape without the first axis
   * @throws CudaArgumentError where an argument is wrong. The promise rejects as that of
   *   {@link Batcher.run} does
   */
  override run(item: NamedTensors, options?: BatchRequestOptions): Promise<NamedTensors> {
    this.checkItem(item);
    return super.run(item, options);
  }

  /** Items of one shape are one group. */
  protected override groupOf(item: NamedTensors): string {
    return this.engine.inputs.map(({ name }) => item[name]!.shape.join()).join(';');
  }

  /** The weight is in bytes. */
  protected override weightOf(item: NamedTensors): number {
    return this.engine.inputs.reduce(
      (sum, { name }) => sum + item[name]!.size * item[name]!.dtype.bytes,
      0,
    );
  }

  protected override discard(result: NamedTensors): void {
    for (const tensor of Object.values(result)) tensor.close();
  }

  private checkItem(item: NamedTensors): void {
    const { inputs, device, strictShapes } = this.engine;
    const names = inputs.map(({ name }) => name);
    if (typeof item !== 'object' || item === null)
      throw invalid('item', `tensors by name: ${names.join(', ')}`, item);
    for (const name of Object.keys(item)) {
      if (!names.includes(name))
        throw new CudaArgumentError(
          `item.${name}`,
          `item: the model has no input '${name}'. Its inputs are ${names.join(', ')}.`,
        );
    }
    const extents = new Map<string, { readonly extent: number; readonly of: string }>();
    for (const {
      name,
      dtype,
      shape: [, ...shape],
      dimensions: [, ...dimensions] = [],
    } of inputs) {
      const tensor = valueNamed(item, name);
      const argument = `item.${name}`;
      const shown = shape
        .map((extent, axis) => (extent >= 0 ? String(extent) : (dimensions[axis] ?? '?')))
        .join(', ');
      const expected = `a tensor of ${dtype} and [${shown}], one item of the model's input`;
      if (!(tensor instanceof Tensor)) throw invalid(argument, expected, tensor);
      tensor.checkAlive();
      const given = tensor as AnyTensor;
      if (given.dtype.name !== dtype || !fits(given.shape, shape)) {
        const whole =
          given.shape.length === shape.length + 1 && given.shape[0] === 1
            ? ' Without its first axis: tensor.squeeze(0).'
            : '';
        throw new CudaArgumentError(
          argument,
          `${argument}: expected ${expected}, got one of ${given.dtype.name} and ` +
            `[${given.shape.join(', ')}].${whole}`,
        );
      }
      dimensions.forEach((dimension, axis) => {
        if (dimension === undefined || strictShapes === false) return;
        const extent = given.shape[axis]!;
        const before = extents.get(dimension);
        if (before === undefined) extents.set(dimension, { extent, of: argument });
        else if (before.extent !== extent)
          throw new CudaArgumentError(
            argument,
            `${argument}: expected ${expected}, where ${dimension} is ${before.extent} by ` +
              `${before.of}, got [${given.shape.join(', ')}]. Make them equal.`,
          );
      });
      if (given.device.runtime !== device.runtime)
        throw new CudaArgumentError(
          argument,
          `${argument}: expected a tensor on the engine's device, got one on another. Copy ` +
            'it there: tensor.to(device).',
        );
    }
  }
}

/** Whether the extents are equal; -1 in `shape` matches any. */
function fits(given: readonly number[], shape: readonly number[]): boolean {
  return (
    given.length === shape.length &&
    given.every((extent, i) => shape[i] === -1 || extent === shape[i])
  );
}

function checkBatched({ name, shape }: TensorInfo, isInput: boolean): void {
  if (shape[0] === -1) return;
  throw new CudaArgumentError(
    'engine',
    `engine: the ${isInput ? 'input' : 'output'} '${name}' is [${shape.join(', ')}]: ` +
      'expected a first axis of any extent (-1), the batch. Export the model with a dynamic ' +
      'batch axis.',
  );
}

/** @throws CudaArgumentError where an item has an extent of the batch's name */
function checkNotInItems({ inputs, strictShapes }: Engine): void {
  if (strictShapes === false) return;
  const batches = new Set(inputs.map(({ dimensions }) => dimensions?.[0]));
  for (const { name, dimensions: [, ...dimensions] = [] } of inputs) {
    const found = dimensions.find((dimension) => dimension !== undefined && batches.has(dimension));
    if (found === undefined) continue;
    throw new CudaArgumentError(
      'engine',
      `engine: the input '${name}' has the extent '${found}' in its items, which is the ` +
        `batch's: items could be of one size of batch only. Use Batcher with a function of ` +
        'your own.',
    );
  }
}

type Outcome = NamedTensors | ItemFailure;

/** Runs the items as one batch; if that fails, one by one. */
async function runBatch(engine: Engine, items: readonly NamedTensors[]): Promise<Outcome[]> {
  const outcomes = new Array<Outcome>(items.length);
  const fail = (i: number, error: unknown, what: string): void => {
    outcomes[i] = new ItemFailure(
      errorOf(error, `request ${i + 1} of a batch of ${items.length}${what}`),
    );
  };
  const open: number[] = [];
  // Items that were closed while they waited are left out.
  for (const [i, item] of items.entries()) {
    const closed = closedOf(item);
    if (closed === undefined) open.push(i);
    else
      fail(
        i,
        closed.error,
        `: item.${closed.name} was closed before it was used. Close it once run() has settled`,
      );
  }
  if (open.length === 0) return outcomes;
  try {
    const results = await runTogether(
      engine,
      open.map((i) => items[i]!),
    );
    for (const [k, i] of open.entries()) outcomes[i] = results[k]!;
  } catch (error) {
    // The items run one after the other, because the failure may be a lack of memory. A failure on
    // a lost device has nothing to do with the items.
    const again = open.length > 1 && engine.device.lost === undefined;
    for (const i of open) {
      if (again)
        await runTogether(engine, [items[i]!]).then(
          ([result]) => {
            outcomes[i] = result!;
          },
          (own: unknown) => {
            fail(i, own, ', which failed, and so did this request by itself');
          },
        );
      else fail(i, error, '');
    }
  }
  return outcomes;
}

function closedOf(
  item: NamedTensors,
): { readonly name: string; readonly error: unknown } | undefined {
  for (const [name, tensor] of Object.entries(item)) {
    try {
      tensor.checkAlive();
    } catch (error) {
      return { name, error };
    }
  }
  return undefined;
}

/** Each caller gets an error of its own: the failure itself may be that of several requests. */
function errorOf(error: unknown, where: string): CudaError {
  const { code, message, ...rest } =
    error instanceof CudaError
      ? error
      : { code: 'ERR_CUDA_INTERNAL' as const, message: messageOf(error) };
  return new CudaError(code, `EngineBatcher.run, ${where}: ${message}`, { ...rest, cause: error });
}

function runTogether(engine: Engine, items: readonly NamedTensors[]): Promise<NamedTensors[]> {
  return outputsOf(engine, items, 0, {})
    .andThen((outputs) => {
      checkOutputs(outputs, items.length);
      return allOf(items.map((_, i) => itemOf(outputs, i))).tap(() =>
        close(Object.values(outputs)),
      );
    })
    .label(`batch of ${items.length}`)
    .run();
}

/**
 * Runs the engine on the batches of its inputs from the i-th on, and on those in `made`. Each is
 * closed after the run.
 */
function outputsOf(
  engine: Engine,
  items: readonly NamedTensors[],
  i: number,
  made: NamedTensors,
): DeviceOp<NamedTensors> {
  const input = engine.inputs[i];
  if (input === undefined) return engine.infer(made);
  return stacked(engine, input, items).andThen((batch) =>
    outputsOf(engine, items, i + 1, { ...made, [input.name]: batch }),
  );
}

function stacked(
  { device }: Engine,
  { name, dtype }: TensorInfo,
  items: readonly NamedTensors[],
): DeviceOp<AnyTensor> {
  const size = [items.length, ...items[0]![name]!.shape];
  return uninitialized(device, DTYPES[dtype], size).andThen((batch) =>
    allOf(items.map((item, i) => (batch.slice(i) as AnyTensor).copyFrom(item[name]!))).map(
      () => batch as AnyTensor,
    ),
  );
}

/** A copy of the i-th item of each output. */
function itemOf(outputs: NamedTensors, i: number): DeviceOp<NamedTensors> {
  const names = Object.keys(outputs);
  return allOf(names.map((name) => ((outputs[name] as AnyTensor).slice(i) as AnyTensor).dup())).map(
    (parts) => Object.fromEntries(names.map((name, k) => [name, parts[k]!])),
  );
}

/**
 * The engine's description is that of the model, which the outputs may differ from. @throws
 * CudaError where an output's first axis is not the batch
 */
function checkOutputs(outputs: NamedTensors, size: number): void {
  for (const [name, { shape }] of Object.entries(outputs)) {
    if (shape[0] === size) continue;
    close(Object.values(outputs));
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `engine: the output '${name}' of a batch of ${size} is [${shape.join(', ')}]: its ` +
        'first axis is not the batch, so it cannot be divided among the requests. Use Batcher ' +
        'with a function of your own.',
    );
  }
}

function close(tensors: readonly AnyTensor[]): void {
  for (const tensor of tensors) tensor.close();
}
