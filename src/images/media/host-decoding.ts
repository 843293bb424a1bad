/** Pictures decoded by sharp, on threads of libvips. */
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

/** The pixels, by sharp: those of `bgr` as rgb. */
export async function decodeOnHost(
  source: CheckedSource,
  { format, background, orientation, maxPixels }: Decoding,
): Promise<HostPicture> {
  const { input } = source;
  const sharp = await loadSharp();
  try {
    // What others may write to meanwhile libvips would read more than once.
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
 * A picture of 16 bits as a file of 8, each sample rounded to the nearest: libvips drops the lower
 * byte, and sharp takes such pictures with a profile to Display P3 instead of sRGB. `v >> 8` of 256
 * · (v · 255 / most + 1/2) is what v is rounded to; no sample is a tie, so that 0.2 less, which f32
 * and either rounding of the sum do not make up for, changes none. Grey ones go through sRGB, where
 * libvips shifts.
 */
async function ofEightBits(
  picture: SharpPicture,
  { format, space, channels, bitsPerSample = 16 }: PictureForm,
  upright: boolean,
): Promise<Uint8Array> {
  // Samples of 10 and 12 bits stand in the upper bits.
  const most = format === 'heif' ? 2 ** 16 - 2 ** (16 - bitsPerSample) : 65535;
  const turned = upright ? picture.rotate() : picture;
  const rounded = turned
    .linear(
      new Array<number>(channels).fill((256 * 255) / most),
      new Array<number>(channels).fill(127.8),
    )
    .toColourspace('srgb');
  const { data } = await (space === 'rgb16' ? rounded.keepIccProfile() : rounded)
    // As PNG a picture that has a profile and is turned fails once in a hundred times ("vips2png:
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
