/**
 * sharp, which decodes and encodes pictures: an optional peer, looked for when the first picture
 * comes. Only what is used of it is described here, so that programs without sharp have types all
 * the same.
 */
import { CudaError } from '../../core/index.js';
import { messageOf } from '../../ground/other-realms.js';

/** What a decoded picture consists of. */
export interface RawInfo {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
}

/** What a file's header says. */
export interface PictureForm {
  readonly width: number;
  readonly height: number;
  readonly format: string;
  /** As Exif numbers them. */
  readonly orientation?: number;
  /** What libvips makes of its samples: `ushort` of more than 8 bits. */
  readonly depth: string;
  readonly space: string;
  readonly channels: number;
  /** As they are stored. */
  readonly bitsPerSample?: number;
}

/** A picture on its way through libvips. */
export interface SharpPicture {
  metadata(): Promise<PictureForm>;
  rotate(): SharpPicture;
  /** Of each channel a · v + b. */
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
 * sharp, loaded once. A failure is not remembered.
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
          'Pictures are decoded and encoded by it: npm install sharp',
        { cause },
      );
    },
  );
  return loaded;
}

/**
 * Whether this sharp knows WebP's `exact`, which older versions pass over in silence: one that does
 * refuses a value that is neither true nor false.
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
 * Not by a text that bundlers see: they would fail where it is not installed, and it is native code
 * where it is.
 */
function importPackage(name: string): Promise<unknown> {
  return import(/* @vite-ignore */ name);
}

/** What libvips says first; warnings that led to it follow. */
export function firstLine(error: unknown): string {
  return messageOf(error).trim().split('\n')[0]!;
}
