/** YUV 4:2:0 to RGB and back, compared with JavaScript in doubles. */
import { CudaArgumentError, Device, f32, u8 } from 'async-cuda';
import { rgbToYuv, yuvToRgb } from 'async-cuda/images';
import type { LumaMatrix, RgbFormat, YuvFormat, YuvRange } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import { failure, onDevice } from '../core/test-device.js';
import { at, expectStored, noise, pixels, upload, values } from './images.test-support.js';
import type { Pixels } from './images.test-support.js';
import { someOf } from '../random-runs.js';

const LUMA = { bt601: [0.299, 0.587, 0.114], bt709: [0.2126, 0.7152, 0.0722] } as const;
const FORMATS: readonly YuvFormat[] = ['i420', 'nv12'];
const MATRICES: readonly LumaMatrix[] = ['bt601', 'bt709'];
const RANGES: readonly YuvRange[] = ['limited', 'full'];
const ORDERS: Readonly<Record<RgbFormat, readonly number[]>> = {
  rgb: [0, 1, 2],
  bgr: [2, 1, 0],
  rgba: [0, 1, 2, 3],
  bgra: [2, 1, 0, 3],
};
const SIZES = [
  [2, 2],
  [4, 6],
  [6, 8],
  [2, 10],
  [34, 132],
] as const;

/** The offsets of the chroma from the frame's start: [U, V]. */
function chromaAt(
  format: YuvFormat,
  height: number,
  width: number,
  y: number,
  x: number,
): [number, number] {
  const [row, column] = [y >> 1, x >> 1];
  if (format === 'nv12')
    return [(height + row) * width + column * 2, (height + row) * width + column * 2 + 1];
  const u = height * width + row * (width / 2) + column;
  return [u, u + (height / 2) * (width / 2)];
}

function decoded(
  frame: Pixels,
  format: YuvFormat,
  to: RgbFormat,
  matrix: LumaMatrix,
  range: YuvRange,
): number[] {
  const height = (frame.height / 3) * 2;
  const [kr, kg, kb] = LUMA[matrix];
  const made: number[] = [];
  for (let n = 0; n < frame.batch; n++) {
    const data = frame.data.subarray(n * frame.height * frame.width);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < frame.width; x++) {
        const [u, v] = chromaAt(format, height, frame.width, y, x).map(
          (index) => (data[index]! - 128) * (range === 'full' ? 1 : 255 / 224),
        ) as [number, number];
        const luma =
          range === 'full'
            ? data[y * frame.width + x]!
            : ((data[y * frame.width + x]! - 16) * 255) / 219;
        const b = luma + 2 * (1 - kb) * u;
        const r = luma + 2 * (1 - kr) * v;
        const pixel = [r, (luma - kr * r - kb * b) / kg, b, 255];
        made.push(...ORDERS[to].map((c) => pixel[c]!));
      }
    }
  }
  return made;
}

function encoded(
  image: Pixels,
  format: YuvFormat,
  from: RgbFormat,
  matrix: LumaMatrix,
  range: YuvRange,
): number[] {
  const { batch, height, width } = image;
  const [kr, kg, kb] = LUMA[matrix];
  const [luma, chroma] = range === 'full' ? [1, 1] : [219 / 255, 224 / 255];
  const size = height * width * 1.5;
  const made = new Array<number>(batch * size).fill(0);
  for (let n = 0; n < batch; n++) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const of = (row: number, column: number): number[] =>
          [0, 1, 2].map((c) => at(image, n, row, column, ORDERS[from].indexOf(c)));
        const [r, g, b] = of(y, x) as [number, number, number];
        made[n * size + y * width + x] =
          (range === 'full' ? 0 : 16) + luma * (kr * r + kg * g + kb * b);
        if (y % 2 !== 0 || x % 2 !== 0) continue;
        const four = [of(y, x), of(y, x + 1), of(y + 1, x), of(y + 1, x + 1)];
        const [red, green, blue] = [0, 1, 2].map(
          (c) => four.reduce((sum, pixel) => sum + pixel[c]!, 0) / 4,
        ) as [number, number, number];
        const mean = kr * red + kg * green + kb * blue;
        const [u, v] = chromaAt(format, height, width, y, x);
        made[n * size + u] = 128 + (chroma * (blue - mean)) / (2 * (1 - kb));
        made[n * size + v] = 128 + (chroma * (red - mean)) / (2 * (1 - kr));
      }
    }
  }
  return made;
}

onDevice('YUV 4:2:0', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const MODES = FORMATS.flatMap((format) =>
    MATRICES.flatMap((matrix) => RANGES.map((range) => [format, matrix, range] as const)),
  );

  someOf(2, test)(MODES)(
    '%s of %s, %s range, to every order and back',
    async (format, matrix, range) => {
      for (const rgb of Object.keys(ORDERS) as RgbFormat[]) {
        for (const [height, width] of SIZES.slice(0, 4)) {
          const frame = noise('u8', 2, (height / 2) * 3, width, 1);
          using given = await device.tensor(u8, Array.from(frame.data), [2, frame.height, width]);
          const image = await yuvToRgb(given, { format, to: rgb, matrix, range });
          expect(image.shape).toEqual([2, height, width, ORDERS[rgb].length]);
          expectStored(
            'u8',
            Array.from(await image.read()),
            decoded(frame, format, rgb, matrix, range),
          );
          image.close();
          const source = noise('u8', 2, height, width, ORDERS[rgb].length, 7);
          const { image: pixels, whole } = await upload(
            device,
            'u8',
            source,
            rgb === 'bgr' ? 'region' : 'batch',
          );
          const made = await rgbToYuv(pixels as never, { format, from: rgb, matrix, range });
          expect(made.shape).toEqual([2, (height / 2) * 3, width]);
          expectStored(
            'u8',
            Array.from(await made.read()),
            encoded(source, format, rgb, matrix, range),
          );
          made.close();
          whole.close();
        }
      }
    },
  );

  test('frames can be larger than a block, and single', async () => {
    const [height, width] = SIZES.at(-1)!;
    const frame = noise('u8', 1, (height / 2) * 3, width, 1);
    using given = await device.tensor(u8, Array.from(frame.data), [frame.height, width]);
    for (const format of FORMATS) {
      expectStored(
        'u8',
        await values(yuvToRgb(given, { format }) as never),
        decoded(frame, format, 'rgb', 'bt601', 'limited'),
      );
      const source = noise('u8', 1, height, width, 4);
      const { image } = await upload(device, 'u8', source);
      expectStored(
        'u8',
        await values(rgbToYuv(image as never, { format }) as never),
        encoded(source, format, 'rgba', 'bt601', 'limited'),
      );
      image.close();
    }
  });

  test('nv12 with a pitch', async () => {
    const frame = noise('u8', 2, 6, 6, 1);
    const around = pixels(2, 6, 9, 1, (n, y, x) => (x < 6 ? at(frame, n, y, x, 0) : 99));
    using whole = await device.tensor(u8, Array.from(around.data), [2, 6, 9]);
    const view = whole.slice([null, null], [null, null], [0, 6]);
    expectStored(
      'u8',
      await values(yuvToRgb(view as never, { format: 'nv12' }) as never),
      decoded(frame, 'nv12', 'rgb', 'bt601', 'limited'),
    );
    const source = noise('u8', 2, 4, 6, 3, 4);
    const { image } = await upload(device, 'u8', source, 'batch');
    await rgbToYuv(image as never, { format: 'nv12', out: view as never });
    const made = encoded(source, 'nv12', 'rgb', 'bt601', 'limited');
    expectStored(
      'u8',
      Array.from(await whole.read()),
      Float64Array.from(
        pixels(2, 6, 9, 1, (n, y, x) => (x < 6 ? made[(n * 6 + y) * 6 + x]! : 99)).data,
      ),
    );
    image.close();
  });

  test('black, white and colours outside of video’s range are converted', async () => {
    using frame = await device.tensor(
      u8,
      [16, 16, 235, 235, 16, 16, 235, 235, 128, 128, 128, 128],
      [3, 4],
    );
    expect(await values(yuvToRgb(frame, { format: 'i420' }) as never)).toEqual(
      [0, 1].flatMap(() => [0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255]),
    );
    using beyond = await device.tensor(
      u8,
      [255, 255, 0, 0, 255, 255, 0, 0, 255, 0, 255, 0],
      [3, 4],
    );
    const given = await values(yuvToRgb(beyond, { format: 'nv12' }) as never);
    expect([Math.min(...given), Math.max(...given)]).toEqual([0, 255]);
  });

  test('wrong arguments are refused at the call', async () => {
    const message = async (call: () => unknown): Promise<string> => {
      const error = await failure(call);
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    using frame = await device.zeros(u8, [6, 4]);
    using odd = await device.zeros(u8, [6, 5]);
    using rows = await device.zeros(u8, [5, 4]);
    using none = await device.zeros(u8, [0, 6, 4]);
    using floats = await device.zeros(f32, [6, 4]);
    using image = await device.zeros(u8, [4, 4, 3]);
    using tall = await device.zeros(u8, [3, 4, 3]);
    using wide = await device.zeros(u8, [4, 5, 3]);
    using grey = await device.zeros(u8, [4, 4, 1]);
    using colours = await device.zeros(f32, [4, 4, 3]);
    const decode = (given: unknown, options: unknown = { format: 'i420' }) =>
      message(() => yuvToRgb(given as never, options as never));
    const encode = (given: unknown, options: unknown = { format: 'nv12' }) =>
      message(() => rgbToYuv(given as never, options as never));
    expect(await decode(odd)).toContain('an even number of columns');
    expect(await decode(rows)).toContain('in all a multiple of 3');
    expect(await decode(none)).toContain('at least one frame');
    expect(await decode(floats)).toContain('a Tensor of u8');
    expect(await decode(image.reshape([48] as never))).toContain('[height · 3/2, width]');
    expect(await decode(frame.slice([null, null], [0, 2]))).toContain('rows without gaps');
    expect(await decode(frame, {})).toContain('options.format: expected one of i420, nv12');
    expect(await decode(frame, { format: 'yuy2' })).toContain('options.format');
    expect(await decode(frame, { format: 'nv12', range: 'tv' })).toContain(
      'options.range: expected one of limited, full',
    );
    expect(await decode(frame, { format: 'nv12', matrix: 'bt2020' })).toContain('options.matrix');
    expect(await decode(frame, { format: 'nv12', to: 'grey' })).toContain('options.to');
    expect(await decode(frame, { format: 'nv12', out: tall })).toContain('options.out');
    expect(await encode(tall)).toContain(
      'an even number of rows and columns, for rgbToYuv(…), since 2 × 2 pixels share their ' +
        'chroma, got 4 × 3',
    );
    expect(await encode(wide)).toContain('got 5 × 4');
    expect(await encode(grey)).toContain('3 channels');
    expect(await encode(colours)).toContain('rescale(image, u8');
    expect(await encode(image, { format: 'nv12', from: 'rgba' })).toContain(
      '4 channels, which rgba has',
    );
    expect(await encode(image, { format: 'nv12', out: odd })).toContain('options.out');
  });
});
