/**
 * Pictures as images on a device: decoded by sharp on threads of its own and uploaded through page-locked staging, or JPEGs by nvJPEG,
 * which writes them where they are to be.
 */
import { readFile } from 'node:fs/promises';
import { setImmediate } from 'node:timers/promises';

import { CudaError, CudaFormatError, u8 } from '../../core/index.js';
import type { DeviceBuffer } from '../../core/index.js';
import { checkInteger, checkOptions, checkSignal, invalid } from '../../core/arguments.js';
import type { HostTurn } from '../../core/host-work.js';
import { Made } from '../../ops/collect.js';
import { DeviceOp, nodeOf } from '../../ops/device-op.js';
import { Later } from '../../ops/node.js';
import type { Submitted } from '../../ops/node.js';
import type { Run } from '../../ops/run.js';
import { coreOf } from '../../ops/scheduling.js';
import type { AnyDevice } from '../../ops/scheduling.js';
import { Tensor, contiguous } from '../../tensor/index.js';
import { writeDense } from '../../tensor/tensor.js';
import { orderChannels } from '../channel-order.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';
import { unlessAborted } from '../../core/aborting.js';
import { isJpeg, readJpegHeader } from './jpeg-header.js';
import type { JpegHeader } from './jpeg-header.js';
import { checkNvjpegDevice, mayHaveNvjpeg, openNvjpeg, openedNvjpeg } from './nvjpeg/nvjpeg.js';
import type { Nvjpeg, NvjpegPicture } from './nvjpeg/nvjpeg.js';
import { upright } from './orientation.js';
import { sourceOf } from './picture-source.js';
import type { CheckedSource, PictureSource } from './picture-source.js';
import { firstLine, loadSharp } from './sharp.js';
import type { SharpPicture } from './sharp.js';

/** What a decoded picture's channels are. */
export type PictureFormat = 'rgb' | 'bgr' | 'rgba' | 'grey';

/** Who decodes: `nvjpeg` is NVIDIA's nvJPEG, for JPEGs on a GPU; `auto` is nvJPEG where it can give what sharp gives, and sharp elsewhere. */
export type PictureEngine = 'auto' | 'nvjpeg' | 'sharp';
const ENGINES: readonly PictureEngine[] = ['auto', 'nvjpeg', 'sharp'];

/** Red, green and blue, from 0 to 255. */
export type PictureColor = readonly [red: number, green: number, blue: number];

/** What {@link decodeImage} takes. */
export interface DecodeImageOptions {
  /** The channels of the result, whatever the picture has. Default: rgb. */
  readonly format?: PictureFormat;
  /** What shows through where the picture is transparent and the result has no alpha; `ignore` takes the colours as they stand. Default: white. */
  readonly background?: PictureColor | 'ignore';
  /** `apply` turns and mirrors the picture as its EXIF orientation says; `ignore` leaves it as it was stored. Default: apply. */
  readonly orientation?: 'apply' | 'ignore';
  /** Who decodes. Default: auto. */
  readonly engine?: PictureEngine;
  /** Pixels that the picture may have, its width times its height, for files of strangers: few bytes can claim to hold any number. Default: 2^28. */
  readonly maxPixels?: number;
  /** Stops waiting. What libvips or nvJPEG has begun it ends, and the result is dropped. */
  readonly signal?: AbortSignal;
}

/** Options that were checked. */
export interface Decoding {
  readonly format: PictureFormat;
  readonly background: PictureColor | 'ignore';
  readonly orientation: 'apply' | 'ignore';
  readonly engine: PictureEngine;
  readonly maxPixels: number;
}

/** Pixels on the host, without gaps. */
export interface HostPicture {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: Channels;
}

export const PICTURE_CHANNELS: Readonly<Record<PictureFormat, Channels>> = { rgb: 3, bgr: 3, rgba: 4, grey: 1 };
/** Bytes that are moved on this thread at a time. */
const SLICE = 1 << 20;
const DEFAULT_MOST_PIXELS = 2 ** 28;
const WHITE: PictureColor = [255, 255, 255];

/** @throws CudaArgumentError */
export function checkDecoding(options: DecodeImageOptions, further: readonly string[] = []): Decoding {
  checkOptions('options', options, ['format', 'background', 'orientation', 'engine', 'maxPixels', 'signal', ...further]);
  const { format = 'rgb', background = WHITE, orientation = 'apply', engine = 'auto', maxPixels = DEFAULT_MOST_PIXELS, signal } = options;
  if (!Object.hasOwn(PICTURE_CHANNELS, format)) throw invalid('options.format', `one of ${Object.keys(PICTURE_CHANNELS).join(', ')}`, format);
  if ((orientation as unknown) !== 'apply' && (orientation as unknown) !== 'ignore') throw invalid('options.orientation', "'apply' or 'ignore'", orientation);
  if (background !== 'ignore') checkColor('options.background', background);
  if (!ENGINES.includes(engine)) throw invalid('options.engine', `one of ${ENGINES.join(', ')}`, engine);
  if (engine === 'nvjpeg' && format === 'rgba') throw invalid('options.format', 'rgb, bgr or grey, since nvJPEG makes no alpha', format, "Write { format: 'rgb' } and .use((image) => addAlpha(image)), or leave out the engine.");
  checkInteger('options.maxPixels', maxPixels, 1, MOST_EXTENT ** 2, 'pixels');
  checkSignal(signal);
  return { format, background, orientation, engine, maxPixels };
}

/** @throws CudaArgumentError */
export function checkColor(argument: string, color: unknown): asserts color is PictureColor {
  if (Array.isArray(color) && color.length === 3 && color.every((each) => Number.isInteger(each) && each >= 0 && each <= 255)) return;
  throw invalid(argument, 'three whole numbers from 0 to 255, [red, green, blue]', color);
}

/**
 * A picture (JPEG, PNG, WebP, TIFF, GIF, AVIF, whatever sharp reads) as an image of u8 and [height, width, channels] on the device.
 * It is decoded when the operation is run, on threads of libvips, and then uploaded in slices through page-locked staging, so that
 * neither holds the event loop up. As many are decoded at once as libuv has threads (four, or UV_THREADPOOL_SIZE). cuMemcpyHtoDAsync
 *
 * - Colours become sRGB: CMYK, Lab and pictures with a colour profile are converted by libvips; 16 bits become 8.
 * - Grey becomes R = G = B for `rgb`; colours become grey by libvips' luminance, which weighs linear light.
 * - Transparent pixels are put over `background`, unless the format is `rgba`; without alpha in the picture that is 255.
 * - The EXIF orientation is applied, so that the image stands as a viewer shows it; `{ orientation: 'ignore' }` leaves it.
 * - Of several pages or frames the first one counts.
 *
 * On a GPU, where nvJPEG is installed, it decodes JPEGs instead, up to eight at once on threads of its own: the result is where it is
 * to be, and has its place in the stream as soon as the operation is run with the bytes at hand. Its pixels are within a few steps of
 * sharp's. By default sharp keeps what nvJPEG would give otherwise (CMYK, colour profiles other than sRGB, colours as `grey`, `rgba`) and
 * what it refuses. `{ engine: 'nvjpeg' }` insists on it: profiles are then ignored, and `grey` is the luma that is stored; `{ engine: 'sharp' }`
 * gives the same bits on every machine. nvjpegDecode
 *
 * @throws CudaArgumentError at the call, and CudaError (ERR_CUDA_UNSUPPORTED) there for `nvjpeg` on a CPU device. Rejects with CudaFormatError
 * (code ERR_CUDA_FORMAT), which names the input, where it is no picture, is truncated or is too large; with CudaError (ERR_CUDA_NO_LIBRARY)
 * where sharp, or nvJPEG that was asked for, is not installed; with CudaLibraryError, which has nvJPEG's status, where that was asked for and
 * fails (ERR_CUDA_FORMAT: damaged, ERR_CUDA_UNSUPPORTED: a kind of JPEG that it lacks); with what the file system says of a path (its
 * `cause` in CudaFormatError); with the signal's reason.
 */
export function decodeImage(device: AnyDevice, source: PictureSource, options: DecodeImageOptions = {}): DeviceOp<Tensor<'u8', number[]>> {
  const checked = sourceOf('source', source);
  const decoding = checkDecoding(options);
  const { signal } = options;
  const core = coreOf(device);
  if (decoding.engine === 'nvjpeg') checkNvjpegDevice(core);
  return new DeviceOp(new Made<Image>(core, 'decodeImage', (run) => {
    checkAwaited(run, 'decodeImage');
    const { engine, format } = decoding;
    if (engine === 'sharp' || format === 'rgba' || !mayHaveNvjpeg(core)) return bySharp(run, checked, decoding, signal);
    const nvjpeg = openedNvjpeg(core);
    if (engine === 'auto' && nvjpeg === 'absent') return bySharp(run, checked, decoding, signal);
    const { input } = checked;
    if (typeof nvjpeg === 'object' && typeof input !== 'string') return withNvjpeg(run, nvjpeg, { ...checked, input }, decoding, signal);
    return later(run, signal, async () => {
      const [found, bytes] = await Promise.all([engine === 'auto' ? openNvjpeg(core).catch(() => undefined) : openNvjpeg(core), readBytes(checked, engine)]);
      return () => (found === undefined || bytes === undefined ? bySharp(run, checked, decoding, signal) : withNvjpeg(run, found, { input: bytes, name: checked.name }, decoding, signal));
    });
  }));
}

type Image = Tensor<'u8', number[]>;

/** The bytes of the source; undefined where sharp is to say what is wrong with a path. */
async function readBytes({ input, name }: CheckedSource, engine: PictureEngine): Promise<Uint8Array | undefined> {
  if (typeof input !== 'string') return input;
  try {
    return await readFile(input);
  } catch (cause) {
    if (engine === 'auto') return undefined;
    throw new CudaFormatError('image', `${name}: ${firstLine(cause)}`, undefined, { cause });
  }
}

/** What is queued once something is known. */
function later<T>(run: Run, signal: AbortSignal | undefined, know: () => Promise<() => Submitted<T>>): Later<T> {
  return new Later(unlessAborted(signal, know).then((queue) => run.settled(run.resume(queue))), false);
}

/** The pixels come from the host, and are then queued for the upload. */
function bySharp(run: Run, source: CheckedSource, decoding: Decoding, signal: AbortSignal | undefined): Submitted<Image> {
  return later(run, signal, async () => {
    const picture = await decodeOnHost(source, decoding);
    return () => {
      const image = upload(run, picture);
      return decoding.format === 'bgr' ? changed(run, image, (each) => orderChannels(each, [2, 1, 0], { engine: 'own' })) : image;
    };
  });
}

/** By nvJPEG where it takes the picture, and else, unless it was asked for, by sharp. @throws CudaFormatError, CudaError */
function withNvjpeg(run: Run, nvjpeg: Nvjpeg, source: CheckedSource & { readonly input: Uint8Array }, decoding: Decoding, signal: AbortSignal | undefined): Submitted<Image> {
  const { input: bytes, name } = source;
  const { format, engine } = decoding;
  const auto = engine === 'auto';
  let header: JpegHeader;
  try {
    if (auto && !isJpeg(bytes)) return bySharp(run, source, decoding, signal);
    header = readJpegHeader(bytes, name);
    checkTaken(header, name, decoding.maxPixels);
  } catch (error) {
    if (!auto) throw error;
    return bySharp(run, source, decoding, signal);
  }
  if (auto && (header.profile === 'other' || (format === 'grey' && header.colors !== 'grey'))) return bySharp(run, source, decoding, signal);
  const { width, height } = header;
  const channels = PICTURE_CHANNELS[format];
  const picture: NvjpegPicture = { bytes, name, width, height, format: format as NvjpegPicture['format'] };
  const image = new Tensor<'u8', number[]>(run.alloc(u8, height * width * channels), contiguous([height, width, channels]), true);
  const otherwise = auto ? (turn: HostTurn): Promise<void> => decodeInTurn(turn, source, decoding, image) : undefined;
  let over: Promise<void>;
  try {
    const done = nvjpeg.decode(run.stream, picture, image.buffer, signal, otherwise);
    over = unlessAborted(signal, () => done);
    // Whoever is behind it in the stream waits for it all the same.
    done.catch(() => undefined);
  } catch (error) {
    image.close();
    throw error;
  }
  run.closeOnFailure(image);
  run.dependOn(over);
  const { orientation } = header;
  return decoding.orientation === 'ignore' || orientation === 1 ? image : changed(run, image, (each) => upright(each, orientation));
}

/** @throws CudaFormatError for sizes that no image has; CudaError (ERR_CUDA_UNSUPPORTED) for JPEGs of which nvJPEG lacks the kind */
function checkTaken({ width, height, frame, precision, components, colors }: JpegHeader, name: string, maxPixels: number): void {
  if (width > MOST_EXTENT || height > MOST_EXTENT) throw new CudaFormatError('image', `${name}: it has ${width} × ${height} pixels, images have at most ${MOST_EXTENT} rows and columns`);
  if (width * height > maxPixels) throw new CudaFormatError('image', `${name}: it has ${width} × ${height} pixels, options.maxPixels allows ${maxPixels}`);
  const what = frame >= 0xc9 ? 'arithmetic coding'
    : frame > 0xc2 ? `the process of marker FF ${frame.toString(16).toUpperCase()} (lossless or hierarchical)`
    : precision !== 8 ? `samples of ${precision} bits`
    : components !== 1 && components !== 3 ? `${components} components${components === 4 ? ' (CMYK)' : ''}`
    : colors === 'rgb' ? 'RGB instead of luma and chroma'
    : height === 0 ? 'its number of rows behind its pixels'
    : undefined;
  if (what !== undefined) throw new CudaError('ERR_CUDA_UNSUPPORTED', `image: ${name}: a JPEG with ${what}, which nvJPEG does not take. Leave out the engine, or write { engine: 'sharp' }.`);
}

/** nvJPEG has failed, and the place in the stream is taken: the pixels of sharp go there. */
async function decodeInTurn(turn: HostTurn, source: CheckedSource, decoding: Decoding, { buffer, shape }: { readonly buffer: DeviceBuffer; readonly shape: readonly number[] }): Promise<void> {
  const { format } = decoding;
  // Stored as it is: what comes behind turns it.
  const { data, width, height } = await decodeOnHost(source, { ...decoding, orientation: 'ignore' });
  if (height !== shape[0] || width !== shape[1]) throw new CudaFormatError('image', `${source.name}: ${width} × ${height} pixels were decoded, and its header says ${shape[1]} × ${shape[0]}`);
  const staging = await buffer.device.pinned(u8, data.length);
  try {
    turn.keep(staging);
    const view = staging.view();
    const slice = SLICE - SLICE % 3;
    for (let at = 0; at < data.length; at += slice) {
      if (at > 0) await setImmediate();
      const end = Math.min(at + slice, data.length);
      view.set(data.subarray(at, end), at);
      if (format === 'bgr') {
        for (let i = at; i < end; i += 3) [view[i], view[i + 2]] = [data[i + 2]!, data[i]!];
      }
    }
    turn.copyOut(staging, 0, buffer);
    await turn.copied();
  } finally {
    void staging.close();
  }
}

/** What an operation makes of the image, which is closed behind it. */
function changed(run: Run, image: Image, change: (image: Image) => DeviceOp<Image>): Submitted<Image> {
  return nodeOf(new DeviceOp(new Made<Image>(image.device, 'decodeImage', () => image)).use(change)).submit(run);
}

/** The pixels, by sharp: those of `bgr` as rgb. */
export async function decodeOnHost({ input, name }: CheckedSource, { format, background, orientation, maxPixels }: Decoding): Promise<HostPicture> {
  const sharp = await loadSharp();
  try {
    let picture = sharp(input, { failOn: 'warning', limitInputPixels: maxPixels });
    if (orientation === 'apply') picture = picture.rotate();
    picture = withAlphaOf(picture, format, background);
    const { data, info } = await picture.toColourspace(format === 'grey' ? 'b-w' : 'srgb').raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
    const { width, height } = info;
    if (width > MOST_EXTENT || height > MOST_EXTENT) throw new Error(`it has ${width} × ${height} pixels, images have at most ${MOST_EXTENT} rows and columns`);
    return { data, width, height, channels: PICTURE_CHANNELS[format] };
  } catch (cause) {
    throw new CudaFormatError('image', `${name}: ${firstLine(cause)}`, undefined, { cause });
  }
}

function withAlphaOf(picture: SharpPicture, format: PictureFormat, background: PictureColor | 'ignore'): SharpPicture {
  if (format === 'rgba') return picture.ensureAlpha();
  if (background === 'ignore') return picture.removeAlpha();
  const [r, g, b] = background;
  return picture.flatten({ background: { r, g, b } }).removeAlpha();
}

/** What needs other threads on its way cannot be recorded, nor does a thread that blocks hear from them. @throws CudaError */
export function checkAwaited(run: Run, name: string): void {
  run.checkNotRecording(name, 'run it before the capture');
  if (run.mode === 'block') throw new CudaError('ERR_CUDA_UNSUPPORTED', `${name}: pictures come through the event loop, which sync() blocks. Await the operation instead.`);
}

function upload(run: Run, { data, width, height, channels }: HostPicture): Image {
  const tensor = new Tensor<'u8', number[]>(run.alloc(u8, data.length), contiguous([height, width, channels]), true);
  writeDense(run, tensor.buffer, data as never, () => { giveBack(data); });
  return tensor;
}

/**
 * Frees pixels of sharp's now, where JavaScript can (Node 22 and later). To the garbage collector they are pressure from outside, for
 * which it collects everything: 40 times, and 0.4 s, for 100 pictures of 11 MB.
 */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  if (!(buffer instanceof ArrayBuffer) || buffer.byteLength !== byteLength) return;
  try {
    (buffer as { transfer?: (bytes: number) => unknown }).transfer?.(0);
  } catch {
    // It cannot be taken from whoever made it.
  }
}
