/** The options of a launch, and the shape that follows from them. */
import { invalid } from '../ground/arguments.js';
import type { KernelMemory } from './launch-arguments.js';

/** One number for x, or up to three for x, y and z. */
export type Dimensions =
  number | readonly [number] | readonly [number, number] | readonly [number, number, number];

/** Options of `Kernel.launch`. The same object may be passed repeatedly. */
export interface LaunchOptions {
  /** Blocks. */
  grid: Dimensions;
  /** Threads of one block. */
  block: Dimensions;
  /** Dynamic shared memory, bytes. */
  sharedBytes?: number;
  /**
   * Whether all blocks run at once and may synchronise with one another.
   * CU_LAUNCH_ATTRIBUTE_COOPERATIVE
   */
  cooperative?: boolean;
  /**
   * Blocks of one cluster. It needs compute capability 9.0 or later, or the CPU device.
   * CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
   */
  cluster?: Dimensions;
  /**
   * Whether the kernel may begin before the kernel queued before it on the stream ends: once all
   * blocks of that one have executed `griddepcontrol.launch_dependents` or ended. It has to execute
   * `griddepcontrol.wait` before it reads or writes memory that another kernel uses; PTX without
   * that instruction is refused (ERR_CUDA_INVALID_ARGUMENT). It needs compute capability 9.0; on
   * the CPU device it has no effect. In a captured graph it becomes a programmatic edge.
   * CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
   */
  programmatic?: boolean;
  /** The launch's priority. CU_LAUNCH_ATTRIBUTE_PRIORITY */
  priority?: number;
}

export const LAUNCH_OPTIONS = [
  'grid',
  'block',
  'sharedBytes',
  'cooperative',
  'cluster',
  'programmatic',
  'priority',
];

/** A checked grid and block. */
export interface LaunchShape {
  /**
   * The option as it was passed, where both are numbers and there are no attributes; else NaN,
   * which equals nothing.
   */
  readonly grid: number;
  readonly block: number;
  /** The option as it was passed. */
  readonly givenBytes: number | undefined;
  readonly gridX: number;
  readonly gridY: number;
  readonly gridZ: number;
  readonly blockX: number;
  readonly blockY: number;
  readonly blockZ: number;
  readonly sharedBytes: number;
  readonly extended: boolean;
  /** Whether OP.launchLine, or OP.launchGrid, can encode the launch. */
  readonly line: boolean;
  readonly simple: boolean;
}

export const NO_SHAPE: LaunchShape = {
  grid: NaN,
  block: NaN,
  givenBytes: NaN,
  gridX: 0,
  gridY: 0,
  gridZ: 0,
  blockX: 0,
  blockY: 0,
  blockZ: 0,
  sharedBytes: 0,
  extended: false,
  line: false,
  simple: false,
};

export function dimension(
  argument: string,
  value: Exclude<Dimensions, number>,
  axis: number,
): number {
  if (!Array.isArray(value) || value.length < 1 || value.length > 3) {
    throw invalid(
      `options.${argument}`,
      'a number or an array of one to three numbers',
      value,
      `Write ${argument}: 256 or ${argument}: [16, 16].`,
    );
  }
  if (axis >= value.length) return 1;
  const size: unknown = value[axis];
  if (typeof size !== 'number') throw invalid(`options.${argument}[${axis}]`, 'a number', size);
  return size;
}

/** Writes the first eight words of a launch that names all dimensions. */
export function putShape(memory: Int32Array, at: number, handle: number, shape: LaunchShape): void {
  memory[at] = handle;
  memory[at + 1] = shape.gridX;
  memory[at + 2] = shape.gridY;
  memory[at + 3] = shape.gridZ;
  memory[at + 4] = shape.blockX;
  memory[at + 5] = shape.blockY;
  memory[at + 6] = shape.blockZ;
  memory[at + 7] = shape.sharedBytes;
}

export function extent(memory: KernelMemory): readonly [number, number] {
  return [memory.byteOffset, memory.byteOffset + memory.byteLength];
}

export const TWO32 = 4294967296;
