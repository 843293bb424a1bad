/**
 * sharp, which decodes and encodes pictures: an optional peer dependency, loaded for the first
 * picture. The part of its API that is used is declared here, so that types do not depend on sharp.
 */
import { CudaError } from '../../core/index.js';
import { messageOf } from '../../ground/other-realms.js';

/** The form of a decoded picture. */
export interface RawInfo {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
}

/** The contents of a file's header. */
export interface PictureForm {
  readonly width: number;
  readonly height: number;
  readonly format: string;
  /** The number of the EXIF orientation. */
  readonly orientation?: number;
  /** libvips' type of its samples: `ushort` for more than 8 bits. */
  readonly depth: string;
  readonly space: string;
  readonly channels: number;
  /** Bits of a stored sample. */
  readonly bitsPerSample?: number;
}

/** A picture that libvips processes. */
export interface SharpPicture {
  metadata(): Promise<PictureForm>;
  rotate(): SharpPicture;
  /** Computes a · v + b for each channel. */
  linear(a: readonly number[], b: readonly number[]): SharpPicture;
  keepIccProfile(): SharpPicture;
  flatten(options: { background: { r: number; g: number; b: number } }): SharpPicture;
  removeAlpha(): SharpPicture;
  ensureAlpha(): SharpPicture;
  toColourspace(space: 'srgb' | 'b-w'): SharpPicture;
  raw(options?: { depth: 'uchar' }): SharpPicture;
  png(options: object): SharpPicture;
  tiff(options: { compression: 'none' }): SharpPicture;
  jpeg(options: object): SharpPicture;
  webp(options: object): SharpPicture;
  toBuffer(options: { resolveWithObject: true }): Promise<{ data: Uint8Array; info: RawInfo }>;
}

/** The module's function. */
export type Sharp = (
  input: string | Uint8Array,
  options?: {
    readonly raw?: RawInfo;
    readonly failOn?: 'warning';
    readonly limitInputPixels?: number;
  },
) => SharpPicture;

let loaded: Promise<Sharp> | undefined;

/**
 * Loads sharp, once. After a failure the next call tries again.
 *
 * @throws CudaError with code ERR_CUDA_NO_LIBRARY where it is not installed, or has no binary for
 *   this platform
 */
export function loadSharp(load = importPackage): Promise<Sharp> {
  loaded ??= load('sharp').then(
    (module) => (module as { default: Sharp }).default,
    (cause: unknown) => {
      loaded = undefined;
      const missing = (cause as { code?: unknown } | undefined)?.code === 'ERR_MODULE_NOT_FOUND';
      throw new CudaError(
        'ERR_CUDA_NO_LIBRARY',
        `sharp: ${missing ? 'not installed' : `could not be loaded (${firstLine(cause)})`}. ` +
          'It decodes and encodes pictures: npm install sharp',
        { cause },
      );
    },
  );
  return loaded;
}

/**
 * Whether this sharp has WebP's option `exact`, which older versions ignore: a version with it
 * throws for a value that is no boolean.
 */
export function supportsExactWebp(sharp: Sharp): boolean {
  try {
    sharp(Uint8Array.of(0), { raw: { width: 1, height: 1, channels: 1 } }).webp({
      exact: 'unknown',
    });
    return false;
  } catch {
    return true;
  }
}

/**
 * Imports a package by a name that bundlers do not see: they would fail where it is not installed,
 * and cannot bundle its native code where it is.
 */
function importPackage(name: string): Promise<unknown> {
  return import(/* @vite-ignore */ name);
}

/** The first line of libvips' message; lines after it are warnings. */
export function firstLine(error: unknown): string {
  return messageOf(error).trim().split('\n')[0]!;
}
