/** The size of pictures by their headers, compared with decodeImage of the same bytes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, describe, expect, test } from 'vitest';

import { Device } from 'async-cuda';
import { decodeImage, imageSize } from 'async-cuda/images';

const device = await Device.open('cpu');
afterAll(() => device.close());

const picture = (): ReturnType<typeof sharp> =>
  sharp({ create: { width: 37, height: 23, channels: 3, background: { r: 200, g: 90, b: 30 } } });

describe.each(['jpeg', 'png', 'webp', 'gif', 'tiff'] as const)('%s', (format) => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'with orientation %i has the size of the decoded picture',
    async (orientation) => {
      const bytes = await picture().toFormat(format).withMetadata({ orientation }).toBuffer();
      for (const each of ['apply', 'ignore'] as const) {
        const { width, height, format: found } = await imageSize(bytes, { orientation: each });
        using image = await decodeImage(device, bytes, { orientation: each });
        expect([found, height, width]).toEqual([format, image.shape[0], image.shape[1]]);
      }
    },
  );
});

test('a path, a URL, a SharedArrayBuffer and an ArrayBuffer are taken', async () => {
  const bytes = await picture().png().toBuffer();
  const folder = await mkdtemp(join(tmpdir(), 'async-cuda-size-'));
  try {
    const path = join(folder, 'a.png');
    await writeFile(path, bytes);
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
    shared.set(bytes);
    for (const source of [path, new URL(`file://${path}`), shared, new Uint8Array(bytes).buffer]) {
      expect(await imageSize(source)).toEqual({ width: 37, height: 23, format: 'png' });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('the size is that of the header, whatever follows it', async () => {
  const claim = Buffer.from(await picture().png().toBuffer()).subarray(0, 40);
  claim.writeUInt32BE(70_000, 16);
  claim.writeUInt32BE(90_000, 20);
  expect(await imageSize(claim)).toEqual({ width: 70_000, height: 90_000, format: 'png' });
});

test.each([
  ['what is no picture', Buffer.from('no picture')],
  ['a PNG of eight bytes', Buffer.from('89504e470d0a1a0a', 'hex')],
  ['a JPEG of three bytes', Buffer.from('ffd8ff', 'hex')],
])('%s is an ERR_CUDA_FORMAT', async (_, source) => {
  await expect(imageSize(source)).rejects.toMatchObject({ code: 'ERR_CUDA_FORMAT' });
});

test('a path without a file is an ERR_CUDA_NOT_FOUND', async () => {
  await expect(imageSize('/nonexistent/a.png')).rejects.toMatchObject({
    code: 'ERR_CUDA_NOT_FOUND',
  });
});

test('arguments of other kinds are refused at the call', () => {
  expect(() => imageSize(7 as never)).toThrow(
    'source: expected a path, a file: URL or the bytes of a file, got 7.',
  );
  expect(() => imageSize('a.png', { orientation: 'no' as never })).toThrow(
    "options.orientation: expected 'apply' or 'ignore'",
  );
  expect(() => imageSize('a.png', { size: 1 } as never)).toThrow("there is no option 'size'");
});

test('a signal that has aborted rejects with its reason', async () => {
  await expect(
    imageSize('a.png', { signal: AbortSignal.abort(new Error('gone')) }),
  ).rejects.toThrow('gone');
});
