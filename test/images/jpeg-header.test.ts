/** Headers of JPEGs, compared with sharp's metadata of the same bytes. */
import * as fc from '../fast-check.js';
import sharp from 'sharp';
import { describe, expect, test } from 'vitest';

import { CudaFormatError } from 'async-cuda/core';
import { isJpeg, readJpegHeader } from '../../src/images/media/jpeg-header.js';
import type { JpegHeader } from '../../src/images/media/jpeg-header.js';
import { scaled } from '../random-runs.js';

const picture = (width = 37, height = 23): ReturnType<typeof sharp> =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 90, b: 30 } } });
const marker = (bytes: Uint8Array, code: number): number =>
  Buffer.from(bytes).indexOf(Buffer.from([0xff, code]));

/** A JPEG without pixels, from its segments. */
function jpeg(...segments: (readonly [marker: number, ...bytes: number[]])[]): Uint8Array {
  const of = ([code, ...bytes]: readonly number[]): number[] => [
    0xff,
    code!,
    (bytes.length + 2) >> 8,
    (bytes.length + 2) & 0xff,
    ...bytes,
  ];
  return Uint8Array.from([
    0xff,
    0xd8,
    ...segments.flatMap(of),
    ...of([0xda, 1, 1, 0, 0, 63, 0]),
    1,
    2,
    3,
    0xff,
    0xd9,
  ]);
}
const text = (letters: string): number[] => [...letters].map((letter) => letter.charCodeAt(0));
const frame = (
  ids: readonly number[],
  code = 0xc0,
  height = 5,
  width = 7,
): readonly [number, ...number[]] => [
  code,
  8,
  height >> 8,
  height & 0xff,
  width >> 8,
  width & 0xff,
  ids.length,
  ...ids.flatMap((id) => [id, 0x11, 0]),
];

function outcome(bytes: Uint8Array): JpegHeader | CudaFormatError {
  try {
    return readJpegHeader(bytes, 'it');
  } catch (error) {
    if (error instanceof CudaFormatError) return error;
    throw error;
  }
}

test('sizes, components and colours are those that sharp wrote', async () => {
  for (const [width, height] of [
    [1, 1],
    [37, 23],
    [255, 256],
    [3000, 2],
  ] as const) {
    for (const options of [
      {},
      { progressive: true },
      { chromaSubsampling: '4:4:4' },
      { optimiseCoding: true, trellisQuantisation: true },
    ]) {
      const bytes = await picture(width, height).jpeg(options).toBuffer();
      expect(readJpegHeader(bytes, 'it')).toMatchObject({
        width,
        height,
        components: 3,
        precision: 8,
        frame: 'progressive' in options ? 0xc2 : 0xc0,
        colors: 'ycc',
        orientation: 1,
        profile: 'none',
      });
    }
  }
  expect(
    readJpegHeader(await picture().toColourspace('b-w').jpeg().toBuffer(), 'it'),
  ).toMatchObject({ components: 1, colors: 'grey' });
  expect(
    readJpegHeader(await picture().toColourspace('cmyk').jpeg().toBuffer(), 'it'),
  ).toMatchObject({ components: 4, colors: 'other' });
});

test('orientations, and colour profiles by their descriptions', async () => {
  for (let orientation = 1; orientation <= 8; orientation++) {
    expect(
      readJpegHeader(await picture().withMetadata({ orientation }).jpeg().toBuffer(), 'it')
        .orientation,
    ).toBe(orientation);
  }
  expect(
    readJpegHeader(await picture().withIccProfile('srgb').jpeg().toBuffer(), 'it').profile,
  ).toBe('srgb');
  expect(readJpegHeader(await picture().withIccProfile('p3').jpeg().toBuffer(), 'it').profile).toBe(
    'other',
  );
});

test('EXIF of both byte orders is read, and other data is ignored', () => {
  const exif = (tiff: number[]): JpegHeader =>
    readJpegHeader(jpeg([0xe1, ...text('Exif\0\0'), ...tiff], frame([1, 2, 3])), 'it');
  const big = [
    ...text('MM\0*'),
    0,
    0,
    0,
    8,
    0,
    1,
    1,
    0x12,
    0,
    3,
    0,
    0,
    0,
    1,
    0,
    6,
    0,
    0,
    0,
    0,
    0,
    0,
  ];
  const little = [
    ...text('II*\0'),
    8,
    0,
    0,
    0,
    1,
    0,
    0x12,
    1,
    3,
    0,
    1,
    0,
    0,
    0,
    8,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
  ];
  expect([exif(big).orientation, exif(little).orientation]).toEqual([6, 8]);
  const changed = (at: number, value: number): number[] =>
    big.map((byte, i) => (i === at ? value : byte));
  for (const wrong of [
    [],
    big.slice(0, 6),
    big.slice(0, 15),
    changed(0, 0x49),
    changed(19, 9),
    changed(13, 4),
    changed(5, 200),
  ])
    expect(exif(wrong).orientation).toBe(1);
});

test('three components are RGB where libjpeg takes them as RGB', () => {
  const adobe = (transform: number): readonly [number, ...number[]] => [
    0xee,
    ...text('Adobe'),
    0,
    100,
    0,
    0,
    0,
    0,
    transform,
  ];
  const colors = (...segments: Parameters<typeof jpeg>): string =>
    readJpegHeader(jpeg(...segments), 'it').colors;
  expect(colors(frame([1, 2, 3]))).toBe('ycc');
  expect(colors(frame(text('RGB')))).toBe('rgb');
  expect(colors(adobe(0), frame([1, 2, 3]))).toBe('rgb');
  expect(colors(adobe(1), frame(text('RGB')))).toBe('ycc');
  expect(colors([0xe0, ...text('JFIF\0')], adobe(0), frame([1, 2, 3]))).toBe('ycc');
  expect(colors(frame([1, 2]))).toBe('other');
});

test('restart markers, fill bytes, thumbnails and appended data are skipped', () => {
  const plain = jpeg(frame([1, 2, 3]));
  const filled = Uint8Array.from([
    0xff,
    0xd8,
    0xff,
    0x01,
    0xff,
    0xd0,
    0xff,
    0xff,
    0xff,
    ...plain.slice(3),
    0,
    0xd9,
    1,
    0xff,
  ]);
  expect(readJpegHeader(filled, 'it')).toMatchObject({ width: 7, height: 5 });
  const thumbnail = jpeg(
    [0xe1, ...text('Exif\0\0'), ...jpeg(frame([1], 0xc0, 1, 2))],
    frame([1, 2, 3]),
  );
  expect(readJpegHeader(thumbnail, 'it')).toMatchObject({ width: 7, height: 5, components: 3 });
  // The end marker of the thumbnail is not that of the picture.
  expect(() => readJpegHeader(thumbnail.subarray(0, thumbnail.length - 2), 'it')).toThrow(
    'no end marker',
  );
});

test('every SOF marker counts, and DHT, JPG and DAC do not', () => {
  for (let code = 0xc0; code <= 0xcf; code++) {
    const result = outcome(jpeg(frame([1, 2, 3], code)));
    if ([0xc4, 0xc8, 0xcc].includes(code)) expect(result).toBeInstanceOf(CudaFormatError);
    else expect(result).toMatchObject({ frame: code, width: 7, height: 5 });
  }
});

describe('an error names the fault and its place', () => {
  const good = jpeg(frame([1, 2, 3]));
  test.each<[string, Uint8Array, RegExp]>([
    ['nothing', new Uint8Array(), /no JPEG.*at byte 0/],
    ['a PNG', Uint8Array.of(0x89, 0x50, 0x4e, 0x47), /no JPEG/],
    ['two bytes', good.subarray(0, 2), /no JPEG/],
    ['three bytes', good.subarray(0, 3), /cut short/],
    ['half a segment', good.subarray(0, 9), /within its header/],
    ['no end', good.subarray(0, good.length - 1), /no end marker/],
    ['no frame', jpeg(), /a scan before its frame/],
    ['two frames', jpeg(frame([1]), frame([1])), /a second frame/],
    ['no columns', jpeg(frame([1], 0xc0, 3, 0)), /0 pixels wide/],
    ['no components', jpeg(frame([])), /another length/],
    [
      'no marker',
      Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 0, 2, 7, 7),
      /expected a marker, at byte 6/,
    ],
    [
      'a segment of one byte',
      Uint8Array.of(0xff, 0xd8, 0xff, 0xe0, 0, 1, 7, 7),
      /a segment of 1 bytes, at byte 4/,
    ],
    ['a second begin', Uint8Array.of(0xff, 0xd8, 0xff, 0xd8), /marker FF D8/],
  ])('%s', (_, bytes, says) => {
    const error = outcome(bytes);
    expect(error).toBeInstanceOf(CudaFormatError);
    expect(error).toMatchObject({
      code: 'ERR_CUDA_FORMAT',
      format: 'image',
      offset: expect.any(Number) as number,
      message: expect.stringMatching(says) as string,
    });
  });
});

test(
  'changed, removed and inserted bytes: an error, or libjpeg’s size',
  { tags: 'random' },
  async () => {
    const originals = await Promise.all([
      picture().jpeg().toBuffer(),
      picture(64, 1).jpeg({ progressive: true }).toBuffer(),
      picture().withMetadata({ orientation: 5 }).withIccProfile('p3').jpeg().toBuffer(),
      picture().toColourspace('cmyk').jpeg().toBuffer(),
    ]);
    let read = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...originals),
        fc.array(
          fc.tuple(
            fc.nat(),
            fc.integer({ min: 0, max: 255 }),
            fc.constantFrom('change', 'change', 'change', 'insert', 'remove'),
          ),
          { minLength: 1, maxLength: 4 },
        ),
        fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.nat() }),
        async (original, changes, cut) => {
          const bytes = [...original];
          const header = marker(original, 0xda) + 14;
          for (const [at, value, how] of changes)
            bytes.splice(
              at % header,
              how === 'insert' ? 0 : 1,
              ...(how === 'remove' ? [] : [value]),
            );
          const mutated = Uint8Array.from(
            cut === null ? bytes : bytes.slice(0, cut % bytes.length),
          );
          const result = outcome(mutated);
          if (result instanceof CudaFormatError) return;
          expect(isJpeg(mutated)).toBe(true);
          const known = await sharp(mutated)
            .metadata()
            .catch(() => undefined);
          if (known === undefined) return;
          read++;
          // Without rows libjpeg reads no further.
          expect([result.width, result.height]).toEqual([known.width, known.height]);
          if (known.channels !== undefined) expect(result.components).toBe(known.channels);
        },
      ),
      { numRuns: 600, leastRuns: 60 },
    );
    expect(read).toBeGreaterThanOrEqual(scaled(40));
  },
);

test('random bytes: an error or a header, at once', { tags: 'random' }, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.boolean(), (bytes, begun) => {
      const result = outcome(begun ? Uint8Array.from([0xff, 0xd8, 0xff, ...bytes]) : bytes);
      if (!(result instanceof CudaFormatError)) expect(result.width).toBeGreaterThan(0);
    }),
    { numRuns: 2000 },
  );
  // Many bytes that look like an end marker.
  const long = new Uint8Array(1 << 22).fill(0xd9);
  long.set(jpeg(frame([1])).subarray(0, -5));
  expect(outcome(long)).toBeInstanceOf(CudaFormatError);
});

test('a header of very many segments is refused before all of it is read', () => {
  const many = jpeg(...Array.from({ length: 20_000 }, () => [0xe5] as const), frame([1]));
  expect(outcome(many)).toMatchObject({
    code: 'ERR_CUDA_FORMAT',
    message: expect.stringContaining('more than 10000 segments before its first scan') as string,
  });
});
