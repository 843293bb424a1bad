/**
 * The size of a picture from its header, by which a program can limit the memory of many pictures
 * before it decodes them.
 */
import { readFile } from 'node:fs/promises';

import { checkOptions, checkSignal, invalid } from '../../ground/arguments.js';
import { unlessAborted } from '../../core/aborting.js';
import { CudaError, CudaFormatError } from '../../core/index.js';
import { isJpeg, readJpegHeader } from './jpeg-header.js';
import { refusalOf, sourceOf } from './picture-source.js';
import type { PictureSource } from './picture-source.js';
import { loadSharp } from './sharp.js';

/** Options of {@link imageSize}. */
export interface ImageSizeOptions {
  /**
   * `apply` exchanges width and height where the EXIF orientation turns the picture by 90 degrees,
   * as {@link decodeImage} does. Default: apply.
   */
  readonly orientation?: 'apply' | 'ignore';
  /** Rejects the promise. */
  readonly signal?: AbortSignal;
}

/** The result of {@link imageSize}. */
export interface ImageSize {
  /** Pixels. */
  readonly width: number;
  /** Pixels. */
  readonly height: number;
  /** The kind of file: `jpeg`, `png`, or sharp's name of another kind (`webp`, `gif`, `svg`, …). */
  readonly format: string;
}

/**
 * Portable Network Graphics specification, 5.2 and 11.2.2: the signature, then the IHDR chunk with
 * width and height.
 */
const PNG_SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const PNG_WIDTH_AT = 16;
const PNG_HEADER_BYTES = 24;
/** Chunks of a PNG that are read at most: a file of 16 MiB can have a million empty ones. */
const MOST_CHUNKS = 1000;
/** EXIF orientations from this one on exchange rows and columns. */
const FIRST_TURNED = 5;

/**
 * Gives the width, height and kind of a picture, as {@link decodeImage} would decode it, from its
 * header. The calling thread reads the headers of JPEG and PNG; sharp reads those of other kinds.
 * The pixels are not checked, and may be missing.
 *
 * @param source a source as for {@link decodeImage}
 * @throws CudaArgumentError at the call. Rejects with CudaFormatError (code ERR_CUDA_FORMAT) where
 *   it is no picture; with CudaError (ERR_CUDA_NOT_FOUND) where a path has no file that can be
 *   read, (ERR_CUDA_NO_LIBRARY) where sharp is needed and not installed; with the signal's reason
 *
 * @example
 * ```ts
 * const file = await encodeImage(device.zeros(u8, [2, 3, 3]), { format: 'png' });
 * console.log(await imageSize(file)); // { width: 3, height: 2, format: 'png' }
 * ```
 */
export function imageSize(
  source: PictureSource,
  options: ImageSizeOptions = {},
): Promise<ImageSize> {
  const checked = sourceOf('source', source);
  const { input, name } = checked;
  checkOptions('options', options, ['orientation', 'signal']);
  const { orientation = 'apply', signal } = options;
  if ((orientation as unknown) !== 'apply' && (orientation as unknown) !== 'ignore')
    throw invalid('options.orientation', "'apply' or 'ignore'", orientation);
  checkSignal(signal);
  return unlessAborted(signal, async () => {
    try {
      const bytes = typeof input === 'string' ? await readFile(input) : input;
      return sizeInHeader(bytes, name, orientation) ?? (await sizeBySharp(bytes, orientation));
    } catch (cause) {
      throw cause instanceof CudaError ? cause : await refusalOf(checked, cause);
    }
  });
}

/**
 * The size of a JPEG or a PNG; undefined for other kinds, and for JPEGs whose number of rows is
 * after the first scan.
 */
function sizeInHeader(
  bytes: Uint8Array,
  name: string,
  orientation: 'apply' | 'ignore',
): ImageSize | undefined {
  if (isJpeg(bytes)) {
    const header = readJpegHeader(bytes, name);
    if (header.height === 0) return undefined;
    return turned(
      header.width,
      header.height,
      'jpeg',
      orientation === 'apply' ? header.orientation : 1,
    );
  }
  // libvips takes the orientation of a PNG from its eXIf chunk: where there is one, sharp reads the
  // size.
  if (PNG_SIGNATURE.some((byte, i) => bytes[i] !== byte)) return undefined;
  if (bytes.length < PNG_HEADER_BYTES)
    throw new CudaFormatError(
      'image',
      `${name}: a PNG that is cut short: it ends before its size, at byte ${bytes.length}`,
      bytes.length,
    );
  if (orientation === 'apply' && hasExif(bytes)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return turned(view.getUint32(PNG_WIDTH_AT), view.getUint32(PNG_WIDTH_AT + 4), 'png', 1);
}

/**
 * Whether a PNG has, or may have, an eXIf chunk. A chunk has its length, its name, its data and a
 * checksum.
 */
function hasExif(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let chunks = 0;
  for (let at = PNG_SIGNATURE.length; at + 8 <= bytes.length; at += 12 + view.getUint32(at)) {
    if (view.getUint32(at + 4) === 0x65584966 || ++chunks > MOST_CHUNKS) return true;
  }
  return false;
}

async function sizeBySharp(bytes: Uint8Array, orientation: 'apply' | 'ignore'): Promise<ImageSize> {
  const sharp = await loadSharp();
  const {
    width,
    height,
    format,
    orientation: stored = 1,
  } = await sharp(
    bytes.buffer instanceof SharedArrayBuffer ? new Uint8Array(bytes) : bytes,
  ).metadata();
  return turned(width, height, format, orientation === 'apply' ? stored : 1);
}

function turned(width: number, height: number, format: string, orientation: number): ImageSize {
  return orientation < FIRST_TURNED
    ? { width, height, format }
    : { width: height, height: width, format };
}
