/**
 * The demo's image: packed 8-bit RGB, which is what the first kernel reads.
 *
 * PNG and JPEG files become one here whatever they hold (grey, palette, alpha, 16 bits, CMYK): the
 * decoders give RGBA, what is transparent is laid over white, and photographs are turned the way
 * the camera was held.
 */
import { readFile } from 'node:fs/promises';

import jpeg from 'jpeg-js';
import { PNG } from 'pngjs';

import { exifOrientation, upright } from './exif-orientation.js';

export interface Image {
  readonly width: number;
  readonly height: number;
  /** `height` × `width` × 3 bytes. */
  readonly data: Uint8Array;
}

interface RgbaImage {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}

interface Format {
  readonly name: string;
  readonly signature: readonly number[];
  decode(bytes: Uint8Array): RgbaImage;
  /** EXIF's number, 1 to 8. */
  orientation(bytes: Uint8Array): number;
}

const formats: readonly Format[] = [
  {
    name: 'PNG',
    signature: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
    decode: (bytes) => PNG.sync.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
    orientation: () => 1,
  },
  {
    name: 'JPEG',
    signature: [0xff, 0xd8, 0xff],
    decode: (bytes) =>
      jpeg.decode(bytes, { useTArray: true, formatAsRGBA: true, maxMemoryUsageInMB: 2048 }),
    orientation: exifOrientation,
  },
];

/**
 * Reads a PNG or JPEG file.
 *
 * @throws Error with a one-line message that names the path, when it cannot be read or decoded.
 */
export async function readImage(path: string): Promise<Image> {
  let bytes: Uint8Array;
  try {
    bytes = await readFile(path);
  } catch (cause) {
    throw new Error(`cannot read ${path}: ${reasonOf(cause)}`, { cause });
  }
  return decodeImage(bytes, path);
}

/** Decodes the bytes of a PNG or JPEG file; `name` appears in errors. */
export function decodeImage(bytes: Uint8Array, name: string): Image {
  const format = formats.find(({ signature }) => signature.every((byte, i) => bytes[i] === byte));
  if (format === undefined) throw new Error(`cannot decode ${name}: neither PNG nor JPEG`);
  let decoded: RgbaImage;
  try {
    decoded = format.decode(bytes);
  } catch (cause) {
    throw new Error(`cannot decode ${name} as ${format.name}: ${reasonOf(cause)}`, { cause });
  }
  return upright(overWhite(decoded), format.orientation(bytes));
}

/** Encodes an image as PNG. */
export function encodePng({ width, height, data }: Image): Uint8Array {
  const png = new PNG({ width, height, colorType: 2, inputColorType: 2, inputHasAlpha: false });
  png.data = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return PNG.sync.write(png, { colorType: 2, inputColorType: 2, inputHasAlpha: false });
}

function overWhite({ width, height, data }: RgbaImage): Image {
  const rgb = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; to < rgb.length; from += 4, to += 3) {
    const alpha = data[from + 3]!;
    const white = 255 * (255 - alpha) + 127;
    rgb[to] = (data[from]! * alpha + white) / 255;
    rgb[to + 1] = (data[from + 1]! * alpha + white) / 255;
    rgb[to + 2] = (data[from + 2]! * alpha + white) / 255;
  }
  return { width, height, data: rgb };
}

/** What went wrong, on one line and without the path that Node's file errors repeat. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return (message.split('\n')[0] ?? '').replace(/, \w+( '.*')?$/, '').replace(/^E[A-Z]+: /, '');
}
