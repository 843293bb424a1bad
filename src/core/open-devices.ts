/**
 * Which device a name means, and the runtimes that are open: one per device and JS thread, shared
 * by everyone who opens it.
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

/** Threads that a CPU device can be given. */
export const MAX_WORKERS = 256;
export const LAST_SEED = 0xffffffff;

const open = new Map<string, Promise<SharedDevice>>();

/**
 * Somebody who writes down what is done on a device: told of all that channels tell of it, and
 * before operations.
 */
export interface Recorder {
  /**
   * Called before a command of a stream is begun, by its number among the commands. May write
   * commands of its own.
   */
  before(stream: Stream, op: number): void;
  /**
   * A command was queued. What it holds its stream for, where it does, learns later when that
   * began.
   */
  operation(stream: Stream, message: OperationMessage, held: Held | undefined): void;
  memory(message: MemoryMessage): void;
  wait(message: FenceMessage): void;
  graph(message: GraphMessage): void;
}

/** What all Devices that are open on one runtime share. */
export class SharedDevice {
  readonly runtime: Runtime;
  readonly staging: Staging;
  readonly devices: Set<CoreDevice>;
  /** The capture whose function is running and that refuses work on streams outside of it. */
  capture: CaptureScope | undefined = undefined;
  /** Modules that are loaded. */
  readonly modules = new Set<Module>();
  /** Whether several streams have been used, so that operations record events. */
  multi = false;
  /** Whether something is to be done around operations: {@link multi}, or somebody records. */
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
  private readonly forget: () => void;
  /** Whether somebody who closed his device has left work behind that does not end. */
  private abandoned = false;
  private used = 0;
  private users = 0;

  constructor(key: string, runtime: Runtime, devices: Set<CoreDevice>) {
    this.key = key;
    this.devices = devices;
    this.runtime = runtime;
    this.staging = new Staging(runtime);
    this.forget = onExit(runtime);
  }

  get name(): string {
    const { config, info } = this.runtime;
    return `${info.name} (${config.provider === 'cpu' ? 'cpu' : 'cuda'}:${config.ordinal})`;
  }

  /** Whether stream-ordered memory comes from pools here. */
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

  /** What commands here call another device by. From now on operations of both record events. */
  link(other: SharedDevice): number {
    for (const each of [this, other]) {
      each.linked = true;
      each.attend();
    }
    return this.runtime.peer(other.runtime);
  }

  /** Every open stream. */
  streams(): Stream[] {
    return [...this.devices].flatMap((device) => [...device.openStreams]);
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

  /** Who writes down what is done here. It listens on all channels, so that messages are made. */
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
   * The last one to release ends the runtime. `ended` says whether all work is over; where it is
   * not, a GPU goes on with it, and the process leaves the device as it is when it ends.
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
    // A CPU device ends with its thread, whatever it was doing.
    if (over || runtime.config.provider === 'cpu') this.forget();
  }

  /** A CPU device that was lost can be opened again: the next one starts afresh. */
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
  // Fall back only where there is no driver or no GPU, never on a driver's error.
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
      `cuda:${ordinal}: an earlier fault (${driverName ?? driverCode}) has taken the GPU ` +
        'from this process, which cannot use it again. Start another process.',
      { driverName, driverCode, cause: error },
    );
  }
}

/**
 * What a CPU device is given beside its number: devices that differ in it are different devices.
 */
interface CpuDeviceOptions {
  memoryBytes?: number | undefined;
  workers?: number | undefined;
  stallLimit?: number | undefined;
  check?: boolean | CheckOptions | undefined;
  schedule?: { seed: number } | undefined;
}

function openCpu(
  ordinal: number,
  inline: boolean,
  {
    memoryBytes,
    workers: asked,
    stallLimit,
    check: wanted = checkOfEnvironment(),
    schedule = scheduleOfEnvironment(),
  }: CpuDeviceOptions,
): Promise<SharedDevice> {
  checkLanesOfEnvironment();
  const check = wanted === false ? undefined : wanted;
  // One thread follows what kernels do, and the order that a seed decides is one thread's.
  const alone = inline || schedule !== undefined || check !== undefined;
  const workers = alone ? 1 : (asked ?? workersOfEnvironment());
  const own = [memoryBytes, workers, stallLimit].map((value) => value ?? '').join(':');
  const key = `cpu:${ordinal}:${inline ? 'inline' : 'worker'}:${own}:${JSON.stringify([check, schedule])}`;
  return openOnce(
    key,
    { provider: 'cpu', ordinal, memoryBytes, workers, stallLimit, check, schedule },
    inline,
  );
}

/** Any program is checked, or run in an order of a seed, without a change to it. */
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

/** The seed that a failing program was told to be run with again. */
export function seedOfEnvironment(): number | undefined {
  const text = process.env['ASYNC_CUDA_SEED'];
  if (text === undefined || text === '') return undefined;
  if (!/^\d+$/.test(text) || Number(text) > LAST_SEED)
    throw invalid('ASYNC_CUDA_SEED', `0 to ${LAST_SEED}`, text);
  return Number(text);
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
 * What reads it is the device, on its own thread, where a mistake would look like one of the
 * library's.
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
 * What a listener throws is an uncaught exception of its own: others are told all the same, and
 * waits go on.
 */
function guarded(tell: () => unknown): void {
  try {
    tell();
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
        let heard = false;
        for (const device of devices) {
          if (device.listenerCount('print') > 0) heard = true;
          guarded(() => device.emit('print', text));
        }
        if (!heard) process.stdout.write(text);
      },
      labels: () => new Map([...devices].flatMap((device) => device.labels())),
      check: (report) => {
        for (const device of devices) guarded(() => device.emit('check', report));
      },
      origin: (memory) => {
        for (const device of devices) {
          const origin = device.origin(memory);
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
