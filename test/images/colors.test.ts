/** Colour formats, compared with JavaScript in doubles. */
import { CudaArgumentError, Device } from 'async-cuda';
import type { AnyTensor, DeviceOp } from 'async-cuda';
import { convertColor } from 'async-cuda/images';
import type { ColorFormat, LumaMatrix } from 'async-cuda/images';
import { beforeAll, expect, test } from 'vitest';

import type { ImageName } from '../../src/images/image.js';
import { failure, onDevice } from '../core/test-device.js';
import {
  LAYOUTS,
  NAMES,
  WHITE,
  at,
  expectStored,
  noise,
  pixels,
  stored,
  upload,
  values,
} from './images.test-support.js';
import { someOf } from '../random-runs.js';

const FORMATS: Readonly<Record<ColorFormat, number>> = {
  rgb: 3,
  bgr: 3,
  rgba: 4,
  bgra: 4,
  grey: 1,
  hsv: 3,
};
const LUMA = { bt601: [0.299, 0.587, 0.114], bt709: [0.2126, 0.7152, 0.0722] } as const;
const ALL = Object.keys(FORMATS) as ColorFormat[];

function toRgba(
  from: ColorFormat,
  white: number,
  [a, b = 0, c = 0, d = white]: readonly number[],
): number[] {
  if (from === 'grey') return [a!, a!, a!, white];
  if (from === 'bgr' || from === 'bgra') return [c, b, a!, d];
  if (from !== 'hsv') return [a!, b, c, d];
  const hue = ((((a! / white) % 1) + 1) % 1) * 6;
  const channel = (n: number): number => {
    const k = (n + hue) % 6;
    return c - c * (b / white) * Math.max(0, Math.min(k, 4 - k, 1));
  };
  return [channel(5), channel(3), channel(1), white];
}

function fromRgba(
  to: ColorFormat,
  white: number,
  [r, g, b, a]: readonly number[],
  matrix: LumaMatrix,
): number[] {
  const [kr, kg, kb] = LUMA[matrix];
  if (to === 'grey') return [kr * r! + kg * g! + kb * b!];
  if (to === 'rgb') return [r!, g!, b!];
  if (to === 'bgr') return [b!, g!, r!];
  if (to === 'rgba') return [r!, g!, b!, a!];
  if (to === 'bgra') return [b!, g!, r!, a!];
  const most = Math.max(r!, g!, b!);
  const range = most - Math.min(r!, g!, b!);
  if (range === 0) return [0, 0, most];
  const sixths =
    most === r
      ? ((g! - b!) / range + 6) % 6
      : most === g
        ? (b! - r!) / range + 2
        : (r! - g!) / range + 4;
  return [(sixths / 6) * white, (range / most) * white, most];
}

onDevice('Colours', (host) => {
  let device: Device;
  beforeAll(() => {
    device = Device.of(host.device);
  });

  const check = async (
    name: ImageName,
    from: ColorFormat,
    to: ColorFormat,
    layout: (typeof LAYOUTS)[number],
    [height, width]: readonly [number, number],
    matrix: LumaMatrix = 'bt601',
  ): Promise<void> => {
    const white = WHITE[name];
    const source = noise(name, layout === 'image' ? 1 : 2, height, width, FORMATS[from]);
    const { image, whole } = await upload(device, name, source, layout);
    const made = await convertColor(image, { from, to, ...(matrix === 'bt601' ? {} : { matrix }) });
    expect(made.shape).toEqual([...image.shape.slice(0, -1), FORMATS[to]]);
    const expected: number[] = [];
    for (let i = 0; i < source.data.length; i += source.channels)
      expected.push(
        ...fromRgba(
          to,
          white,
          toRgba(from, white, [...source.data.subarray(i, i + source.channels)]),
          matrix,
        ),
      );
    const given = Array.from((await made.read()) as ArrayLike<number>);
    // Close to a whole turn, hue may be on either side.
    if (to === 'hsv')
      given.forEach((value, i) => {
        if (i % 3 === 0 && Math.abs(value - expected[i]!) > white / 2)
          given[i] = expected[i]! > white / 2 ? stored(name, white) : 0;
      });
    expectStored(name, given, expected);
    made.close();
    whole.close();
  };

  someOf(1, test)(NAMES.flatMap((name) => ALL.map((from) => [name, from] as const)))(
    '%s from %s',
    async (name, from) => {
      for (const to of ALL) await check(name, from, to, 'image', [3, 7]);
    },
  );

  test.each(LAYOUTS)('%s of widths that are no multiples of four', async (layout) => {
    for (const width of [1, 2, 3, 4, 5, 8, 11, 33]) {
      await check('u8', 'rgb', 'bgra', layout, [4, width]);
      await check('f32', 'rgba', 'grey', layout, [3, width]);
      await check('f16', 'grey', 'rgb', layout, [2, width]);
    }
  });

  test('images can have more pixels than a block has threads', () =>
    check('u8', 'rgb', 'grey', 'region', [70, 1100]));

  test.each(NAMES)('%s: grey of BT.709', (name) =>
    check(name, 'rgb', 'grey', 'image', [5, 9], 'bt709'),
  );

  test('hue wraps beyond a full turn', async () => {
    const source = pixels(1, 1, 6, 3, (_, _y, x, c) =>
      c === 0 ? [-0.25, 1, 1.25, 2.75, 0, 5][x]! : [1, 0.5, 0.75][c]!,
    );
    const { image } = await upload(device, 'f32', source);
    const expected: number[] = [];
    for (let x = 0; x < 6; x++)
      expected.push(
        ...toRgba(
          'hsv',
          1,
          [0, 1, 2].map((c) => at(source, 0, 0, x, c)),
        ).slice(0, 3),
      );
    expectStored(
      'f32',
      await values(convertColor(image, { from: 'hsv', to: 'rgb' }) as never),
      expected,
    );
    image.close();
  });

  test('results go into existing images, and inputs can be operations', async () => {
    const { image, whole } = await upload(device, 'u8', noise('u8', 1, 4, 5, 3));
    const { image: out, whole: around } = await upload(
      device,
      'u8',
      noise('u8', 1, 4, 5, 3, 9),
      'region',
    );
    const before = (await around.read()) as Uint8Array;
    const given = await convertColor(device.value(image), {
      from: 'rgb',
      to: 'bgr',
      out: out as never,
    });
    expect(given).toBe(out);
    const after = (await around.read()) as Uint8Array;
    const source = (await image.read()) as Uint8Array;
    const expected = Uint8Array.from(before);
    for (let y = 0; y < 4; y++)
      for (let x = 0; x < 5; x++)
        for (let c = 0; c < 3; c++)
          expected[((y + 1) * 10 + x + 2) * 3 + c] = source[(y * 5 + x) * 3 + 2 - c]!;
    expect([...after]).toEqual([...expected]);
    whole.close();
    around.close();
  });

  test('wrong arguments are refused at the call', async () => {
    const { image } = await upload(device, 'u8', noise('u8', 1, 2, 2, 3));
    const message = async (options: unknown, given: unknown = image): Promise<string> => {
      const error = await failure(() =>
        (convertColor as (...args: unknown[]) => DeviceOp<AnyTensor>)(given, options),
      );
      expect(error).toBeInstanceOf(CudaArgumentError);
      return error.message;
    };
    expect(await message({ from: 'rgba', to: 'grey' })).toContain(
      'an image of 4 channels, which rgba has',
    );
    expect(await message({ from: 'rgb', to: 'cmyk' })).toContain(
      'options.to: expected one of rgb, bgr, rgba, bgra, grey, hsv',
    );
    expect(await message({ from: 'rgb' })).toContain('options.to');
    expect(await message(undefined)).toContain('options');
    expect(await message({ from: 'rgb', to: 'grey', matrix: 'bt2020' })).toContain(
      'options.matrix: expected one of bt601, bt709',
    );
    expect(await message({ from: 'rgb', to: 'grey', out: image })).toContain(
      'options.out: expected a Tensor of u8 and [2, 2, 1]',
    );
    expect(await message({ from: 'rgb', to: 'bgr', out: image })).toContain('shares no pixels');
    expect(await message({ from: 'rgb', to: 'bgr', engine: 'opencv' })).toContain(
      'one of own, npp',
    );
    expect(await message({ from: 'rgb', to: 'grey' }, [1, 2, 3])).toContain(
      'Copy it to the device first',
    );
    image.close();
  });
});
