/**
 * nvJPEG on a device: found once, and then as many JPEGs at a time as there are threads. Each has a
 * state of nvJPEG's and a stream of its own (a lane). Where the GPU has decoders of its own these
 * take what they can (`hardware.ts`): the same pixels, in a third of the time and next to none of
 * the processor's. What all this holds on the device is given back when the device is closed, and
 * of all but one lane when nothing came for a while.
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
 * JPEGs that are decoded at once. Each takes a core for its coded bytes, but not all the time: this
 * thread hears of its end, and tells the next, with a turn of the event loop. (Photographs of 640 ×
 * 480 to the classes of a model, H100: with four 5200 a second, with eight 6700.)
 */
const MOST_LANES = 8;
const IDLE_MS = 10_000;
/**
 * Pictures after which the GPU's own decoders are looked for, and made ready beside what is
 * decoded: that takes a third of a second (H200).
 */
const PICTURES_BEFORE_HARDWARE = 2;

/** nvjpegOutputFormat_t: interleaved, or the luma alone. */
export const NVJPEG_FORMATS = { grey: 2, rgb: 5, bgr: 6 } as const;

/** Where nvJPEG is, for those who know. */
export interface OpenNvjpegOptions {
  /** Its file. */
  readonly path?: string;
  /** That of libcuda. */
  readonly driver?: string;
  /** Whether it is called for a CPU device too: of a stand-in. */
  readonly anyDevice?: boolean;
  /** Default true: whether the GPU's own decoders are used. */
  readonly hardware?: boolean;
}

/** One JPEG, whose header was read. */
export interface NvjpegPicture {
  readonly bytes: Uint8Array;
  /** As errors name it. */
  readonly name: string;
  readonly width: number;
  readonly height: number;
  readonly format: keyof typeof NVJPEG_FORMATS;
}

/** A picture of those that have one place in a stream. */
export interface HeldPicture {
  readonly picture: NvjpegPicture;
  /** Which of the buffers it is written to, and where it begins there, bytes. */
  readonly use: number;
  readonly offset: number;
  /** Tried where nvJPEG fails. */
  readonly otherwise?: (turn: HostTurn) => Promise<void>;
}

/** A lane, and memory of its own for the files that it decodes. */
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
  /** e.g. `13.3.2` */
  readonly version: string;
  readonly path: string;
  private readonly device: CoreDevice;
  private readonly handle: number;
  private readonly target: { readonly place: NvjpegPlace; readonly context: number };
  /** What is added to addresses of the device. */
  private readonly base: number;
  private readonly mayUseHardware: boolean;
  private readonly free: OwnLane[] = [];
  private lanes = 0;
  private readonly waiting: (() => void)[] = [];
  /** The ends of works that were queued. */
  private readonly underway = new Set<Promise<void>>();
  private pictures = 0;
  private hardwareCount = 0;
  /** The GPU's own decoders, once they are there. */
  private hardware: BatchDecoder | undefined = undefined;
  /** The end of looking for them. Never rejects. */
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
   * Decodes into the buffers, [height, width, channels] of each picture without gaps, in one place
   * of the stream. Rejects with what went wrong with the first picture of those with which
   * something did.
   *
   * @param name as errors call it
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
        // All of them are waited for: what is under way writes.
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

  /** Pictures that the GPU's own decoders have decoded. @internal */
  get byHardware(): number {
    return this.hardwareCount;
  }

  /** Behind all that was queued. */
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
      // What a state holds after a failure nobody says.
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

  /** Without them pictures are decoded all the same. */
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
    // Of a device that is lost nothing can be released.
    await ask({
      ...this.target,
      kind: 'release',
      handle,
      lanes: lanes.map(({ lane }) => lane),
    }).catch(ignore);
  }

  /**
   * Gives back what lies on the device if nothing comes for a while, but for one: the first state
   * takes a third of a second (H100).
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
    // States before the handle that they are of.
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
 * nvJPEG on a device if it has been opened, `absent` where it was looked for and could not be,
 * undefined where nobody has asked.
 */
export function openedNvjpeg(device: CoreDevice): Nvjpeg | 'absent' | undefined {
  const opening = devices.get(device);
  return opening?.absent === true ? 'absent' : opening?.nvjpeg;
}

/** Whether nvJPEG could work on the device: a GPU, or one that a stand-in was opened on. */
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
 * nvJPEG on a device: opened once, with the options of the first call. After a failure the next
 * call looks again.
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
  // Closed with the device, also where that is closed before this is open.
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
  // Told through the promise of whoever waits for it.
}
