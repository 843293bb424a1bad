/** Pictures decoded by sharp, on threads of libvips. */
import { CudaFormatError } from '../../core/index.js';
import { MOST_EXTENT } from '../image.js';
import type { Channels } from '../image.js';
import { PICTURE_CHANNELS } from './decoding-options.js';
import type { Decoding, PictureColor, PictureFormat } from './decoding-options.js';
import type { CheckedSource } from './picture-source.js';
import { firstLine, loadSharp } from './sharp.js';
import type { SharpPicture } from './sharp.js';

/** Pixels on the host, without gaps. */
export interface HostPicture {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: Channels;
}

/** The pixels, by sharp: those of `bgr` as rgb. */
export async function decodeOnHost({ input, name }: CheckedSource, { format, background, orientation, maxPixels }: Decoding): Promise<HostPicture> {
  const sharp = await loadSharp();
  try {
    // What others may write to meanwhile libvips would read more than once.
    const file = typeof input !== 'string' && input.buffer instanceof SharedArrayBuffer ? new Uint8Array(input) : input;
    let picture = sharp(file, { failOn: 'warning', limitInputPixels: maxPixels });
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
