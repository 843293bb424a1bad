/**
 * Operations on images that run many times into given images: their commands are determined once.
 */
import { CudaDisposedError, Device, f32, u8 } from 'async-cuda';
import { beforeAll, expect, test } from 'vitest';

import { letterboxNormalise, letterboxNormaliseBatch, resize } from '../../src/images/index.js';
import { failure, onDevice, range } from '../core/test-device.js';

onDevice('Operations on images run again', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const filled = (value: number): Uint8Array => new Uint8Array(8 * 8 * 3).fill(value);
  const all = async (
    image: { read(): PromiseLike<ArrayLike<number>> },
    value: number,
  ): Promise<void> => {
    const read = Array.from(await image.read());
    expect(read).toEqual(read.map(() => value));
  };

  test('read the contents of their images at each run', async () => {
    using image = await device.tensor(u8, filled(3), [8, 8, 3]);
    using out = await device.zeros(u8, [4, 4, 3]);
    const op = resize(image, { width: 4, height: 4, out });
    for (const value of range(6)) {
      await image.write(filled(value));
      expect(await op).toBe(out);
      await all(out, value);
    }
    using planes = await device.zeros(f32, [3, 8, 8]);
    const normalised = letterboxNormalise(image, {
      width: 8,
      height: 8,
      dtype: f32,
      mean: [0, 0, 0],
      deviation: [1 / 255, 1 / 255, 1 / 255],
      out: planes,
    });
    for (const value of [0, 100, 255]) {
      await image.write(filled(value));
      await normalised;
      await all(planes, value);
    }
    // More images than one launch takes.
    using several = await device.zeros(f32, [9, 3, 8, 8]);
    const batch = letterboxNormaliseBatch(
      range(9).map(() => image),
      { width: 8, height: 8, dtype: f32, scale: 1, out: several },
    );
    const stream = device.core.createStream();
    await using graph = await batch.capture(stream);
    for (const [value, run] of [
      [7, batch],
      [8, graph.replay.bind(graph)],
      [9, batch],
    ] as const) {
      await image.write(filled(value));
      await (typeof run === 'function' ? run() : run);
      await all(several, value);
    }
    stream.close();
  });

  test('run on any stream, in a graph, and many at once', async () => {
    using image = await device.tensor(u8, filled(1), [8, 8, 3]);
    using out = await device.zeros(u8, [4, 4, 3]);
    const op = resize(image, { width: 4, height: 4, out });
    await op;
    const stream = device.core.createStream();
    await image.write(filled(7));
    await op.runOn(stream);
    await all(out, 7);
    await using graph = await op.capture(stream);
    await image.write(filled(9));
    await graph.replay();
    await all(out, 9);
    await image.write(filled(11));
    await Promise.all(range(20).map(() => op.runOn(stream)));
    await all(out, 11);
    stream.close();
  });

  test('give a new image at each run where none was given', async () => {
    using image = await device.tensor(u8, filled(5), [8, 8, 3]);
    const op = resize(image, { width: 4, height: 4 });
    using first = await op;
    using second = await op;
    expect(second).not.toBe(first);
    await all(first, 5);
    await all(second, 5);
  });

  test.each(['image', 'out'])(
    'are refused after the %s is closed, with the same error as before',
    async (which) => {
      const image = await device.tensor(u8, filled(5), [8, 8, 3]);
      const out = await device.zeros(u8, [4, 4, 3]);
      const [ran, never] = [
        resize(image, { width: 4, height: 4, out }),
        resize(image, { width: 4, height: 4, out }),
      ];
      await ran;
      await ran;
      (which === 'image' ? image : out).close();
      const errors = [await failure(() => ran), await failure(() => never)];
      for (const error of errors) expect(error).toBeInstanceOf(CudaDisposedError);
      expect(errors[0]!.message).toBe(errors[1]!.message);
      (which === 'image' ? out : image).close();
    },
  );
});
