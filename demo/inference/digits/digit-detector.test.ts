import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Device } from 'async-cuda';
import { EngineBatcher, loadEngine } from 'async-cuda/inference';
import type { Engine } from 'async-cuda/inference';
import { f32, u8 } from 'async-cuda/core';
import { letterboxNormalise } from 'async-cuda/images';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { readImage } from '../../image.js';
import { DigitDetector, ENGINE_OPTIONS, MODEL } from './digit-detector.js';
import { intersectionOverUnion } from './non-maximum-suppression.js';
import type { Box } from './non-maximum-suppression.js';

const folder = new URL('photographs/', import.meta.url);
const truth = JSON.parse(await readFile(new URL('truth.json', folder), 'utf8')) as Record<
  string,
  { label: string; box: [number, number, number, number] }[]
>;
const images = await Promise.all(
  Object.keys(truth).map((name) => readImage(fileURLToPath(new URL(name, folder)))),
);

const boxOf = ([left, top, right, bottom]: [number, number, number, number]): Box => ({
  left,
  top,
  right,
  bottom,
});

describe("digits of the demo's photographs", () => {
  let device: Device;
  let engine: Engine;
  let detector: DigitDetector;
  beforeAll(async () => {
    device = await Device.open(process.env['ASYNC_CUDA_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'cpu');
    engine = await loadEngine(device, MODEL, ENGINE_OPTIONS);
    detector = new DigitDetector(device, engine);
  });
  afterAll(async () => {
    await engine.close();
    await device.close();
  });

  test('all are found where they are, and nothing else', async () => {
    const found = await detector.detect(images);
    for (const [i, [name, digits]] of Object.entries(truth).entries()) {
      const seen = found[i]!.map(({ label, box }) => ({
        label,
        at: digits.findIndex((digit) => intersectionOverUnion(boxOf(digit.box), box) > 0.5),
      }));
      expect(
        seen.sort((a, b) => a.at - b.at),
        name,
      ).toEqual(digits.map(({ label }, at) => ({ label, at })));
    }
  });

  test('of no photographs there is nothing', async () => {
    expect(await detector.detect([])).toEqual([]);
  });

  test('a photograph has the same digits alone and in a batch', { tags: 'thorough' }, async () => {
    const [batch, alone] = [await detector.detect(images), await detector.detect([images[1]!])];
    expect(alone[0]!.map(({ label }) => label)).toEqual(batch[1]!.map(({ label }) => label));
  });

  test(
    'requests of many callers are one batch, and each gets its own outputs',
    { tags: 'thorough' },
    async () => {
      const batcher = new EngineBatcher(engine, {
        maxBatchSize: images.length,
        maxQueueDelay: 10_000,
      });
      const items = await Promise.all(
        images.map(({ width, height, data }) =>
          device
            .tensor(u8, data, [height, width, 3])
            .andThen((image) =>
              letterboxNormalise(image, {
                width: 256,
                height: 256,
                mean: 0.5,
                deviation: 0.5,
                color: 114,
                dtype: f32,
              }),
            )
            .run(),
        ),
      );
      const outputs = await Promise.all(items.map((image) => batcher.run({ image })));
      expect(batcher.statistics).toMatchObject({ batches: 1, items: images.length });
      for (const [i, image] of items.entries()) {
        const alone = await engine.infer({ image: image.unsqueeze(0) });
        expect(outputs[i]!['digits']!.shape).toEqual([10, 64, 64]);
        const [mine, expected] = [
          await outputs[i]!['digits']!.read(),
          await alone['digits']!.read(),
        ] as Float32Array[];
        expect(Math.max(...mine!.map((value, k) => Math.abs(value - expected![k]!)))).toBeLessThan(
          1e-3,
        );
        for (const tensor of [image, ...Object.values(outputs[i]!), ...Object.values(alone)])
          tensor.close();
      }
      await batcher.close();
    },
  );
});
