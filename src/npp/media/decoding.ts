/** Pictures as images on a device: decoded by sharp on threads of its own, uploaded through page-locked staging. */
import { CudaError, CudaFormatError, u8 } from '../../core/index.js';
import type { Device } from '../../core/index.js';
import { checkOptions, checkSignal, invalid } from '../../core/arguments.js';
import { Made } from '../../ops/collect.js';
import { DeviceOp } from '../../ops/device-op.js';
import { Later } from '../../ops/node.js';
import type { Run } from '../../ops/run.js';
import { coreOf } from '../../ops/scheduling.js';
import type { AnyDevice } from '../../ops/scheduling.js';
import { Tensor, contiguous } from '../../tensor/index.js';
import { writeDense } from '../../tensor/tensor.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';
import { unlessAborted } from './aborting.js';
import { sourceOf } from './picture-source.js';
import type { CheckedSource, PictureSource } from './picture-source.js';
import { firstLine, loadSharp } from './sharp.js';
import type { SharpPicture } from './sharp.js';

/** What a decoded picture's channels are. */
export type PictureFormat = 'rgb' | 'rgba' | 'grey';

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
  /** Stops waiting. What libvips has begun it ends, and the result is dropped. */
  readonly signal?: AbortSignal;
}

/** Options that were checked. */
export interface Decoding {
  readonly format: PictureFormat;
  readonly background: PictureColor | 'ignore';
  readonly orientation: 'apply' | 'ignore';
}

/** Pixels on the host, without gaps. */
export interface HostPicture {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: Channels;
}

export const PICTURE_CHANNELS: Readonly<Record<PictureFormat, Channels>> = { rgb: 3, rgba: 4, grey: 1 };
const WHITE: PictureColor = [255, 255, 255];

/** @throws CudaArgumentError */
export function checkDecoding(options: DecodeImageOptions, further: readonly string[] = []): Decoding {
  checkOptions('options', options, ['format', 'background', 'orientation', 'signal', ...further]);
  const { format = 'rgb', background = WHITE, orientation = 'apply', signal } = options;
  if (!Object.hasOwn(PICTURE_CHANNELS, format)) throw invalid('options.format', `one of ${Object.keys(PICTURE_CHANNELS).join(', ')}`, format);
  if ((orientation as unknown) !== 'apply' && (orientation as unknown) !== 'ignore') throw invalid('options.orientation', "'apply' or 'ignore'", orientation);
  if (background !== 'ignore') checkColor('options.background', background);
  checkSignal(signal);
  return { format, background, orientation };
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
 * @throws CudaArgumentError at the call. Rejects with CudaFormatError (code ERR_CUDA_FORMAT), which names the input, where it is no
 * picture, is truncated or is too large; with CudaError (ERR_CUDA_NO_LIBRARY) where sharp is not installed; with what the file system
 * says of a path (its `cause` in CudaFormatError); with the signal's reason.
 */
export function decodeImage(device: AnyDevice, source: PictureSource, options: DecodeImageOptions = {}): DeviceOp<Tensor<'u8', number[]>> {
  const checked = sourceOf('source', source);
  const decoding = checkDecoding(options);
  const { signal } = options;
  return uploading(coreOf(device), 'decodeImage', () => unlessAborted(signal, () => decodeOnHost(checked, decoding)));
}

/** The pixels, by sharp. */
export async function decodeOnHost({ input, name }: CheckedSource, { format, background, orientation }: Decoding): Promise<HostPicture> {
  const sharp = await loadSharp();
  try {
    let picture = sharp(input, { failOn: 'warning' });
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

/** An operation that makes an image of what comes from the host. */
function uploading(device: Device, name: string, decode: () => Promise<HostPicture>): DeviceOp<Tensor<'u8', number[]>> {
  return new DeviceOp(new Made<Tensor<'u8', number[]>>(device, name, (run) => {
    checkAwaited(run, name);
    return new Later(decode().then((picture) => run.settled(run.resume(() => upload(run, picture)))), false);
  }));
}

/** What needs other threads on its way cannot be recorded, nor does a thread that blocks hear from them. @throws CudaError */
export function checkAwaited(run: Run, name: string): void {
  run.checkNotRecording(name, 'run it before the capture');
  if (run.mode === 'block') throw new CudaError('ERR_CUDA_UNSUPPORTED', `${name}: sharp answers through the event loop, which sync() blocks. Await the operation instead.`);
}

function upload(run: Run, { data, width, height, channels }: HostPicture): Tensor<'u8', number[]> {
  const tensor = new Tensor<'u8', number[]>(run.alloc(u8, data.length), contiguous([height, width, channels]), true);
  writeDense(run, tensor.buffer, data as never);
  return tensor;
}
