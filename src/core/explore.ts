/**
 * Runs a program on the CPU device under one legal order of work after the other, until one shows
 * an error.
 */
import { isDeepStrictEqual } from 'node:util';

import type { CheckOptions } from '../ground/check-report.js';
import { CudaScheduleError } from '../ground/errors.js';
import { checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import { CoreDevice } from './device.js';
import { messageOf } from '../ground/other-realms.js';
import { LAST_SEED, seedOfEnvironment } from './open-devices.js';

const DEFAULT_SEEDS = 100;
/**
 * Default memory of a device, which is reserved, and touched as it is used. Hundreds of devices are
 * opened one after the other.
 */
const DEFAULT_MEMORY = 256 * 2 ** 20;

/** Options of {@link explore}. */
export interface ExploreOptions {
  /**
   * The number of seeds, from 0 on, or the seeds. Default 100. Where the environment variable
   * ASYNC_CUDA_SEED is set, that seed alone is run; the error of a failing seed names it.
   */
  seeds?: number | Iterable<number>;
  /**
   * The errors that each device checks for: see {@link OpenOptions.check}. Default: everything but
   * leaks, which are the same in every order.
   */
  check?: boolean | CheckOptions;
  /** Memory of each device. Default 256 MiB. */
  memoryBytes?: number;
}

/**
 * Runs `program` once for each seed, on a device of its own that is opened with `schedule: { seed
 * }` and `thread: 'inline'`, so that the same seed repeats the same run. It ends with the first
 * seed for which the program throws, work fails that the program did not await, or the result
 * differs from that of the first seed. Returns the result.
 *
 * @example
 * ```ts
 * const program = async (cpu: CoreDevice) => {
 *   using x = cpu.alloc(i32, 2);
 *   x.fill(cpu.stream, 1);
 *   return x.read(cpu.stream);
 * };
 * console.log(await explore(program, { seeds: 5 })); // Int32Array(2) [ 1, 1 ]
 * ```
 * @throws CudaScheduleError with the `seed`, whose `cause` is the error of the program
 */
export async function explore<Result>(
  program: (device: CoreDevice) => Result | PromiseLike<Result>,
  options: ExploreOptions = {},
): Promise<Awaited<Result>> {
  checkOptions('options', options, ['seeds', 'check', 'memoryBytes']);
  if (typeof program !== 'function')
    throw invalid('program', 'a function that takes a device', program);
  const { check = { leaks: false }, memoryBytes = DEFAULT_MEMORY } = options;
  let first: { seed: number; result: Awaited<Result> } | undefined;
  for (const seed of seedsOf(options.seeds)) {
    const device = await CoreDevice.open('cpu', {
      thread: 'inline',
      check,
      memoryBytes,
      schedule: { seed },
    });
    const unawaited: unknown[] = [];
    device.on('error', (error) => unawaited.push(error));
    let result: Awaited<Result>;
    try {
      result = await program(device);
      // Queued work that the program did not await may fail, too.
      await Promise.all(
        [...device.objects.streams]
          .filter((stream) => stream.capturing === undefined)
          .map((stream) => stream.finished()),
      );
      await device.close();
    } catch (error) {
      await device.close();
      throw failed(seed, error);
    }
    if (unawaited.length > 0) throw failed(seed, unawaited[0]);
    if (first === undefined) first = { seed, result };
    else if (!isDeepStrictEqual(result, first.result))
      throw new CudaScheduleError(
        seed,
        `seed ${seed} gives another result than seed ${first.seed}. ${replay(seed)}`,
      );
  }
  if (first === undefined) throw invalid('options.seeds', 'one seed at least', options.seeds);
  return first.result;
}

function seedsOf(seeds: number | Iterable<number> = DEFAULT_SEEDS): readonly number[] {
  const one = seedOfEnvironment();
  if (one !== undefined) return [one];
  if (typeof seeds === 'number') {
    checkInteger('options.seeds', seeds, 1, LAST_SEED);
    return Array.from({ length: seeds }, (_, seed) => seed);
  }
  if (typeof (seeds as Partial<Iterable<number>> | null)?.[Symbol.iterator] !== 'function')
    throw invalid('options.seeds', 'a number of seeds, or seeds', seeds);
  const list = [...seeds];
  for (const seed of list) checkInteger('options.seeds', seed, 0, LAST_SEED);
  return list;
}

function failed(seed: number, cause: unknown): CudaScheduleError {
  return new CudaScheduleError(seed, `seed ${seed}: ${messageOf(cause)}\n${replay(seed)}`, {
    cause,
  });
}

function replay(seed: number): string {
  return `To repeat it: ASYNC_CUDA_SEED=${seed}, or explore(program, { seeds: [${seed}] })`;
}
