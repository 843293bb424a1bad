/** Operations of single pixels by NPP: arithmetic, dtypes, thresholds, normalisation, blending. */
import type { KernelDType, Stream } from '../../core/index.js';
import { f32 } from '../../core/index.js';
import type { Work } from '../../library/operation.js';
import { imageOf, imageOfResult } from '../image.js';
import type { Image } from '../image.js';
import { planarImageOf } from '../planar-image.js';
import type { PlanarImage } from '../planar-image.js';
import { nppName } from './functions.js';
import type { Npp } from './library.js';
import {
  addCalls,
  elementOf,
  formOf,
  isInteger,
  numbersFor,
  pixels,
  sizeOf,
  stepOf,
} from './step.js';
import { PLANAR_FORM, planesOf } from './planes.js';
import type { Implementation } from '../implementation.js';
import type {
  Arithmetic,
  Blending,
  Normalising,
  Rescaling,
  Thresholding,
  ThresholdKind,
} from '../parameters.js';

const FAMILIES = { add: 'Add', subtract: 'Sub', multiply: 'Mul' } as const;
const MOST: Readonly<Record<string, number>> = { u8: 255, u16: 65535 };
/** NPP_RND_NEAR: ties to even. */
const NEAREST = 0;

/** Gives n for 2⁻ⁿ; undefined for other numbers. */
function halvings(scale: number): number | undefined {
  const n = -Math.log2(scale);
  return Number.isInteger(n) && n >= 0 && n <= 31 ? n : undefined;
}

function isElement({ dtype }: Image, value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= MOST[dtype.name]!;
}

function eachImage(
  work: Work,
  images: readonly Image[],
  queue: (npp: Npp, stream: Stream, index: number) => void,
): void {
  addCalls(work, images[0]!, (npp, { stream }) => {
    for (let i = 0; i < images[0]!.batch; i++) queue(npp, stream, i);
  });
}

export function nppArithmetic(name: keyof typeof FAMILIES): Implementation<Arithmetic> {
  return {
    lacks({ images: [image, other], parameters: { constants, scale } }) {
      if (isInteger(image!)) {
        if (halvings(scale) === undefined)
          return `no scale but powers of two up to 1, of ${image!.dtype.name},`;
        return other === undefined && !constants!.every((each) => isElement(image!, each))
          ? `no numbers but those that ${image!.dtype.name} has`
          : undefined;
      }
      return other !== undefined && scale !== 1 ? 'no scale of floats' : undefined;
    },
    queue(work, { images: [image, other], results: [result], parameters: { constants, scale } }) {
      const [x, out] = [image!, imageOfResult(result!)];
      const form = formOf(x, isInteger(x) ? 'Sfs' : '');
      const factor = isInteger(x) ? [halvings(scale)!] : [];
      eachImage(work, [x, out], (npp, stream, i) => {
        const target = [pixels(out, i), stepOf(out), sizeOf(out), ...factor] as const;
        if (other === undefined) {
          const values = isInteger(x) ? constants! : constants!.map((each) => each * scale);
          npp.call(stream, nppName(`${FAMILIES[name]}C`, form), [
            pixels(x, i),
            stepOf(x),
            numbersFor(x, values),
            ...target,
          ]);
          // NPP subtracts the first of two images from the second.
        } else if (name === 'subtract')
          npp.call(stream, nppName('Sub', form), [
            pixels(other, i),
            stepOf(other),
            pixels(x, i),
            stepOf(x),
            ...target,
          ]);
        else
          npp.call(stream, nppName(FAMILIES[name], form), [
            pixels(x, i),
            stepOf(x),
            pixels(other, i),
            stepOf(other),
            ...target,
          ]);
      });
    },
  };
}

export const nppDifference: Implementation<Arithmetic> = {
  takes: { u8: [1, 3, 4], u16: [1], f16: [1], f32: [1] },
  lacks: ({ images: [, other] }) => (other === undefined ? 'no numbers' : undefined),
  queue(work, { images: [x, y], results: [result] }) {
    const out = imageOfResult(result!);
    eachImage(work, [x!, y!, out], (npp, stream, i) => {
      npp.call(stream, nppName('AbsDiff', formOf(x!)), [
        pixels(x!, i),
        stepOf(x!),
        pixels(y!, i),
        stepOf(y!),
        pixels(out, i),
        stepOf(out),
        sizeOf(out),
      ]);
    });
  },
};

/** Conversions that one function does; others go by way of f32. */
const CONVERSIONS: ReadonlySet<string> = new Set([
  '8u16u',
  '8u32f',
  '16u8u',
  '16u32f',
  '16f32f',
  '32f8u',
  '32f16u',
  '32f16f',
]);
const ROUNDED: ReadonlySet<string> = new Set(['32f8u', '32f16u', '32f16f']);

function addConversion(work: Work, from: Image, to: Image): void {
  const [source, target] = [elementOf(from.dtype), elementOf(to.dtype)];
  const pair = `${source}${target}`;
  const name =
    source === target
      ? nppName('Copy', formOf(from))
      : nppName('Convert', `${pair}_C${from.channels}R`);
  eachImage(work, [from, to], (npp, stream, i) => {
    npp.call(stream, name, [
      pixels(from, i),
      stepOf(from),
      pixels(to, i),
      stepOf(to),
      sizeOf(to),
      ...(ROUNDED.has(pair) ? [NEAREST] : []),
    ]);
  });
}

function temporary(work: Work, like: Image, dtype: KernelDType): Image {
  const shape = [...(like.batched ? [like.batch] : []), like.height, like.width, like.channels];
  return imageOf('NPP', 'temporary', work.temporary(dtype, shape));
}

/** Adds x · factor + summand for each channel in another dtype: in f32, rounded in each step. */
function addLinear(
  work: Work,
  from: Image,
  to: Image,
  factors: readonly number[],
  summands: readonly number[],
): void {
  const scales = factors.some((each) => each !== 1);
  const shifts = summands.some((each) => each !== 0);
  const pair = `${elementOf(from.dtype)}${elementOf(to.dtype)}`;
  if (!scales && !shifts && (from.dtype === to.dtype || CONVERSIONS.has(pair))) {
    addConversion(work, from, to);
    return;
  }
  const sums = to.dtype === f32 ? to : temporary(work, to, f32);
  addConversion(work, from, sums);
  for (const [name, used, values] of [
    ['MulC', scales, factors],
    ['AddC', shifts, summands],
  ] as const) {
    if (!used) continue;
    eachImage(work, [sums], (npp, stream, i) => {
      npp.call(stream, nppName(name, `32f_C${sums.channels}IR`), [
        numbersFor(sums, values),
        pixels(sums, i),
        stepOf(sums),
        sizeOf(sums),
      ]);
    });
  }
  if (sums !== to) addConversion(work, sums, to);
}

export const nppRescale: Implementation<Rescaling> = {
  queue(work, { images: [image], results: [result], parameters: { scales, offsets } }) {
    addLinear(work, image!, imageOfResult(result!), scales, offsets);
  },
};

export const nppNormalise: Implementation<Normalising> = {
  queue(work, { images: [image], results: [result], parameters: { factors, summands, order } }) {
    if (order === 'nhwc') {
      addLinear(work, image!, imageOfResult(result!), factors, summands);
      return;
    }
    const planar = planarImageOf('normalise', 'result', result);
    const packed = temporary(work, image!, planar.dtype);
    addLinear(work, image!, packed, factors, summands);
    addToPlanes(work, packed, planar);
  },
};

/** Adds the copy of packed channels to planes: elements are unchanged, f16 are moved as u16. */
export function addToPlanes(work: Work, from: Image, to: PlanarImage): void {
  const element = PLANAR_FORM[from.dtype.name];
  eachImage(work, [from, to], (npp, stream, i) => {
    if (from.channels === 1)
      npp.call(stream, nppName('Copy', `${element}_C1R`), [
        pixels(from, i),
        stepOf(from),
        pixels(to, i),
        stepOf(to),
        sizeOf(from),
      ]);
    else
      npp.call(stream, nppName('Copy', `${element}_C${from.channels}P${from.channels}R`), [
        pixels(from, i),
        stepOf(from),
        planesOf(to, i),
        stepOf(to),
        sizeOf(from),
      ]);
  });
}

/** NPP only has < and >: for integers x ≤ limit is x < limit + 1. */
const NEEDS_INTEGERS: ReadonlySet<ThresholdKind> = new Set(['binary', 'binaryInverse', 'toZero']);

export const nppThreshold: Implementation<Thresholding> = {
  takes: { u8: [1, 3], u16: [1, 3], f32: [1, 3] },
  lacks({ images: [image], parameters: { kind, limits, values } }) {
    if (!isInteger(image!)) return NEEDS_INTEGERS.has(kind) ? `no '${kind}' of floats` : undefined;
    const most = MOST[image!.dtype.name]! - (NEEDS_INTEGERS.has(kind) ? 1 : 0);
    const good =
      limits.every((each) => isElement(image!, each) && each <= most) &&
      (kind.startsWith('binary') ? values.every((each) => isElement(image!, each)) : true);
    return good ? undefined : `no limits and values but those that ${image!.dtype.name} has`;
  },
  queue(work, { images: [image], results: [result], parameters: { kind, limits, values } }) {
    const [x, out] = [image!, imageOfResult(result!)];
    const zeros = limits.map(() => 0);
    const next = limits.map((each) => each + 1);
    const [name, numbers] = (
      {
        truncate: ['Threshold_GT', [limits]],
        toZeroInverse: ['Threshold_GTVal', [limits, zeros]],
        toZero: ['Threshold_LTVal', [next, zeros]],
        binary: ['Threshold_LTValGTVal', [next, zeros, limits, values]],
        binaryInverse: ['Threshold_LTValGTVal', [next, values, limits, zeros]],
      } as const
    )[kind];
    eachImage(work, [x, out], (npp, stream, i) => {
      npp.call(stream, nppName(name, formOf(x)), [
        pixels(x, i),
        stepOf(x),
        pixels(out, i),
        stepOf(out),
        sizeOf(out),
        ...numbers.map((each) => numbersFor(x, each)),
      ]);
    });
  },
};

/** NPPI_OP_ALPHA_OVER_PREMUL of NppiAlphaOp. */
const OVER_PREMULTIPLIED = 6;

export const nppBlend: Implementation<Blending> = {
  takes: { u8: [4], u16: [4], f32: [4] },
  // NPP's plain OVER gives colours that are multiplied by alpha: its result has no straight alpha.
  lacks: ({ images: [, back], parameters: { opacity, premultiplied } }) =>
    back!.channels !== 4
      ? 'no image without alpha'
      : !premultiplied
        ? 'no straight alpha'
        : opacity === 1
          ? undefined
          : 'no opacity',
  queue(work, { images: [front, back], results: [result] }) {
    const out = imageOfResult(result!);
    eachImage(work, [front!, back!, out], (npp, stream, i) => {
      npp.call(stream, nppName('AlphaComp', `${elementOf(front!.dtype)}_AC4R`), [
        pixels(front!, i),
        stepOf(front!),
        pixels(back!, i),
        stepOf(back!),
        pixels(out, i),
        stepOf(out),
        sizeOf(out),
        OVER_PREMULTIPLIED,
      ]);
    });
  },
};
