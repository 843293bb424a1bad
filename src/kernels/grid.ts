/**
 * Grid and block of a launch: from its options, from partitions, or one thread for each element of
 * the largest output.
 */
import { CudaArgumentError } from '../core/index.js';
import type { DeviceProperties, Dimensions } from '../core/index.js';
import { checkInteger, invalid, isList } from '../ground/arguments.js';
import { Partitioned } from '../tensor/index.js';
import { gridOfPartitions } from '../tensor/launch.js';
import { isTensor } from './call-arguments.js';
import type { PassedTensor, PassedValue } from './loaded-kernel.js';
import type { Parameter } from './parameters.js';

/** Blocks of 256 threads. A warp lies along the last axis, so that its accesses are coalesced. */
const LINE: Dimensions = 256;
const PLANE: Dimensions = [32, 8];

type Three = readonly [number, number, number];

export interface LaunchShape {
  readonly grid: Dimensions;
  readonly block: Dimensions;
}

/** Grid and block of the options. */
export interface GivenShape {
  readonly grid: Dimensions | undefined;
  readonly block: Dimensions;
}

/**
 * The block of launches that give none. It follows from the signature alone, so that code can be
 * made for it before the arguments are known.
 */
export function usualBlock(parameters: readonly Parameter[]): Dimensions {
  const ranks = parameters.flatMap(({ entry }) =>
    entry.kind === 'tensor' && entry.access !== 'input' ? [entry.rank] : [],
  );
  return ranks.length === 0 || ranks.includes(1) ? LINE : PLANE;
}

/**
 * Gives grid and block of a launch. Undefined where there is nothing to do: all outputs are empty,
 * and no grid was given.
 *
 * @throws CudaArgumentError where there are no outputs to infer the grid from, or it is beyond the
 *   device's limits
 */
export function launchShape(
  kernel: string,
  parameters: readonly Parameter[],
  args: readonly unknown[],
  values: readonly PassedValue[],
  given: GivenShape,
  limits: DeviceProperties,
): LaunchShape | undefined {
  const grid = gridOfPartitions(
    kernel,
    given.grid,
    args.filter((arg) => arg instanceof Partitioned),
  );
  const { block } = given;
  if (grid !== undefined) return { grid, block };
  const largest = largestOutput(parameters, values);
  const blocks = gridOver(kernel, largest?.shape, block);
  if (largest!.length === 0) return undefined;
  const over = blocks.findIndex((count, axis) => count > limits.maxGrid[axis]!);
  if (over >= 0) {
    throw invalid(
      'options.grid',
      `at most ${limits.maxGrid[over]} blocks along ${'xyz'[over]!}`,
      `${blocks.join(' × ')}, one thread for each element of the largest output`,
      'Give { grid } and let each thread do several elements in a loop over gpu.globalSize.',
    );
  }
  return blocks[1] === 1 && blocks[2] === 1 ? { grid: blocks[0], block } : { grid: blocks, block };
}

/**
 * Gives blocks with one thread for each element of a shape.
 *
 * @throws CudaArgumentError where there is no shape
 */
export function gridOver(
  kernel: string,
  shape: readonly number[] | undefined,
  block: Dimensions,
): Three {
  if (shape === undefined) {
    throw invalid(
      'options.grid',
      `the number of blocks of kernel '${kernel}'`,
      undefined,
      'It is inferred from the outputs only, and this kernel has none: write kernel(args, { ' +
        'grid }).',
    );
  }
  const threads = three(block);
  return extentsOf(shape).map((extent, axis) =>
    Math.ceil(extent / threads[axis]!),
  ) as unknown as Three;
}

function largestOutput(
  parameters: readonly Parameter[],
  values: readonly PassedValue[],
): PassedTensor | undefined {
  let largest: PassedTensor | undefined;
  values.forEach((value, index) => {
    const { entry } = parameters[index]!;
    if (entry.kind !== 'tensor' || entry.access === 'input' || !isTensor(value)) return;
    if (largest === undefined || value.length > largest.length) largest = value;
  });
  return largest;
}

/** Threads along x, y and z: the last axis is x, all axes beyond the last two are z. */
function extentsOf(shape: readonly number[]): Three {
  const [x = 1, y = 1, ...rest] = [...shape].reverse();
  return [x, y, rest.reduce((product, extent) => product * extent, 1)];
}

export function three(dimensions: Dimensions): Three {
  if (typeof dimensions === 'number') return [dimensions, 1, 1];
  const [x, y = 1, z = 1] = dimensions as readonly number[];
  return [x!, y, z];
}

/** The number of threads. */
export function threadsOf({ grid, block }: LaunchShape): number {
  return [...three(grid), ...three(block)].reduce((product, count) => product * count, 1);
}

/**
 * Checks grid, block and sharedBytes of a launch or a simulation.
 *
 * @throws CudaArgumentError
 */
export function checkShapeOptions({
  grid,
  block,
  sharedBytes,
}: {
  readonly grid?: unknown;
  readonly block?: unknown;
  readonly sharedBytes?: unknown;
}): void {
  checkDimensions('options.grid', grid, 'blocks');
  checkDimensions('options.block', block, 'threads');
  if (sharedBytes !== undefined)
    checkInteger('options.sharedBytes', sharedBytes, 0, 2 ** 31 - 1, 'bytes');
}

/** @throws CudaArgumentError where the kernel has shared memory whose bytes no option gives */
export function checkDynamicShared(
  kernel: string,
  dynamicShared: boolean,
  sharedBytes: number | undefined,
): void {
  if (!dynamicShared || sharedBytes !== undefined) return;
  throw new CudaArgumentError(
    'options.sharedBytes',
    `options.sharedBytes: kernel '${kernel}' has gpu.dynamicShared, whose bytes the launch ` +
      `gives. Write ${kernel}(args, { sharedBytes }).`,
  );
}

/**
 * Checks that dimensions are a number, or one to three. The launch checks the device's limits.
 *
 * @throws CudaArgumentError
 */
export function checkDimensions(
  argument: string,
  value: unknown,
  unit: 'blocks' | 'threads',
): asserts value is Dimensions | undefined {
  if (value === undefined) return;
  const most = unit === 'blocks' ? 2 ** 31 - 1 : Number.MAX_SAFE_INTEGER;
  if (isList(value) && value.length >= 1 && value.length <= 3)
    [...value].forEach((each, axis) => {
      checkInteger(`${argument}[${axis}]`, each, 1, most, unit);
    });
  else if (typeof value === 'number') checkInteger(argument, value, 1, most, unit);
  else throw invalid(argument, 'a number or an array of one to three numbers', value);
}
