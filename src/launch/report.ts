/** What a device makes of a kernel: registers, memory, and how many of its blocks run at once. */
import { invalid } from '../core/arguments.js';
import type { Device, Dimensions, KernelAttributes } from '../core/index.js';
import type { LoadedKernel } from './loaded-kernel.js';

/** As the driver says it. Bytes, unless the name says otherwise. */
export interface KernelReport extends Readonly<KernelAttributes> {
  /** The device's name. */
  readonly device: string;
  /** The block that occupancy is told for. */
  readonly block: Dimensions;
  /** Such blocks that one multiprocessor runs at once. cuOccupancyMaxActiveBlocksPerMultiprocessor */
  readonly blocksPerMultiprocessor: number;
  /** Their threads, as a share of those that a multiprocessor has room for: 0 to 1. */
  readonly occupancy: number;
}

export async function reportOf(device: Device, { kernel }: LoadedKernel, block: Dimensions, sharedBytes: number): Promise<KernelReport> {
  const threads = typeof block === 'number' ? block : (block as readonly number[]).reduce((product, extent) => product * extent, 1);
  const { maxThreadsPerBlock } = device.properties;
  if (threads > maxThreadsPerBlock) throw invalid('options.block', `at most ${maxThreadsPerBlock} threads, of ${device.name}`, block);
  const blocksPerMultiprocessor = await kernel.maxActiveBlocks(threads, sharedBytes);
  return {
    device: device.name, ...kernel.attributes, block, blocksPerMultiprocessor,
    occupancy: blocksPerMultiprocessor * threads / device.properties.maxThreadsPerMultiprocessor,
  };
}
