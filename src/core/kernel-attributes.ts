/** Attributes of a kernel and of a launch: their checks, and their encoding in the ring. */
import { checkBoolean, checkInteger, invalid } from '../ground/arguments.js';
import {
  LAUNCH_CLUSTER,
  LAUNCH_COOPERATIVE,
  LAUNCH_EX,
  LAUNCH_PRIORITY,
  LAUNCH_PROGRAMMATIC,
} from '../runtime/commands.js';
import { dimension, type LaunchOptions } from './launch-shape.js';

/** cuFuncGetAttribute */
export interface KernelAttributes {
  /** The most threads in a block of this kernel. */
  maxThreadsPerBlock: number;
  /** Static shared memory, bytes. */
  sharedBytes: number;
  /** Constant memory, bytes. */
  constantBytes: number;
  /** Local memory of one thread, bytes. */
  localBytes: number;
  /** 32-bit registers of one thread. */
  registers: number;
  /** The virtual architecture of the PTX: 80 for `.target sm_80` or `compute_80`. */
  ptxVersion: number;
  /** e.g. 90 for machine code of compute capability 9.0 */
  binaryVersion: number;
  /** The most dynamic shared memory of a launch, in bytes. */
  maxDynamicSharedBytes: number;
}

/**
 * Checks the attributes of a launch, before anything is queued. `waits`: whether the kernel's code
 * waits for the grids before it, where that is known.
 */
export function checkAttributes(
  options: LaunchOptions,
  kernel: string,
  waits: boolean | undefined,
): void {
  const { cooperative, cluster, programmatic, priority } = options;
  checkBoolean('options.cooperative', cooperative);
  checkBoolean('options.programmatic', programmatic);
  // It could end before the kernel before it, and work after it would begin too early.
  if (programmatic === true && waits === false)
    throw invalid(
      'options.programmatic',
      `false or nothing, since kernel '${kernel}' never waits for the one before it`,
      programmatic,
      'Call gpu.grid.waitForDependencies() in it before it uses memory: griddepcontrol.wait in ' +
        'PTX, cudaGridDependencySynchronize() in CUDA C++.',
    );
  if (priority !== undefined) checkInteger('options.priority', priority, -2147483648, 2147483647);
  if (cluster === undefined) return;
  for (let axis = 0; axis < 3; axis++) {
    const blocks: unknown =
      typeof cluster === 'number'
        ? axis === 0
          ? cluster
          : 1
        : dimension('cluster', cluster, axis);
    checkInteger(`options.cluster (${'xyz'[axis]})`, blocks, 1, 2147483647, 'blocks');
  }
}

export function putAttributes(memory: Int32Array, at: number, options: LaunchOptions): void {
  let flags = 0;
  if (options.cooperative === true) flags |= LAUNCH_COOPERATIVE;
  if (options.programmatic === true) flags |= LAUNCH_PROGRAMMATIC;
  if (options.priority !== undefined) flags |= LAUNCH_PRIORITY;
  if (options.cluster !== undefined) flags |= LAUNCH_CLUSTER;
  const { cluster = 1 } = options;
  memory[at + LAUNCH_EX.flags] = flags;
  memory[at + LAUNCH_EX.clusterX] =
    typeof cluster === 'number' ? cluster : dimension('cluster', cluster, 0);
  memory[at + LAUNCH_EX.clusterY] =
    typeof cluster === 'number' ? 1 : dimension('cluster', cluster, 1);
  memory[at + LAUNCH_EX.clusterZ] =
    typeof cluster === 'number' ? 1 : dimension('cluster', cluster, 2);
  memory[at + LAUNCH_EX.priority] = options.priority ?? 0;
}
