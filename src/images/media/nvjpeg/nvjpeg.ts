/**
 * nvJPEG on a device. The library is opened once, and decodes as many JPEGs at a time as there are
 * threads. Each has a lane: a state of nvJPEG and a stream. Where the GPU has hardware decoders,
 * these decode what they take (`hardware.ts`): they give the same pixels in a third of the time,
 * and take next to no processor time. Memory on the device is released when the device is closed,
 * and that of all but one lane after some time without pictures.
 */
import { clearTimeout, setTimeout } from 'node:timers';

import { CudaDisposedError, CudaError } from '../../../core/index.js';
import type { CoreDevice, DeviceBuffer, Stream } from '../../../core/index.js';
import { hostBase, queueHostWork } from '../../../core/host-work.js';
import type { HostTurn } from '../../../core/host-work.js';
import { messageOf } from '../../../ground/other-realms.js';
import { koffiPath } from '../../../native/koffi.js';
import { type AskOptions, ThreadCrew } from '../../../native/thread-crew.js';
import { NvjpegError, shownError } from './failure.js';
import { FileMemory } from './file-memory.js';
import { BatchDecoder } from './hardware.js';
import { nvjpegThreadSource } from './thread-source.js';
import type { Answers, Lane, NvjpegPlace, Opened, Refusal, Request } from './thread/messages.js';

/**
 * JPEGs that are decoded at once. Each takes a core for its coded bytes, but not all the time: its
 * end arrives here, and the next one is sent, with a turn of the event loop. (Photographs of 640 ×
 * 480 to the classes of a model, H100: 5200 a second with four, 6700 with eight.)
 */
const MOST_LANES = 8;
const IDLE_MS = 10_000;
/**
 * Pictures after which the hardware decoders are opened, while others are decoded: that takes a
 * third of a second (H200).
 */
const PICTURES_BEFORE_HARDWARE = 2;

/** nvjpegOutputFormat_t: interleaved colours, or luma only. */
export const NVJPEG_FORMATS = { grey: 2, rgb: 5, bgr: 6 } as const;

/** Options of {@link openNvjpeg}. */
export interface OpenNvjpegOptions {
  /** The library's file. */
  readonly path?: string;
  /** libcuda's file. */
  readonly driver?: string;
  /** Whether it is opened on a CPU device too: for a test double. */
  readonly anyDevice?: boolean;
  /** Whether the hardware decoders are used. Default: true. */
  readonly hardware?: boolean;
}

/** One JPEG, whose header was read. */
export interface NvjpegPicture {
  readonly bytes: Uint8Array;
  /** Its name in errors. */
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly format: keyof typeof NVJPEG_FORMATS;
}

/** One of the pictures that have one place in a stream. */
export interface HeldPicture {
  readonly picture: NvjpegPicture;
  /** The index of the buffer that it is written to, and the byte at which it begins there. */
  readonly use: number;
  readonly offset: number;
  /** Decodes in another way, where nvJPEG fails. */
  readonly otherwise?: (turn: HostTurn) => Promise<void>;
}

/** A lane, and its memory for the files that it decodes. */
interface OwnLane {
  readonly lane: Lane;
  readonly memory: FileMemory;
}

const crew = new ThreadCrew<Request, Refusal>({
  name: 'async-cuda nvjpeg',
  source: nvjpegThreadSource,
  most: MOST_LANES,
  refused: (refusal) => new NvjpegError(refusal),
  died: (reason) =>
    new CudaError('ERR_CUDA_INTERNAL', `a thread of nvJPEG died: ${messageOf(reason)}`, {
      cause: reason,
    }),
});

function ask<K extends Request['kind']>(
  request: Extract<Request, { kind: K }>,
  options: AskOptions = {},
): Promise<Answers[K]> {
  return crew.ask(request, options) as Promise<Answers[K]>;
}

export class Nvjpeg {
  /** The version, such as `13.3.2`. */
  readonly version: string;
  readonly path: string;
  private readonly device: CoreDevice;
  private readonly handle: number;
  private readonly target: { readonly place: NvjpegPlace; readonly context: number };
  /** A number that is added to addresses of the device. */
  private readonly base: number;
  private readonly mayUseHardware: boolean;
  private readonly free: OwnLane[] = [];
  private lanes = 0;
  private readonly waiting: (() => void)[] = [];
  /** Promises of queued work. */
  private readonly underway = new Set<Promise<void>>();
  private pictures = 0;
  private hardwareCount = 0;
  /** The hardware decoders, when they are open. */
  private hardware: BatchDecoder | undefined = undefined;
  /** Resolves when they were searched for. Never rejects. */
  private lookedFor: Promise<void> | undefined = undefined;
  private idle: NodeJS.Timeout | undefined = undefined;
  private resting: Promise<void> | undefined = undefined;
  private closing: Promise<void> | undefined = undefined;

  /** @internal */
  constructor(
    device: CoreDevice,
    { path, version, handle }: Opened,
    target: { place: NvjpegPlace; context: number },
    base: number,
    mayUseHardware: boolean,
  ) {
    this.device = device;
    this.version = version;
    this.path = path;
    this.handle = handle;
    this.target = { ...target, place: { path, driver: target.place.driver } };
    this.base = base;
    this.mayUseHardware = mayUseHardware;
  }

  /**
   * Decodes into the buffers, as contiguous [height, width, channels] of each picture, in one place
   * of the stream. Rejects with the error of the first picture that failed.
   *
   * @param name the operation's name, for errors
   */
  decode(
    stream: Stream,
    name: string,
    pictures: readonly HeldPicture[],
    targets: readonly DeviceBuffer[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    this.check();
    clearTimeout(this.idle);
    const done = queueHostWork(
      stream,
      name,
      targets.map((buffer) => ({ buffer, access: 'out' })),
      async (turn) => {
        signal?.throwIfAborted();
        // All of them are waited for, since those in progress write to the buffers.
        const ends = await Promise.allSettled(
          pictures.map((each) => this.decodeHeld(turn, each, signal)),
        );
        signal?.throwIfAborted();
        for (const end of ends) if (end.status === 'rejected') throw end.reason;
      },
    );
    const over = done.then(ignore, ignore).then(() => {
      this.underway.delete(over);
      if (this.underway.size === 0) this.rest();
    });
    this.underway.add(over);
    return done;
  }

  /** The number of pictures that the hardware decoders have decoded. @internal */
  get byHardware(): number {
    return this.hardwareCount;
  }

  /** Closes it, after all queued work. */
  close(): Promise<void> {
    this.closing ??= this.end();
    return this.closing;
  }

  toString(): string {
    return `nvJPEG ${this.version} on ${this.device.name}`;
  }

  private async decodeHeld(
    turn: HostTurn,
    { picture, use, offset, otherwise }: HeldPicture,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    try {
      await this.decodeNow(picture, turn.addresses[use]! + offset, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (otherwise === undefined || this.device.lost !== undefined)
        throw shownError(error, picture.name);
      await otherwise(turn);
    }
  }

  private check(): void {
    this.device.check();
    if (this.closing !== undefined)
      throw new CudaDisposedError(`${this.toString()}: used after it was closed.`);
  }

  private async decodeNow(
    { bytes, width, height, format }: NvjpegPicture,
    at: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    if (++this.pictures === PICTURES_BEFORE_HARDWARE && this.mayUseHardware)
      this.lookedFor = this.lookForHardware();
    const pixels = {
      width,
      height,
      address: this.base + at,
      pitch: width * (format === 'grey' ? 1 : 3),
    };
    if (
      (await this.hardware?.decode(
        { bytes, format: NVJPEG_FORMATS[format], ...pixels },
        signal,
      )) === true
    ) {
      this.hardwareCount++;
      return;
    }
    const own = await this.lane();
    try {
      const [source] = await own.memory.put([bytes]);
      signal?.throwIfAborted();
      await ask({
        ...this.target,
        kind: 'decode',
        handle: this.handle,
        lane: own.lane,
        source: source!,
        length: bytes.length,
        format: NVJPEG_FORMATS[format],
        ...pixels,
      });
    } catch (error) {
      // The contents of a state after a failure are not specified.
      if (error instanceof NvjpegError) {
        await this.releaseLanes([own]);
        this.giveWay();
      } else {
        this.put(own);
      }
      throw error;
    }
    this.put(own);
  }

  /** Opens the hardware decoders. Without them pictures are decoded by threads. */
  private async lookForHardware(): Promise<void> {
    const { target, handle } = this;
    const found = await ask({ ...target, kind: 'hardware', handle }).catch(ignore);
    if (found === undefined) return;
    const line = {};
    this.hardware = new BatchDecoder(
      {
        batch: (hardware, lane, format, pictures) =>
          ask({ ...target, kind: 'batch', hardware, lane, format, pictures }, { line }),
        lane: (of) => ask({ ...target, kind: 'lane', handle: of }),
        release: (of, lanes, parsed) =>
          ask({ ...target, kind: 'release', handle: of, lanes, parsed }).then(ignore, ignore),
      },
      found,
      () => this.fileMemory(),
    );
  }

  private fileMemory(): FileMemory {
    return new FileMemory((memory) => ask({ ...this.target, kind: 'locate', memory }));
  }

  private async lane(): Promise<OwnLane> {
    for (;;) {
      const lane = this.free.pop();
      if (lane !== undefined) return lane;
      if (this.lanes < MOST_LANES) break;
      await new Promise<void>((resolve) => {
        this.waiting.push(resolve);
      });
    }
    this.lanes++;
    try {
      return {
        lane: await ask({ ...this.target, kind: 'lane', handle: this.handle }),
        memory: this.fileMemory(),
      };
    } catch (error) {
      this.lanes--;
      this.giveWay();
      throw error;
    }
  }

  private put(own: OwnLane): void {
    own.memory.shrink();
    this.free.push(own);
    this.giveWay();
  }

  private giveWay(): void {
    this.waiting.shift()?.();
  }

  private async releaseLanes(lanes: readonly OwnLane[], handle = 0): Promise<void> {
    this.lanes -= lanes.length;
    if (lanes.length === 0 && handle === 0) return;
    // Nothing can be released on a lost device.
    await ask({
      ...this.target,
      kind: 'release',
      handle,
      lanes: lanes.map(({ lane }) => lane),
    }).catch(ignore);
  }

  /**
   * Releases memory on the device after some time without pictures, except one state: opening the
   * first one takes a third of a second (H100).
   */
  private rest(): void {
    clearTimeout(this.idle);
    if (this.closing !== undefined) return;
    this.idle = setTimeout(() => {
      this.resting = Promise.all([
        this.releaseLanes(this.free.splice(1)),
        this.hardware?.rest(),
      ]).then(ignore);
    }, IDLE_MS);
    this.idle.unref();
  }

  private async end(): Promise<void> {
    while (this.underway.size > 0) await Promise.all(this.underway);
    clearTimeout(this.idle);
    // States are released before their handle.
    await this.resting;
    await this.lookedFor;
    await this.hardware?.close();
    await this.releaseLanes(this.free.splice(0), this.handle);
  }
}

interface Opening {
  nvjpeg: Nvjpeg | undefined;
  absent: boolean;
  readonly done: Promise<Nvjpeg>;
}

const devices = new WeakMap<CoreDevice, Opening>();

/**
 * Gives nvJPEG on a device if it is open, `absent` where it could not be opened, and undefined
 * where it was not requested.
 */
export function openedNvjpeg(device: CoreDevice): Nvjpeg | 'absent' | undefined {
  const opening = devices.get(device);
  return opening?.absent === true ? 'absent' : opening?.nvjpeg;
}

/** Whether nvJPEG could work on the device: a GPU, or a device with an open test double. */
export function mayHaveNvjpeg(device: CoreDevice): boolean {
  return device.kind !== 'cpu' || devices.has(device);
}

/** @throws CudaError with code ERR_CUDA_UNSUPPORTED for a device that nvJPEG cannot work on */
export function checkNvjpegDevice(device: CoreDevice): void {
  if (!mayHaveNvjpeg(device))
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `nvJPEG works on NVIDIA GPUs only, and ${device.name} is a CPU device. Leave out the ` +
        `engine, or open a GPU: Device.open('cuda').`,
    );
}

/**
 * Opens nvJPEG on a device, once, with the options of the first call. After a failure the next call
 * tries again.
 *
 * @throws CudaError with code ERR_CUDA_NO_LIBRARY where it is not found, ERR_CUDA_UNSUPPORTED on a
 *   CPU device; CudaLibraryError
 */
export function openNvjpeg(device: CoreDevice, options: OpenNvjpegOptions = {}): Promise<Nvjpeg> {
  const known = devices.get(device);
  if (known?.absent === false) return known.done;
  if (options.anyDevice !== true) checkNvjpegDevice(device);
  const done = open(device, options);
  const opening: Opening = { nvjpeg: undefined, absent: false, done };
  devices.set(device, opening);
  // It is closed with the device, also if the device is closed before it is open.
  const whole = { close: () => done.then((nvjpeg) => nvjpeg.close(), ignore) };
  device.objects.own(whole);
  done.then(
    (nvjpeg) => {
      opening.nvjpeg = nvjpeg;
    },
    () => {
      opening.absent = true;
      device.objects.disown(whole);
    },
  );
  return done;
}

async function open(
  device: CoreDevice,
  {
    path,
    driver = device.runtime.config.libraryPath,
    anyDevice = false,
    hardware = true,
  }: OpenNvjpegOptions,
): Promise<Nvjpeg> {
  device.check();
  const target = {
    place: { path, driver, env: { ...process.env } },
    context: device.runtime.info.context,
  };
  try {
    const base = anyDevice ? await hostBase(device, koffiPath()) : undefined;
    return new Nvjpeg(device, await ask({ ...target, kind: 'open' }), target, base ?? 0, hardware);
  } catch (error) {
    throw shownError(error, undefined);
  }
}

function ignore(): void {
  // The promise that waits for it has the error.
}
