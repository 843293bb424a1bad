/**
 * The device that a name denotes, and the open runtimes: one for each device and JavaScript thread,
 * shared by all Devices on it.
 */
import { setImmediate } from 'node:timers';

import { CudaDeviceLostError, CudaError } from '../ground/errors.js';
import { onExit } from '../runtime/exit.js';
import { isSticky } from '../runtime/failure.js';
import type { CheckOptions } from '../ground/check-report.js';
import type { ProviderConfig } from '../runtime/messages.js';
import { cudaConfig, missingDriver } from '../runtime/providers.js';
import { openRuntime } from '../runtime/js-thread/open.js';
import type { Runtime } from '../runtime/runtime.js';
import { invalid } from '../ground/arguments.js';
import type { CaptureScope } from './capture.js';
import type { FenceMessage, GraphMessage, MemoryMessage, OperationMessage } from './channels.js';
import type { CoreDevice } from './device.js';
import { FreeGate } from './free-gate.js';
import { Loans } from './loans.js';
import { makeRoom } from './make-room.js';
import type { Module } from './module.js';
import type { Held } from './queued-operation.js';
import { Staging } from './staging.js';
import type { Stream } from './stream.js';

/** The most threads of a CPU device. */
export const MAX_WORKERS = 256;
export const LAST_SEED = 0xffffffff;

const open = new Map<string, Promise<SharedDevice>>();

/**
 * The recorder of a trace. It receives all messages of the channels, and a call before each
 * operation.
 */
export interface Recorder {
  /**
   * Called before a command of a stream begins, with the command's number. It may write commands of
   * its own.
   */
  before(stream: Stream, op: number): void;
  /**
   * A command was queued. `held` is set for a hold; the time at which its work begins is written to
   * it later.
   */
  operation(stream: Stream, message: OperationMessage, held: Held | undefined): void;
  memory(message: MemoryMessage): void;
  wait(message: FenceMessage): void;
  graph(message: GraphMessage): void;
}

/** The state that all Devices on one runtime share. */
export class SharedDevice {
  readonly runtime: Runtime;
  readonly staging: Staging;
  readonly devices: Set<CoreDevice>;
  /** The capture whose function is running, and that refuses work on streams outside of it. */
  capture: CaptureScope | undefined = undefined;
  /** The loaded modules. */
  readonly modules = new Set<Module>();
  /** Whether several streams have been used, so that operations record events. */
  multi = false;
  /** Whether operations need extra commands: {@link multi}, or a trace is recorded. */
  attentive = false;
  /** Events that streams of other devices wait for. */
  readonly loans = new Loans();
  /** Frees that wait for the whole device, and streams that wait for values. */
  readonly freeGate = new FreeGate();
  /** The devices whose memory kernels of this one may use. */
  readonly reaches = new Set<Runtime>();
  /** The driver's numbers of the devices whose kernels may use this one's memory. */
  readonly accessors = new Set<number>();
  private recording: Recorder | undefined = undefined;
  /**
   * Whether streams of other devices use this one's memory or wait for it, or the other way round.
   */
  private linked = false;
  private readonly key: string;
  private readonly unregister: () => void;
  /** Whether a Device was closed while its work was still running. */
  private abandoned = false;
  private used = 0;
  private users = 0;

  constructor(key: string, runtime: Runtime, devices: Set<CoreDevice>) {
    this.key = key;
    this.devices = devices;
    this.runtime = runtime;
    this.staging = new Staging(runtime);
    this.unregister = onExit(runtime);
  }

  get name(): string {
    const { config, info } = this.runtime;
    return `${info.name} (${config.provider === 'cpu' ? 'cpu' : 'cuda'}:${config.ordinal})`;
  }

  /** Whether stream-ordered memory comes from pools. */
  get pools(): boolean {
    return this.runtime.info.pools;
  }

  /** Whether this is the last Device on the runtime. */
  get last(): boolean {
    return this.users === 1;
  }

  retain(): void {
    this.users++;
  }

  /**
   * The number of another device in commands of this one. From now on operations of both record
   * events.
   */
  link(other: SharedDevice): number {
    for (const each of [this, other]) {
      each.linked = true;
      each.attend();
    }
    return this.runtime.peer(other.runtime);
  }

  /** Every open stream. */
  streams(): Stream[] {
    return [...this.devices].flatMap((device) => [...device.objects.streams]);
  }

  /** Called with a stream's first operation. */
  streamStarted(): void {
    this.used++;
    this.attend();
  }

  streamEnded(): void {
    this.used--;
    this.attend();
  }

  /**
   * The recorder of the running trace, if any. It subscribes to all channels, so that messages are
   * made.
   */
  get recorder(): Recorder | undefined {
    return this.recording;
  }

  set recorder(recorder: Recorder | undefined) {
    this.recording = recorder;
    this.attend();
  }

  private attend(): void {
    this.multi = this.used > 1 || this.linked;
    this.attentive = this.multi || this.recording !== undefined;
  }

  /**
   * Releases a Device; the last release ends the runtime. `ended` is whether all work has ended. If
   * not, a GPU goes on with it, and the process leaves the device unchanged when it exits.
   */
  async release(error: CudaError, ended: boolean): Promise<void> {
    if (!ended) this.abandoned = true;
    if (--this.users > 0) return;
    open.delete(this.key);
    await this.staging.crew?.release();
    const { runtime, abandoned } = this;
    if (!abandoned && runtime.lost === undefined) {
      try {
        await runtime.call(
          'closeContext',
          runtime.info.device,
          runtime.info.stagingAddress,
          runtime.info.registered,
          [...runtime.pinned.keys()],
        );
      } catch {
        // The context ends with the process at the latest.
      }
    }
    const over = await runtime.terminate(error, abandoned);
    // A CPU device ends with its thread, whatever runs there.
    if (over || runtime.config.provider === 'cpu') this.unregister();
  }

  /** Lets a lost CPU device be opened again, as a new runtime. */
  lost(): void {
    if (this.runtime.config.provider === 'cpu') open.delete(this.key);
  }
}

export async function openShared(
  name: string | undefined,
  inline: boolean,
  options: CpuDeviceOptions,
): Promise<SharedDevice> {
  const wanted = name ?? process.env['ASYNC_CUDA_DEVICE'] ?? 'best';
  const argument =
    name === undefined && process.env['ASYNC_CUDA_DEVICE'] !== undefined
      ? 'ASYNC_CUDA_DEVICE'
      : 'name';
  const match =
    typeof wanted === 'string' ? /^(?:(best)|(cuda|cpu)(?::(\d{1,6}))?)$/.exec(wanted) : null;
  if (match === null) throw invalid(argument, "'best', 'cuda', 'cuda:1', 'cpu' or 'cpu:1'", wanted);
  if (match[1] === undefined) {
    const ordinal = Number(match[3] ?? 0);
    return match[2] === 'cpu' ? openCpu(ordinal, inline, options) : openCuda(ordinal, inline);
  }
  // It falls back only where there is no driver or no GPU, never on a driver's error.
  if (missingDriver() !== undefined) return openCpu(0, inline, options);
  try {
    return await openCuda(0, inline);
  } catch (error) {
    if (
      error instanceof CudaError &&
      (error.code === 'ERR_CUDA_NO_DRIVER' || error.code === 'ERR_CUDA_NO_DEVICE')
    ) {
      return openCpu(0, inline, options);
    }
    throw error;
  }
}

async function openCuda(ordinal: number, inline: boolean): Promise<SharedDevice> {
  try {
    return await openOnce(
      `cuda:${ordinal}:${inline ? 'inline' : 'worker'}`,
      cudaConfig(ordinal),
      inline,
    );
  } catch (error) {
    if (
      !(error instanceof CudaError) ||
      error.driverCode === undefined ||
      !isSticky(error.driverCode)
    )
      throw error;
    const { driverName, driverCode } = error;
    throw new CudaDeviceLostError(
      `cuda:${ordinal}: an earlier fault (${driverName ?? driverCode}) has made the GPU ` +
        'unusable for this process. Start another process.',
      { driverName, driverCode, cause: error },
    );
  }
}

/** The compute capabilities of CPU devices. */
export type ComputeCapability = '8.0' | '8.9' | '9.0';
const CAPABILITIES: readonly ComputeCapability[] = ['8.0', '8.9', '9.0'];

export function checkCapability(argument: string, given: unknown): ComputeCapability {
  const found = CAPABILITIES.find((capability) => capability === given);
  if (found === undefined)
    throw invalid(argument, `one of ${CAPABILITIES.map((name) => `'${name}'`).join(', ')}`, given);
  return found;
}

/** The options of a CPU device. Devices with different options are different devices. */
interface CpuDeviceOptions {
  memoryBytes?: number | undefined;
  workers?: number | undefined;
  stallLimit?: number | undefined;
  computeCapability?: ComputeCapability | undefined;
  check?: boolean | CheckOptions | undefined;
  schedule?: { seed: number } | undefined;
}

function openCpu(
  ordinal: number,
  inline: boolean,
  {
    memoryBytes,
    workers: given,
    stallLimit,
    computeCapability = capabilityOfEnvironment(),
    check: wanted = checkOfEnvironment(),
    schedule = scheduleOfEnvironment(),
  }: CpuDeviceOptions,
): Promise<SharedDevice> {
  checkLanesOfEnvironment();
  const check = wanted === false ? undefined : wanted;
  // Checks and seeded schedules need a single thread.
  const alone = inline || schedule !== undefined || check !== undefined;
  const workers = alone ? 1 : (given ?? workersOfEnvironment());
  const own = [memoryBytes, workers, stallLimit, computeCapability]
    .map((value) => value ?? '')
    .join(':');
  const thread = inline ? 'inline' : 'worker';
  const key = `cpu:${ordinal}:${thread}:${own}:${JSON.stringify([check, schedule])}`;
  return openOnce(
    key,
    {
      provider: 'cpu',
      ordinal,
      memoryBytes,
      workers,
      stallLimit,
      computeCapability: computeCapability && Number(computeCapability) * 10,
      check,
      schedule,
    },
    inline,
  );
}

/**
 * The environment variables let any program be checked, or run under a seed, without a change to
 * it.
 */
function checkOfEnvironment(): true | undefined {
  const text = process.env['ASYNC_CUDA_CHECK'];
  if (text === undefined || text === '' || text === '0') return undefined;
  if (text !== '1') throw invalid('ASYNC_CUDA_CHECK', '1 or 0', text);
  return true;
}

function scheduleOfEnvironment(): { seed: number } | undefined {
  const seed = seedOfEnvironment();
  return seed === undefined ? undefined : { seed };
}

/**
 * The seed in the environment variable, with which a failing program can be run again, as its error
 * shows.
 */
export function seedOfEnvironment(): number | undefined {
  const text = process.env['ASYNC_CUDA_SEED'];
  if (text === undefined || text === '') return undefined;
  if (!/^\d+$/.test(text) || Number(text) > LAST_SEED)
    throw invalid('ASYNC_CUDA_SEED', `0 to ${LAST_SEED}`, text);
  return Number(text);
}

function capabilityOfEnvironment(): ComputeCapability | undefined {
  const text = process.env['ASYNC_CUDA_CPU_CAPABILITY'];
  if (text === undefined || text === '') return undefined;
  return checkCapability('ASYNC_CUDA_CPU_CAPABILITY', text);
}

function workersOfEnvironment(): number | undefined {
  const text = process.env['ASYNC_CUDA_WORKERS'];
  if (text === undefined || text === '') return undefined;
  const workers = Number(text);
  if (!/^\d+$/.test(text) || workers < 1 || workers > MAX_WORKERS)
    throw invalid('ASYNC_CUDA_WORKERS', `1 to ${MAX_WORKERS}`, text);
  return workers;
}

/**
 * The device reads the variable on its own thread, where a wrong value would look like an error of
 * the library.
 */
function checkLanesOfEnvironment(): void {
  const text = process.env['ASYNC_CUDA_CPU_LANES'];
  if (text !== undefined && !['', 'many', 'all', 'none'].includes(text))
    throw invalid('ASYNC_CUDA_CPU_LANES', 'many, all or none', text);
}

async function openOnce(
  key: string,
  config: ProviderConfig,
  inline: boolean,
): Promise<SharedDevice> {
  let opening = open.get(key);
  if (opening === undefined) {
    opening = start(key, config, inline);
    open.set(key, opening);
    opening.catch(() => open.delete(key));
  }
  const shared = await opening;
  if (shared.runtime.lost !== undefined) throw shared.runtime.lost;
  shared.retain();
  return shared;
}

/**
 * Runs a listener. Its exception becomes an uncaught one, so that the other listeners run and waits
 * go on.
 */
function guarded(notify: () => unknown): void {
  try {
    notify();
  } catch (error) {
    setImmediate(() => {
      throw error;
    });
  }
}

async function start(key: string, config: ProviderConfig, inline: boolean): Promise<SharedDevice> {
  const devices = new Set<CoreDevice>();
  const opened: { shared?: SharedDevice } = {};
  const runtime = await openRuntime(
    config,
    {
      error: (error) => {
        for (const device of devices) guarded(() => device.unclaimed(error));
      },
      print: (text) => {
        let isPrinted = false;
        for (const device of devices) {
          if (device.listenerCount('print') > 0) isPrinted = true;
          guarded(() => device.emit('print', text));
        }
        if (!isPrinted) process.stdout.write(text);
      },
      labels: () => new Map([...devices].flatMap((device) => device.objects.labels())),
      check: (report) => {
        for (const device of devices) guarded(() => device.emit('check', report));
      },
      origin: (memory) => {
        for (const device of devices) {
          const origin = device.origins.of(memory);
          if (origin !== undefined) return origin;
        }
        return undefined;
      },
      lost: (error) => {
        opened.shared?.lost();
        for (const device of devices) guarded(() => device.emit('lost', error));
      },
      short: async (step, stream) => {
        const { shared } = opened;
        if (shared !== undefined) await makeRoom(shared.runtime, devices, step, stream);
      },
      idle: async () => {
        const { shared } = opened;
        if (shared !== undefined) await shared.runtime.call('trimIdle', shared.runtime.info.device);
      },
    },
    inline,
  );
  opened.shared = new SharedDevice(key, runtime, devices);
  return opened.shared;
}
