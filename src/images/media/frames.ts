/** An iteration over the frames of a video, from ffmpeg or from a stream of raw bytes. */
import { CudaFormatError } from '../../core/index.js';
import type { CoreDevice, PinnedBuffer } from '../../core/index.js';
import {
  checkInteger,
  checkOptions,
  checkPath,
  checkSignal,
  invalid,
} from '../../ground/arguments.js';
import { coreOf } from '../../ops/scheduling.js';
import type { AnyDevice } from '../../ops/scheduling.js';
import { ByteReader } from './byte-reader.js';
import type { ByteStream } from './byte-reader.js';
import { FfmpegProcess, checkArguments, ffmpegPlace } from './ffmpeg-process.js';
import { checkPixelFormat, frameForm } from './pixel-formats.js';
import type { FrameForm, PixelFormat, PixelFormats } from './pixel-formats.js';
import { unlessAborted } from '../../core/aborting.js';
import { VideoFrame } from './video-frame.js';

interface EveryFramesOptions<P extends PixelFormat> {
  /** The pixel format of frames, by ffmpeg's name. */
  readonly pixelFormat: P;
  /**
   * The number of page-locked buffers for frames. Default: 3: the caller has one, and one is being
   * read.
   */
  readonly buffers?: number;
  /** Ends ffmpeg and the iteration, which rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** A video that ffmpeg reads. */
export interface FfmpegFramesOptions<
  P extends PixelFormat = PixelFormat,
> extends EveryFramesOptions<P> {
  /** A file or a URL: ffmpeg's argument after `-i`. */
  readonly input: string | URL;
  /** With `height`: the size to which frames are scaled. Default: the video's size. */
  readonly width?: number;
  readonly height?: number;
  /** The program. Default: `ffmpeg` on the PATH. */
  readonly ffmpeg?: string;
  /** Arguments before `-i`: `['-ss', '10']`, `['-hwaccel', 'cuda']`. */
  readonly inputArgs?: readonly string[];
  /** Arguments after the input: `['-vf', 'fps=5']`, `['-fps_mode', 'passthrough']`. */
  readonly args?: readonly string[];
}

/** Frames without a container, one after the other. */
export interface RawFramesOptions<
  P extends PixelFormat = PixelFormat,
> extends EveryFramesOptions<P> {
  /**
   * The source of bytes: a Readable without an encoding, a ReadableStream, a generator. It ends
   * with the iteration.
   */
  readonly raw: ByteStream;
  readonly width: number;
  readonly height: number;
}

/** Options of {@link frames}. */
export type FramesOptions<P extends PixelFormat = PixelFormat> =
  FfmpegFramesOptions<P> | RawFramesOptions<P>;

/** A source of the frames' bytes. */
interface Source<P extends PixelFormat> {
  readonly name: string;
  readonly form: FrameForm<P>;
  readonly reader: ByteReader;
  /** Waits for the end, after the last byte. @throws where the source failed before */
  readonly ended: () => Promise<void>;
  readonly close: () => Promise<void>;
}

type Opener<P extends PixelFormat> = () => Promise<Source<P>>;

const SHARED = ['pixelFormat', 'buffers', 'signal', 'width', 'height'];

/**
 * Iterates over the frames of a video: `for await (const frame of frames(device, { input:
 * 'film.mp4', pixelFormat: 'nv12' }))`. The first `next()` starts `ffmpeg -i … -f rawvideo`. While
 * the caller has one frame, the next one is read, and no other: ffmpeg waits. Frames are in
 * page-locked memory that later frames use again, see {@link VideoFrame}. Leaving the loop ends
 * ffmpeg.
 *
 * ffmpeg converts videos of a variable rate to a constant one, and repeats or drops frames for it;
 * with `{ args: ['-fps_mode', 'passthrough'] }` it does not.
 *
 * @throws CudaArgumentError at the call. The iteration rejects with CudaError (ERR_CUDA_NO_LIBRARY)
 *   where ffmpeg is not installed, with CudaLibraryError where it fails (its last lines are in the
 *   message), with CudaFormatError (ERR_CUDA_FORMAT) where the bytes end within a frame, and with
 *   the signal's reason
 *
 * @example
 * ```ts
 * async function* bytes() {
 *   yield Uint8Array.of(1, 2, 3, 4, 5, 6);
 * }
 * const options = { raw: bytes(), pixelFormat: 'rgb24', width: 2, height: 1 } as const;
 * for await (const frame of frames(device, options)) {
 *   using image = await frame.upload();
 *   console.log(image.shape, (await image.read()).join(' ')); // [ 1, 2, 3 ] 1 2 3 4 5 6
 * }
 * ```
 */
export function frames<P extends PixelFormat>(
  device: AnyDevice,
  options: FramesOptions<P>,
): AsyncGenerator<VideoFrame<P>, void, undefined> {
  const core = coreOf(device);
  if (typeof (options as unknown) !== 'object' || (options as unknown) === null)
    throw invalid('options', 'an object with input (or raw) and pixelFormat', options);
  const { pixelFormat, buffers = 3, signal } = options;
  checkPixelFormat('options.pixelFormat', pixelFormat);
  checkInteger('options.buffers', buffers, 2, 64);
  checkSignal(signal);
  return generate(
    core,
    'raw' in options ? rawOpener(options) : ffmpegOpener(options),
    buffers,
    signal,
  );
}

function rawOpener<P extends PixelFormat>(options: RawFramesOptions<P>): Opener<P> {
  checkOptions('options', options, [...SHARED, 'raw']);
  const { raw, pixelFormat, width, height, signal } = options;
  if (typeof (raw as Partial<ByteStream> | null | undefined)?.[Symbol.asyncIterator] !== 'function')
    throw invalid(
      'options.raw',
      'a Readable, a ReadableStream or another async iterable of bytes',
      raw,
    );
  const form = frameForm(pixelFormat, width, height);
  return () => {
    const reader = new ByteReader(raw, signal);
    return Promise.resolve({
      name: 'options.raw',
      form,
      reader,
      ended: () => Promise.resolve(),
      close: () => {
        reader.close();
        return Promise.resolve();
      },
    });
  };
}

function ffmpegOpener<P extends PixelFormat>(options: FfmpegFramesOptions<P>): Opener<P> {
  checkOptions('options', options, [...SHARED, 'input', 'ffmpeg', 'inputArgs', 'args']);
  const {
    pixelFormat,
    width,
    height,
    ffmpeg = 'ffmpeg',
    inputArgs = [],
    args = [],
    signal,
  } = options;
  const input = ffmpegPlace('options.input', options.input);
  checkPath('options.ffmpeg', ffmpeg, 'the path of the program ffmpeg');
  checkArguments('options.inputArgs', inputArgs);
  checkArguments('options.args', args);
  if ((width === undefined) !== (height === undefined))
    throw invalid(
      `options.${width === undefined ? 'width' : 'height'}`,
      'width and height, or neither of them',
      undefined,
      'Pass both, or leave both out for the size of the video.',
    );
  const given = width === undefined ? undefined : frameForm(pixelFormat, width, height);
  const scaled = given === undefined ? [] : ['-s', `${given.width}x${given.height}`];
  return async () => {
    const process = await FfmpegProcess.start(
      ffmpeg,
      [
        ...inputArgs,
        '-i',
        input,
        '-map',
        '0:v:0',
        ...args,
        ...scaled,
        '-f',
        'rawvideo',
        '-pix_fmt',
        pixelFormat,
        'pipe:1',
      ],
      ['ignore', 'pipe', 'pipe'],
    );
    try {
      const form = given ?? (await formOf(process, pixelFormat, input, signal));
      const reader = new ByteReader(process.child.stdout!, signal);
      return {
        name: input,
        form,
        reader,
        ended: () => process.succeeded(),
        close: () => process.kill(),
      };
    } catch (error) {
      await process.kill();
      throw error;
    }
  };
}

async function formOf<P extends PixelFormat>(
  process: FfmpegProcess,
  pixelFormat: P,
  input: string,
  signal: AbortSignal | undefined,
): Promise<FrameForm<P>> {
  const size = await unlessAborted(signal, () => process.outputSize());
  if (size !== undefined) return frameForm(pixelFormat, size.width, size.height);
  await process.succeeded();
  throw new CudaFormatError(
    'frames',
    `${input}: ffmpeg has ended without printing the size of its frames. Pass width and ` +
      'height, and leave -loglevel out of args.',
  );
}

async function* generate<P extends PixelFormat>(
  device: CoreDevice,
  open: Opener<P>,
  buffers: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<VideoFrame<P>, void, undefined> {
  signal?.throwIfAborted();
  const source = await unlessStopped(signal, open);
  const memories: PinnedBuffer<PixelFormats[P]>[] = [];
  let next: Promise<VideoFrame<P> | undefined> | undefined;
  // An abort takes effect at once, also while the caller has a frame.
  const stop = (): void => {
    void source.close();
  };
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    const { form } = source;
    while (memories.length < buffers) memories.push(await device.pinned(form.dtype, form.elements));
    const read = (index: number): Promise<VideoFrame<P> | undefined> => {
      const frame = unlessStopped(signal, () =>
        readFrame(source, index, memories[index % buffers]!, signal),
      );
      // It is awaited later, or not at all.
      frame.catch(() => undefined);
      return frame;
    };
    next = read(0);
    for (let index = 0; ; index++) {
      const frame = await next;
      signal?.throwIfAborted();
      if (frame === undefined) return;
      next = read(index + 1);
      try {
        yield frame;
      } finally {
        frame.retire();
      }
    }
  } finally {
    signal?.removeEventListener('abort', stop);
    await source.close();
    await next?.catch(() => undefined);
    // The memory is freed after copies to the device that are in progress.
    await Promise.all(memories.map((memory) => memory.close()));
  }
}

/** Runs `start`. After an abort, which kills ffmpeg, a failure is the signal's reason. */
async function unlessStopped<T>(
  signal: AbortSignal | undefined,
  start: () => Promise<T>,
): Promise<T> {
  try {
    return await start();
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}

/** Reads the next frame; undefined after the last one. */
async function readFrame<P extends PixelFormat>(
  { name, form, reader, ended }: Source<P>,
  index: number,
  memory: PinnedBuffer<PixelFormats[P]>,
  signal: AbortSignal | undefined,
): Promise<VideoFrame<P> | undefined> {
  await memory.memory.settled();
  const { buffer, bufferOffset, byteLength } = memory;
  const filled = await reader.fill(new Uint8Array(buffer, bufferOffset, byteLength));
  if (filled === byteLength) return new VideoFrame(index, form, memory);
  await unlessAborted(signal, ended);
  if (filled === 0) return undefined;
  throw new CudaFormatError(
    'frames',
    `${name}: it ends within frame ${index}, after ${filled} of its ${byteLength} bytes ` +
      `(${form.width} × ${form.height} of ${form.pixelFormat}). Is that its size and its pixel ` +
      'format?',
  );
}
