/**
 * Files of every kind that the decoders support become packed RGB; others are an error of one line.
 */
import jpeg from 'jpeg-js';
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';

import { upright } from './exif-orientation.js';
import { decodeImage, encodePng, readImage } from './image.js';
import { noise } from './noise.js';

function png(
  width: number,
  height: number,
  rgba: readonly number[],
  colorType: 0 | 2 | 4 | 6,
): Uint8Array {
  const image = new PNG({ width, height });
  image.data = Buffer.from(rgba);
  return PNG.sync.write(image, { colorType });
}

describe('PNG', () => {
  test('RGB of odd size is read as it was written', () => {
    const image = noise(13, 7);
    expect(decodeImage(encodePng(image), 'x')).toEqual(image);
  });

  test('grey becomes three equal channels', () => {
    const { data } = decodeImage(png(2, 1, [10, 10, 10, 255, 200, 200, 200, 255], 0), 'x');
    expect([...data]).toEqual([10, 10, 10, 200, 200, 200]);
  });

  test('transparency is laid over white', () => {
    const { data } = decodeImage(png(3, 1, [9, 8, 7, 255, 9, 8, 7, 0, 0, 100, 255, 128], 6), 'x');
    expect([...data]).toEqual([9, 8, 7, 255, 255, 255, 127, 177, 255]);
  });
});

test('JPEG decodes to its size and, nearly, its colour', () => {
  const rgba = Buffer.from(Array.from({ length: 17 * 5 }, () => [200, 100, 50, 255]).flat());
  const { width, height, data } = decodeImage(
    jpeg.encode({ width: 17, height: 5, data: rgba }, 95).data,
    'x',
  );
  expect([width, height, data.length]).toEqual([17, 5, 17 * 5 * 3]);
  [200, 100, 50].forEach((channel, i) => expect(Math.abs(data[i]! - channel)).toBeLessThan(6));
});

test('a photograph is turned the way the camera was held', () => {
  const { data: encoded } = jpeg.encode(
    { width: 16, height: 8, data: Buffer.alloc(16 * 8 * 4, 90) },
    90,
  );
  // An EXIF segment, big-endian, with the one entry that matters: orientation 6, the top is on the
  // right.
  const exif =
    'ffe1 0022 457869660000 4d4d002a00000008 0001 0112 0003 00000001 00060000 00000000'.replaceAll(
      ' ',
      '',
    );
  const turned = Buffer.concat([
    encoded.subarray(0, 2),
    Buffer.from(exif, 'hex'),
    encoded.subarray(2),
  ]);
  expect(decodeImage(turned, 'x')).toMatchObject({ width: 8, height: 16 });
});

test('orientation 6 brings the left column to the top', () => {
  const stored = { width: 2, height: 1, data: Uint8Array.of(1, 1, 1, 2, 2, 2) };
  expect(upright(stored, 6)).toEqual({ width: 1, height: 2, data: stored.data });
  expect([...upright(stored, 3).data]).toEqual([2, 2, 2, 1, 1, 1]);
});

describe('other files are an error of one line', () => {
  test('a missing file', async () => {
    await expect(readImage('/no/such.png')).rejects.toThrow(
      'cannot read /no/such.png: no such file or directory',
    );
  });

  test('a folder', async () => {
    await expect(readImage('/')).rejects.toThrow(
      /^cannot read \/: illegal operation on a directory$/,
    );
  });

  test('another format', () => {
    expect(() => decodeImage(new TextEncoder().encode('GIF89a'), 'a.png')).toThrow(
      'cannot decode a.png: neither PNG nor JPEG',
    );
  });

  test('an empty file', () => {
    expect(() => decodeImage(new Uint8Array(0), 'a.png')).toThrow(
      'cannot decode a.png: neither PNG nor JPEG',
    );
  });

  test.each([20, 60, 200])('a PNG cut short after %i bytes', (length) => {
    expect(() => decodeImage(encodePng(noise(40, 40)).subarray(0, length), 'a.png')).toThrow(
      /^cannot decode a\.png as PNG: [^\n]+$/,
    );
  });

  test.each([4, 100, 400])('a JPEG cut short after %i bytes', (length) => {
    const whole = jpeg.encode(
      { width: 40, height: 40, data: Buffer.alloc(40 * 40 * 4, 90) },
      90,
    ).data;
    expect(() => decodeImage(whole.subarray(0, length), 'a.jpg')).toThrow(
      /^cannot decode a\.jpg as JPEG: [^\n]+$/,
    );
  });
});
