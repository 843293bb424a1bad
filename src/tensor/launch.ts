/** Launches of kernels as operations. */
import { CudaArgumentError } from '../core/index.js';
import type {
  CoreDevice,
  Dimensions,
  Kernel,
  KernelArgument,
  LaunchOptions,
} from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { Applied, Collected } from '../ops/collect.js';
import { DeviceOp, nodeOf } from '../ops/device-op.js';
import type { GivenAll } from '../ops/make.js';
import { Partitioned } from './partitioned.js';
import { showShape } from './shape.js';
import { Tensor } from './tensor.js';
import type { AnyTensor } from './tensor.js';

/** An argument of a kernel: one of `async-cuda/core`, a tensor, or a partition. */
export type LaunchArgument = KernelArgument | AnyTensor | Partitioned;

/** Options of {@link Kernel.launch}; the grid may be left out where it follows from a partition. */
export interface OpLaunchOptions extends Omit<LaunchOptions, 'grid'> {
  grid?: Dimensions;
}

/** Axes that a grid has at most. */
const MOST_AXES = 3;

/**
 * Launches a kernel as an operation. Arguments are values, or operations that give them, which run
 * before the kernel in the order in which they are written. The operation gives the values of all
 * arguments as a list. Tensors have to be contiguous: the kernel gets the address of the first
 * element. Of a partition it gets the tensor's address, and the grid has one block for each tile,
 * with axis 0 as the grid's x. cuLaunchKernel
 *
 * @throws CudaArgumentError for options that are no object; when run, for arguments that the kernel
 *   does not take, tensors that are not contiguous, and a grid that differs from a partition's
 *
 * @example
 * ```ts
 * const text = `.version 7.0
 * .target sm_70
 * .address_size 64
 * .visible .entry set(.param .u64 y) {
 *   .reg .b64 %y;
 *   ld.param.u64 %y, [y]; cvta.to.global.u64 %y, %y; st.global.u32 [%y], 7;
 * }`;
 * await using core = await CoreDevice.open('cpu');
 * await using module = await core.loadModule(text);
 * const set = module.kernel('set', [output(u32)]);
 * using y = await zeros(core, u32, [2]);
 * await callKernel(set, { grid: 1, block: 1 }, y);
 * console.log((await y.read()).join(' ')); // 7 0
 * ```
 */
export function callKernel<const A extends readonly (LaunchArgument | DeviceOp<LaunchArgument>)[]>(
  kernel: Kernel,
  options: OpLaunchOptions,
  ...args: A
): DeviceOp<GivenAll<A>> {
  if (
    typeof options !== 'object' ||
    (options as unknown) === null ||
    options instanceof Tensor ||
    options instanceof DeviceOp ||
    options instanceof Partitioned
  ) {
    throw invalid(
      'options',
      'an object with grid and block',
      options,
      'Write launch({ grid: 4, block: 256 }, …arguments).',
    );
  }
  const inputs = new Collected(
    args.map((arg) => nodeOf<unknown>(arg)),
    kernel.name,
  );
  const device: CoreDevice = kernel.module.device;
  return new DeviceOp(
    new Applied<GivenAll<A>>(inputs, device, `${kernel.name}(…)`, (run, values) => {
      const given = values as readonly LaunchArgument[];
      kernel.launch(
        run.stream,
        shaped(kernel, options, given),
        ...given.map((arg, index) => plain(kernel, arg, index)),
      );
      return values as GivenAll<A>;
    }),
  );
}

function plain(kernel: Kernel, arg: LaunchArgument, index: number): KernelArgument {
  if (arg instanceof Partitioned) {
    arg.check();
    return dense(kernel, arg.tensor, index);
  }
  if (!(arg instanceof Tensor)) return arg;
  if (kernel.writes(index)) arg.checkWritable(`${kernel.name}, argument ${index}`);
  return dense(kernel, arg, index);
}

function dense(kernel: Kernel, tensor: AnyTensor, index: number): KernelArgument {
  if (tensor.isContiguous) return tensor.dense();
  throw new CudaArgumentError(
    `args[${index}]`,
    `args[${index}] of ${kernel.name}: expected a contiguous tensor, got ` +
      `${tensor.toString()}: a kernel is passed an address, not strides. Make it contiguous() ` +
      'first.',
  );
}

/** The options, with the grid that follows from the partitions. */
function shaped(
  kernel: Kernel,
  options: OpLaunchOptions,
  args: readonly LaunchArgument[],
): LaunchOptions {
  const grid = gridOfPartitions(
    kernel.name,
    options.grid,
    args.filter((arg) => arg instanceof Partitioned),
  );
  if (grid === undefined)
    throw invalid(
      'options.grid',
      'the number of blocks',
      undefined,
      'Write it unless an argument is a partition, from which it follows.',
    );
  return grid === options.grid ? (options as LaunchOptions) : { ...options, grid };
}

/**
 * Gives the grid that follows from partitions: one block for each tile. Where blocks share a list
 * of tiles, a given grid is kept.
 *
 * @throws CudaArgumentError where partitions differ from each other or from the given grid
 * @internal
 */
export function gridOfPartitions(
  name: string,
  given: Dimensions | undefined,
  partitions: readonly Partitioned[],
): Dimensions | undefined {
  let grid = given;
  let from: Partitioned | undefined;
  for (const each of partitions) {
    const said = gridOf(each);
    if (each.list !== undefined) {
      // Persistent blocks share the tiles, so that there may be fewer blocks than tiles.
      if (grid !== undefined && blocks(grid) > each.count)
        throw invalid('options.grid', `at most ${each.count} blocks, one for each tile`, grid);
      grid ??= each.count;
    } else if (grid === undefined) {
      grid = said;
      from = each;
    } else if (!sameGrid(grid, said)) {
      throw invalid(
        'options.grid',
        from === undefined
          ? `${showShape(said)}, one block for each tile of ${each.toString()}, or nothing`
          : `partitions of ${name} that agree: ${from.toString()}`,
        from === undefined ? grid : each,
      );
    }
  }
  return grid;
}

function gridOf({ tiles }: Partitioned): [number, number, number] {
  if (tiles.grid.length > MOST_AXES)
    throw new CudaArgumentError(
      'partition',
      `a grid has at most ${MOST_AXES} axes, and the partition has ${tiles.grid.length}. ` +
        'Reshape the tensor.',
    );
  return [tiles.grid[0] ?? 1, tiles.grid[1] ?? 1, tiles.grid[2] ?? 1];
}

function blocks(grid: Dimensions): number {
  return typeof grid === 'number'
    ? grid
    : (grid as readonly number[]).reduce((product, extent) => product * extent, 1);
}

function sameGrid(a: Dimensions, b: readonly number[]): boolean {
  const [x, y = 1, z = 1] = typeof a === 'number' ? [a] : (a as readonly number[]);
  return x === b[0] && y === b[1] && z === b[2];
}
