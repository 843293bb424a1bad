/** The options of opening a device, and their checks. */
import { checkBoolean, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import type { CheckOptions } from '../ground/check-report.js';
import { LAST_SEED, MAX_WORKERS, checkCapability } from './open-devices.js';
import type { ComputeCapability } from './open-devices.js';

/** The name of a device: the first GPU or else the CPU device, a kind, or one of a kind. */
export type DeviceName = 'best' | 'cuda' | 'cpu' | `cuda:${number}` | `cpu:${number}`;

/** Options of `CoreDevice.open`. */
export interface OpenOptions {
  /**
   * `worker` (default) drives the device from a thread of its own; `inline` runs everything on the
   * calling thread.
   */
  thread?: 'worker' | 'inline';
  /** Memory of a CPU device in bytes. Default: up to 4 GiB, reserved as it is used. */
  memoryBytes?: number;
  /**
   * Threads that run the blocks of a CPU device's kernels, the device's own thread included. With
   * 1, and with `thread: 'inline'`, `check` or `schedule`, the order of all effects is the same in
   * every run. Default: the environment variable ASYNC_CUDA_WORKERS, else one per core.
   */
  workers?: number;
  /**
   * Milliseconds after which a CPU device ends a grid whose blocks all wait for each other, with no
   * other queued work that could release them. The error lists where each block waits. Infinity
   * switches that off, for kernels that wait for the host. Default 10,000.
   */
  stallLimit?: number;
  /**
   * The compute capability of a CPU device: which forms of kernels are compiled for it. PTX for a
   * later target runs on each. With `'8.9'` tile kernels multiply f8 by mma of warps; with `'9.0'`
   * products of matrices use wgmma and tensor maps, as on a GPU of that generation; they are slower
   * here than the other forms. Default: the environment
   * variable ASYNC_CUDA_CPU_CAPABILITY, else `'8.0'`.
   */
  computeCapability?: ComputeCapability;
  /**
   * On a CPU device: checks all work, and fails wrong work with a `CudaCheckError`. `true`
   * switches all checks on. Checked work is thirty to a hundred times slower: docs/checking.md.
   * Default: on where the environment variable ASYNC_CUDA_CHECK is 1.
   */
  check?: boolean | CheckOptions;
  /**
   * On a CPU device: the seed decides the order in which streams go on and blocks begin, among the
   * orders that a GPU may choose. Errors name it. Default: the environment variable
   * ASYNC_CUDA_SEED, else the device's own order.
   */
  schedule?: { seed: number };
  /**
   * While the device is open, work that is queued within `labelled` lies in NVTX ranges of
   * this thread, for profilers: those of the tool that the environment variable
   * NVTX_INJECTION64_PATH names, as Nsight Systems sets it, or of libnvToolsExt. Without either
   * there are no ranges. Default: on where the environment variable ASYNC_CUDA_NVTX is 1.
   * nvtxRangePushA, nvtxRangePop
   */
  nvtx?: boolean;
}

const CHECKS = [
  'memory',
  'uninitialised',
  'races',
  'sameValue',
  'sync',
  'leaks',
  'keepGoing',
] as const;

function nvtxOfEnvironment(): boolean {
  const text = process.env['ASYNC_CUDA_NVTX'];
  if (text === undefined || text === '' || text === '0') return false;
  if (text !== '1') throw invalid('ASYNC_CUDA_NVTX', '1 or 0', text);
  return true;
}

function checkedCheck(check: unknown): boolean | CheckOptions | undefined {
  if (check === undefined || typeof check === 'boolean') return check;
  const options = check as CheckOptions;
  checkOptions('options.check', options, [...CHECKS]);
  for (const name of CHECKS) {
    const value = options[name];
    if (value !== undefined && typeof value !== 'boolean')
      throw invalid(`options.check.${name}`, 'a boolean', value);
  }
  // A copy, and a plain object: it is posted to the device's thread.
  return { ...options };
}

/**
 * Checks the options of `CoreDevice.open`.
 *
 * @throws CudaArgumentError for a wrong option
 */
export function checkOpenOptions(options: OpenOptions): {
  readonly nvtx: boolean;
  readonly inline: boolean;
  readonly check: boolean | CheckOptions | undefined;
} {
  checkOptions('options', options, [
    'thread',
    'memoryBytes',
    'workers',
    'stallLimit',
    'computeCapability',
    'check',
    'schedule',
    'nvtx',
  ]);
  checkBoolean('options.nvtx', options.nvtx);
  const nvtx = options.nvtx ?? nvtxOfEnvironment();
  if (options.thread !== undefined && options.thread !== 'worker' && options.thread !== 'inline') {
    throw invalid('options.thread', "'worker' or 'inline'", options.thread);
  }
  if (options.memoryBytes !== undefined)
    checkInteger('options.memoryBytes', options.memoryBytes, 1 << 20, 4294901760, 'bytes');
  if (options.workers !== undefined)
    checkInteger('options.workers', options.workers, 1, MAX_WORKERS, 'threads');
  if (
    options.stallLimit !== undefined &&
    !(typeof options.stallLimit === 'number' && options.stallLimit > 0)
  )
    throw invalid(
      'options.stallLimit',
      'a number of milliseconds, or Infinity',
      options.stallLimit,
    );
  if (options.computeCapability !== undefined)
    checkCapability('options.computeCapability', options.computeCapability);
  if (options.schedule !== undefined) {
    checkOptions('options.schedule', options.schedule, ['seed']);
    checkInteger('options.schedule.seed', options.schedule.seed, 0, LAST_SEED);
  }
  const check = checkedCheck(options.check);
  const inline = options.thread === 'inline';
  if (options.workers !== undefined && options.workers > 1) {
    if (inline)
      throw invalid(
        'options.workers',
        "1, or left out, with thread: 'inline', which runs everything on the calling thread",
        options.workers,
      );
    const alone =
      check !== undefined && check !== false
        ? 'check'
        : options.schedule !== undefined
          ? 'schedule'
          : undefined;
    if (alone !== undefined)
      throw invalid(
        'options.workers',
        `1, or left out, with '${alone}', which needs a single thread`,
        options.workers,
      );
  }
  return { nvtx, inline, check };
}
