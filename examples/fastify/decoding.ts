/**
 * JPEG and PNG files as photographs on the device: by nvJPEG on a GPU that has it, else on the
 * threads of libvips.
 */
import { CudaError, type Device } from 'async-cuda';
import type { SchedulingPolicy } from 'async-cuda/ops';
import { decodeImage, imageSize } from 'async-cuda/images';

import type { DevicePhotograph } from '../../demo/inference/photograph.js';

/** Pixels of a photograph, at most: a small file may claim to hold any number of them. */
const MOST_PIXELS = 50_000_000;

/**
 * How files begin that are taken. libvips reads many more, of which some (SVG, PDF) are programs of
 * their own.
 */
const SIGNATURES = {
  jpeg: [0xff, 0xd8, 0xff],
  png: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
} as const;

/** The bytes are no photograph that can be read. */
export class DecodingError extends Error {
  override name = 'DecodingError';
  readonly statusCode = 422;
}

/**
 * The number of pixels in a photograph's header, before any of them is decoded.
 *
 * @throws DecodingError for what is no JPEG or PNG, is cut short in its header, or has more than 50
 *   million pixels
 */
export async function pixelsOf(bytes: Uint8Array, signal: AbortSignal): Promise<number> {
  if (bytes.length === 0)
    throw new DecodingError('not an image that can be read: the body is empty');
  if (
    !Object.values(SIGNATURES).some((signature) => signature.every((byte, i) => bytes[i] === byte))
  )
    throw new DecodingError('not an image that can be read: neither a JPEG nor a PNG file');
  const { width, height } = await readable(imageSize(bytes, { signal }));
  const pixels = width * height;
  if (!(pixels > 0 && pixels <= MOST_PIXELS))
    throw new DecodingError(
      `not an image that can be read: it has ${width} × ${height} pixels, at most ` +
        `${MOST_PIXELS} are taken`,
    );
  return pixels;
}

/**
 * Packed RGB, turned as the camera was held, on a stream of the policy. The caller closes it.
 *
 * @throws DecodingError for what is no image, is cut short, or has more than 50 million pixels
 */
export function decodePhotograph(
  device: Device,
  bytes: Uint8Array,
  policy: SchedulingPolicy,
): Promise<DevicePhotograph> {
  return readable(decodeImage(device, bytes, { maxPixels: MOST_PIXELS }).schedule(policy));
}

/** @throws DecodingError where the file is the reason */
async function readable<T>(reading: PromiseLike<T>): Promise<T> {
  try {
    return await reading;
  } catch (cause) {
    if (!(cause instanceof CudaError) || cause.code !== 'ERR_CUDA_FORMAT') throw cause;
    throw new DecodingError(`not an image that can be read: ${cause.message.split('\n')[0]}`, {
      cause,
    });
  }
}
