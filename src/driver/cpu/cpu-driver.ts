/**
 * The embedded device as a driver: the groups of calls combined over one machine. The compiler and
 * everything else from outside are options, so that tests can replace them.
 */
import type { PolledDriver } from '../driver.js';
import type { CheckOptions, CheckReport } from '../../ground/check-report.js';
import { checkSettings } from './check/settings.js';
import { copyCalls } from './calls/copy-calls.js';
import { deviceCalls } from './calls/device-calls.js';
import { graphCalls } from './calls/graph-calls.js';
import { hostMemoryCalls } from './calls/host-memory-calls.js';
import { launchCalls } from './calls/launch-calls.js';
import { memoryCalls } from './calls/memory-calls.js';
import { moduleCalls } from './calls/module-calls.js';
import { eventCalls, streamCalls } from './calls/stream-calls.js';
import { tensorMapCalls } from './calls/tensor-map-calls.js';
import { textureCalls } from './calls/texture-calls.js';
import type { CrewOptions } from './crew/crew-options.js';
import { CpuDevice } from './device.js';
import type { Compile } from './kernels/compile.js';
import { THREADS_BEFORE_LANES } from './kernels/kernel-code.js';
import { STALL_LIMIT } from './kernels/stall.js';
import { Machine } from './machine.js';
import { GRANULE } from './memory/arena.js';
import { ADDRESS_END, WASM_PAGE } from './memory/device-memory.js';

export interface CpuOptions {
  /** The number of devices that `cuDeviceGetCount` returns. Default: 1. */
  devices?: number;
  /**
   * Bytes of memory of each device, which are reserved and not touched until they are used. All
   * devices of a driver together have 4 GiB of addresses, less 64 KiB that stay invalid. Default:
   * all of that, in equal parts.
   */
  memoryBytes?: number;
  /** Is called with what kernels print. Default: it writes whole lines to the console. */
  print?: (text: string) => void;
  /** Compiles PTX to WebAssembly. Default: `compilePtx`. */
  compile?: Compile;
  /** The device's clock, in milliseconds. Default: `performance.now`. */
  now?: () => number;
  /**
   * Milliseconds after which a grid whose blocks all wait, while nothing else runs, ends with
   * CUDA_ERROR_LAUNCH_TIMEOUT. Infinity is for kernels that wait for the host, however long it
   * takes. Default: 10,000.
   */
  stallLimit?: number;
  /**
   * Threads that run blocks besides the calling one. Default: none, and results that depend on the
   * calls only. @internal
   */
  crew?: CrewOptions;
  /**
   * Which kernels run in vector lanes: those launched with many threads (the default), all that
   * can, or none. Results are the same bit for bit. `openCpu` takes its default from
   * ASYNC_CUDA_CPU_LANES: `many`, `all` or `none`.
   */
  lanes?: 'many' | 'all' | 'none';
  /** The compute capability of each device, 90 for 9.0. Default: 80. */
  computeCapability?: number;
  /** The number of multiprocessors of each device. Default: the machine's cores. */
  multiprocessors?: number;
  /**
   * Writes a file for cuGraphDebugDotPrint. Default: Node's file system; elsewhere the call fails.
   */
  writeText?: (path: string, text: string) => void;
  /**
   * Requests large pages from the system for device memory that is about to be used for large
   * allocations. Default: no request. @internal
   */
  askForLargePages?: (memory: Uint8Array) => void;
  /**
   * Is called with a launch whose code V8 may optimise in the background for this many
   * milliseconds. Default: nothing. @internal
   */
  optimises?: (ms: number) => void;
  /** Whether kernels and the host's work are checked; wrong work fails. */
  check?: boolean | CheckOptions;
  /**
   * Explores the orders in which streams and blocks may run. The same seed gives the same order.
   */
  schedule?: { seed: number };
  /** Is called with every report, including those that fail nothing. */
  report?: (report: CheckReport) => void;
}

export function createCpuDriver(options: CpuOptions & { compile: Compile }): PolledDriver {
  const count = options.devices ?? 1;
  if (!Number.isInteger(count) || count < 1 || count > 64)
    throw new RangeError(`devices is ${count}; it must be 1 to 64`);
  const span = Math.floor((ADDRESS_END - WASM_PAGE) / count / WASM_PAGE) * WASM_PAGE;
  const memoryBytes = Math.floor((options.memoryBytes ?? span) / GRANULE) * GRANULE;
  if (!(memoryBytes >= WASM_PAGE && memoryBytes <= span)) {
    throw new RangeError(
      `memoryBytes is ${options.memoryBytes}; ${count} device${count === 1 ? '' : 's'} can ` +
        `have ${WASM_PAGE} to ${span} bytes each`,
    );
  }
  const check = checkSettings(options.check);
  const machine = new Machine({
    print: options.print ?? printLines(),
    compile: options.compile,
    now: options.now ?? (() => performance.now()),
    stallLimit: options.stallLimit ?? STALL_LIMIT,
    // One thread follows what kernels do, and the order that a seed determines is that of one
    // thread.
    crew: check === undefined && options.schedule === undefined ? options.crew : undefined,
    writeText: options.writeText ?? writeTextOfNode,
    askForLargePages: options.askForLargePages,
    threadsBeforeLanes:
      check !== undefined || options.schedule !== undefined
        ? Infinity
        : { many: THREADS_BEFORE_LANES, all: 0, none: Infinity }[options.lanes ?? 'many'],
    check,
    report: options.report ?? (() => undefined),
    optimises: options.optimises ?? (() => undefined),
    seed: options.schedule?.seed,
  });
  const multiprocessors = options.multiprocessors ?? cores();
  for (let ordinal = 0; ordinal < count; ordinal++) {
    machine.devices.push(
      new CpuDevice(machine, ordinal, {
        base: WASM_PAGE + ordinal * span,
        memoryBytes,
        multiprocessors,
        computeCapability: options.computeCapability ?? 80,
      }),
    );
  }
  return {
    provider: 'cpu',
    poll: (budgetMicroseconds) => machine.scheduler.run(budgetMicroseconds),
    waits: () => machine.scheduler.hasWork,
    ...deviceCalls(machine),
    ...streamCalls(machine),
    ...eventCalls(machine),
    ...memoryCalls(machine),
    ...hostMemoryCalls(machine),
    ...copyCalls(machine),
    ...textureCalls(machine),
    ...tensorMapCalls(machine),
    ...moduleCalls(machine),
    ...launchCalls(machine),
    ...graphCalls(machine),
  };
}

/** `navigator` exists in browsers, and in Node from 21 on. */
function cores(): number {
  const { navigator } = globalThis as { navigator?: { hardwareConcurrency?: number } };
  return (
    navigator?.hardwareConcurrency ??
    nodeModule<{ availableParallelism(): number }>('node:os')?.availableParallelism() ??
    1
  );
}

/** Returns a module of Node's own, without an import, which would fail in a browser's bundler. */
function nodeModule<T>(name: string): T | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?: (name: string) => unknown } };
  return process?.getBuiltinModule?.(name) as T | undefined;
}

function writeTextOfNode(path: string, text: string): void {
  const files = nodeModule<{ writeFileSync(path: string, text: string): void }>('node:fs');
  if (files === undefined) throw new Error('there is no file system here');
  files.writeFileSync(path, text);
}

/** Collects whole lines for the console, since a kernel may print half of one. */
function printLines(): (text: string) => void {
  let begun = '';
  return (text) => {
    const lines = (begun + text).split('\n');
    begun = lines.pop()!;
    for (const line of lines) console.log(line);
  };
}
