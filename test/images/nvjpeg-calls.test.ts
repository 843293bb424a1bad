/** Pictures decoded by a stand-in for nvJPEG: on the CPU device, whose memory it writes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CudaArgumentError, Device } from 'async-cuda';
import { CudaLibraryError } from 'async-cuda/core';
import { decodeImage, decodeImages, rescale, mirror } from 'async-cuda/images';
import type { DecodeImageOptions } from 'async-cuda/images';
import { f16, f32, u8 } from 'async-cuda/core';
import sharp from 'sharp';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { openNvjpeg } from '../../src/images/media/nvjpeg/nvjpeg.js';
import { whyNoStandIn } from '../core/stand-in-library.js';
import { failure, onCpu, onDevice, openTestDevice, stillPending } from '../core/test-device.js';
import { StandInNvjpeg, standInPixels } from './stand-in-nvjpeg.js';

const why =
  whyNoStandIn ??
  (onCpu ? undefined : 'SKIPPED: on a GPU nvJPEG itself is called, see nvjpeg.test.ts') ??
  (process.env['ASYNC_CUDA_TEST_CHECK'] === undefined
    ? undefined
    : 'SKIPPED: native code cannot reach the memory of a device that is checked');
const [WIDTH, HEIGHT] = [37, 23];
const picture = (width = WIDTH, height = HEIGHT): ReturnType<typeof sharp> =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 90, b: 30 } } });
/** The bytes in shared memory, from byte `offset` on. */
function shared(bytes: Uint8Array, offset: number): Uint8Array {
  const there = new Uint8Array(
    new SharedArrayBuffer(offset + bytes.length + 100),
    offset,
    bytes.length,
  );
  there.set(bytes);
  return there;
}
const jpegOf = (width = WIDTH, height = HEIGHT): Promise<Buffer> =>
  picture(width, height).jpeg().toBuffer();

if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('Calls of nvJPEG', (host) => {
    const standIn = new StandInNvjpeg();
    const files = { path: standIn.path, driver: standIn.path, anyDevice: true };
    let device: Device;
    let folder: string;
    beforeAll(async () => {
      device = Device.of(host.device);
      folder = await mkdtemp(join(tmpdir(), 'async-cuda-nvjpeg-'));
      await openNvjpeg(host.device, files);
    });
    afterAll(() => rm(folder, { recursive: true }));
    beforeEach(() => {
      standIn.answers(0);
      standIn.set();
      standIn.take();
    });

    async function decoded(
      source: Parameters<typeof decodeImage>[1],
      options: DecodeImageOptions = {},
    ): Promise<{ shape: readonly number[]; values: number[] }> {
      using image = await decodeImage(device, source, options);
      return { shape: image.shape, values: [...(await image.read())] };
    }

    test('a JPEG is decoded into the result, in one call', async () => {
      const jpeg = await jpegOf();
      expect(await decoded(jpeg)).toEqual({
        shape: [HEIGHT, WIDTH, 3],
        values: standInPixels(jpeg.length, WIDTH, HEIGHT, 3),
      });
      const lines = standIn.take();
      expect(lines.filter((line) => line.startsWith('nvjpegDecode'))).toEqual([
        `nvjpegDecode ${WIDTH}x${HEIGHT} of ${jpeg.length} bytes, format 5, pitch ` +
          `${3 * WIDTH}, others 0`,
      ]);
      // It is decoded in the device's context, and waited for before the operation resolves.
      expect(lines.filter((line) => line.startsWith('cuCtx'))).toContain(
        `cuCtxSetCurrent ${host.device.runtime.info.context}`,
      );
      expect(lines.at(-1)).toBe('cuStreamSynchronize');
    });

    test('channels select nvJPEG’s format', async () => {
      const jpeg = await jpegOf();
      const grey = await picture().toColourspace('b-w').jpeg().toBuffer();
      for (const [source, options, format, channels] of [
        [jpeg, { format: 'bgr' }, 6, 3],
        [grey, { format: 'grey' }, 2, 1],
        [grey, {}, 5, 3],
        [jpeg, { format: 'grey', engine: 'nvjpeg' }, 2, 1],
      ] as const) {
        expect(await decoded(source, options)).toEqual({
          shape: [HEIGHT, WIDTH, channels],
          values: standInPixels(source.length, WIDTH, HEIGHT, channels),
        });
        expect(standIn.take().find((line) => line.startsWith('nvjpegDecode'))).toContain(
          `format ${format}, pitch ${channels * WIDTH}`,
        );
      }
    });

    test('paths, array buffers and parts of a buffer have the same result', async () => {
      const jpeg = await jpegOf();
      const path = join(folder, 'a.jpg');
      await writeFile(path, jpeg);
      const wanted = standInPixels(jpeg.length, WIDTH, HEIGHT, 3);
      const larger = new Uint8Array(jpeg.length + 100);
      larger.set(jpeg, 33);
      const part = Buffer.from(larger.buffer, 33, jpeg.length);
      for (const source of [
        path,
        Uint8Array.from(jpeg).buffer,
        larger.subarray(33, 33 + jpeg.length),
        part,
      ])
        expect((await decoded(source)).values).toEqual(wanted);
      // It was copied, not transferred.
      expect(larger[33]).toBe(0xff);
    });

    test('files in shared memory are copied by the thread that decodes them', async () => {
      const sizes = [
        [WIDTH, HEIGHT],
        [64, 48],
        [301, 203],
        [16, 16],
      ] as const;
      const jpegs = await Promise.all(sizes.map(([width, height]) => jpegOf(width, height)));
      for (const engine of ['auto', 'nvjpeg'] as const) {
        const sources = jpegs.map((jpeg, i) => (i % 2 === 0 ? shared(jpeg, 33 * i) : jpeg));
        const all = await Promise.all(sources.map((source) => decoded(source, { engine })));
        expect(all.map(({ values }) => values)).toEqual(
          jpegs.map(({ length }, i) => standInPixels(length, sizes[i]![0], sizes[i]![1], 3)),
        );
      }
      // sharp's result of the same file is equal.
      const png = await picture().png().toBuffer();
      expect(await decoded(shared(png, 7))).toEqual(await decoded(png));
      // One that is larger than the kept memory, and small ones after it.
      const large = shared(
        Buffer.concat([
          jpegs[0]!.subarray(0, -2),
          Buffer.alloc(5_000_000, 0x11),
          jpegs[0]!.subarray(-2),
        ]),
        0,
      );
      for (const source of [large, shared(jpegs[0]!, 1)])
        expect((await decoded(source, { engine: 'nvjpeg' })).values).toEqual(
          standInPixels(source.length, WIDTH, HEIGHT, 3),
        );
    });

    test('files that nvJPEG would decode differently are left to sharp', async () => {
      const jpeg = await jpegOf();
      const left: [Uint8Array, DecodeImageOptions][] = [
        [await picture().png().toBuffer(), {}],
        [jpeg, { engine: 'sharp' }],
        [jpeg, { format: 'rgba' }],
        [jpeg, { format: 'grey' }],
        [await picture().withIccProfile('p3').jpeg().toBuffer(), {}],
        [await picture().toColourspace('cmyk').jpeg().toBuffer(), {}],
      ];
      for (const [source, options] of left) {
        const { values } = await decoded(source, options);
        expect(standIn.take().filter((line) => line.startsWith('nvjpegDecode'))).toEqual([]);
        expect(values).not.toEqual(standInPixels(source.length, WIDTH, HEIGHT, 3));
      }
      await decoded(await picture().withIccProfile('srgb').jpeg().toBuffer());
      expect(standIn.take().filter((line) => line.startsWith('nvjpegDecode')).length).toBe(1);
    });

    test('sharp decodes what nvJPEG refuses, at its place in the stream', async () => {
      const jpeg = await jpegOf(301, 203);
      for (const format of ['rgb', 'bgr'] as const) {
        standIn.answers(4);
        const { data } = await sharp(jpeg).raw().toBuffer({ resolveWithObject: true });
        const wanted =
          format === 'rgb'
            ? [...data]
            : Array.from(data, (_, i) => data[i - (i % 3) + 2 - (i % 3)]!);
        expect((await decoded(jpeg, { format })).values).toEqual(wanted);
        expect(standIn.take().some((line) => line.startsWith('nvjpegDecode'))).toBe(true);
      }
      standIn.answers(0);
      standIn.set({ wrongWidth: 1 });
      expect((await decoded(jpeg)).values).toEqual([...(await sharp(jpeg).raw().toBuffer())]);
      expect(standIn.take().some((line) => line.startsWith('nvjpegDecode'))).toBe(false);
    });

    test.each([
      [1, 'NVJPEG_STATUS_NOT_INITIALIZED', 'ERR_CUDA_LIBRARY'],
      [3, 'NVJPEG_STATUS_BAD_JPEG', 'ERR_CUDA_FORMAT'],
      [4, 'NVJPEG_STATUS_JPEG_NOT_SUPPORTED', 'ERR_CUDA_UNSUPPORTED'],
      [5, 'NVJPEG_STATUS_ALLOCATOR_FAILURE', 'ERR_CUDA_OUT_OF_MEMORY'],
      [7, 'NVJPEG_STATUS_ARCH_MISMATCH', 'ERR_CUDA_UNSUPPORTED'],
      [10, 'NVJPEG_STATUS_INCOMPLETE_BITSTREAM', 'ERR_CUDA_FORMAT'],
      [99, 'nvjpegStatus_t 99', 'ERR_CUDA_LIBRARY'],
    ])('status %i is %s', async (status, statusName, code) => {
      const jpeg = await jpegOf();
      standIn.answers(status);
      const error = await failure(() => decodeImage(device, jpeg, { engine: 'nvjpeg' }));
      expect(error).toBeInstanceOf(CudaLibraryError);
      expect(error).toMatchObject({
        code,
        status,
        statusName,
        call: 'nvjpegDecode',
        library: 'nvJPEG 13.9.1',
        message: expect.stringContaining(
          `source (${jpeg.length} bytes): nvJPEG 13.9.1: ${statusName}`,
        ) as string,
      });
      // The next one has another state.
      standIn.answers(0);
      expect((await decoded(jpeg, { engine: 'nvjpeg' })).values).toEqual(
        standInPixels(jpeg.length, WIDTH, HEIGHT, 3),
      );
      const { states, streams } = standIn.alive;
      expect(states).toBe(streams);
    });

    test('its failure fails the later operations of the chain', async () => {
      const jpeg = await jpegOf();
      standIn.answers(3);
      const { buffers } = (await host.device.stats()).live;
      const error = await failure(() =>
        decodeImage(device, jpeg, { engine: 'nvjpeg' })
          .andThen((image) => rescale(image, f32))
          .andThen((image) => image.convert(f16))
          .andThen((image) => image.convert(f32)),
      );
      expect(error.code).toBe('ERR_CUDA_FORMAT');
      // The result is not passed on.
      expect((await host.device.stats()).live.buffers).toBe(buffers);
    });

    test('unsupported, truncated and other files are errors', async () => {
      const jpeg = await jpegOf();
      const nvjpeg = { engine: 'nvjpeg' } as const;
      const frame = jpeg.indexOf(Buffer.from([0xff, 0xc0]));
      const changedAt = (at: number, value: number): Uint8Array =>
        Uint8Array.from(jpeg).fill(value, at, at + 1);
      for (const [source, code, text] of [
        [changedAt(frame + 1, 0xc9), 'ERR_CUDA_UNSUPPORTED', 'arithmetic coding'],
        [changedAt(frame + 1, 0xc3), 'ERR_CUDA_UNSUPPORTED', 'FF C3'],
        [changedAt(frame + 4, 12), 'ERR_CUDA_UNSUPPORTED', '12 bits'],
        [await picture().toColourspace('cmyk').jpeg().toBuffer(), 'ERR_CUDA_UNSUPPORTED', 'CMYK'],
        [jpeg.subarray(0, jpeg.length - 2), 'ERR_CUDA_FORMAT', 'no end marker'],
        [jpeg.subarray(0, 100), 'ERR_CUDA_FORMAT', 'cut short'],
        [await picture().png().toBuffer(), 'ERR_CUDA_FORMAT', 'no JPEG'],
      ] as const) {
        const error = await failure(() => decodeImage(device, source, nvjpeg));
        expect(error).toMatchObject({ code, message: expect.stringContaining(text) as string });
        expect(error.message).toContain(`source (${source.length} bytes)`);
      }
      // By default the error is sharp's.
      expect(
        await failure(() => decodeImage(device, jpeg.subarray(0, jpeg.length - 2))),
      ).toMatchObject({ code: 'ERR_CUDA_FORMAT' });
      expect(
        await failure(() => decodeImage(device, join(folder, 'absent.jpg'), nvjpeg)),
      ).toMatchObject({ code: 'ERR_CUDA_NOT_FOUND', cause: { code: 'ENOENT' } });
      expect(await failure(() => decodeImage(device, join(folder, 'absent.jpg')))).toMatchObject({
        code: 'ERR_CUDA_NOT_FOUND',
        message: expect.stringContaining('absent.jpg') as string,
      });
      expect(standIn.take().some((line) => line.startsWith('nvjpegDecode'))).toBe(false);
    });

    test('the orientation is applied on the device', async () => {
      const stored = standInPixels;
      for (let orientation = 1; orientation <= 8; orientation++) {
        const jpeg = await picture().withMetadata({ orientation }).jpeg().toBuffer();
        const pixels = Uint8Array.from(stored(jpeg.length, WIDTH, HEIGHT, 3));
        // As sharp turns the same pixels of a lossless file with the same orientation.
        const tiff = await sharp(pixels, { raw: { width: WIDTH, height: HEIGHT, channels: 3 } })
          .withMetadata({ orientation })
          .png()
          .toBuffer();
        const { data, info } = await sharp(tiff)
          .rotate()
          .raw()
          .toBuffer({ resolveWithObject: true });
        expect(await decoded(jpeg)).toEqual({
          shape: [info.height, info.width, 3],
          values: [...data],
        });
        expect((await decoded(jpeg, { orientation: 'ignore' })).values).toEqual([...pixels]);
      }
    });

    test(
      'pictures on several streams are decoded at once, eight at most',
      { tags: 'thorough' },
      async () => {
        const sizes = Array.from({ length: 20 }, (_, i) => [20 + i, 10 + i] as const);
        const jpegs = await Promise.all(sizes.map(([width, height]) => jpegOf(width, height)));
        standIn.set({ delay: 20 });
        const all = await Promise.all(
          jpegs.map(async (jpeg, i) => {
            using stream = host.device.createStream();
            const image = await decodeImage(device, jpeg).runOn(stream);
            const values = [...(await image.read())];
            image.close();
            return values.every(
              (value, k) => value === standInPixels(jpeg.length, ...sizes[i]!, 3)[k],
            );
          }),
        );
        expect(all).toEqual(sizes.map(() => true));
        expect(standIn.mostAtOnce).toBeGreaterThan(1);
        expect(standIn.mostAtOnce).toBeLessThanOrEqual(8);
      },
    );

    test('files of any size are decoded one after the other', async () => {
      const jpeg = await jpegOf(32, 16);
      for (const more of [0, 100_000, 10, 5_000_000, 70_000, 0]) {
        const { values } = await decoded(Buffer.concat([jpeg, Buffer.alloc(more)]));
        expect(values).toEqual([...standInPixels(jpeg.length + more, 32, 16, 3)]);
      }
    });

    test('later work waits for it, and the event loop does not', async () => {
      const jpeg = await jpegOf();
      standIn.set({ delay: 60 });
      let turns = 0;
      const timer = setInterval(() => {
        turns++;
      }, 1);
      const behind = decodeImage(device, jpeg)
        .andThen((image) => mirror(image, 'horizontal'))
        .run();
      expect(await stillPending(behind, 15)).toBe(true);
      using mirrored = await behind;
      clearInterval(timer);
      // A blocked loop would have no turn before the end; the number of turns depends on the
      // machine.
      expect(turns).toBeGreaterThan(1);
      const pixels = standInPixels(jpeg.length, WIDTH, HEIGHT, 3);
      expect([...(await mirrored.read())].slice(0, 3)).toEqual(
        pixels.slice(3 * (WIDTH - 1), 3 * WIDTH),
      );
    });

    test('a signal ends the wait at once, and work that has not begun', async () => {
      const jpeg = await jpegOf();
      expect(
        await failure(() =>
          decodeImage(device, jpeg, { signal: AbortSignal.abort(new Error('never mind')) }),
        ),
      ).toMatchObject({ message: 'never mind' });
      expect(standIn.take().some((line) => line.startsWith('nvjpegDecode'))).toBe(false);
      standIn.set({ delay: 100 });
      const controller = new AbortController();
      const begun = performance.now();
      const late = failure(() =>
        decodeImage(device, jpeg, { signal: controller.signal, engine: 'nvjpeg' }),
      );
      setTimeout(() => {
        controller.abort(new Error('too late'));
      }, 20);
      expect(await late).toMatchObject({ message: 'too late' });
      expect(performance.now() - begun).toBeLessThan(95);
      standIn.set();
      expect((await decoded(jpeg)).values).toEqual(standInPixels(jpeg.length, WIDTH, HEIGHT, 3));
    });

    test('arguments are checked at the call', () => {
      const bytes = new Uint8Array(4);
      expect(() => decodeImage(device, bytes, { engine: 'nvjpg' as never })).toThrow(
        CudaArgumentError,
      );
      expect(() => decodeImage(device, bytes, { engine: 'nvjpeg', format: 'rgba' })).toThrow(
        'addAlpha',
      );
      expect(() => decodeImage(device, bytes, { engine: 'nvjpeg' }).sync()).toThrow(
        expect.objectContaining({ code: 'ERR_CUDA_UNSUPPORTED' }) as Error,
      );
    });

    test('a CPU device has no nvJPEG', async () => {
      const other = Device.of(await openTestDevice());
      expect(() => decodeImage(other, new Uint8Array(4), { engine: 'nvjpeg' })).toThrow(
        expect.objectContaining({
          code: 'ERR_CUDA_UNSUPPORTED',
          message: expect.stringContaining('CPU device') as string,
        }) as Error,
      );
      await other.close();
    });

    test('without the library the error has how to install it, or sharp decodes', async () => {
      const core = await openTestDevice();
      const other = Device.of(core);
      const nowhere = join(folder, 'libnvjpeg.so.13');
      const jpeg = await jpegOf();
      const error = await failure(() => openNvjpeg(core, { ...files, path: nowhere }));
      expect(error).toMatchObject({
        code: 'ERR_CUDA_NO_LIBRARY',
        message: expect.stringMatching(
          /nvJPEG \(libnvjpeg\) was not found.*pip install nvidia-nvjpeg.*ASYNC_CUDA_NVJPEG/,
        ) as string,
      });
      expect(error.message).toContain(nowhere);
      using image = await decodeImage(other, jpeg);
      expect([...(await image.read())]).toEqual([...(await sharp(jpeg).raw().toBuffer())]);
      image.close();
      await core.close();
    });

    test('a version without a flag is opened without it; closing frees everything', async () => {
      const before = standIn.alive;
      standIn.set({ refusedFlags: 32 });
      const core = await openTestDevice();
      await openNvjpeg(core, files);
      expect(standIn.take().filter((line) => line.startsWith('nvjpegCreateEx'))).toEqual([
        'nvjpegCreateEx 0 0 0 32',
        'nvjpegCreateEx 0 0 0 0',
      ]);
      const other = Device.of(core);
      const jpeg = await jpegOf();
      const images = await Promise.all([1, 2, 3].map(() => decodeImage(other, jpeg)));
      expect(standIn.alive.handles).toBe(before.handles + 1);
      expect(standIn.alive.states).toBeGreaterThan(before.states);
      for (const image of images) image.close();
      await core.close();
      expect(standIn.alive).toEqual(before);
      expect(standIn.take()).toContain('nvjpegDestroy');
    });

    test('a device can be closed while pictures are decoded', async () => {
      const before = standIn.alive;
      const core = await openTestDevice();
      await openNvjpeg(core, files);
      standIn.set({ delay: 50 });
      const jpeg = await jpegOf();
      const ends = [1, 2].map(() =>
        decodeImage(Device.of(core), jpeg).then(
          (image) => {
            image.close();
            return 'decoded';
          },
          (error: unknown) => (error as { code: string }).code,
        ),
      );
      await core.close();
      for (const end of await Promise.all(ends))
        expect(['decoded', 'ERR_CUDA_DISPOSED', 'ERR_CUDA_DEVICE_CLOSED']).toContain(end);
      expect(standIn.alive).toEqual(before);
    });

    describe('the hardware decoders of the GPU', () => {
      /** A device whose nvJPEG has them, or has been searched for them. */
      async function withHardware(engines: number): Promise<{
        core: Awaited<ReturnType<typeof openTestDevice>>;
        lazy: Device;
        nvjpeg: Awaited<ReturnType<typeof openNvjpeg>>;
      }> {
        standIn.setHardware(engines);
        const core = await openTestDevice();
        const nvjpeg = await openNvjpeg(core, files);
        const lazy = Device.of(core);
        const jpeg = await jpegOf();
        // The first is decoded without a search for them, and so are those during their
        // initialisation.
        for (let i = 0; i < 100 && nvjpeg.byHardware === 0 && (engines > 0 || i < 20); i++) {
          (await decodeImage(lazy, jpeg)).close();
          if (i === 0)
            expect(standIn.take().filter((line) => line.startsWith('nvjpegCreateEx')).length).toBe(
              1,
            );
          await new Promise((resolve) => {
            setTimeout(resolve, 5);
          });
        }
        expect(nvjpeg.byHardware > 0).toBe(engines > 0);
        standIn.take();
        return { core, lazy, nvjpeg };
      }
      const calls = (): string[] =>
        standIn.take().filter((line) => line.startsWith('nvjpegDecode'));
      const read = async (
        lazy: Device,
        jpeg: Uint8Array,
        options: DecodeImageOptions = {},
      ): Promise<number[]> => {
        using stream = lazy.core.createStream();
        const image = await decodeImage(lazy, jpeg, options).runOn(stream);
        const values = [...(await image.read())];
        image.close();
        return values;
      };
      afterAll(() => {
        standIn.setHardware(0);
      });

      test('decode concurrent pictures in one call, with the same pixels', async () => {
        const before = standIn.alive;
        const { core, lazy, nvjpeg } = await withHardware(7);
        const sizes = Array.from({ length: 40 }, (_, i) => [20 + i, 10 + i] as const);
        const jpegs = await Promise.all(sizes.map(([width, height]) => jpegOf(width, height)));
        const count = nvjpeg.byHardware;
        standIn.set({ delay: 10 });
        const all = await Promise.all(
          jpegs.map((jpeg, i) => read(lazy, i % 3 === 0 ? shared(jpeg, i) : jpeg)),
        );
        all.forEach((values, i) => {
          expect(values).toEqual(standInPixels(jpegs[i]!.length, ...sizes[i]!, 3));
        });
        const lines = calls();
        expect(nvjpeg.byHardware - count).toBe(40);
        expect(lines.every((line) => line.startsWith('nvjpegDecodeBatched'))).toBe(true);
        expect(lines.length).toBeLessThan(20);
        const counts = lines.map((line) => Number(/Batched (\d+)/.exec(line)![1]));
        expect(counts.reduce((a, b) => a + b)).toBe(40);
        expect(Math.max(...counts)).toBeLessThanOrEqual(32);
        await core.close();
        expect(standIn.alive).toEqual(before);
      });

      test('decode several of one operation in one call, into their results', async () => {
        const { core, lazy, nvjpeg } = await withHardware(1);
        const jpegs = await Promise.all(
          [0, 1, 2, 3].map((i) =>
            picture()
              .jpeg({ quality: 60 + 10 * i })
              .toBuffer(),
          ),
        );
        const turned = await picture().withMetadata({ orientation: 3 }).jpeg().toBuffer();
        const count = nvjpeg.byHardware;
        using out = await lazy.uninitialized(u8, [5, HEIGHT, WIDTH, 3]);
        await decodeImages(lazy, [...jpegs, turned], { out });
        expect(calls()).toEqual([`nvjpegDecodeBatched 5, format 5, pitch ${3 * WIDTH}`]);
        expect(nvjpeg.byHardware - count).toBe(5);
        const pixels = standInPixels(turned.length, WIDTH, HEIGHT, 3);
        const about = pixels.map((_, i) => pixels[pixels.length - 3 - (i - (i % 3)) + (i % 3)]!);
        expect([...(await out.read())]).toEqual([
          ...jpegs.flatMap((jpeg) => standInPixels(jpeg.length, WIDTH, HEIGHT, 3)),
          ...about,
        ]);
        // Pictures that fail are decoded by the other path; when all have ended the operation
        // rejects with the error of the first that fails there as well.
        standIn.setHardware(1, 3);
        standIn.answers(3);
        expect(await failure(() => decodeImages(lazy, jpegs, { engine: 'nvjpeg' }))).toMatchObject({
          code: 'ERR_CUDA_FORMAT',
          message: expect.stringContaining('sources[0]') as string,
        });
        const images = await decodeImages(lazy, jpegs);
        for (const [i, image] of images.entries()) {
          expect([...(await image.read())]).toEqual([...(await sharp(jpegs[i]).raw().toBuffer())]);
          image.close();
        }
        standIn.answers(0);
        out.close();
        await core.close();
      });

      test('have a call for each format, and leave other pictures to the other path', async () => {
        const { core, lazy, nvjpeg } = await withHardware(1);
        const [jpeg, progressive] = [
          await jpegOf(),
          await picture().jpeg({ progressive: true }).toBuffer(),
        ];
        const grey = await picture().toColourspace('b-w').jpeg().toBuffer();
        const count = nvjpeg.byHardware;
        const options = [{}, { format: 'bgr' }, {}, { format: 'bgr' }] as const;
        const given = await Promise.all([
          ...options.map((each) => read(lazy, jpeg, each)),
          read(lazy, progressive),
          read(lazy, grey, { format: 'grey' }),
        ]);
        for (const values of given.slice(0, 4))
          expect(values).toEqual(standInPixels(jpeg.length, WIDTH, HEIGHT, 3));
        expect(given[4]).toEqual(standInPixels(progressive.length, WIDTH, HEIGHT, 3));
        expect(given[5]).toEqual(standInPixels(grey.length, WIDTH, HEIGHT, 1));
        expect(nvjpeg.byHardware - count).toBe(5);
        const lines = calls();
        expect(lines.filter((line) => /^nvjpegDecode \d/.test(line)).length).toBe(1);
        for (const format of [5, 6, 2])
          expect(
            lines.some(
              (line) =>
                line.startsWith('nvjpegDecodeBatched') &&
                line.includes(`format ${format}, pitch ${WIDTH * (format === 2 ? 1 : 3)}`),
            ),
          ).toBe(true);
        // Where the size differs from the header's no byte is written.
        standIn.set({ wrongWidth: 1 });
        expect(await read(lazy, jpeg)).toEqual([...(await sharp(jpeg).raw().toBuffer())]);
        expect(calls()).toEqual([]);
        standIn.set();
        await core.close();
      });

      test('that fail leave their pictures to the other path', async () => {
        const before = standIn.alive;
        const { core, lazy, nvjpeg } = await withHardware(1);
        const jpeg = await jpegOf();
        const count = nvjpeg.byHardware;
        standIn.setHardware(1, 3);
        expect(await Promise.all([1, 2, 3].map(() => read(lazy, jpeg)))).toEqual(
          [1, 2, 3].map(() => standInPixels(jpeg.length, WIDTH, HEIGHT, 3)),
        );
        standIn.answers(3);
        expect(await failure(() => decodeImage(lazy, jpeg, { engine: 'nvjpeg' }))).toMatchObject({
          code: 'ERR_CUDA_FORMAT',
          call: 'nvjpegDecode',
        });
        expect(nvjpeg.byHardware).toBe(count);
        standIn.answers(0);
        standIn.setHardware(1);
        expect(await read(lazy, jpeg)).toEqual(standInPixels(jpeg.length, WIDTH, HEIGHT, 3));
        expect(nvjpeg.byHardware).toBe(count + 1);
        await core.close();
        expect(standIn.alive).toEqual(before);
      });

      test('take files of any size, and skip those that are aborted in time', async () => {
        const { core, lazy } = await withHardware(1);
        const jpeg = await jpegOf(32, 16);
        const sizes = [0, 100_000, 10, 5_000_000, 70_000, 3_000_000, 0];
        const given = await Promise.all(
          sizes.map((more) => read(lazy, Buffer.concat([jpeg, Buffer.alloc(more)]))),
        );
        given.forEach((values, i) => {
          expect(values).toEqual([...standInPixels(jpeg.length + sizes[i]!, 32, 16, 3)]);
        });
        standIn.take();
        standIn.set({ delay: 100 });
        const first = read(lazy, jpeg);
        // It is being decoded by now.
        await expect.poll(calls, { interval: 1 }).toHaveLength(1);
        const controller = new AbortController();
        const late = [1, 2].map(() =>
          failure(() => decodeImage(lazy, jpeg, { signal: controller.signal })),
        );
        controller.abort(new Error('never mind'));
        for (const each of late) expect(await each).toMatchObject({ message: 'never mind' });
        await first;
        await lazy.core.finished();
        expect(calls()).toEqual([]);
        standIn.set();
        await core.close();
      });

      test('are not searched again where there are none', async () => {
        const before = standIn.alive;
        const { core } = await withHardware(0);
        expect(standIn.alive.handles).toBe(before.handles + 1);
        await core.close();
        expect(standIn.alive).toEqual(before);
      });
    });

    test('memory is freed', async () => {
      const jpeg = await jpegOf(200, 100);
      await host.device.finished();
      const before = (await host.device.stats()).memory.inUse;
      for (let i = 0; i < 30; i++) (await decodeImage(device, jpeg)).close();
      standIn.answers(3);
      for (let i = 0; i < 10; i++)
        await failure(() => decodeImage(device, jpeg, { engine: 'nvjpeg' }));
      await host.device.finished();
      expect((await host.device.stats()).memory.inUse).toBe(before);
    });
  });
