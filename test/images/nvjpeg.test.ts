/**
 * nvJPEG itself, on a GPU: `pip install nvidia-nvjpeg` (nvidia-nvjpeg-cu12), or the CUDA toolkit,
 * or ASYNC_CUDA_NVJPEG naming its file or folder. Compared with sharp's decoding of the same bytes.
 * Elsewhere the test is skipped, with a message.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Device } from 'async-cuda';
import { CudaLibraryError } from 'async-cuda/core';
import { decodeImage, letterboxNormalise, mirror } from 'async-cuda/images';
import type { DecodeImageOptions } from 'async-cuda/images';
import { findLibrary, KNOWN_LIBRARIES } from 'async-cuda/driver';
import sharp from 'sharp';
import { beforeAll, describe, expect, test } from 'vitest';

import { openNvjpeg } from '../../src/images/media/nvjpeg/nvjpeg.js';
import { failure, onCpu, onDevice, openTestDevice } from '../core/test-device.js';

const found = findLibrary(KNOWN_LIBRARIES.nvjpeg);
const reason = onCpu
  ? 'the device is no GPU: set ASYNC_CUDA_TEST_DEVICE=cuda'
  : 'path' in found
    ? undefined
    : 'libnvjpeg was not found: pip install nvidia-nvjpeg, or set ASYNC_CUDA_NVJPEG';

/**
 * Gradients that are not aligned to blocks, and waves that are long compared with the half
 * resolution of the chroma.
 */
function slopes(width: number, height: number): ReturnType<typeof sharp> {
  const pixels = Uint8Array.from({ length: width * height * 3 }, (_, i) => {
    const [c, x, y] = [i % 3, Math.floor(i / 3) % width, Math.floor(i / 3 / width)];
    return [
      128 + 100 * Math.sin(x / 31),
      128 + 90 * Math.cos(y / 23),
      40 + (180 * (x + y)) / (width + height),
    ][c]!;
  });
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}

interface Difference {
  readonly mean: number;
  readonly most: number;
}

function difference(a: ArrayLike<number>, b: ArrayLike<number>): Difference {
  expect(a.length).toBe(b.length);
  let [sum, most] = [0, 0];
  for (let i = 0; i < a.length; i++) {
    const off = Math.abs(a[i]! - b[i]!);
    sum += off;
    most = Math.max(most, off);
  }
  return { mean: sum / a.length, most };
}

if (reason !== undefined) describe.skip(`SKIPPED: nvJPEG: ${reason}`, () => undefined);
else
  onDevice('nvJPEG', (host) => {
    let device: Device;
    const nvjpeg = { engine: 'nvjpeg' } as const;
    beforeAll(async () => {
      device = Device.of(host.device);
      const { version, path } = await openNvjpeg(host.device);
      console.log(`nvJPEG ${version}, ${path}`);
    });

    async function decoded(
      source: Uint8Array | string,
      options: DecodeImageOptions = nvjpeg,
    ): Promise<{ shape: readonly number[]; values: Uint8Array }> {
      using image = await decodeImage(device, source, options);
      return { shape: image.shape, values: (await image.read()) as Uint8Array };
    }

    test.each([
      ['4:4:4', 1, 1],
      ['4:4:4', 37, 23],
      ['4:2:0', 640, 480],
      ['4:2:0', 641, 479],
      ['4:4:4', 1920, 1080],
    ] as const)(
      'a JPEG of %s and %i × %i is what sharp decodes, within a few steps',
      async (chromaSubsampling, width, height) => {
        for (const progressive of [false, true]) {
          const jpeg = await slopes(width, height)
            .jpeg({ quality: 92, chromaSubsampling, progressive })
            .toBuffer();
          const wanted = await sharp(jpeg).raw().toBuffer();
          const { shape, values } = await decoded(jpeg);
          expect(shape).toEqual([height, width, 3]);
          const { mean, most } = difference(values, wanted);
          console.log(
            `${chromaSubsampling} ${width} × ${height}${progressive ? ', progressive' : ''}: ` +
              `mean difference ${mean.toFixed(3)}, most ${most}`,
          );
          expect(mean).toBeLessThan(1.5);
          expect(most).toBeLessThanOrEqual(chromaSubsampling === '4:4:4' ? 4 : 10);
        }
      },
    );

    test('bgr is rgb reversed, and grey is the luma', async () => {
      const jpeg = await slopes(200, 100).jpeg({ chromaSubsampling: '4:4:4' }).toBuffer();
      const { values: rgb } = await decoded(jpeg);
      const { values: bgr } = await decoded(jpeg, { ...nvjpeg, format: 'bgr' });
      expect(
        difference(
          bgr,
          rgb.map((_, i) => rgb[i - (i % 3) + 2 - (i % 3)]!),
        ).most,
      ).toBe(0);
      const { shape, values: grey } = await decoded(jpeg, { ...nvjpeg, format: 'grey' });
      expect(shape).toEqual([100, 200, 1]);
      expect(
        difference(
          grey,
          grey.map((_, i) =>
            Math.round(0.299 * rgb[3 * i]! + 0.587 * rgb[3 * i + 1]! + 0.114 * rgb[3 * i + 2]!),
          ),
        ).most,
      ).toBeLessThanOrEqual(3);
    });

    test('a grey JPEG is decoded as rgb and as grey', async () => {
      const jpeg = await slopes(200, 100).toColourspace('b-w').jpeg().toBuffer();
      const wanted = await sharp(jpeg).toColourspace('b-w').raw().toBuffer();
      expect(
        difference((await decoded(jpeg, { ...nvjpeg, format: 'grey' })).values, wanted).most,
      ).toBeLessThanOrEqual(2);
      const { values } = await decoded(jpeg);
      expect(
        difference(
          values,
          values.map((_, i) => wanted[Math.floor(i / 3)]!),
        ).most,
      ).toBeLessThanOrEqual(2);
    });

    test('the orientation is applied', async () => {
      for (const orientation of [3, 5, 6, 8]) {
        const jpeg = await slopes(120, 80)
          .withMetadata({ orientation })
          .jpeg({ chromaSubsampling: '4:4:4' })
          .toBuffer();
        const { data, info } = await sharp(jpeg)
          .rotate()
          .raw()
          .toBuffer({ resolveWithObject: true });
        const { shape, values } = await decoded(jpeg);
        expect(shape).toEqual([info.height, info.width, 3]);
        expect(difference(values, data).most).toBeLessThanOrEqual(4);
      }
    });

    test('paths are decoded, also by the default engine', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'async-cuda-nvjpeg-'));
      const jpeg = await slopes(300, 200).jpeg().toBuffer();
      const path = join(folder, 'a.jpg');
      await writeFile(path, jpeg);
      const { values } = await decoded(jpeg);
      expect(difference((await decoded(path)).values, values).most).toBe(0);
      expect(difference((await decoded(jpeg, {})).values, values).most).toBe(0);
      const png = await slopes(300, 200).png().toBuffer();
      expect(
        difference((await decoded(png, {})).values, await sharp(png).raw().toBuffer()).most,
      ).toBe(0);
      await rm(folder, { recursive: true });
    });

    test('many are decoded at once, with later work on each', async () => {
      const sizes = Array.from({ length: 16 }, (_, i) => [64 + 37 * i, 48 + 23 * i] as const);
      const jpegs = await Promise.all(
        sizes.map(([width, height]) => slopes(width, height).jpeg().toBuffer()),
      );
      const alone: Uint8Array[] = [];
      for (const jpeg of jpegs) alone.push((await decoded(jpeg)).values);
      await Promise.all(
        Array.from({ length: 64 }, async (_, k) => {
          const i = k % 16;
          const read = await decodeImage(device, jpegs[i]!, nvjpeg)
            .andThen((image) => mirror(image, 'both'))
            .andThen((image) => mirror(image, 'both'))
            .andThen((image) => image.read());
          expect(difference(read as Uint8Array, alone[i]!).most).toBe(0);
        }),
      );
      const input = await decodeImage(device, jpegs[3]!).andThen((image) =>
        letterboxNormalise(image, { width: 64, height: 64 }),
      );
      expect(input.shape).toEqual([3, 64, 64]);
      input.close();
    });

    test('the hardware decoders, where the GPU has some, give the same pixels', async () => {
      const [plain, core] = [await openTestDevice(), await openTestDevice()];
      await openNvjpeg(plain, { hardware: false });
      const own = await openNvjpeg(core);
      const jpegs: Buffer[] = [];
      for (const [i, [width, height]] of (
        [
          [1, 1],
          [7, 5],
          [37, 23],
          [333, 251],
          [640, 480],
          [641, 479],
          [1920, 1080],
        ] as const
      ).entries()) {
        for (const chromaSubsampling of ['4:4:4', '4:2:0'])
          jpegs.push(
            await slopes(width, height)
              .jpeg({ quality: 70 + 3 * i, chromaSubsampling, optimiseCoding: i % 2 === 1 })
              .toBuffer(),
          );
        jpegs.push(
          await slopes(width, height).toColourspace('b-w').jpeg().toBuffer(),
          await slopes(width, height).jpeg({ progressive: true }).toBuffer(),
        );
      }
      const read = async (
        of: typeof core,
        jpeg: Buffer,
        options: DecodeImageOptions,
      ): Promise<Uint8Array> => {
        using image = await decodeImage(Device.of(of), jpeg, options);
        return (await image.read()) as Uint8Array;
      };
      const wanted: Uint8Array[][] = [];
      const formats = [
        nvjpeg,
        { ...nvjpeg, format: 'bgr' },
        { ...nvjpeg, format: 'grey' },
      ] as const;
      for (const jpeg of jpegs)
        wanted.push(await Promise.all(formats.map((options) => read(plain, jpeg, options))));
      // They are initialised while the first ones are decoded.
      for (let i = 0; i < 200 && own.byHardware === 0; i++) {
        await read(core, jpegs[0]!, nvjpeg);
        await delay(10);
      }
      const before = own.byHardware;
      for (let turn = 0; turn < 3; turn++) {
        await Promise.all(
          jpegs.map(async (jpeg, i) => {
            const given = await Promise.all(formats.map((options) => read(core, jpeg, options)));
            given.forEach((values, k) => {
              expect(difference(values, wanted[i]![k]!)).toEqual({ mean: 0, most: 0 });
            });
          }),
        );
      }
      console.log(`by hardware: ${own.byHardware - before} of ${3 * 3 * jpegs.length}`);
      // All except the progressive ones, where there are hardware decoders.
      if (before > 0) expect(own.byHardware - before).toBe((3 * 3 * jpegs.length * 3) / 4);
      await Promise.all([plain.close(), core.close()]);
    });

    test('damaged files are an error or pixels, never a crash', async () => {
      const jpeg = await slopes(256, 256).jpeg({ quality: 80 }).toBuffer();
      const { values: good } = await decoded(jpeg);
      for (let i = 0; i < 40; i++) {
        const damaged = Uint8Array.from(jpeg);
        for (let k = 0; k < 4; k++)
          damaged[(i * 7919 + k * 104729) % jpeg.length] = (i * 31 + k * 17) & 0xff;
        const error = await decoded(damaged).then(
          () => undefined,
          (caught: unknown) => caught as { code: string },
        );
        if (error !== undefined)
          expect([
            'ERR_CUDA_FORMAT',
            'ERR_CUDA_UNSUPPORTED',
            'ERR_CUDA_LIBRARY',
            'ERR_CUDA_OUT_OF_MEMORY',
          ]).toContain(error.code);
      }
      expect(difference((await decoded(jpeg)).values, good).most).toBe(0);
      expect(
        await failure(() => decodeImage(device, jpeg.subarray(0, 2000), nvjpeg)),
      ).toMatchObject({ code: 'ERR_CUDA_FORMAT' });
      // A wrong table: the error is nvJPEG's.
      const broken = Uint8Array.from(jpeg);
      const tables = Buffer.from(broken).indexOf(Buffer.from([0xff, 0xc4]));
      broken.fill(0xff, tables + 5, tables + 21);
      const refused = await failure(() => decodeImage(device, broken, nvjpeg));
      expect(refused).toBeInstanceOf(CudaLibraryError);
      expect((refused as unknown as CudaLibraryError).statusName).toMatch(/^NVJPEG_STATUS_/);
    });

    test('memory is freed', async () => {
      const jpeg = await slopes(1024, 768).jpeg().toBuffer();
      await Promise.all(Array.from({ length: 8 }, () => decoded(jpeg)));
      await host.device.finished();
      const before = (await host.device.stats()).memory.inUse;
      for (let i = 0; i < 50; i++) (await decodeImage(device, jpeg, nvjpeg)).close();
      await host.device.finished();
      expect((await host.device.stats()).memory.inUse).toBe(before);
    });
  });
