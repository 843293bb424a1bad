/** Decoding of pictures to images on a device; `decoding-run.ts` has the implementation. */
import { CudaArgumentError, u8 } from '../../core/index.js';
import { checkOptions, invalid } from '../../ground/arguments.js';
import { Made } from '../../ops/collect.js';
import { DeviceOp } from '../../ops/device-op.js';
import { whenKnown } from '../../ops/node.js';
import { coreOf } from '../../ops/scheduling.js';
import type { AnyDevice } from '../../ops/scheduling.js';
import { Tensor } from '../../tensor/index.js';
import type { KernelTensor } from '../../tensor/index.js';
import { DECODING_OPTIONS, PICTURE_CHANNELS, checkDecoding } from './decoding-options.js';
import type { DecodeImageOptions, Decoding } from './decoding-options.js';
import { DecodingRun, checkAwaited } from './decoding-run.js';
import type { Image } from './decoding-run.js';
import { checkNvjpegDevice } from './nvjpeg/nvjpeg.js';
import { sourceOf } from './picture-source.js';
import type { CheckedSource, PictureSource } from './picture-source.js';

/**
 * Decodes a picture (JPEG, PNG, WebP, TIFF, GIF, AVIF, and others that sharp reads) to an image of
 * u8 and [height, width, channels] on the device. When the operation is run, threads of libvips
 * decode it, and it is uploaded in slices through page-locked staging, so that neither blocks the
 * event loop. As many pictures are decoded at once as libuv has threads (four, or
 * UV_THREADPOOL_SIZE). cuMemcpyHtoDAsync
 *
 * - Colours become sRGB: libvips converts CMYK, Lab and pictures with a colour profile. A sample of
 *   16 bits becomes round(v · 255 / 65535) first, also of alpha.
 * - Grey becomes R = G = B for `rgb`; colours become grey by libvips' luminance, which weighs
 *   linear light.
 * - Transparent pixels are blended over `background`, unless the format is `rgba`, where a picture
 *   without alpha gets 255.
 * - The EXIF orientation is applied, so that the image has the orientation in which a viewer shows
 *   it; `{ orientation: 'ignore' }` leaves it.
 * - The first of several pages or frames is decoded.
 *
 * On a GPU with nvJPEG installed, nvJPEG decodes JPEGs instead: by the GPU's hardware decoders
 * where it has them, else up to eight at once on threads of this library. The result is written on
 * the device, and has its place in the stream as soon as the operation is run with bytes. Its
 * pixels are within a few steps of sharp's. By default sharp decodes JPEGs for which nvJPEG's
 * result differs (CMYK, colour profiles other than sRGB, colours as `grey`, `rgba`), and those that
 * nvJPEG does not take. With `{ engine: 'nvjpeg' }` it decodes these too: profiles are then
 * ignored, and `grey` is the stored luma. `{ engine: 'sharp' }` gives the same bits on every
 * machine. nvjpegDecode, nvjpegDecodeBatched
 *
 * @throws CudaArgumentError at the call, and CudaError (ERR_CUDA_UNSUPPORTED) there for `nvjpeg` on
 *   a CPU device. Rejects with CudaFormatError (code ERR_CUDA_FORMAT), which names the input, for a
 *   file that is no picture, is truncated or is too large; with CudaError (ERR_CUDA_NO_LIBRARY)
 *   where sharp, or the requested nvJPEG, is not installed; with CudaLibraryError, which has
 *   nvJPEG's status, where the requested nvJPEG fails (ERR_CUDA_FORMAT: damaged,
 *   ERR_CUDA_UNSUPPORTED: a kind of JPEG that it does not take); with CudaError
 *   (ERR_CUDA_NOT_FOUND), whose `cause` is the file system's error, for a path without a readable
 *   file; with the signal's reason.
 *
 * @example
 * ```ts
 * const file = await encodeImage(device.full(u8, [2, 3, 3], 200), { format: 'png' });
 * using image = await decodeImage(device, file);
 * console.log(image.shape, (await image.read())[0]); // [ 2, 3, 3 ] 200
 * ```
 */
export function decodeImage(
  device: AnyDevice,
  source: PictureSource,
  options: DecodeImageOptions = {},
): DeviceOp<Tensor<'u8', number[]>> {
  const checked = sourceOf('source', source);
  return decoded(
    device,
    'decodeImage',
    [checked],
    checkDecoding(options),
    options.signal,
    undefined,
    ([image]) => image!,
  );
}

/** Options of {@link decodeImages}. */
export interface DecodeImagesOptions extends DecodeImageOptions {
  /**
   * Where the pictures are written: a contiguous tensor of u8 and [N, height, width, channels]. All
   * pictures must have its size. Default: a new tensor for each.
   */
  readonly out?: Tensor<'u8'>;
}

/**
 * Decodes pictures as {@link decodeImage} does, in one place of the stream: later work waits for
 * all of them. A GPU with hardware decoders (A100, H100, H200) decodes up to 32 JPEGs in one call.
 * This takes fewer turns of the event loop than an operation for each.
 *
 * Where a picture cannot be decoded, the operation rejects with its error, which names the picture
 * (`sources[3]`); the contents of `out` are then undefined.
 *
 * @returns the images, in the order of the sources; with `out`, that
 * @throws errors of {@link decodeImage}, and CudaArgumentError for an `out` of another form.
 *   Rejects with CudaArgumentError for a picture of another size than `out`
 *
 * @example
 * ```ts
 * const file = await encodeImage(device.full(u8, [2, 3, 3], 200), { format: 'png' });
 * const images = await decodeImages(device, [file, file], { format: 'grey' });
 * console.log(images.map(({ shape }) => shape)); // [ [ 2, 3, 1 ], [ 2, 3, 1 ] ]
 * for (const image of images) image.close();
 * ```
 */
export function decodeImages(
  device: AnyDevice,
  sources: readonly PictureSource[],
  options: DecodeImagesOptions & { readonly out: Tensor<'u8'> },
): DeviceOp<Tensor<'u8', number[]>>;
export function decodeImages(
  device: AnyDevice,
  sources: readonly PictureSource[],
  options?: DecodeImageOptions,
): DeviceOp<Tensor<'u8', number[]>[]>;
export function decodeImages(
  device: AnyDevice,
  sources: readonly PictureSource[],
  options: DecodeImagesOptions = {},
): DeviceOp<Tensor<'u8', number[]>> | DeviceOp<Tensor<'u8', number[]>[]> {
  if (!Array.isArray(sources))
    throw invalid(
      'sources',
      'a list of paths, file: URLs or the bytes of files',
      sources,
      'Write [source], or decodeImage(device, source).',
    );
  const checked = sources.map((source, i) => sourceOf(`sources[${i}]`, source));
  checkOptions('options', options, [...DECODING_OPTIONS, 'out']);
  const { out, ...rest } = options;
  const decoding = checkDecoding(rest);
  if (out === undefined)
    return decoded(
      device,
      'decodeImages',
      checked,
      decoding,
      options.signal,
      undefined,
      (images) => images,
    );
  checkOut(device, out, checked.length, PICTURE_CHANNELS[decoding.format]);
  return decoded(
    device,
    'decodeImages',
    checked,
    decoding,
    options.signal,
    out as Image,
    () => out as Image,
  );
}

/** @throws CudaArgumentError, CudaDisposedError */
function checkOut(device: AnyDevice, out: unknown, count: number, channels: number): void {
  const expected = `a contiguous Tensor of u8 and [${count}, height, width, ${channels}]`;
  const fix =
    `Make it with device.uninitialized(u8, [${count}, height, width, ${channels}]), or leave ` +
    'it out.';
  if (!(out instanceof Tensor)) throw invalid('options.out', expected, out, fix);
  const tensor = out as KernelTensor;
  tensor.checkAlive();
  const { shape } = tensor;
  if (
    tensor.dtype !== u8 ||
    shape.length !== 4 ||
    shape[0] !== count ||
    shape[3] !== channels ||
    !tensor.isContiguous
  )
    throw invalid('options.out', expected, out, fix);
  const core = coreOf(device);
  if (tensor.device.runtime !== core.runtime)
    throw new CudaArgumentError(
      'options.out',
      `options.out: expected a tensor of ${core.kind}:${core.ordinal}, where the pictures ` +
        `are decoded, got ${tensor.toString()}. ${fix}`,
    );
}

function decoded<T>(
  device: AnyDevice,
  name: string,
  sources: readonly CheckedSource[],
  decoding: Decoding,
  signal: AbortSignal | undefined,
  out: Image | undefined,
  give: (images: Image[]) => T,
): DeviceOp<T> {
  const core = coreOf(device);
  if (decoding.engine === 'nvjpeg') checkNvjpegDevice(core);
  return new DeviceOp(
    new Made<T>(
      core,
      name,
      (run) => {
        checkAwaited(run, name);
        out?.checkWritable('options.out is written');
        const images = new DecodingRun(run, core, name, decoding, signal, out).of(sources);
        return whenKnown(run, images, give, true);
      },
      out === undefined ? undefined : [out],
    ),
  );
}
