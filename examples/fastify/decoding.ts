/** JPEG and PNG files as photographs on the device: by nvJPEG on a GPU that has it, else on the threads of libvips. */
import { CudaError, type Device, type SchedulingPolicy } from 'async-cuda';
import { decodeImage } from 'async-cuda/npp';

import type { DevicePhotograph } from '../../demo/inference/photograph.js';

/** Pixels of a photograph, at most: a small file may claim to hold any number of them. */
const MOST_PIXELS = 50_000_000;

/** The bytes are no photograph that can be read. */
export class DecodingError extends Error {
  override name = 'DecodingError';
  readonly statusCode = 422;
}

/**
 * Packed RGB, turned as the camera was held, on a stream of the policy. Whoever asked closes it.
 *
 * @throws DecodingError for what is no image, is cut short, or has more than 50 million pixels
 */
export async function decodePhotograph(device: Device, bytes: Uint8Array, policy: SchedulingPolicy, signal: AbortSignal): Promise<DevicePhotograph> {
  if (bytes.length === 0) throw new DecodingError('not an image that can be read: the body is empty');
  try {
    return await decodeImage(device, bytes, { maxPixels: MOST_PIXELS, signal }).schedule(policy);
  } catch (cause) {
    if (!(cause instanceof CudaError) || cause.code !== 'ERR_CUDA_FORMAT') throw cause;
    throw new DecodingError(`not an image that can be read: ${cause.message.split('\n')[0]}`, { cause });
  }
}
