/** Pictures as images on a device: see `decoding-run.ts` for how. */
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
 * A picture (JPEG, PNG, WebP, TIFF, GIF, AVIF, whatever sharp reads) as an image of u8 and [height,
 * width, channels] on the device. It is decoded when the operation is run, on threads of libvips,
 * and then uploaded in slices through page-locked staging, so that neither holds the event loop up.
 * As many are decoded at once as libuv has threads (four, or UV_THREADPOOL_SIZE). cuMemcpyHtoDAsync
 *
 * - Colours become sRGB: CMYK, Lab and pictures with a colour profile are converted by libvips. Of
 *   16 bits each sample becomes round(v · 255 / 65535) first, alpha too.
 * - Grey becomes R = G = B for `rgb`; colours become grey by libvips' luminance, which weighs
 *   linear light.
 * - Transparent pixels are put over `background`, unless the format is `rgba`; without alpha in the
 *   picture that is 255.
 * - The EXIF orientation is applied, so that the image stands as a viewer shows it; `{ orientation:
 *   'ignore' }` leaves it.
 * - Of several pages or frames the first one counts.
 *
 * On a GPU, where nvJPEG is installed, it decodes JPEGs instead, by the GPU's own decoders where it
 * has some, else up to eight at once on threads of its own: the result is where it is to be, and
 * has its place in the stream as soon as the operation is run with the bytes at hand. Its pixels
 * are within a few steps of sharp's. By default sharp keeps what nvJPEG would give otherwise (CMYK,
 * colour profiles other than sRGB, colours as `grey`, `rgba`) and what it refuses. `{ engine:
 * 'nvjpeg' }` insists on it: profiles are then ignored, and `grey` is the luma that is stored; `{
 * engine: 'sharp' }` gives the same bits on every machine. nvjpegDecode, nvjpegDecodeBatched
 *
 * @throws CudaArgumentError at the call, and CudaError (ERR_CUDA_UNSUPPORTED) there for `nvjpeg` on
 *   a CPU device. Rejects with CudaFormatError (code ERR_CUDA_FORMAT), which names the input, where
 *   it is no picture, is truncated or is too large; with CudaError (ERR_CUDA_NO_LIBRARY) where
 *   sharp, or nvJPEG that was asked for, is not installed; with CudaLibraryError, which has
 *   nvJPEG's status, where that was asked for and fails (ERR_CUDA_FORMAT: damaged,
 *   ERR_CUDA_UNSUPPORTED: a kind of JPEG that it lacks); with CudaError (ERR_CUDA_NOT_FOUND) for a
 *   path where there is no file, or none that can be read (what the file system says is its
 *   `cause`); with the signal's reason.
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

/** What {@link decodeImages} takes. */
export interface DecodeImagesOptions extends DecodeImageOptions {
  /**
   * [N, height, width, channels] of u8 without gaps, one for each picture: where they are written.
   * All of them have its size then. Default: tensors of their own.
   */
  readonly out?: Tensor<'u8'>;
}

/**
 * Pictures, each as by {@link decodeImage}, in one place of the stream: what follows waits for all
 * of them. Of JPEGs on a GPU with decoders of its own (A100, H100, H200) up to 32 are decoded in
 * one call. Fewer turns of the event loop than with an operation for each.
 *
 * Where one cannot be decoded the operation rejects with its error, which names it (`sources[3]`),
 * and none is given; what `out` has then is undefined.
 *
 * @returns the images, in the order of the sources; with `out`, that
 * @throws as {@link decodeImage}; CudaArgumentError for an `out` of another kind. Rejects with
 *   CudaArgumentError where a picture has not its size
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
