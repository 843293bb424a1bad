/**
 * Engines: the implementations of operations on images. `own` are our kernels, written in
 * TypeScript, which are always available and run on every device; `npp` is NVIDIA's library. An
 * operation describes its work (images, results, parameters); each engine has a table of
 * implementations, with the dtypes and channels that they take and how they queue the work.
 */
import { CudaArgumentError } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { operation } from '../library/operation.js';
import type { AnyDevice, DeviceOp } from '../ops/index.js';
import { coreOf } from '../ops/scheduling.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { shareElements } from '../tensor/shared-elements.js';
import { CHANNELS, IMAGE_NAMES } from './image.js';
import { nppEngine } from './npp-engine.js';
import type {
  EngineName,
  Engine,
  EngineInfo,
  ImageOperation,
  EngineOptions,
  Description,
  Implementation,
} from './implementation.js';

const ENGINE_NAMES: readonly EngineName[] = ['own', 'npp'];

const OTHERS: Readonly<Record<Exclude<EngineName, 'own'>, Engine>> = { npp: nppEngine };

let defaultEngine: EngineName = 'own';

/**
 * Gives the engine of operations that name none.
 *
 * @example
 * ```ts
 * console.log(getDefaultEngine()); // own
 * ```
 */
export function getDefaultEngine(): EngineName {
  return defaultEngine;
}

/**
 * Sets the engine of operations that name none, from the next call on. There is no silent fallback:
 * an operation that the engine does not have throws.
 *
 * @throws CudaArgumentError for an unknown name
 *
 * @example
 * ```ts
 * setDefaultEngine('own');
 * console.log(getDefaultEngine()); // own
 * ```
 */
export function setDefaultEngine(name: EngineName): void {
  checkEngine('name', name);
  defaultEngine = name;
}

/**
 * Gives each engine, with whether it is available on a device. `own` always is.
 *
 * @example
 * ```ts
 * const [own] = await engines(device);
 * console.log(own); // { name: 'own', available: true }
 * ```
 */
export async function engines(device: AnyDevice): Promise<readonly EngineInfo[]> {
  const core = coreOf(device);
  return [
    { name: 'own', available: true },
    ...(await Promise.all(Object.values(OTHERS).map((engine) => engine.infoFor(core)))),
  ];
}

function checkEngine(argument: string, name: unknown): asserts name is EngineName {
  if (!(ENGINE_NAMES as readonly unknown[]).includes(name))
    throw invalid(argument, `one of ${ENGINE_NAMES.join(', ')}`, name);
}

/**
 * Makes the operation on its inputs.
 *
 * @param inputs tensors, operations that give them, or undefined for an optional one
 * @param describe checks the inputs in order, throws for wrong ones, and describes the work
 * @param give makes the operation's value of its results
 */
export function imageOperation<P, R>(
  definition: ImageOperation<P>,
  inputs: readonly unknown[],
  options: EngineOptions,
  describe: (values: readonly unknown[]) => Description<P>,
  give: (results: readonly KernelTensor[], description: Description<P>) => R,
): DeviceOp<R> {
  const { engine = defaultEngine } = options;
  checkEngine('options.engine', engine);
  return operation(definition.name, inputs, (values) => {
    const description = describe(values);
    const implementation = implementationFor(definition, engine, description);
    checkApart(definition.name, description);
    return (work) => {
      const results = description.results.map((result) =>
        result instanceof Tensor
          ? result
          : (work.result(result.dtype, [...result.shape]) as unknown as KernelTensor),
      );
      implementation.queue(work, { ...description, results });
      return give(results, description);
    };
  });
}

/**
 * Gives the engine's implementation.
 *
 * @throws CudaArgumentError, which names an engine that has one, where this engine has none
 */
function implementationFor<P>(
  definition: ImageOperation<P>,
  engine: EngineName,
  description: Description<P>,
): Implementation<P> {
  const implementation = implementationOf(definition, engine);
  const lacking = lackOf(implementation, description);
  if (implementation !== undefined && lacking === undefined) return implementation;
  const { name } = definition;
  const having = ENGINE_NAMES.find(
    (other) =>
      other !== engine && lackOf(implementationOf(definition, other), description) === undefined,
  );
  const fix =
    having === undefined
      ? 'No engine has it.'
      : `'${having}' has it: write { engine: '${having}' }.`;
  throw new CudaArgumentError(
    'options.engine',
    `options.engine: '${engine}' has ${lacking ?? 'no'} for ${name}(…). ${fix}`,
  );
}

function implementationOf<P>(
  { name, own }: ImageOperation<P>,
  engine: EngineName,
): Implementation<P> | undefined {
  return engine === 'own'
    ? own
    : (OTHERS[engine].implementations[name] as Implementation<P> | undefined);
}

function lackOf<P>(
  implementation: Implementation<P> | undefined,
  description: Description<P>,
): string | undefined {
  if (implementation === undefined) return 'nothing';
  const { dtype, channels } = description.images[0]!;
  const counts = implementation.takes === undefined ? CHANNELS : implementation.takes[dtype.name];
  if (counts?.includes(channels) !== true) {
    const taken = IMAGE_NAMES.flatMap((name) => {
      const given = implementation.takes![name];
      return given === undefined ? [] : [`${name} with ${given.join(', ')}`];
    });
    return (
      `no ${dtype.name} with ${channels} ${channels === 1 ? 'channel' : 'channels'}, but ` +
      `${taken.join('; ')},`
    );
  }
  return implementation.lacks?.(description);
}

/** @throws CudaArgumentError where `out` shares elements with an image that is read */
function checkApart<P>(name: string, { images, results }: Description<P>): void {
  for (const result of results) {
    if (!(result instanceof Tensor)) continue;
    for (const { tensor } of images) {
      if (tensor.buffer.memory === result.buffer.memory && shareElements(tensor, result)) {
        throw invalid(
          'options.out',
          `an image that shares no pixels with the images that ${name}(…) reads`,
          result,
          'Leave it out, or copy the image with dup() first.',
        );
      }
    }
  }
}
