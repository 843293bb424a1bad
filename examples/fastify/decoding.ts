/** JPEG and PNG files as pixels, on the threads of libvips: the event loop only hands over and takes back. */
import sharp from 'sharp';

import type { Photograph } from '../../demo/inference/photograph.js';

/** Pixels of a photograph, at most: a small file may claim to hold any number of them. */
const MOST_PIXELS = 50_000_000;

/** The bytes are no photograph that can be read. */
export class DecodingError extends Error {
  override name = 'DecodingError';
}

/**
 * Packed RGB, turned as the camera was held.
 *
 * @throws DecodingError for what is no image, is cut short, or has more than 50 million pixels
 */
export async function decodePhotograph(bytes: Uint8Array): Promise<Photograph> {
  try {
    const { data, info } = await sharp(bytes, { limitInputPixels: MOST_PIXELS, failOn: 'error' })
      .rotate()
      .flatten({ background: 'white' })
      .toColourspace('srgb')
      .raw()
      .toBuffer({ resolveWithObject: true });
    return { width: info.width, height: info.height, data: info.channels === 3 ? data : rgbOf(data, info.channels) };
  } catch (cause) {
    throw new DecodingError(`not an image that can be read: ${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)}`, { cause });
  }
}

/** Grey as RGB: libvips leaves images with one channel as they are. */
function rgbOf(grey: Uint8Array, channels: number): Uint8Array {
  const data = new Uint8Array((grey.length / channels) * 3);
  for (let i = 0; i < data.length; i++) data[i] = grey[Math.floor(i / 3) * channels]!;
  return data;
}
