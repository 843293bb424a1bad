/** Pictures decoded to images and encoded from them, compared with sharp alone. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { runInNewContext } from 'node:vm';
import { crc32, deflateSync } from 'node:zlib';
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import { CudaFormatError } from 'async-cuda/core';
import { crop, decodeImage, decodeImages, encodeImage, resize } from 'async-cuda/images';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const [WIDTH, HEIGHT] = [37, 23];
/** A gradient in each channel, which JPEG changes little. */
const PIXELS = Uint8Array.from({ length: WIDTH * HEIGHT * 3 }, (_, i) => {
  const [c, x, y] = [i % 3, Math.floor(i / 3) % WIDTH, Math.floor(i / 3 / WIDTH)];
  return [x * 6, y * 10, 255 - x * 3][c]!;
});
const picture = (): ReturnType<typeof sharp> =>
  sharp(PIXELS, { raw: { width: WIDTH, height: HEIGHT, channels: 3 } });

onDevice('Pictures', (host) => {
  let device: Device;
  let folder: string;
  beforeAll(async () => {
    device = Device.of(host.device);
    folder = await mkdtemp(join(tmpdir(), 'async-cuda-pictures-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function decoded(
    ...args: Parameters<typeof decodeImage> extends [unknown, ...infer R] ? R : never
  ): Promise<{ shape: readonly number[]; values: number[] }> {
    using image = await decodeImage(device, ...args);
    expect(image.dtype.name).toBe('u8');
    return { shape: image.shape, values: [...(await image.read())] };
  }

  test('bytes, array buffers, paths and URLs give the same image', async () => {
    const png = await picture().png().toBuffer();
    const path = join(folder, 'slope.png');
    await writeFile(path, png);
    const bytes = Uint8Array.from(png);
    const there = runInNewContext(`new Uint8Array(${bytes.length})`) as Uint8Array;
    there.set(bytes);
    for (const source of [
      png,
      bytes.buffer,
      path,
      pathToFileURL(path),
      there,
      there.buffer as ArrayBuffer,
    ]) {
      expect(await decoded(source)).toEqual({ shape: [HEIGHT, WIDTH, 3], values: [...PIXELS] });
    }
  });

  test('a JPEG has the pixels of sharp with the sharp engine', async () => {
    const jpeg = await picture().jpeg().toBuffer();
    expect((await decoded(jpeg, { engine: 'sharp' })).values).toEqual([
      ...(await sharp(jpeg).raw().toBuffer()),
    ]);
  });

  // Node 22 and later.
  test.runIf('transfer' in ArrayBuffer.prototype)(
    'sharp’s pixels are freed once their copy is queued',
    async () => {
      const png = await picture().resize(700, 500).png().toBuffer();
      const given = vi.spyOn(
        ArrayBuffer.prototype as unknown as { transfer(bytes: number): ArrayBuffer },
        'transfer',
      );
      try {
        const { values } = await decoded(png, { engine: 'sharp' });
        expect(values).toEqual([...(await sharp(png).raw().toBuffer())]);
        await setImmediate();
        const freed = given.mock.contexts.map(
          (buffer) => (buffer as unknown as ArrayBuffer & { detached: boolean }).detached,
        );
        expect(given.mock.calls.map(([bytes]) => bytes)).toContain(0);
        expect(freed.every(Boolean)).toBe(true);
      } finally {
        given.mockRestore();
      }
    },
  );

  /**
   * Files of all kinds: some that nvJPEG decodes and some that it does not; turned, grey, by path.
   */
  async function mixedSources(): Promise<(string | Uint8Array)[]> {
    const path = join(folder, 'mixed.jpg');
    await writeFile(path, await picture().jpeg().toBuffer());
    return [
      await picture().jpeg({ chromaSubsampling: '4:4:4' }).toBuffer(),
      await picture().png().toBuffer(),
      path,
      await picture().jpeg({ progressive: true }).toBuffer(),
      await picture().withMetadata({ orientation: 3 }).jpeg().toBuffer(),
      await picture().withMetadata({ orientation: 6 }).jpeg().toBuffer(),
      await picture().toColourspace('b-w').jpeg().toBuffer(),
      await picture().toColourspace('cmyk').jpeg().toBuffer(),
      await picture().webp({ lossless: true }).toBuffer(),
      await picture().resize(64, 80).jpeg().toBuffer(),
    ];
  }

  test('several are decoded as each alone, in their order', { tags: 'thorough' }, async () => {
    const sources = await mixedSources();
    for (const options of [
      {},
      { format: 'bgr' },
      { format: 'grey' },
      { format: 'rgba' },
      { orientation: 'ignore' },
      { engine: 'sharp' },
    ] as const) {
      const images = await decodeImages(device, sources, options);
      expect(images.length).toBe(sources.length);
      for (const [i, image] of images.entries()) {
        using own = image;
        const alone = await decoded(sources[i]!, options);
        expect(own.shape).toEqual(alone.shape);
        expect([...(await own.read())]).toEqual(alone.values);
      }
    }
    expect(await decodeImages(device, [])).toEqual([]);
  });

  test('several are written to one tensor, which later operations read', async () => {
    const all = await mixedSources();
    // Those that are 37 pixels wide and 23 high after turning.
    const sources = [0, 1, 2, 3, 4, 6, 7, 8].map((i) => all[i]!);
    for (const options of [
      {},
      { format: 'bgr' },
      { format: 'grey' },
      { format: 'rgba' },
    ] as const) {
      const channels = 'format' in options ? { bgr: 3, grey: 1, rgba: 4 }[options.format] : 3;
      using out = await device.full(u8, [sources.length + 2, HEIGHT, WIDTH, channels], 77);
      const place = out.slice([1, sources.length + 1]);
      expect(await decodeImages(device, sources, { ...options, out: place as never })).toBe(place);
      const size = HEIGHT * WIDTH * channels;
      const values = [...(await out.read())] as number[];
      for (const [i, source] of sources.entries())
        expect(values.slice((i + 1) * size, (i + 2) * size)).toEqual(
          (await decoded(source, options)).values,
        );
      // Nothing outside of it.
      for (const beside of [values.slice(0, size), values.slice((sources.length + 1) * size)])
        expect(beside.every((value) => value === 77)).toBe(true);
    }
    using batch = await device.uninitialized(u8, [2, HEIGHT, WIDTH, 3]);
    using small = await decodeImages(device, [all[0]!, all[1]!], { out: batch }).andThen((images) =>
      resize(images, { width: 5, height: 4 }),
    );
    expect(small.shape).toEqual([2, 4, 5, 3]);
  });

  test('the error of several names one; no memory stays, and the next run works', async () => {
    const [jpeg, png] = [await picture().jpeg().toBuffer(), await picture().png().toBuffer()];
    await host.device.finished();
    const before = (await host.device.stats()).memory.inUse;
    for (const [sources, what] of [
      [[jpeg, png.subarray(0, 60), jpeg], 'sources[1] (60 bytes)'],
      [[jpeg, jpeg, jpeg.subarray(0, 200)], 'sources[2] (200 bytes)'],
      [[png, join(folder, 'absent.png')], 'absent.png'],
    ] as const) {
      expect(await failure(() => decodeImages(device, sources))).toMatchObject({
        code: what === 'absent.png' ? 'ERR_CUDA_NOT_FOUND' : 'ERR_CUDA_FORMAT',
        message: expect.stringContaining(what) as string,
      });
    }
    expect(
      await failure(() =>
        decodeImages(device, [jpeg, jpeg], { signal: AbortSignal.abort(new Error('never mind')) }),
      ),
    ).toMatchObject({ message: 'never mind' });
    await host.device.finished();
    expect((await host.device.stats()).memory.inUse).toBe(before);
    using out = await device.uninitialized(u8, [2, HEIGHT, WIDTH, 3]);
    expect(
      await failure(() => decodeImages(device, [jpeg, png.subarray(0, 60)], { out })),
    ).toMatchObject({ code: 'ERR_CUDA_FORMAT' });
    await decodeImages(device, [png, png], { out });
    expect([...(await out.read())]).toEqual([...PIXELS, ...PIXELS]);
  });

  test('wrong arguments of several are refused at the call, or with the size', async () => {
    const png = await picture().png().toBuffer();
    const jpeg = await picture().jpeg().toBuffer();
    using out = await device.uninitialized(u8, [2, HEIGHT, WIDTH, 3]);
    using floats = await device.zeros(f32, [1, HEIGHT, WIDTH, 3]);
    const wrong: [() => unknown, RegExp][] = [
      [() => decodeImages(device, png as never), /^sources: expected a list/],
      [() => decodeImages(device, [png, '']), /^sources\[1\]: expected a path/],
      [() => decodeImages(device, [png], { fromat: 'rgb' } as never), /Did you mean 'format'/],
      [
        () => decodeImages(device, [png], { out }),
        /^options\.out: expected a contiguous Tensor of u8 and \[1, height, width, 3\]/,
      ],
      [() => decodeImages(device, [png, png], { out, format: 'grey' }), /\[2, height, width, 1\]/],
      [() => decodeImages(device, [png], { out: floats as never }), /Tensor of u8/],
      [() => decodeImages(device, [png, png], { out: [] as never }), /options\.out/],
      [
        () => decodeImages(device, [png, png], { out: out.permute([0, 2, 1, 3]) as never }),
        /contiguous/,
      ],
      [() => decodeImage(device, png, { out } as never), /no option 'out'/],
    ];
    for (const [call, says] of wrong) expect(call, String(says)).toThrow(says);
    const larger = await picture().resize(40, 23).jpeg().toBuffer();
    for (const second of [
      larger,
      await sharp(larger).png().toBuffer(),
      await picture().withMetadata({ orientation: 6 }).jpeg().toBuffer(),
    ]) {
      const error = await failure(() => decodeImages(device, [jpeg, second], { out }));
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect(error.message).toMatch(
        /^options\.out: .* of \d+ × \d+ pixels, as sources\[1\] \(\d+ bytes\) is, got Tensor/,
      );
    }
  });

  test('a decoded picture is part of a chain', async () => {
    const png = await picture().png().toBuffer();
    using small = await decodeImage(device, png).andThen((image) =>
      resize(image, { width: 5, height: 4 }),
    );
    expect(small.shape).toEqual([4, 5, 3]);
    expect(host.device.isClosed).toBe(false);
  });

  test('bgr is rgb reversed', async () => {
    const png = await picture().png().toBuffer();
    const { shape, values } = await decoded(png, { format: 'bgr' });
    expect(shape).toEqual([HEIGHT, WIDTH, 3]);
    expect(values).toEqual(Array.from(PIXELS, (_, i) => PIXELS[i - (i % 3) + 2 - (i % 3)]!));
  });

  test('grey becomes RGB, and colours become grey', async () => {
    const grey = await sharp(Uint8Array.of(0, 80, 255), {
      raw: { width: 3, height: 1, channels: 1 },
    })
      .toColourspace('b-w')
      .png()
      .toBuffer();
    expect(await decoded(grey)).toEqual({
      shape: [1, 3, 3],
      values: [0, 0, 0, 80, 80, 80, 255, 255, 255],
    });
    expect(await decoded(grey, { format: 'grey' })).toEqual({
      shape: [1, 3, 1],
      values: [0, 80, 255],
    });
    expect(await decoded(grey, { format: 'rgba' })).toEqual({
      shape: [1, 3, 4],
      values: [0, 0, 0, 255, 80, 80, 80, 255, 255, 255, 255, 255],
    });
    const { shape, values } = await decoded(await picture().png().toBuffer(), { format: 'grey' });
    expect(shape).toEqual([HEIGHT, WIDTH, 1]);
    expect(values).toEqual([...(await picture().toColourspace('b-w').raw().toBuffer())]);
  });

  test('transparent pixels are over white or a background, or keep their alpha', async () => {
    const raw = Uint8Array.of(255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 255, 51);
    const png = await sharp(raw, { raw: { width: 3, height: 1, channels: 4 } })
      .png()
      .toBuffer();
    expect((await decoded(png)).values).toEqual([255, 255, 255, 0, 255, 0, 204, 204, 255]);
    expect((await decoded(png, { background: [100, 0, 0] })).values).toEqual([
      100, 0, 0, 0, 255, 0, 80, 0, 51,
    ]);
    expect((await decoded(png, { background: 'ignore' })).values).toEqual([
      255, 0, 0, 0, 255, 0, 0, 0, 255,
    ]);
    expect(await decoded(png, { format: 'rgba' })).toEqual({
      shape: [1, 3, 4],
      values: [...raw],
    });
  });

  test('CMYK becomes sRGB', async () => {
    const jpeg = await sharp({
      create: { width: 8, height: 8, channels: 3, background: { r: 170, g: 110, b: 90 } },
    })
      .toColourspace('cmyk')
      .jpeg({ quality: 100 })
      .toBuffer();
    expect((await sharp(jpeg).metadata()).space).toBe('cmyk');
    const { shape, values } = await decoded(jpeg);
    expect(shape).toEqual([8, 8, 3]);
    for (const [c, wanted] of [170, 110, 90].entries())
      expect(Math.abs(values[c]! - wanted)).toBeLessThanOrEqual(12);
  });

  /** A picture with every sample of 16 bits, in another order in each channel. */
  function deep(channels: 1 | 2 | 3 | 4): Uint16Array {
    return Uint16Array.from(
      { length: 65536 * channels },
      (_, i) => Math.floor(i / channels) * (2 * (i % channels) + 1) + (i % channels) * 777,
    );
  }
  const narrowed = (samples: Iterable<number>): number[] =>
    Array.from(samples, (v) => Math.round((v * 255) / 65535));
  const differ = (given: readonly number[], wanted: readonly number[]): number =>
    given.length -
    given.filter((value, i) => value === wanted[i]).length +
    Math.abs(given.length - wanted.length);

  someOf(1, test)([1, 2, 3, 4] as const)(
    '16 bits are rounded to 8: every sample of %i channels, as PNG and TIFF',
    async (channels) => {
      const samples = deep(channels);
      const raw = sharp(samples, { raw: { width: 256, height: 256, channels } }).toColourspace(
        channels < 3 ? 'grey16' : 'rgb16',
      );
      const at = (c: number): number[] => narrowed(samples.filter((_, i) => i % channels === c));
      const alpha = channels % 2 === 0 ? at(channels - 1) : new Array<number>(65536).fill(255);
      const colors = channels < 3 ? [at(0), at(0), at(0)] : [at(0), at(1), at(2)];
      for (const file of [
        await raw.clone().png().toBuffer(),
        await raw.clone().tiff({ compression: 'none' }).toBuffer(),
      ]) {
        expect((await sharp(file).metadata()).depth).toBe('ushort');
        expect(
          differ(
            (await decoded(file, { background: 'ignore' })).values,
            colors[0]!.flatMap((_, i) => colors.map((each) => each[i]!)),
          ),
        ).toBe(0);
        expect(
          differ(
            (await decoded(file, { format: 'rgba' })).values,
            colors[0]!.flatMap((_, i) => [...colors, alpha].map((each) => each[i]!)),
          ),
        ).toBe(0);
        if (channels < 3)
          expect(
            differ(
              (await decoded(file, { format: 'grey', background: 'ignore' })).values,
              colors[0]!,
            ),
          ).toBe(0);
      }
    },
  );

  test.each([10, 12] as const)(
    'an AVIF of %i bits is rounded to 8 by its own greatest value',
    async (bits) => {
      const most = 2 ** bits - 1;
      const samples = Uint16Array.from(
        { length: 64 * 64 * 3 },
        (_, i) => (Math.floor(i / 3) & most) << (16 - bits),
      );
      const file = await sharp(samples, { raw: { width: 64, height: 64, channels: 3 } })
        .toColourspace('rgb16')
        .avif({ bitdepth: bits, lossless: true })
        .toBuffer();
      expect((await sharp(file).metadata()).bitsPerSample).toBe(bits);
      expect(
        differ(
          (await decoded(file)).values,
          Array.from(samples, (v) => Math.round(((v >> (16 - bits)) * 255) / most)),
        ),
      ).toBe(0);
    },
  );

  test('16 bits over a background, turned, equal 8 bits over it, turned', async () => {
    const samples = Uint16Array.of(
      65535,
      1000,
      40000,
      0,
      0,
      65535,
      3,
      65535,
      50,
      300,
      20000,
      13107,
      129,
      128,
      127,
      65535,
    );
    const wide = await sharp(samples, { raw: { width: 2, height: 2, channels: 4 } })
      .toColourspace('rgb16')
      .png()
      .toBuffer();
    const narrow = await sharp(Uint8Array.from(narrowed(samples)), {
      raw: { width: 2, height: 2, channels: 4 },
    })
      .png()
      .toBuffer();
    for (const options of [
      {},
      { background: [100, 0, 7] },
      { format: 'grey' },
      { format: 'bgr' },
    ] as const)
      expect(await decoded(wide, options)).toEqual(await decoded(narrow, options));
    const tall = sharp(samples.subarray(0, 8), { raw: { width: 2, height: 1, channels: 4 } })
      .toColourspace('rgb16')
      .withMetadata({ orientation: 6 });
    expect((await decoded(await tall.png().toBuffer(), { format: 'rgba' })).shape).toEqual([
      2, 1, 4,
    ]);
    expect(
      (await decoded(await tall.png().toBuffer(), { format: 'rgba', orientation: 'ignore' })).shape,
    ).toEqual([1, 2, 4]);
  });

  /** A PNG with a profile whose samples stay as they are. */
  async function withProfile(png: Buffer, name: 'srgb' | 'p3'): Promise<Buffer> {
    const { icc } = await sharp(
      await sharp({ create: { width: 1, height: 1, channels: 3, background: 'red' } })
        .withIccProfile(name)
        .png()
        .toBuffer(),
    ).metadata();
    const body = Buffer.concat([Buffer.from('iCCPprofile\0\0', 'latin1'), deflateSync(icc!)]);
    const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(body.length - 4);
    check.writeUInt32BE(crc32(body));
    // After the signature and IHDR.
    return Buffer.concat([png.subarray(0, 33), length, body, check, png.subarray(33)]);
  }

  test.each(['srgb', 'p3'] as const)(
    '16 bits with the colour profile %s become sRGB, as 8 bits do',
    async (profile) => {
      const samples = Uint16Array.of(
        65535,
        0,
        0,
        0,
        65535,
        0,
        1028,
        2056,
        3084,
        40092,
        30069,
        20046,
      );
      const form = { width: 4, height: 1, channels: 3 } as const;
      const wide = await withProfile(
        await sharp(samples, { raw: form }).toColourspace('rgb16').png().toBuffer(),
        profile,
      );
      const narrow = await withProfile(
        await sharp(Uint8Array.from(narrowed(samples)), { raw: form })
          .png()
          .toBuffer(),
        profile,
      );
      const { values } = await decoded(wide);
      expect(values).toEqual((await decoded(narrow)).values);
      if (profile === 'srgb') expect(values).toEqual(narrowed(samples));
    },
  );

  test('the EXIF orientation is applied, or ignored', async () => {
    const jpeg = await picture().withMetadata({ orientation: 6 }).jpeg({ quality: 100 }).toBuffer();
    const upright = await decoded(jpeg);
    const stored = await decoded(jpeg, { orientation: 'ignore' });
    expect([upright.shape, stored.shape]).toEqual([
      [WIDTH, HEIGHT, 3],
      [HEIGHT, WIDTH, 3],
    ]);
    // Orientation 6 is shown turned a quarter clockwise: its top right is the stored top left.
    expect(upright.values.slice((HEIGHT - 1) * 3, HEIGHT * 3)).toEqual(stored.values.slice(0, 3));
  });

  test('a picture of more pixels than the limit is refused by both engines', async () => {
    const picture = sharp({ create: { width: 40, height: 30, channels: 3, background: 'red' } });
    for (const file of [
      await picture.clone().png().toBuffer(),
      await picture.clone().jpeg().toBuffer(),
    ]) {
      expect(await failure(() => decodeImage(device, file, { maxPixels: 1199 }))).toMatchObject({
        code: 'ERR_CUDA_FORMAT',
      });
      using image = await decodeImage(device, file, { maxPixels: 1200 });
      expect(image.shape).toEqual([30, 40, 3]);
    }
    expect(() => decodeImage(device, Buffer.alloc(1), { maxPixels: 0 })).toThrow(
      /options\.maxPixels/,
    );
  });

  test('a truncated JPEG names its input', async () => {
    const jpeg = (await picture().resize(300, 300).jpeg().toBuffer()).subarray(0, 1500);
    const error = await failure(() => decodeImage(device, jpeg));
    expect(error).toBeInstanceOf(CudaFormatError);
    expect(error).toMatchObject({ code: 'ERR_CUDA_FORMAT', format: 'image' });
    expect((error as Error).message).toMatch(/^image: source \(1500 bytes\): .*premature end/i);
    const path = join(folder, 'cut.jpg');
    await writeFile(path, jpeg);
    expect(((await failure(() => decodeImage(device, path))) as Error).message).toContain(path);
  });

  test('values that are not pictures are refused', async () => {
    expect(await failure(() => decodeImage(device, new Uint8Array(100)))).toMatchObject({
      code: 'ERR_CUDA_FORMAT',
    });
    const path = join(folder, 'text.png');
    await writeFile(path, 'no picture');
    expect(await failure(() => decodeImage(device, path))).toMatchObject({
      code: 'ERR_CUDA_FORMAT',
      message: expect.stringContaining(path) as unknown,
    });
  });

  test('a missing file, or a folder, is ERR_CUDA_NOT_FOUND with path and cause', async () => {
    const absent = join(folder, 'absent.png');
    for (const [source, path, code, says] of [
      [absent, absent, 'ENOENT', 'there is no such file'],
      [pathToFileURL(absent), absent, 'ENOENT', 'there is no such file'],
      [join(folder, 'a', 'b.jpg'), join(folder, 'a', 'b.jpg'), 'ENOENT', 'there is no such file'],
      [folder, folder, 'EISDIR', 'it is a folder'],
    ] as const) {
      for (const options of [{}, { engine: 'sharp' }, { format: 'rgba' }] as const) {
        const error = await failure(() => decodeImage(device, source, options));
        expect(error).toMatchObject({
          name: 'CudaError',
          code: 'ERR_CUDA_NOT_FOUND',
          cause: { code },
        });
        expect(error.message).toContain(`image: ${path}: ${says} (${code}`);
      }
    }
  });

  test('arguments are checked at the call', () => {
    const bytes = new Uint8Array(4);
    const calls: [() => unknown, string][] = [
      [() => decodeImage(device, '' as never), 'source'],
      [() => decodeImage(device, new Uint8Array()), 'source'],
      [() => decodeImage(device, new URL('https://example.org/a.png')), 'source'],
      [() => decodeImage(device, bytes, { format: 'cmyk' as never }), 'options.format'],
      [() => decodeImage(device, bytes, { background: [0, 0, 256] }), 'options.background'],
      [() => decodeImage(device, bytes, { orientation: 90 as never }), 'options.orientation'],
      [() => decodeImage(device, bytes, { signal: 1 as never }), 'signal'],
      [() => decodeImage(device, bytes, { orientaton: 'apply' } as never), 'options.orientaton'],
    ];
    for (const [call, argument] of calls) {
      let error: unknown;
      try {
        call();
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(CudaArgumentError);
      expect((error as CudaArgumentError).argument).toContain(argument);
    }
  });

  test('a signal that has aborted stops it, and one that aborts ends the wait', async () => {
    const png = await picture().png().toBuffer();
    const early = AbortSignal.abort(new Error('never mind'));
    expect(await failure(() => decodeImage(device, png, { signal: early }))).toMatchObject({
      message: 'never mind',
    });
    const controller = new AbortController();
    const late = failure(() => decodeImage(device, png, { signal: controller.signal }));
    controller.abort(new Error('too late'));
    expect(await late).toMatchObject({ message: 'too late' });
    using image = await device.zeros(u8, [2, 2, 3]);
    expect(await failure(() => encodeImage(image, { format: 'png', signal: early }))).toMatchObject(
      { message: 'never mind' },
    );
  });

  test('sync() and graphs refuse it', async () => {
    const png = await picture().png().toBuffer();
    expect(() => decodeImage(device, png).sync()).toThrow(
      expect.objectContaining({ code: 'ERR_CUDA_UNSUPPORTED' }) as Error,
    );
    expect(await failure(() => decodeImage(device, png).capture())).toMatchObject({
      code: 'ERR_CUDA_CAPTURE',
    });
  });

  test.each([
    [1, 'png'],
    [3, 'png'],
    [4, 'png'],
    [3, 'webp'],
    [4, 'webp'],
  ] as const)('an image of %i channels as %s and back is the same', async (channels, format) => {
    const values = Uint8Array.from({ length: 7 * 5 * channels }, (_, i) =>
      channels === 4 && i % 4 === 3 ? 255 - i : i * 31,
    );
    using image = await device.tensor(u8, values, [5, 7, channels]);
    const bytes = await encodeImage(
      image,
      format === 'webp' ? { format, lossless: true } : { format },
    );
    const { format: written, channels: kept } = await sharp(bytes).metadata();
    expect([written, kept]).toEqual([format, channels]);
    const back = await decoded(bytes, {
      format: ({ 1: 'grey', 3: 'rgb', 4: 'rgba' } as const)[channels],
    });
    expect(back).toEqual({ shape: [5, 7, channels], values: [...values] });
  });

  test.each(['png', 'webp'] as const)(
    'colours under alpha 0 stay in a lossless %s',
    async (format) => {
      const values = Uint8Array.from({ length: 16 * 16 * 4 }, (_, i) =>
        i % 4 === 3 ? [0, 0, 1, 255][(i >> 2) % 4]! : i * 37,
      );
      using image = await device.tensor(u8, values, [16, 16, 4]);
      const bytes = await encodeImage(
        image,
        format === 'webp' ? { format, lossless: true } : { format },
      );
      expect((await decoded(bytes, { format: 'rgba' })).values).toEqual([...values]);
      expect((await decoded(bytes, { background: 'ignore' })).values).toEqual(
        [...values].filter((_, i) => i % 4 !== 3),
      );
    },
  );

  test('every grey value stays in a lossless file', async () => {
    using image = await device.tensor(
      u8,
      Uint8Array.from({ length: 256 }, (_, i) => i),
      [16, 16, 1],
    );
    for (const options of [{ format: 'png' }, { format: 'webp', lossless: true }] as const)
      expect((await decoded(await encodeImage(image, options), { format: 'grey' })).values).toEqual(
        Array.from({ length: 256 }, (_, i) => i),
      );
  });

  test('JPEG takes a quality, and a region is encoded alone', async () => {
    using image = await device.tensor(u8, PIXELS, [HEIGHT, WIDTH, 3]);
    const [low, high] = [
      await encodeImage(image, { format: 'jpeg', quality: 5 }),
      await encodeImage(image, { format: 'jpeg', quality: 95 }),
    ];
    expect(low.length).toBeLessThan(high.length);
    expect([...(await sharp(high).raw().toBuffer())]).toEqual([
      ...(await sharp(await picture().jpeg({ quality: 95 }).toBuffer())
        .raw()
        .toBuffer()),
    ]);
    const region = crop(image, { x: 3, y: 2, width: 4, height: 5 });
    expect(await decoded(await encodeImage(region, { format: 'png' }))).toEqual({
      shape: [5, 4, 3],
      values: [...(await region.read())],
    });
    const chained = await decodeImage(device, high).andThen((each) =>
      encodeImage(each, { format: 'png' }),
    );
    expect((await sharp(chained).metadata()).width).toBe(WIDTH);
  });

  test('images that cannot be encoded are refused at the call', async () => {
    using rgba = await device.zeros(u8, [2, 2, 4]);
    using batch = await device.zeros(u8, [2, 2, 2, 3]);
    using floats = await device.zeros(f32, [2, 2, 3]);
    const calls: (() => unknown)[] = [
      () => encodeImage(rgba, { format: 'jpeg' }),
      () => encodeImage(batch, { format: 'png' }),
      () => encodeImage(floats as never, { format: 'png' }),
      () => encodeImage(rgba, { format: 'bmp' as never }),
      () => encodeImage(rgba, { format: 'png', quality: 3 }),
      () => encodeImage(rgba, { format: 'webp', quality: 0 }),
      () => encodeImage(rgba, { format: 'webp', lossless: 1 as never }),
      () => encodeImage(rgba, undefined as never),
    ];
    for (const call of calls) expect(call).toThrow(CudaArgumentError);
    const alpha = await picture().ensureAlpha().png().toBuffer();
    expect(
      await failure(() =>
        decodeImage(device, alpha, { format: 'rgba' }).andThen((image) =>
          encodeImage(image, { format: 'jpeg' }),
        ),
      ),
    ).toBeInstanceOf(CudaArgumentError);
  });
});
