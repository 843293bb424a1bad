/**
 * The arguments of NPP's functions, recorded by a stand-in: on the CPU device, since the stand-in
 * does not access memory.
 */
import { Device, f16, f32, u16, u8 } from 'async-cuda';
import { CudaLibraryError } from 'async-cuda/core';
import type { DeviceOp } from 'async-cuda';
import {
  addImages,
  boxFilter,
  channelExtremes,
  channelHistogram,
  channelMeans,
  channelSums,
  convertColor,
  copyBorder,
  engines,
  gaussianFilter,
  letterbox,
  mirror,
  multiplyImages,
  normalise,
  orderChannels,
  remap,
  resize,
  resizeBatch,
  rescale,
  rotateQuarters,
  subtractImages,
  threshold,
  toPlanar,
  warpAffine,
  yuvToRgb,
} from 'async-cuda/images';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { openNpp } from '../../src/images/nvidia/library.js';
import { whyNoStandIn } from '../core/stand-in-library.js';
import { failure, onCpu, onDevice } from '../core/test-device.js';
import { standInNpp } from './stand-in-npp.js';

const why =
  whyNoStandIn ??
  (onCpu ? undefined : 'SKIPPED: on a GPU NPP itself is called, see engines.test.ts');
const npp = { engine: 'npp' } as const;

if (why !== undefined) describe.skip(why, () => undefined);
else
  onDevice('Calls of NPP', (host) => {
    const { library, files } = standInNpp([13, 2, 0]);
    let device: Device;
    beforeAll(async () => {
      device = Device.of(host.device);
      await openNpp(host.device, { files, anyDevice: true });
    });
    beforeEach(() => {
      library.answers(0);
      library.take();
    });

    /**
     * The calls of the operation: names and arguments, with addresses relative to the first one and
     * without the context.
     */
    async function calls(op: DeviceOp<unknown>): Promise<{ lines: string[]; contexts: string[] }> {
      const result = await op;
      for (const each of [result].flat())
        (each as Partial<Disposable> | undefined)?.[Symbol.dispose]?.();
      const contexts: string[] = [];
      const lines = library.take().map((line) =>
        line.replace(/ stream=(\S+ \S+)$/, (_, context: string) => {
          contexts.push(context);
          return '';
        }),
      );
      return { lines, contexts };
    }

    const shape = (lines: readonly string[]): string[] =>
      lines.map((line) => line.replace(/@\d+/g, '@').replace(/\[[\d,]+\]/g, '[]'));
    const addresses = (line: string): number[] =>
      [...line.matchAll(/[@[,](\d+)/g)].map(([, address]) => Number(address));

    test('the engine is found, with its version', async () => {
      expect(await engines(device)).toContainEqual({
        name: 'npp',
        available: true,
        version: '13.2.0',
      });
    });

    test('the stream context has the device’s properties and the stream', async () => {
      using image = await device.zeros(u8, [5, 7, 3]);
      const { contexts } = await calls(resize(image, { width: 4, height: 2, ...npp }));
      const {
        multiprocessorCount,
        maxThreadsPerMultiprocessor,
        maxThreadsPerBlock,
        sharedMemoryPerBlock,
        computeCapability: [major, minor],
      } = host.device.properties;
      expect(contexts[0]!.split(' ')[1]).toBe(
        [
          host.device.ordinal,
          multiprocessorCount,
          maxThreadsPerMultiprocessor,
          maxThreadsPerBlock,
          sharedMemoryPerBlock,
          major,
          minor,
          1,
          0,
        ].join(':'),
      );
      using other = host.device.createStream({ blocking: true });
      await resize(image, { width: 4, height: 2, ...npp })
        .runOn(other)
        .then((result) => result.close());
      const again = library.take()[0]!;
      expect(again).toMatch(/:0:0$/);
      expect(/stream=(\d+)/.exec(again)![1]).not.toBe(contexts[0]!.split(' ')[0]);
    });

    test('resize makes a call for each image of a batch, at its address', async () => {
      using batch = await device.zeros(u16, [3, 5, 8, 4]);
      using out = await device.zeros(u16, [3, 6, 4, 4]);
      const { lines } = await calls(
        resize(batch, { width: 4, height: 6, filter: 'cubic', out, ...npp }).map(() => undefined),
      );
      expect(shape(lines)).toEqual(
        new Array(3).fill('nppiResize_16u_C4R_Ctx @ 64 8x5 0x0x8x5 @ 32 4x6 0x0x4x6 4'),
      );
      const [first, second, third] = lines.map(addresses) as [number[], number[], number[]];
      expect(second.map((address, i) => address - first[i]!)).toEqual([5 * 64, 6 * 32]);
      expect(third.map((address, i) => address - second[i]!)).toEqual([5 * 64, 6 * 32]);
    });

    test('a region is passed as its first pixel and the pitch of the whole', async () => {
      using whole = await device.zeros(u8, [10, 20, 3]);
      const {
        lines: [one],
      } = await calls(mirror(whole, 'horizontal', npp));
      const {
        lines: [part],
      } = await calls(mirror(whole.slice([2, 6], [3, 9]) as never, 'vertical', npp));
      expect(shape([one!, part!])).toEqual([
        'nppiMirror_8u_C3R_Ctx @ 60 @ 60 20x10 1',
        'nppiMirror_8u_C3R_Ctx @ 60 @ 18 6x4 0',
      ]);
      expect(addresses(part!)[0]! - addresses(one!)[0]!).toBe(2 * 60 + 9);
    });

    test('lists of images, letterboxes and borders have their calls', async () => {
      using a = await device.zeros(u8, [4, 6, 3]);
      using b = await device.zeros(u8, [8, 2, 3]);
      expect(
        shape(
          (await calls(resizeBatch([a, b], { width: 3, height: 3, filter: 'nearest', ...npp })))
            .lines,
        ),
      ).toEqual([
        'nppiResize_8u_C3R_Ctx @ 18 6x4 0x0x6x4 @ 9 3x3 0x0x3x3 1',
        'nppiResize_8u_C3R_Ctx @ 6 2x8 0x0x2x8 @ 9 3x3 0x0x3x3 1',
      ]);
      expect(
        shape(
          (await calls(letterbox(a, { width: 12, height: 12, color: [1, 2, 255], ...npp }))).lines,
        ),
      ).toEqual([
        'nppiSet_8u_C3R_Ctx 0102ff @ 36 12x12',
        'nppiResize_8u_C3R_Ctx @ 18 6x4 0x0x6x4 @ 36 12x12 0x2x12x8 2',
      ]);
      expect(
        shape(
          (await calls(copyBorder(a, { left: 1, top: 2, right: 3, bottom: 4, color: 7, ...npp })))
            .lines,
        ),
      ).toEqual(['nppiCopyConstBorder_8u_C3R_Ctx @ 18 6x4 @ 30 10x10 2 1 070707']);
      expect(
        shape((await calls(copyBorder(a, { left: 1, top: 2, border: 'wrap', ...npp }))).lines),
      ).toEqual(['nppiCopyWrapBorder_8u_C3R_Ctx @ 18 6x4 @ 21 7x6 2 1']);
    });

    test('with maps and matrices the result is first filled with the border’s colour', async () => {
      using image = await device.zeros(f32, [4, 6, 1]);
      using map = await device.zeros(f32, [2, 3]);
      expect(shape((await calls(remap(image, map, map, { color: 0.5, ...npp }))).lines)).toEqual([
        'nppiSet_32f_C1R_Ctx 0.5 @ 12 3x2',
        'nppiRemap_32f_C1R_Ctx @ 6x4 24 0x0x6x4 @ 12 @ 12 @ 12 3x2 2',
      ]);
      const doubles = (...values: number[]): string =>
        Buffer.from(Float64Array.from(values).buffer).toString('hex');
      expect(
        shape(
          (
            await calls(
              warpAffine(
                image,
                [
                  [1, 2, 3],
                  [4, 5, 6],
                ],
                { inverse: true, filter: 'nearest', ...npp },
              ),
            )
          ).lines,
        ),
      ).toEqual([
        'nppiSet_32f_C1R_Ctx 0 @ 24 6x4',
        'nppiWarpAffineBack_32f_C1R_Ctx @ 6x4 24 0x0x6x4 @ 24 0x0x6x4 ' +
          `${doubles(1, 2, 3, 4, 5, 6)} 1`,
      ]);
    });

    test('integers are scaled by powers of two, and the first image is subtracted', async () => {
      using x = await device.zeros(u8, [2, 2, 3]);
      using y = await device.zeros(u8, [2, 2, 3]);
      expect(
        shape((await calls(multiplyImages(x, [1, 2, 3], { scale: 1 / 4, ...npp }))).lines),
      ).toEqual(['nppiMulC_8u_C3RSfs_Ctx @ 6 010203 @ 6 2x2 2']);
      expect(shape((await calls(addImages(x, y, npp))).lines)).toEqual([
        'nppiAdd_8u_C3RSfs_Ctx @ 6 @ 6 @ 6 2x2 0',
      ]);
      const [plus, minus] = [
        (await calls(addImages(x, y, npp))).lines[0]!,
        (await calls(subtractImages(x, y, npp))).lines[0]!,
      ];
      expect(addresses(minus).slice(0, 2)).toEqual(addresses(plus).slice(0, 2).reverse());
      expect(() => multiplyImages(x, 2, { scale: 1 / 3, ...npp })).toThrow(
        "'own' has it: write { engine: 'own' }",
      );
      expect(shape((await calls(threshold(x, 100, npp))).lines)).toEqual([
        'nppiThreshold_LTValGTVal_8u_C3R_Ctx @ 6 @ 6 2x2 656565 000000 646464 ffffff',
      ]);
    });

    test('dtypes and normalisation are chains of calls through f32', async () => {
      using image = await device.zeros(u8, [2, 4, 3]);
      const floats = (...values: number[]): string =>
        Buffer.from(Float32Array.from(values).buffer).toString('hex');
      expect(shape((await calls(rescale(image, f32, npp))).lines)).toEqual([
        'nppiConvert_8u32f_C3R_Ctx @ 12 @ 48 4x2',
      ]);
      expect(
        shape(
          (await calls(normalise(image, { scale: 0.5, mean: [1, 2, 3], deviation: 2, ...npp })))
            .lines,
        ),
      ).toEqual([
        'nppiConvert_8u32f_C3R_Ctx @ 12 @ 48 4x2',
        `nppiMulC_32f_C3IR_Ctx ${floats(0.25, 0.25, 0.25)} @ 48 4x2`,
        `nppiAddC_32f_C3IR_Ctx ${floats(-0.5, -1, -1.5)} @ 48 4x2`,
        'nppiCopy_32f_C3P3R_Ctx @ 48 [] 16 4x2',
      ]);
    });

    test('channels, planes and colours have their calls', async () => {
      using image = await device.zeros(u8, [2, 4, 3]);
      expect(shape((await calls(orderChannels(image, [2, 1, 0], npp))).lines)).toEqual([
        'nppiSwapChannels_8u_C3R_Ctx @ 12 @ 12 4x2 020000000100000000000000',
      ]);
      const {
        lines: [planar],
      } = await calls(toPlanar(image, npp));
      const [, ...planes] = addresses(planar!);
      expect(planes.map((address) => address - planes[0]!)).toEqual([0, 8, 16]);
      expect(
        shape((await calls(convertColor(image, { from: 'bgr', to: 'rgba', ...npp }))).lines),
      ).toEqual([
        'nppiSwapChannels_8u_C3C4R_Ctx @ 12 @ 16 4x2 02000000010000000000000003000000 255',
      ]);
      using frame = await device.zeros(u8, [6, 8]);
      const {
        lines: [twist],
      } = await calls(yuvToRgb(frame, { format: 'nv12', range: 'full', ...npp }));
      expect(shape([twist!])[0]).toMatch(
        /^nppiNV12ToRGB_8u_ColorTwist32f_P2C3R_Ctx \[\] 0800000008000000 @ 24 8x4 0000803f00000000/,
      );
      const [luma, chroma] = addresses(twist!);
      expect(chroma! - luma!).toBe(32);
    });

    test('quarters are mirror images along the diagonal; f16 are moved as u16', async () => {
      using image = await device.zeros(u8, [4, 6, 3]);
      const of = async (quarters: number): Promise<string[]> =>
        shape((await calls(rotateQuarters(image, quarters, npp))).lines);
      expect(await of(0)).toEqual(['nppiCopy_8u_C3R_Ctx @ 18 @ 18 6x4']);
      expect(await of(1)).toEqual([
        'nppiMirror_8u_C3R_Ctx @ 18 @ 18 6x4 1',
        'nppiTranspose_8u_C3R_Ctx @ 18 @ 12 6x4',
      ]);
      expect(await of(2)).toEqual(['nppiMirror_8u_C3R_Ctx @ 18 @ 18 6x4 2']);
      expect(await of(3)).toEqual([
        'nppiMirror_8u_C3R_Ctx @ 18 @ 18 6x4 0',
        'nppiTranspose_8u_C3R_Ctx @ 18 @ 12 6x4',
      ]);
      using halves = await device.zeros(f16, [2, 4, 6, 1]);
      const { lines } = await calls(rotateQuarters(halves, 1, npp));
      expect(shape(lines)).toEqual(
        [1, 2].flatMap(() => [
          'nppiMirror_16u_C1R_Ctx @ 12 @ 12 6x4 1',
          'nppiTranspose_16u_C1R_Ctx @ 12 @ 8 6x4',
        ]),
      );
      const [, , second] = lines.map(addresses);
      expect(second![0]! - addresses(lines[0]!)[0]!).toBe(48);
    });

    test('filters replicate the edges, and take the weights of both sides', async () => {
      using image = await device.zeros(u8, [4, 6, 3]);
      expect(
        shape(
          (await calls(gaussianFilter(image, { radius: 2, border: 'replicate', ...npp }))).lines,
        ),
      ).toEqual(['nppiFilterGaussAdvancedBorder_8u_C3R_Ctx @ 18 6x4 0x0 @ 18 6x4 5 @ 2']);
      expect(
        shape((await calls(boxFilter(image, { radius: 3, border: 'replicate', ...npp }))).lines),
      ).toEqual(['nppiFilterBoxBorder_8u_C3R_Ctx @ 18 6x4 0x0 @ 18 6x4 7x7 3x3 2']);
      expect(() => gaussianFilter(image, { radius: 2, ...npp })).toThrow(
        "options.engine: 'npp' has no border 'reflect101', but 'replicate', for " +
          "gaussianFilter(…). 'own' has it",
      );
      expect(() => gaussianFilter(image, { radius: 0, border: 'replicate', ...npp })).toThrow(
        'no radius of 0',
      );
    });

    test('statistics query their scratch size once, and write images in order', async () => {
      using batch = await device.zeros(u16, [2, 5, 7, 3]);
      const { lines } = await calls(channelSums(batch, npp));
      expect(shape(lines)).toEqual([
        'nppiSumGetBufferHostSize_16u_C3R_Ctx 7x5 0000000000000000',
        ...[1, 2].map(() => 'nppiSum_16u_C3R_Ctx @ 42 7x5 @ @'),
      ]);
      const [, first, second] = lines.map(addresses) as [number[], number[], number[]];
      expect([second[0]! - first[0]!, second[1]! - first[1]!, second[2]! - first[2]!]).toEqual([
        5 * 42,
        0,
        3 * 8,
      ]);
      expect(shape((await calls(channelSums(batch, npp))).lines)).toEqual(
        [1, 2].map(() => 'nppiSum_16u_C3R_Ctx @ 42 7x5 @ @'),
      );
      using grey = await device.zeros(f32, [5, 7, 1]);
      expect(shape((await calls(channelMeans(grey, npp))).lines)).toEqual([
        'nppiMeanGetBufferHostSize_32f_C1R_Ctx 7x5 0000000000000000',
        'nppiMean_32f_C1R_Ctx @ 28 7x5 @ @',
      ]);
    });

    test('extremes have values and places, and histograms integer ranges', async () => {
      using image = await device.zeros(u8, [5, 7, 3]);
      expect(() => channelExtremes(image, npp)).toThrow("'npp' has no u8 with 3 channels");
      using deep = await device.zeros(u16, [5, 7, 3]);
      const { lines } = await calls(channelExtremes(deep, npp));
      expect(shape(lines)).toEqual(
        ['Min', 'Max'].flatMap((name) => [
          `nppi${name}IndxGetBufferHostSize_16u_C3R_Ctx 7x5 0000000000000000`,
          `nppi${name}Indx_16u_C3R_Ctx @ 42 7x5 @ @ @ @`,
        ]),
      );
      const ints = (...values: number[]): string =>
        Buffer.from(Int32Array.from(values).buffer).toString('hex');
      const { lines: counted } = await calls(channelHistogram(image, npp));
      const levels = ints(257, 257, 257);
      expect(shape(counted)).toEqual([
        `nppiHistogramEvenGetBufferSize_8u_C3R_Ctx 7x5 ${levels} 0000000000000000`,
        `nppiHistogramEven_8u_C3R_Ctx @ 21 7x5 [] ${levels} ${ints(0, 0, 0)} ` +
          `${ints(256, 256, 256)} @`,
      ]);
      const [, ...places] = addresses(counted[1]!);
      expect(places.slice(0, 3).map((place) => place - places[0]!)).toEqual([0, 1024, 2048]);
      using grey = await device.zeros(u16, [5, 7, 1]);
      expect(
        shape(
          (await calls(channelHistogram(grey, { bins: 64, from: 1024, to: 65536, ...npp }))).lines,
        ),
      ).toEqual([
        'nppiHistogramEvenGetBufferSize_16u_C1R_Ctx 7x5 65 0000000000000000',
        'nppiHistogramEven_16u_C1R_Ctx @ 14 7x5 @ 65 1024 65536 @',
      ]);
      expect(() => channelHistogram(grey, { bins: 64, from: 64, to: 192, ...npp })).toThrow(
        'no range that ends before the greatest u16',
      );
      expect(() => channelHistogram(grey, { bins: 100, ...npp })).toThrow(
        'no bins but those of a whole number of values',
      );
    });

    test('a failing status rejects the operation, with its name in this version', async () => {
      using image = await device.zeros(u8, [5, 7, 3]);
      library.answers(-16);
      const error = await failure(() => resize(image, { width: 4, height: 2, ...npp }));
      expect(error).toBeInstanceOf(CudaLibraryError);
      expect(error).toMatchObject({
        code: 'ERR_CUDA_LIBRARY',
        library: 'NPP 13.2',
        call: 'nppiResize_8u_C3R_Ctx',
        statusName: 'NPP_STEP_ERROR',
        status: -16,
      });
      library.answers(10000);
      (await resize(image, { width: 4, height: 2, ...npp })).close();
      library.answers(29);
      expect(await failure(() => resize(image, { width: 4, height: 2, ...npp }))).toMatchObject({
        statusName: 'NPP_WRONG_INTERSECTION_ROI_WARNING',
      });
    });

    test('calls are recorded in a graph', async () => {
      using image = await device.zeros(u8, [5, 7, 3]);
      const graph = await resize(image, { width: 4, height: 2, ...npp }).capture();
      expect(library.take()).toHaveLength(1);
      await graph.close();
    });
  });

if (onCpu) {
  test('a CPU device has no NPP, and refuses the engine', async () => {
    const device = await Device.open('cpu');
    const { reason, available } = (await engines(device))[1]!;
    expect(available).toBe(false);
    expect(reason).toContain('NVIDIA GPUs only');
    using image = await device.zeros(u8, [5, 7, 3]);
    expect(
      await failure(() => resize(image, { width: 2, height: 2, engine: 'npp' })),
    ).toMatchObject({ code: 'ERR_CUDA_UNSUPPORTED' });
    // The result that was allocated for it is closed.
    expect((await device.core.stats()).live.buffers).toBe(1);
    await device.close();
  });
}
