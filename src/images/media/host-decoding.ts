/** Decoding of pictures by sharp, on threads of libvips. */
import { isSharedArrayBuffer } from '../../ground/other-realms.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';
import { PICTURE_CHANNELS } from './decoding-options.js';
import type { Decoding, PictureColor, PictureFormat } from './decoding-options.js';
import { isJpeg } from './jpeg-header.js';
import { refusalOf } from './picture-source.js';
import type { CheckedSource } from './picture-source.js';
import { loadSharp } from './sharp.js';
import type { PictureForm, SharpPicture } from './sharp.js';

/** Pixels on the host, without gaps. */
export interface HostPicture {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: Channels;
}

/** Decodes the pixels by sharp. For `bgr` they are rgb. */
export async function decodeOnHost(
  source: CheckedSource,
  { format, background, orientation, maxPixels }: Decoding,
): Promise<HostPicture> {
  const { input } = source;
  const sharp = await loadSharp();
  try {
    // Shared memory is copied: other threads may write to it, and libvips reads it more than once.
    const given =
      typeof input !== 'string' && isSharedArrayBuffer(input.buffer)
        ? new Uint8Array(input)
        : input;
    const limits = { failOn: 'warning', limitInputPixels: maxPixels } as const;
    const upright = orientation === 'apply';
    const form =
      typeof given !== 'string' && isJpeg(given)
        ? undefined
        : await sharp(given, limits).metadata();
    const isDeep = form?.depth === 'ushort' && (form.space === 'rgb16' || form.space === 'grey16');
    const file = isDeep ? await ofEightBits(sharp(given, limits), form, upright) : given;
    let picture = sharp(file, limits);
    if (upright && !isDeep) picture = picture.rotate();
    picture = withAlphaOf(picture, format, background);
    const { data, info } = await picture
      .toColourspace(format === 'grey' ? 'b-w' : 'srgb')
      .raw({ depth: 'uchar' })
      .toBuffer({ resolveWithObject: true });
    const { width, height } = info;
    if (width > MOST_EXTENT || height > MOST_EXTENT)
      throw new Error(
        `it has ${width} × ${height} pixels, images have at most ${MOST_EXTENT} rows and columns`,
      );
    return { data, width, height, channels: PICTURE_CHANNELS[format] };
  } catch (cause) {
    throw await refusalOf(source, cause);
  }
}

/**
 * Converts a picture of 16 bits to a file of 8 bits, with each sample rounded to the nearest:
 * libvips drops the lower byte, and sharp converts such pictures with a profile to Display P3
 * instead of sRGB. `v >> 8` of 256 · (v · 255 / most + 1/2) is the rounded v. No sample is a tie,
 * so that subtracting 0.2, which exceeds the error of f32 and of rounding the sum, changes none.
 * Grey pictures are converted by way of sRGB, where libvips shifts.
 */
async function ofEightBits(
  picture: SharpPicture,
  { format, space, channels, bitsPerSample = 16 }: PictureForm,
  upright: boolean,
): Promise<Uint8Array> {
  // Samples of 10 and 12 bits are in the upper bits.
  const most = format === 'heif' ? 2 ** 16 - 2 ** (16 - bitsPerSample) : 65535;
  const turned = upright ? picture.rotate() : picture;
  const rounded = turned
    .linear(
      new Array<number>(channels).fill((256 * 255) / most),
      new Array<number>(channels).fill(127.8),
    )
    .toColourspace('srgb');
  const { data } = await (space === 'rgb16' ? rounded.keepIccProfile() : rounded)
    // TIFF, since a PNG with a profile that is turned fails once in a hundred times ("vips2png:
    // unable to write to target", libvips 8.18).
    .tiff({ compression: 'none' })
    .toBuffer({ resolveWithObject: true });
  return data;
}

function withAlphaOf(
  picture: SharpPicture,
  format: PictureFormat,
  background: PictureColor | 'ignore',
): SharpPicture {
  if (format === 'rgba') return picture.ensureAlpha();
  if (background === 'ignore') return picture.removeAlpha();
  const [r, g, b] = background;
  return picture.flatten({ background: { r, g, b } }).removeAlpha();
}
