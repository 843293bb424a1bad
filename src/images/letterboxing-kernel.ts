/**
 * Launches of the kernels that letterbox, normalise and write planes in one pass. A thread has one
 * column of the result and a few rows: adjacent threads read adjacent pixels, and the source column
 * is computed once. The kernels are limited by reads (twelve bytes of an RGB image for a pixel, in
 * 3 times as many cache lines as the six that are written), so that two adjacent pixels of u8 are
 * read as words where rows begin at multiples of four bytes: 3 loads instead of 6.
 */
import { f32, i32, i64, u32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output, struct } from '../kernels/index.js';
import type { Member } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { BLOCK } from './image-launch.js';
import { WORD, wordsOf } from './image-words.js';
import { flat, isWideSpan } from './image.js';
import type { Image } from './image.js';
import { WIDE_FROM, elementsOf } from './pixel-runs.js';
import type { PixelLayout } from './pixel-runs.js';
import { proportionsOf } from './proportions.js';
import { inGroups, sourceParams } from './several-sources.js';
import {
  ROWS,
  pixels,
  type Placement,
  type Source,
  type Result,
  type Numbers,
  letterboxes,
  severals,
} from './letterboxing-pixels.js';

/** Numbers of each channel. */
export interface LetterboxNumbers {
  readonly factors: readonly number[];
  readonly summands: readonly number[];
  readonly pads: readonly number[];
}

const NUMBERS = {
  factor0: f32,
  factor1: f32,
  factor2: f32,
  factor3: f32,
  summand0: f32,
  summand1: f32,
  summand2: f32,
  summand3: f32,
  pad0: f32,
  pad1: f32,
  pad2: f32,
  pad3: f32,
};
const PLACED = {
  left: i32,
  top: i32,
  innerWidth: i32,
  innerHeight: i32,
  fromX: i32,
  toX: i32,
  fromY: i32,
  toY: i32,
};
const SOURCE = struct({ columns: i32, rows: i32, xRow: i32, ...PLACED });
const NUMBERS_OF_ALL = struct(NUMBERS);

/**
 * The specialisation of a kernel: for images of one form, as words or as elements, and a result of
 * one form.
 */
function memberOf(
  image: Image,
  out: PixelLayout,
  words: boolean,
  wide: boolean,
): {
  readonly key: string;
  readonly element: KernelDType;
  readonly uses: () => NonNullable<Member['uses']>;
} {
  const uses = (): NonNullable<Member['uses']> => ({
    ROWS,
    pixels: deviceFunction(pixels as never, {
      uses: { C: image.channels, STEP: out.planar ? 1 : image.channels, ROWS, WORDS: words },
    }),
  });
  return {
    key:
      `${words ? 'words' : image.dtype.name}_${out.tensor.dtype.name}_${image.channels}` +
      `${out.planar ? '_planes' : ''}${wide ? '_wide' : ''}`,
    element: words ? u32 : image.dtype,
    uses,
  };
}

/**
 * Gives the image's words where reading them is faster: not for one channel, and for at least two
 * columns, which adjacent pixels need.
 */
function wordsToRead(image: Image): KernelTensor | undefined {
  return image.channels === 1 || image.width < 2 ? undefined : wordsOf(image);
}

/** Describes a source to the kernels; pitches are in units of `unit` elements. */
function sourceOf(image: Image, placement: Placement, unit: number): Source {
  return {
    columns: image.width,
    rows: image.height,
    xRow: image.rowPitch / unit,
    left: placement.left,
    top: placement.top,
    innerWidth: placement.width,
    innerHeight: placement.height,
    ...proportionsOf(image, placement),
  };
}

/** Describes the result to the kernels. */
function resultOf(out: PixelLayout): Omit<Result, 'out'> & { readonly out: KernelTensor } {
  return {
    out: elementsOf(out),
    width: out.width,
    height: out.height,
    oImage: out.imagePitch,
    oRow: out.rowPitch,
    oPlane: out.planar ? out.planePitch : 1,
  };
}

function numbersOf({ factors, summands, pads }: LetterboxNumbers): Numbers {
  return {
    factor0: at(factors, 0),
    factor1: at(factors, 1),
    factor2: at(factors, 2),
    factor3: at(factors, 3),
    summand0: at(summands, 0),
    summand1: at(summands, 1),
    summand2: at(summands, 2),
    summand3: at(summands, 3),
    pad0: at(pads, 0),
    pad1: at(pads, 1),
    pad2: at(pads, 2),
    pad3: at(pads, 3),
  };
}

const isWide = (images: readonly Image[], out: PixelLayout): boolean =>
  isWideSpan(images) || elementsOf(out).size >= WIDE_FROM;

/** Adds the launch for an image, or a batch. */
export function addLetterbox(
  work: Work,
  image: Image,
  out: PixelLayout,
  placement: Placement,
  numbers: LetterboxNumbers,
): void {
  const wide = isWide([image], out);
  const words = wide ? undefined : wordsToRead(image);
  const unit = words === undefined ? 1 : WORD;
  const { key, element, uses } = memberOf(image, out, words !== undefined, wide);
  const launch = letterboxes.member(key, (): Member => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(out.tensor.dtype),
        x: input(element),
        width: i32,
        height: i32,
        oImage: whole,
        oRow: whole,
        oPlane: whole,
        columns: i32,
        rows: i32,
        xImage: whole,
        xRow: whole,
        ...PLACED,
        ...NUMBERS,
      },
      uses: uses(),
      block: BLOCK,
    };
  });
  work.add(
    launch(
      {
        ...resultOf(out),
        x: words ?? flat(image),
        xImage: image.imagePitch / unit,
        ...sourceOf(image, placement, unit),
        ...numbersOf(numbers),
      },
      {
        grid: [Math.ceil(out.width / BLOCK), Math.ceil(out.height / ROWS), image.batch],
        ...(wide ? { index: 'i64' } : {}),
      },
    ),
  );
}

/** Adds launches for images of one form into a batch. Each launch has several images. */
export function addLetterboxes(
  work: Work,
  images: readonly Image[],
  out: PixelLayout,
  placements: readonly Placement[],
  numbers: LetterboxNumbers,
): void {
  const part = (first: number, count: number): PixelLayout => {
    const tensor = (out.tensor as { slice(...indices: unknown[]): unknown }).slice([
      first,
      first + count,
    ]) as KernelTensor;
    return { ...out, tensor, batch: count };
  };
  if (isWide(images, out)) {
    images.forEach((image, i) => {
      addLetterbox(work, image, part(i, 1), placements[i]!, numbers);
    });
    return;
  }
  const words = images.map(wordsToRead);
  const readWords = !words.includes(undefined);
  const unit = readWords ? WORD : 1;
  const { key, element, uses } = memberOf(images[0]!, out, readWords, false);
  const launch = severals.member(key, () => ({
    signature: {
      out: output(out.tensor.dtype),
      width: i32,
      height: i32,
      oImage: i32,
      oRow: i32,
      oPlane: i32,
      n: NUMBERS_OF_ALL,
      ...sourceParams(element, SOURCE),
    },
    uses: uses(),
    block: BLOCK,
  }));
  const n = numbersOf(numbers);
  inGroups(
    images.map((image, i) => (readWords ? words[i]! : flat(image))),
    images.map((image, i) => sourceOf(image, placements[i]!, unit)),
    (args, first, count) => {
      work.add(
        launch(
          { ...resultOf(part(first, count)), n, ...args },
          { grid: [Math.ceil(out.width / BLOCK), Math.ceil(out.height / ROWS), count] },
        ),
      );
    },
  );
}

/** Gives the number of a channel as f32; 0 for a channel that the image does not have. */
export const at = (numbers: readonly number[], channel: number): number =>
  Math.fround(numbers[channel] ?? 0);
