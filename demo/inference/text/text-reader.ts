/**
 * Photographs in, lines of text out. All of it is one operation: those of the host are uploaded as
 * they are; all are brought to the detection's size and numbers by one kernel; the host puts boxes
 * around what that finds; each line is straightened from the photograph, which is still on the
 * device, and the recognition reads lines together, whichever photographs they are on.
 */
import {
  type AnyTensor,
  type Device,
  type DeviceOp,
  type Tensor,
  f32,
  u8,
  value,
  zip,
} from 'async-cuda';
import type { Engine, LoadEngineOptions } from 'async-cuda/inference';
import { argmax, max } from 'async-cuda/library';
import {
  letterboxNormaliseBatch,
  letterboxPlacement,
  normalise,
  rescale,
  warpAffine,
} from 'async-cuda/images';

import {
  type DevicePhotograph,
  type Photograph,
  type Point,
  type Size,
  sizeOf,
  withPhotographs,
} from '../photograph.js';
import { inTurns, someInATurn } from '../turns.js';
import { decodeSteps } from './ctc-decoding.js';
import type { Reading } from './ctc-decoding.js';
import { lineMatrix } from './line-matrix.js';
import { cornersOf } from './smallest-rectangle.js';
import type { TurnedRectangle } from './smallest-rectangle.js';
import { MAP_WHITE, directionsOf, textBoxes, textSearch } from './text-boxes.js';
import type { TextBox } from './text-boxes.js';

/** One line of text on a photograph. */
export interface TextLine extends Reading {
  /** Clockwise from the corner at which the line begins, above it; in pixels of the photograph. */
  readonly corners: readonly Point[];
}

/** What the reader runs, on one device. */
export interface ReaderModels {
  /** The engine of the package's detection model. */
  readonly detection: Engine;
  /** The engine of its recognition model. */
  readonly recognition: Engine;
  /** What the recognition's classes stand for. */
  readonly characters: readonly string[];
}

/**
 * Pixels of the longer side of a photograph, as the detection sees it, whatever other photographs
 * are beside it.
 */
const DETECTION_SIDE = 960;
/** The detection halves its input five times. */
const DETECTION_STEP = 32;
/**
 * As it was trained: by the means and deviations of ImageNet. The mean around the photograph
 * becomes 0.
 */
const DETECTION_NORMALISATION = {
  mean: [0.485, 0.456, 0.406],
  deviation: [0.229, 0.224, 0.225],
  color: [124, 116, 104],
};
/** What is computed with one of them takes some 170 MB in ONNX Runtime. */
const PHOTOGRAPHS_AT_ONCE = 4;
/** Rows of a line, as the recognition sees it. */
const LINE_HEIGHT = 48;
/** Its columns: a shorter line is padded with zeros, a longer one is scaled down. */
const LINE_WIDTHS = { least: 320, step: 32, most: 1600 };
const LINE_NORMALISATION = { mean: 0.5, deviation: 0.5, dtype: f32 };
/** Rows of a map that are searched between two reads of the clock: far below a millisecond. */
const ROWS_AT_ONCE = 16;
/**
 * Lines that are read together are of similar widths, so that little of what is computed is
 * padding.
 */
const LINES_AT_ONCE = 16;
/**
 * Lines that are straightened in one turn of the event loop: queueing the kernels of one takes up
 * to half a millisecond the first time.
 */
const LINES_IN_A_TURN = 4;
/** What is read with less certainty is no text. */
const LEAST_SCORE = 0.5;

/** TensorRT needs the shapes that it has to take; ONNX Runtime takes all. */
export const DETECTION_OPTIONS: LoadEngineOptions = {
  tensorrt: {
    shapes: {
      x: {
        min: [1, 3, DETECTION_STEP, DETECTION_STEP],
        opt: [1, 3, DETECTION_SIDE, DETECTION_SIDE],
        max: [PHOTOGRAPHS_AT_ONCE, 3, DETECTION_SIDE, DETECTION_SIDE],
      },
    },
  },
};
export const RECOGNITION_OPTIONS: LoadEngineOptions = {
  tensorrt: {
    shapes: {
      x: {
        min: [1, 3, LINE_HEIGHT, LINE_WIDTHS.least],
        opt: [8, 3, LINE_HEIGHT, LINE_WIDTHS.least],
        max: [LINES_AT_ONCE, 3, LINE_HEIGHT, LINE_WIDTHS.most],
      },
    },
  },
};

/** A line to read: which photograph it is on, where, and how wide its picture becomes. */
interface Line {
  readonly photograph: number;
  readonly box: TextBox;
  readonly along: TurnedRectangle;
  readonly width: number;
}

interface ReadLine extends Line {
  readonly reading: Reading;
}

export class TextReader {
  private readonly device: Device;
  private readonly models: ReaderModels;

  /** @param models on the device; they stay the caller's */
  constructor(device: Device, models: ReaderModels) {
    this.device = device;
    this.models = models;
  }

  /** The lines on each photograph, from the top to the bottom, as an operation. */
  read(photographs: readonly Photograph[]): DeviceOp<TextLine[][]> {
    if (photographs.length === 0) return value([]);
    return withPhotographs(this.device, photographs, (images) =>
      this.detect(images)
        .andThen((boxes) => this.recognise(images, boxes))
        .map((lines) =>
          images.map((_, i) => textOf(lines.filter(({ photograph }) => photograph === i))),
        ),
    ).label(`text of ${photographs.length} photographs`);
  }

  /** Boxes around the lines of each photograph. */
  private detect(images: readonly DevicePhotograph[]): DeviceOp<TextBox[][]> {
    return groupByGroup(images, PHOTOGRAPHS_AT_ONCE, (some) => this.detectTogether(some));
  }

  private detectTogether(images: readonly DevicePhotograph[]): DeviceOp<TextBox[][]> {
    const frame = frameOf(images.map(sizeOf));
    return (
      this.device
        .uninitialized(f32, [images.length, 3, frame.height, frame.width])
        .andThen((x) =>
          letterboxNormaliseBatch(images, {
            ...frame,
            ...DETECTION_NORMALISATION,
            dtype: f32,
            out: x,
          }).andThen(() => this.models.detection.infer({ x })),
        )
        .andThen(onlyOutput)
        // The probability of text for each pixel; a byte of it is enough for the host.
        .andThen((maps) =>
          rescale(maps.reshape([images.length, frame.height, frame.width, 1]), u8, {
            scale: MAP_WHITE,
          }),
        )
        // One after the other: all of them would hold the event loop up together.
        .andThen((maps) =>
          groupByGroup(
            images.map((image, i) => ({ size: sizeOf(image), map: maps.slice(i) })),
            1,
            ([each]) => boxesOn(this.device, each!.map, frame, each!.size).map((boxes) => [boxes]),
          ),
        )
    );
  }

  /** The text of each box, in every possible direction of its line. */
  private recognise(
    images: readonly DevicePhotograph[],
    boxes: readonly TextBox[][],
  ): DeviceOp<ReadLine[]> {
    const lines = boxes
      .flatMap((of, photograph) =>
        of.flatMap((box) =>
          directionsOf(box).map((along): Line => ({
            photograph,
            box,
            along,
            width: lineWidth(along),
          })),
        ),
      )
      .sort((a, b) => a.width - b.width);
    return groupByGroup(lines, LINES_AT_ONCE, (some) => this.recogniseTogether(images, some));
  }

  private recogniseTogether(
    images: readonly DevicePhotograph[],
    lines: readonly Line[],
  ): DeviceOp<ReadLine[]> {
    const width = multipleOf(
      LINE_WIDTHS.step,
      Math.max(LINE_WIDTHS.least, ...lines.map((line) => line.width)),
    );
    return (
      this.device
        .zeros(f32, [lines.length, 3, LINE_HEIGHT, width])
        .andThen((x) =>
          someInATurn(
            this.device,
            lines.map(
              (line, i) => () => this.straighten(images[line.photograph]!, line, x.slice(i)),
            ),
            LINES_IN_A_TURN,
          ).andThen(() => this.models.recognition.infer({ x })),
        )
        .andThen(onlyOutput)
        // [lines, steps, classes]: the device finds the likeliest, so that 6625 numbers of each
        // step need not go to the host.
        .andThen((steps) =>
          zip(
            argmax(steps, { axis: -1 }).andThen((classes) => classes.read()),
            max(steps, { axis: -1 }).andThen((scores) => scores.read()),
          ),
        )
        .map(([classes, scores]) =>
          lines.map((line, i) => ({
            ...line,
            reading: decodeSteps(
              part(classes, i, lines.length),
              part(scores, i, lines.length),
              this.models.characters,
            ),
          })),
        )
    );
  }

  /** Into the left of `slot`, [3, 48, W]: turned upright, brought to the size, normalised. */
  private straighten(
    image: DevicePhotograph,
    { along, width }: Line,
    slot: Tensor<'f32', number[]>,
  ): DeviceOp<unknown> {
    return warpAffine(image, lineMatrix(along, width, LINE_HEIGHT), {
      inverse: true,
      width,
      height: LINE_HEIGHT,
      border: 'replicate',
      filter: 'cubic',
    }).andThen((line) =>
      normalise(line, { ...LINE_NORMALISATION, out: slot.slice(null, null, [0, width]) }),
    );
  }
}

/** In turns: a whole map takes some milliseconds, in which the event loop would be held up. */
function boxesOn(
  device: Device,
  map: Tensor<'u8', number[]>,
  frame: Size,
  photograph: Size,
): DeviceOp<TextBox[]> {
  return map.read().andThen((values) =>
    inTurns(device, async (rest) => {
      const search = textSearch(frame.width);
      const step = ROWS_AT_ONCE * frame.width;
      for (let at = 0; at < values.length; at += step) {
        search.add(values.subarray(at, at + step));
        await rest();
      }
      return textBoxes(search.regions(), letterboxPlacement(photograph, frame), photograph, rest);
    }),
  );
}

/**
 * As large as each photograph is with its longer side of {@link DETECTION_SIDE}: none is made
 * smaller for another's sake.
 */
function frameOf(photographs: readonly Size[]): Size {
  const side = (of: 'width' | 'height'): number =>
    Math.max(
      ...photographs.map((each) =>
        multipleOf(DETECTION_STEP, (each[of] * DETECTION_SIDE) / Math.max(each.width, each.height)),
      ),
    );
  return { width: side('width'), height: side('height') };
}

function lineWidth({ width, height }: TurnedRectangle): number {
  return Math.min(LINE_WIDTHS.most, Math.max(1, Math.round((width * LINE_HEIGHT) / height)));
}

/**
 * The reading with the best score of a box that was read in several directions; without empty ones.
 */
function textOf(lines: readonly ReadLine[]): TextLine[] {
  const best = new Map<TextBox, ReadLine>();
  for (const line of lines) {
    if (line.reading.score > (best.get(line.box)?.reading.score ?? 0)) best.set(line.box, line);
  }
  return [...best.values()]
    .filter(({ reading }) => reading.score >= LEAST_SCORE && reading.text !== '')
    .sort((a, b) => a.box.y - b.box.y || a.box.x - b.box.x)
    .map(({ reading, along }) => ({ ...reading, corners: cornersOf(along) }));
}

/** The models have one output each, which is closed after its use. */
function onlyOutput(
  outputs: Readonly<Record<string, AnyTensor>>,
): DeviceOp<Tensor<'f32', number[]>> {
  return value(Object.values(outputs)[0] as Tensor<'f32', number[]>);
}

/**
 * What is made of `most` items at a time, in order. A group begins when the one before has its
 * results on the host: its memory is free by then, and queueing it, some kernels for each item, is
 * a turn of the event loop of its own.
 */
function groupByGroup<T, U>(
  items: readonly T[],
  most: number,
  make: (some: readonly T[]) => DeviceOp<U[]>,
): DeviceOp<U[]> {
  const groups = Array.from({ length: Math.ceil(items.length / most) }, (_, i) =>
    items.slice(i * most, (i + 1) * most),
  );
  return groups.reduce<DeviceOp<U[]>>(
    (before, some) => before.andThen((made) => make(some).map((more) => [...made, ...more])),
    value([]),
  );
}

/** At least `step`. */
function multipleOf(step: number, least: number): number {
  return step * Math.max(1, Math.ceil(least / step));
}

/** The i-th of `count` equal parts. */
function part<A extends Float32Array | Int32Array>(whole: A, i: number, count: number): A {
  const size = whole.length / count;
  return whole.subarray(i * size, (i + 1) * size) as A;
}
