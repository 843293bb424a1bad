/** Which tensors are images, and which are refused. */
import { CudaArgumentError, Device, f16, f32, f64, u16, u8 } from 'async-cuda';
import {
  copyBorder,
  crop,
  engines,
  getDefaultEngine,
  letterbox,
  letterboxPlacement,
  resize,
  resizeBatch,
  setDefaultEngine,
} from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { imageOf } from '../../src/images/image.js';
import { failure, onDevice } from '../core/test-device.js';

onDevice('Images', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const refused = async (call: () => unknown): Promise<string> => {
    const error = await failure(call);
    expect(error).toBeInstanceOf(CudaArgumentError);
    return error.message;
  };

  test.each([u8, u16, f16, f32])('$name: images, batches, regions', async (dtype) => {
    for (const channels of [1, 3, 4]) {
      using image = await device.zeros(dtype, [5, 7, channels]);
      expect(imageOf('test', 'image', image)).toMatchObject({
        batch: 1,
        height: 5,
        width: 7,
        channels,
        batched: false,
        rowPitch: 7 * channels,
        imagePitch: 35 * channels,
        dtype,
      });
      const part = crop(image, { x: 2, y: 1, width: 3, height: 4 });
      expect(part.shape).toEqual([4, 3, channels]);
      expect(imageOf('test', 'image', part)).toMatchObject({
        height: 4,
        width: 3,
        rowPitch: 7 * channels,
      });
      expect(part.layout.offset).toBe((7 + 2) * channels);
      using batch = await device.zeros(dtype, [2, 5, 7, channels]);
      const parts = crop(batch, { x: 0, y: 2, width: 7, height: 1 });
      expect(imageOf('test', 'image', parts)).toMatchObject({
        batch: 2,
        height: 1,
        width: 7,
        imagePitch: 35 * channels,
        batched: true,
      });
    }
  });

  test('values that are not images are refused', async () => {
    using doubles = await device.zeros(f64, [2, 2, 3]);
    expect(await refused(() => imageOf('resize', 'image', doubles))).toContain(
      'Convert it with convert(f32)',
    );
    using plane = await device.zeros(u8, [4, 4]);
    expect(await refused(() => imageOf('resize', 'image', plane))).toContain('unsqueeze(-1)');
    using two = await device.zeros(u8, [4, 4, 2]);
    expect(await refused(() => imageOf('resize', 'image', two))).toContain('1, 3 or 4 channels');
    using planes = await device.zeros(u8, [3, 8, 8]);
    expect(await refused(() => imageOf('resize', 'image', planes))).toContain('write toPacked(…)');
    using none = await device.zeros(u8, [0, 4, 4, 3]);
    expect(await refused(() => imageOf('resize', 'image', none))).toContain(
      'at least one image in the batch',
    );
    using flat = await device.zeros(u8, [0, 4, 3]);
    expect(await refused(() => imageOf('resize', 'image', flat))).toContain('at least one row');
    using whole = await device.zeros(u8, [4, 4, 4]);
    expect(
      await refused(() => imageOf('resize', 'image', whole.slice([null, null], [null, null, 2]))),
    ).toContain('contiguous() first');
    expect(
      await refused(() =>
        imageOf('resize', 'image', whole.slice([null, null], [null, null], [0, 3])),
      ),
    ).toContain('contiguous() first');
    expect(
      await refused(() => imageOf('resize', 'image', whole.slice([null, null, -1]))),
    ).toContain('contiguous() first');
    expect(await refused(() => imageOf('resize', 'image', new Uint8Array(12)))).toContain(
      'Copy it to the device first',
    );
  });

  test('regions outside of their image are refused', async () => {
    using image = await device.zeros(u8, [5, 7, 3]);
    expect(await refused(() => crop(image, { x: 5, y: 0, width: 3, height: 1 }))).toContain(
      'region.width: expected a whole number from 1 to 2 (pixels; the image has 7 columns), got 3',
    );
    expect(await refused(() => crop(image, { x: 0, y: 4, width: 3, height: 2 }))).toContain(
      'region.height',
    );
    expect(await refused(() => crop(image, { x: -1, y: 0, width: 3, height: 2 }))).toContain(
      'region.x',
    );
    expect(await refused(() => crop(image, { x: 0, y: 0, width: 3, height: 0 }))).toContain(
      'region.height',
    );
    expect(
      await refused(() => crop(image, { x: 0, y: 0, width: 3, heigth: 2 } as never)),
    ).toContain("Did you mean 'height'?");
    expect(await refused(() => crop(image, undefined as never))).toContain(
      'region: expected a region',
    );
  });

  test('missing options and wrong sizes are refused', async () => {
    using image = await device.zeros(u8, [5, 7, 3]);
    for (const call of [resize, letterbox, copyBorder] as ((image: unknown) => unknown)[])
      expect(await refused(() => call(image))).toContain('options: expected an object with ');
    expect(await refused(() => resizeBatch([image], undefined as never))).toContain(
      'options: expected an object with ',
    );
    const size = { width: 4, height: 4 };
    expect(await refused(() => letterboxPlacement(undefined as never, size))).toContain(
      'image: expected an object with width and height, got undefined',
    );
    expect(
      await refused(() => letterboxPlacement(size, { width: 4n as never, height: 4 })),
    ).toContain('box.width: expected a whole number');
    expect(await refused(() => letterboxPlacement({ width: 0, height: 4 }, size))).toContain(
      'image.width: expected a whole number of at least 1 (pixels), got 0',
    );
  });

  test('engines are chosen by name', async () => {
    expect((await engines(device)).map(({ name }) => name)).toEqual(['own', 'npp']);
    expect((await engines(device))[0]).toEqual({ name: 'own', available: true });
    expect(getDefaultEngine()).toBe('own');
    expect(
      await refused(() => {
        setDefaultEngine('cuda' as never);
      }),
    ).toContain('one of own, npp');
  });
});
