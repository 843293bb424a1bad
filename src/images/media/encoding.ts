/**
 * Encoding of images on a device: they are read through page-locked staging, and encoded by sharp
 * on threads of libvips.
 */
import { CudaArgumentError, CudaError } from '../../core/index.js';
import { checkInteger, checkOptions, checkSignal, invalid } from '../../ground/arguments.js';
import { Applied, Collected } from '../../ops/collect.js';
import { DeviceOp, nodeOf } from '../../ops/device-op.js';
import type { OrOp } from '../../ops/index.js';
import { Later, whenKnown } from '../../ops/node.js';
import type { Submitted } from '../../ops/node.js';
import type { Run } from '../../ops/run.js';
import { Tensor } from '../../tensor/index.js';
import { imageOf } from '../image.js';
import type { Image } from '../image.js';
import { unlessAborted } from '../../core/aborting.js';
import { checkAwaited } from './decoding-run.js';
import { firstLine, supportsExactWebp, loadSharp } from './sharp.js';
import type { SharpPicture } from './sharp.js';

/** Formats of encoded files. */
export type FileFormat = 'png' | 'jpeg' | 'webp';

/** Options of {@link encodeImage}. */
export interface EncodeImageOptions {
  readonly format: FileFormat;
  /** Quality from 1 to 100, for JPEG and WebP. Default: 80, sharp's. */
  readonly quality?: number;
  /** Whether WebP is lossless, also in transparent pixels. PNG always is. Default: false. */
  readonly lossless?: boolean;
  /** Rejects the operation. Work that libvips has begun ends, and its result is dropped. */
  readonly signal?: AbortSignal;
}

type EncodeSettings = Pick<EncodeImageOptions, 'quality' | 'lossless'>;

interface Row {
  /** The options that the format has. */
  readonly options: readonly ('quality' | 'lossless')[];
  readonly alpha: boolean;
  /** The largest width and height. */
  readonly extent: number;
  readonly write: (picture: SharpPicture, options: EncodeSettings) => SharpPicture;
}

const FORMATS: Readonly<Record<FileFormat, Row>> = {
  png: {
    options: [],
    alpha: true,
    extent: Infinity,
    write: (picture, options) => picture.png(options),
  },
  jpeg: {
    options: ['quality'],
    alpha: false,
    extent: 65535,
    write: (picture, options) => picture.jpeg(options),
  },
  // libwebp makes transparent pixels black unless `exact` is set.
  webp: {
    options: ['quality', 'lossless'],
    alpha: true,
    extent: 16383,
    write: (picture, options) => picture.webp({ ...options, exact: options.lossless === true }),
  },
};

/**
 * Encodes an image as a PNG, JPEG or WebP. The image is [height, width, channels] of u8, or a
 * region; 1 channel is grey, 3 are sRGB, and 4 are sRGB with straight alpha (PNG and WebP). It is
 * read and encoded without blocking the event loop; the next step of the chain gets the bytes.
 * cuMemcpyDtoHAsync
 *
 * @throws CudaArgumentError for an option that the format does not have, a batch, another dtype,
 *   and 4 channels as JPEG; at the call, or when run where an operation gives the image. Rejects
 *   with CudaError (ERR_CUDA_NO_LIBRARY) where sharp is not installed, and with the signal's reason
 *
 * @example
 * ```ts
 * const file = await encodeImage(device.full(u8, [2, 3, 3], 200), { format: 'png' });
 * console.log(Buffer.from(file.subarray(1, 4)).toString()); // PNG
 * ```
 */
export function encodeImage(
  image: OrOp<Tensor<'u8'>>,
  options: EncodeImageOptions,
): DeviceOp<Uint8Array> {
  checkOptions('options', options, ['format', 'quality', 'lossless', 'signal']);
  if ((options as unknown) === undefined)
    throw invalid('options', 'an object with format', options);
  const { format, signal, ...settings } = options;
  if (!Object.hasOwn(FORMATS, format))
    throw invalid('options.format', `one of ${Object.keys(FORMATS).join(', ')}`, format);
  const row = FORMATS[format];
  for (const name of ['quality', 'lossless'] as const) {
    if (settings[name] === undefined || row.options.includes(name)) continue;
    throw new CudaArgumentError(
      `options.${name}`,
      `options.${name}: ${format} has no ${name}. Leave it out, or write one of ${Object.keys(
        FORMATS,
      )
        .filter((other) => FORMATS[other as FileFormat].options.includes(name))
        .join(', ')}.`,
    );
  }
  if (settings.quality !== undefined) checkInteger('options.quality', settings.quality, 1, 100);
  if (settings.lossless !== undefined && typeof settings.lossless !== 'boolean')
    throw invalid('options.lossless', 'true or false', settings.lossless);
  checkSignal(signal);
  const check = (given: unknown): Image => pictureOf(given, format);
  if (!(image instanceof DeviceOp)) check(image);
  const device = image instanceof Tensor ? image.device : undefined;
  return new DeviceOp(
    new Applied<Uint8Array>(
      new Collected([nodeOf(image)], 'encodeImage'),
      device,
      'encodeImage(…)',
      (run, [given]) => {
        const picture = check(given);
        checkAwaited(run, 'encodeImage');
        return whenKnown(
          run,
          pixelsOf(run, picture),
          (pixels) =>
            new Later(
              unlessAborted(signal, () => encode(pixels, picture, row, settings)),
              true,
              'nothing',
            ),
        );
      },
    ),
  );
}

/** @throws CudaArgumentError */
function pictureOf(given: unknown, format: FileFormat): Image {
  const image = imageOf('encodeImage', 'image', given);
  const { alpha, extent } = FORMATS[format];
  if (image.dtype.name !== 'u8')
    throw invalid(
      'image',
      'an image of u8, for encodeImage(…)',
      image.tensor,
      'Convert it with rescale(image, u8, { scale }).',
    );
  if (image.batched)
    throw invalid(
      'image',
      'one image, for encodeImage(…)',
      image.tensor,
      'Take one of the batch with slice(i).',
    );
  if (image.channels === 4 && !alpha)
    throw invalid(
      'image',
      `an image of 1 or 3 channels, for encodeImage(…) as ${format}, which has no alpha`,
      image.tensor,
      'Blend it over another image with blend(…), drop alpha with orderChannels(…), or write ' +
        'png or webp.',
    );
  if (Math.max(image.width, image.height) > extent)
    throw invalid(
      'image',
      `at most ${extent} rows and columns, for encodeImage(…) as ${format}`,
      image.tensor,
    );
  return image;
}

function pixelsOf(run: Run, { tensor }: Image): Submitted<Uint8Array> {
  return nodeOf(tensor.read()).submit(run) as Submitted<Uint8Array>;
}

async function encode(
  pixels: Uint8Array,
  { width, height, channels }: Image,
  { write }: Row,
  settings: EncodeSettings,
): Promise<Uint8Array> {
  const sharp = await loadSharp();
  if (
    settings.lossless === true &&
    channels === 4 &&
    !supportsExactWebp(sharp) &&
    hasHiddenColors(pixels)
  ) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      'encodeImage: this version of sharp writes no lossless WebP that keeps the colours of ' +
        "transparent pixels. Update it (npm install sharp@latest), or write { format: 'png' }.",
    );
  }
  try {
    const picture = sharp(pixels, { raw: { width, height, channels } });
    const { data } = await write(
      channels === 1 ? picture.toColourspace('b-w') : picture,
      settings,
    ).toBuffer({ resolveWithObject: true });
    return data;
  } catch (cause) {
    throw new CudaError('ERR_CUDA_LIBRARY', `encodeImage: ${firstLine(cause)}`, { cause });
  }
}

/** Whether a pixel with alpha 0 is not black. */
function hasHiddenColors(pixels: Uint8Array): boolean {
  for (let i = 0; i < pixels.length; i += 4) {
    if (pixels[i + 3] === 0 && (pixels[i]! | pixels[i + 1]! | pixels[i + 2]!) !== 0) return true;
  }
  return false;
}
