/** Encoding of frames to a video by ffmpeg. */
import { once } from 'node:events';
import { stat } from 'node:fs/promises';

import { CudaArgumentError, CudaDisposedError } from '../../core/index.js';
import { HOST_ARRAYS } from '../../ground/dtype.js';
import {
  checkBoolean,
  checkOptions,
  checkPath,
  checkSignal,
  invalid,
} from '../../ground/arguments.js';
import { Tensor } from '../../tensor/index.js';
import { sameShape } from '../../tensor/layouts.js';
import { unlessAborted } from '../../core/aborting.js';
import { FfmpegProcess, checkArguments, ffmpegPlace } from './ffmpeg-process.js';
import { checkPixelFormat, frameForm } from './pixel-formats.js';
import type { FrameForm, PixelFormat, PixelFormats } from './pixel-formats.js';

/** Options of {@link encodeFrames}. */
export interface EncodeFramesOptions<P extends PixelFormat = PixelFormat> {
  /** Where ffmpeg writes: a file or a URL. */
  readonly output: string | URL;
  /** The pixel format of frames, by ffmpeg's name. */
  readonly pixelFormat: P;
  readonly width: number;
  readonly height: number;
  /** Frames a second. */
  readonly frameRate: number;
  /** Arguments before the output: `['-c:v', 'libx264', '-crf', '18']`. */
  readonly args?: readonly string[];
  /** Whether an existing file is replaced; otherwise it is an error. Default: false. */
  readonly overwrite?: boolean;
  /** The program. Default: `ffmpeg` on the PATH. */
  readonly ffmpeg?: string;
  /** Ends ffmpeg; promises that wait for it reject with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * A video that ffmpeg encodes. {@link encodeFrames} makes it.
 *
 * @example
 * ```ts no-run
 * const size = { width: 640, height: 480 };
 * const video = { output: 'film.mp4', pixelFormat: 'rgb24', frameRate: 25, ...size } as const;
 * await using encoder = await encodeFrames(video);
 * await encoder.write(new Uint8Array(640 * 480 * 3));
 * await encoder.end();
 * ```
 */
export class FrameEncoder<P extends PixelFormat = PixelFormat> implements AsyncDisposable {
  private readonly process: FfmpegProcess;
  private readonly form: FrameForm<P>;
  private readonly signal: AbortSignal | undefined;
  private readonly stop = (): void => {
    void this.process.kill();
  };
  private tail: Promise<void> = Promise.resolve();
  private over = false;

  /** @internal */
  constructor(process: FfmpegProcess, form: FrameForm<P>, signal: AbortSignal | undefined) {
    this.process = process;
    this.form = form;
    this.signal = signal;
    signal?.addEventListener('abort', this.stop, { once: true });
  }

  /**
   * Adds a frame: a tensor of the format's shape, which is read to the host, or its elements on the
   * host. Frames are in the order of the calls. The promise resolves when ffmpeg takes more: a
   * caller that awaits it has one frame in memory.
   *
   * @throws CudaArgumentError for what is no frame of this video, CudaDisposedError after `end()`.
   *   Rejects with CudaLibraryError where ffmpeg has failed
   */
  write(frame: Tensor<PixelFormats[P]> | Uint8Array | Uint16Array): Promise<void> {
    if (this.over)
      throw new CudaDisposedError(
        'frame encoder: written to after end() or close(). Make another with await ' +
          'encodeFrames(options).',
      );
    this.check(frame);
    // The read begins now: the tensor may be closed after this call.
    const bytes = bytesOf(frame);
    bytes.catch(() => undefined);
    const done = this.tail.then(async () => {
      await this.put(await bytes);
    });
    // Each call has its own error: a later frame does not fail because an earlier one did.
    this.tail = done.catch(() => undefined);
    return done;
  }

  /**
   * Waits until ffmpeg has written all frames and ended. Rejects with CudaLibraryError where it
   * fails, and with the signal's reason.
   */
  async end(): Promise<void> {
    this.over = true;
    await this.tail;
    this.signal?.throwIfAborted();
    this.process.child.stdin!.end();
    await unlessAborted(this.signal, () => this.process.succeeded());
    this.signal?.removeEventListener('abort', this.stop);
  }

  /** Kills ffmpeg, unless {@link end} has ended it: its file may be no valid video. */
  async close(): Promise<void> {
    this.over = true;
    this.signal?.removeEventListener('abort', this.stop);
    await this.process.kill();
  }

  /** {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  private check(frame: unknown): void {
    const { dtype, shape, elements, pixelFormat } = this.form;
    if (frame instanceof Tensor) {
      frame.checkAlive();
      if (frame.dtype.name !== dtype.name || !sameShape(frame.shape as readonly number[], shape))
        throw invalid(
          'frame',
          `a Tensor of ${dtype.name} and [${shape.join(', ')}], which a frame of ${pixelFormat} is`,
          frame,
        );
      return;
    }
    const wanted = HOST_ARRAYS[dtype.name];
    if (!(frame instanceof wanted) || frame.length !== elements)
      throw invalid(
        'frame',
        `a Tensor of ${dtype.name} and [${shape.join(', ')}], or a ${wanted.name} of ` +
          `${elements} elements`,
        frame,
      );
  }

  private async put(bytes: Uint8Array): Promise<void> {
    this.signal?.throwIfAborted();
    const { child } = this.process;
    const stdin = child.stdin!;
    if (stdin.writable && (stdin.write(bytes) || (await drained(stdin)))) return;
    await unlessAborted(this.signal, () => this.process.succeeded());
    throw new CudaDisposedError(
      'frame encoder: ffmpeg has ended before all frames were written. Is there a limit, ' +
        'such as -t or -frames, in args?',
    );
  }
}

/** Waits until the stream takes more; false where it was closed. */
async function drained(stdin: NodeJS.WritableStream): Promise<boolean> {
  const ended = new AbortController();
  try {
    return await Promise.race([
      once(stdin, 'drain', { signal: ended.signal }).then(() => true),
      once(stdin, 'close', { signal: ended.signal }).then(() => false),
    ]);
  } catch {
    return false;
  } finally {
    ended.abort();
  }
}

async function bytesOf(
  frame: Tensor<'u8' | 'u16'> | Uint8Array | Uint16Array,
): Promise<Uint8Array> {
  const { buffer, byteOffset, byteLength } = frame instanceof Tensor ? await frame.read() : frame;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/**
 * Starts ffmpeg, which encodes frames to a video: call `await encoder.write(tensor)` for each
 * frame, then `await encoder.end()`. `await using` kills ffmpeg where the program leaves the block
 * before.
 *
 * @throws CudaArgumentError, as a rejection, for wrong options and an existing file; CudaError
 *   (ERR_CUDA_NO_LIBRARY) where ffmpeg is not installed
 *
 * @example
 * ```ts no-run
 * const size = { width: 640, height: 480 };
 * const video = { output: 'film.mp4', pixelFormat: 'rgb24', frameRate: 25, ...size } as const;
 * await using encoder = await encodeFrames(video);
 * using frame = await device.zeros(u8, [480, 640, 3]);
 * for (let i = 0; i < 50; i++) await encoder.write(frame);
 * await encoder.end();
 * ```
 */
export async function encodeFrames<P extends PixelFormat>(
  options: EncodeFramesOptions<P>,
): Promise<FrameEncoder<P>> {
  checkOptions('options', options, [
    'output',
    'pixelFormat',
    'width',
    'height',
    'frameRate',
    'args',
    'overwrite',
    'ffmpeg',
    'signal',
  ]);
  if ((options as unknown) === undefined)
    throw invalid(
      'options',
      'an object with output, pixelFormat, width, height and frameRate',
      options,
    );
  const {
    pixelFormat,
    frameRate,
    args = [],
    overwrite = false,
    ffmpeg = 'ffmpeg',
    signal,
  } = options;
  checkPixelFormat('options.pixelFormat', pixelFormat);
  const form = frameForm(pixelFormat, options.width, options.height);
  const output = ffmpegPlace('options.output', options.output);
  if (!(frameRate > 0 && frameRate < Infinity))
    throw invalid('options.frameRate', 'a number above 0, frames a second', frameRate);
  checkArguments('options.args', args);
  checkBoolean('options.overwrite', overwrite);
  checkPath('options.ffmpeg', ffmpeg, 'the path of the program ffmpeg');
  checkSignal(signal);
  signal?.throwIfAborted();
  // Some versions of ffmpeg (9.0) do not write an existing file, and report success.
  if (
    !overwrite &&
    (await stat(output).then(
      () => true,
      () => false,
    ))
  )
    throw new CudaArgumentError(
      'options.output',
      `options.output: ${output} exists. Write { overwrite: true } to replace it.`,
    );
  const raw = [
    '-f',
    'rawvideo',
    '-pix_fmt',
    pixelFormat,
    '-s',
    `${form.width}x${form.height}`,
    '-r',
    String(frameRate),
    '-i',
    'pipe:0',
  ];
  const process = await FfmpegProcess.start(
    ffmpeg,
    [...raw, ...args, overwrite ? '-y' : '-n', output],
    ['pipe', 'ignore', 'pipe'],
  );
  if (signal?.aborted === true) {
    await process.kill();
    signal.throwIfAborted();
  }
  return new FrameEncoder(process, form, signal);
}
