/** Channels by NPP: their order, planes, colour formats, YUV 4:2:0. */
import type { LibraryArgument, MemoryPlace } from '../../core/index.js';
import type { Work } from '../../library/operation.js';
import { imageOfResult } from '../image.js';
import type { Image, ImageName } from '../image.js';
import { LUMA } from '../luma.js';
import { planarImageOf } from '../planar-image.js';
import { WHITE } from '../rounding.js';
import { yuvFrameOf } from '../yuv-frame.js';
import type { YuvFormat, YuvFrame } from '../yuv-frame.js';
import { fromYuv, toYuv } from '../yuv-matrices.js';
import { nppName } from './functions.js';
import { addToPlanes } from './pixelwise.js';
import { PLANAR_FORM, planesOf } from './planes.js';
import { addCalls, elementOf, pixels, sizeOf, stepOf } from './step.js';
import type { Implementation } from '../implementation.js';
import type { ChannelOrder, ColorConversion, ColorFormat, YuvConversion } from '../parameters.js';

/** Adds a call for each image, of a function of source, step, target, step, size and more. */
function addEach(
  work: Work,
  from: Image,
  to: Image,
  name: string,
  more: readonly LibraryArgument[] = [],
): void {
  addCalls(work, from, (npp, { stream }) => {
    for (let i = 0; i < from.batch; i++)
      npp.call(stream, name, [
        pixels(from, i),
        stepOf(from),
        pixels(to, i),
        stepOf(to),
        sizeOf(to),
        ...more,
      ]);
  });
}

/** The numbers of channels, of the image and of the result, that SwapChannels takes. */
const SWAPS: ReadonlySet<string> = new Set(['33', '44', '43']);

export const nppOrderChannels: Implementation<ChannelOrder> = {
  takes: { u8: [3, 4], u16: [3, 4], f16: [3, 4], f32: [3, 4] },
  lacks: ({ images: [image], parameters: { order } }) =>
    SWAPS.has(`${image!.channels}${order.length}`)
      ? undefined
      : `no way from ${image!.channels} to ${order.length} channels`,
  queue(work, { images: [image], results: [result], parameters: { order } }) {
    addSwap(work, image!, imageOfResult(result!), order);
  },
};

function addSwap(
  work: Work,
  from: Image,
  to: Image,
  order: readonly number[],
  fourth: readonly number[] = [],
): void {
  const layout =
    from.channels === to.channels ? `C${to.channels}` : `C${from.channels}C${to.channels}`;
  addEach(work, from, to, nppName('SwapChannels', `${PLANAR_FORM[from.dtype.name]}_${layout}R`), [
    Int32Array.from(order),
    ...fourth,
  ]);
}

/** NPP writes the number where the order names channel 3 of an image of three. */
export const nppAddAlpha: Implementation<{ readonly alpha: number }> = {
  takes: { u8: [3], u16: [3], f32: [3] },
  queue(work, { images: [image], results: [result], parameters: { alpha } }) {
    addSwap(work, image!, imageOfResult(result!), [0, 1, 2, 3], [alpha]);
  },
};

export const nppToPlanar: Implementation<object> = {
  queue(work, { images: [image], results: [result] }) {
    addToPlanes(work, image!, planarImageOf('toPlanar', 'result', result));
  },
};

export const nppToPacked: Implementation<object> = {
  queue(work, { images: [image], results: [result] }) {
    const from = planarImageOf('toPacked', 'planar', image!.tensor);
    const to = imageOfResult(result!);
    const { channels } = from;
    const element = PLANAR_FORM[from.dtype.name];
    addCalls(work, from, (npp, { stream }) => {
      for (let i = 0; i < from.batch; i++) {
        const target = [pixels(to, i), stepOf(to), sizeOf(to)] as const;
        if (channels === 1)
          npp.call(stream, nppName('Copy', `${element}_C1R`), [
            pixels(from, i),
            stepOf(from),
            ...target,
          ]);
        else
          npp.call(stream, nppName('Copy', `${element}_P${channels}C${channels}R`), [
            planesOf(from, i),
            stepOf(from),
            ...target,
          ]);
      }
    });
  },
};

/** The channels of red, green and blue. */
const PLACES: Readonly<Partial<Record<ColorFormat, readonly [number, number, number]>>> = {
  rgb: [0, 1, 2],
  bgr: [2, 1, 0],
  rgba: [0, 1, 2],
  bgra: [2, 1, 0],
};
const HAS_ALPHA: readonly ColorFormat[] = ['rgba', 'bgra'];

/** Gives the NPP function of a conversion; undefined where NPP has none. */
function colorCall(
  from: ColorFormat,
  to: ColorFormat,
  dtype: ImageName,
  luma: readonly number[],
): { name: string; more: LibraryArgument[] } | undefined {
  const element = elementOf({ name: dtype } as never);
  const [source, target] = [PLACES[from], PLACES[to]];
  const [inputs, outputs] = [HAS_ALPHA.includes(from) ? 4 : 3, HAS_ALPHA.includes(to) ? 4 : 3];
  if (from === 'grey' && target !== undefined && outputs === 3)
    return { name: nppName('Dup', `${element}_C1C3R`), more: [] };
  if (dtype === 'u8' && ((from === 'rgb' && to === 'hsv') || (from === 'hsv' && to === 'rgb')))
    return { name: nppName(from === 'rgb' ? 'RGBToHSV' : 'HSVToRGB', '8u_C3R'), more: [] };
  if (source === undefined) return undefined;
  if (to === 'grey') {
    const weights = new Float32Array(inputs);
    source.forEach((place, i) => {
      weights[place] = luma[i]!;
    });
    return { name: nppName('ColorToGray', `${element}_C${inputs}C1R`), more: [weights] };
  }
  if (target === undefined) return undefined;
  const order = new Int32Array(outputs);
  target.forEach((place, i) => {
    order[place] = source[i]!;
  });
  if (outputs === 4) order[3] = 3;
  const layout = inputs === outputs ? `C${inputs}` : `C${inputs}C${outputs}`;
  return {
    name: nppName('SwapChannels', `${element}_${layout}R`),
    more: [order, ...(inputs < outputs ? [WHITE[dtype]] : [])],
  };
}

export const nppConvertColor: Implementation<ColorConversion> = {
  takes: { u8: [1, 3, 4], u16: [1, 3, 4], f32: [1, 3, 4] },
  lacks: ({ images: [image], parameters: { from, to, matrix } }) =>
    colorCall(from, to, image!.dtype.name, LUMA[matrix]) === undefined
      ? `no way from ${from} to ${to} of ${image!.dtype.name}`
      : undefined,
  queue(work, { images: [image], results: [result], parameters: { from, to, matrix } }) {
    const { name, more } = colorCall(from, to, image!.dtype.name, LUMA[matrix])!;
    addEach(work, image!, imageOfResult(result!), name, more);
  },
};

/** The planes of frame `index`, and the pitch of each in bytes. */
function framePlanes(
  format: YuvFormat,
  frame: YuvFrame,
  index: number,
): { places: MemoryPlace[]; steps: Int32Array } {
  const { buffer, byteOffset = 0 } = pixels(frame, index);
  const step = stepOf(frame);
  const chroma = byteOffset + frame.rows * step;
  if (format === 'nv12')
    return {
      places: [
        { buffer, byteOffset },
        { buffer, byteOffset: chroma },
      ],
      steps: Int32Array.of(step, step),
    };
  const second = chroma + (frame.rows / 2) * (frame.width / 2);
  return {
    places: [
      { buffer, byteOffset },
      { buffer, byteOffset: chroma },
      { buffer, byteOffset: second },
    ],
    steps: Int32Array.of(step, step / 2, step / 2),
  };
}

const FORMATS = { i420: ['YUV420', 'P3'], nv12: ['NV12', 'P2'] } as const;
const ORDERED: Readonly<Record<string, readonly [red: number, blue: number]>> = {
  rgb: [0, 2],
  bgr: [2, 0],
};

function lacksOfYuv({
  parameters: { rgb },
}: {
  readonly parameters: YuvConversion;
}): string | undefined {
  return ORDERED[rgb] === undefined ? `no ${rgb}` : undefined;
}

export const nppYuvToRgb: Implementation<YuvConversion> = {
  lacks: lacksOfYuv,
  queue(work, { images: [image], results: [result], parameters: { format, rgb, matrix, range } }) {
    const frame = yuvFrameOf('yuvToRgb', 'frame', format, image!.tensor);
    const to = imageOfResult(result!);
    const [scale, offset, rv, gu, gv, bu] = fromYuv(matrix, range);
    const rows = [
      [scale, 0, rv],
      [scale, gu, gv],
      [scale, bu, 0],
    ];
    const [red, blue] = ORDERED[rgb]!;
    // The last column is added to Y, U and V before the other columns are applied; in conversions
    // from RGB to YUV it is added to the result.
    const before = [offset / scale, -128, -128];
    const twist = Float32Array.from(
      [red, 1, blue].flatMap((row, i) => [...rows[row]!, before[i]!]),
    );
    const [name, planes] = FORMATS[format];
    addCalls(work, frame, (npp, { stream }) => {
      for (let i = 0; i < frame.batch; i++) {
        const { places, steps } = framePlanes(format, frame, i);
        npp.call(stream, nppName(`${name}ToRGB`, `8u_ColorTwist32f_${planes}C3R`), [
          places,
          steps,
          pixels(to, i),
          stepOf(to),
          sizeOf(to),
          twist,
        ]);
      }
    });
  },
};

export const nppRgbToYuv: Implementation<YuvConversion> = {
  takes: { u8: [3] },
  lacks: lacksOfYuv,
  queue(work, { images: [image], results: [result], parameters: { format, rgb, matrix, range } }) {
    const frame = yuvFrameOf('rgbToYuv', 'result', format, result);
    const { black, y, u, v } = toYuv(matrix, range);
    const [red, blue] = ORDERED[rgb]!;
    const row = (factors: readonly number[], summand: number): number[] => [
      factors[red]!,
      factors[1]!,
      factors[blue]!,
      summand,
    ];
    const twist = Float32Array.from([...row(y, black), ...row(u, 128), ...row(v, 128)]);
    const [name, planes] = FORMATS[format];
    addCalls(work, image!, (npp, { stream }) => {
      for (let i = 0; i < image!.batch; i++) {
        const { places, steps } = framePlanes(format, frame, i);
        npp.call(stream, nppName(`RGBTo${name}`, `8u_ColorTwist32f_C3${planes}R`), [
          pixels(image!, i),
          stepOf(image!),
          places,
          steps,
          sizeOf(image!),
          twist,
        ]);
      }
    });
  },
};
