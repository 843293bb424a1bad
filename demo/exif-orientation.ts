/**
 * The orientation that a camera writes into a JPEG: which way to turn the stored pixels so that up
 * is up. (EXIF 2.32, tag 0x0112: 1 is as stored, 2 to 8 the other turns and mirrorings of a
 * square.)
 */
import type { Image } from './image.js';

const ORIENTATION = 0x0112;

/** The orientation in a JPEG file's bytes, 1 to 8; 1 where there is none. */
export function exifOrientation(jpeg: Uint8Array): number {
  const view = new DataView(jpeg.buffer, jpeg.byteOffset, jpeg.byteLength);
  try {
    // Segments follow the two bytes of the start marker: FF, type, length with its own two bytes.
    // SOS ends the headers.
    for (
      let at = 2;
      view.getUint8(at) === 0xff && view.getUint8(at + 1) !== 0xda;
      at += 2 + view.getUint16(at + 2)
    ) {
      const isExif = view.getUint8(at + 1) === 0xe1 && view.getUint32(at + 4) === 0x45786966;
      if (isExif) return tiffOrientation(view, at + 10);
    }
  } catch (error) {
    // Past the end of a damaged file: it has no orientation, and the decoder reports the damage.
    if (!(error instanceof RangeError)) throw error;
  }
  return 1;
}

function tiffOrientation(view: DataView, tiff: number): number {
  const little = view.getUint16(tiff) === 0x4949;
  const directory = tiff + view.getUint32(tiff + 4, little);
  const entries = view.getUint16(directory, little);
  for (let i = 0; i < entries; i++) {
    const entry = directory + 2 + 12 * i;
    if (view.getUint16(entry, little) !== ORIENTATION) continue;
    const orientation = view.getUint16(entry + 8, little);
    return orientation >= 1 && orientation <= 8 ? orientation : 1;
  }
  return 1;
}

/** Turns the stored pixels the right way up. */
export function upright(image: Image, orientation: number): Image {
  if (orientation === 1) return image;
  const { width: storedWidth, height: storedHeight } = image;
  const turned = orientation >= 5;
  const mirroredX = [2, 3, 7, 8].includes(orientation);
  const mirroredY = [3, 4, 6, 7].includes(orientation);
  const width = turned ? storedHeight : storedWidth;
  const height = turned ? storedWidth : storedHeight;
  const data = new Uint8Array(image.data.length);
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++, to += 3) {
      const column = turned ? y : x;
      const row = turned ? x : y;
      const storedX = mirroredX ? storedWidth - 1 - column : column;
      const storedY = mirroredY ? storedHeight - 1 - row : row;
      const from = (storedY * storedWidth + storedX) * 3;
      data[to] = image.data[from]!;
      data[to + 1] = image.data[from + 1]!;
      data[to + 2] = image.data[from + 2]!;
    }
  }
  return { width, height, data };
}
