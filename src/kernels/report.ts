/**
 * The properties of a kernel on a device: registers, memory, and how many of its blocks run at
 * once.
 */
import { invalid } from '../ground/arguments.js';
import type { CoreDevice, Dimensions, KernelAttributes } from '../core/index.js';
import type { CompiledKernel } from './compiler.js';
import type { LoadedKernel } from './loaded-kernel.js';

/** Values from the driver, in bytes unless the name names another unit. */
export interface KernelReport extends Readonly<KernelAttributes> {
  /** The device's name. */
  readonly device: string;
  /** The block that `occupancy` is computed for. */
  readonly block: Dimensions;
  /**
   * Blocks of that size that one multiprocessor runs at once.
   * cuOccupancyMaxActiveBlocksPerMultiprocessor
   */
  readonly blocksPerMultiprocessor: number;
  /** The threads of these blocks as a share of those that a multiprocessor has room for: 0 to 1. */
  readonly occupancy: number;
  /**
   * Bytes of local memory that a thread writes and reads because there are too few registers. The
   * driver's compiler reports it, which compiles the kernel once more for that; undefined where it
   * reports nothing. The CPU device has as many registers as a kernel takes.
   */
  readonly spillStoreBytes: number | undefined;
  readonly spillLoadBytes: number | undefined;
}

/** The report of a tile kernel. */
export interface TileReport extends KernelReport {
  /** What made the code: the library's compiler to PTX, or NVIDIA's Tile IR assembler. */
  readonly backend: 'ptx' | 'tileir';
  /**
   * How its products are computed: the instruction and the dtypes, or `f32` or `i32`, in which they
   * are summed, and the reason why no tensor cores compute them. Empty for kernels without
   * products.
   */
  readonly products: readonly string[];
}

interface Spills {
  readonly spillStoreBytes: number | undefined;
  readonly spillLoadBytes: number | undefined;
}

/** The line that ptxas writes for each function, with the option verbose. */
const SPILLS = /(\d+) bytes spill stores, (\d+) bytes spill loads/g;

/** Sums over all functions in the log: kernels are compiled one by one. */
export function spillsIn(log: string): Spills {
  const found = [...log.matchAll(SPILLS)];
  if (found.length === 0) return { spillStoreBytes: undefined, spillLoadBytes: undefined };
  const sum = (group: number): number =>
    found.reduce((bytes, match) => bytes + Number(match[group]), 0);
  return { spillStoreBytes: sum(1), spillLoadBytes: sum(2) };
}

async function spillsOf(
  device: CoreDevice,
  { cubin }: CompiledKernel,
  ptx: () => Promise<string>,
): Promise<Spills> {
  if (device.kind === 'cpu') return { spillStoreBytes: 0, spillLoadBytes: 0 };
  // Machine code of Tile IR is not compiled by the driver.
  if (cubin !== undefined) return spillsIn('');
  const { infoLog } = await device.machineCode(await ptx());
  return spillsIn(infoLog);
}

export async function reportOf(
  device: CoreDevice,
  { kernel, compiled }: LoadedKernel,
  block: Dimensions,
  sharedBytes: number,
  ptx: () => Promise<string>,
): Promise<KernelReport> {
  const threads =
    typeof block === 'number'
      ? block
      : (block as readonly number[]).reduce((product, extent) => product * extent, 1);
  const { maxThreadsPerBlock } = device.properties;
  if (threads > maxThreadsPerBlock)
    throw invalid(
      'options.block',
      `at most ${maxThreadsPerBlock} threads, of ${device.name}`,
      block,
    );
  const blocksPerMultiprocessor = await kernel.maxActiveBlocks(threads, sharedBytes);
  return {
    device: device.name,
    ...kernel.attributes,
    block,
    blocksPerMultiprocessor,
    occupancy: (blocksPerMultiprocessor * threads) / device.properties.maxThreadsPerMultiprocessor,
    ...(await spillsOf(device, compiled, ptx)),
  };
}
