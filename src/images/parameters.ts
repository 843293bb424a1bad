/** Parameters of operations on images, which the engines read. */
import type { Border } from './border.js';
import type { Region } from './crop.js';
import type { Image } from './image.js';
import type { LumaMatrix } from './luma.js';
import type { Filter, ResizeFilter } from './sampling.js';
import type { YuvFormat } from './yuv-frame.js';
import type { YuvRange } from './yuv-matrices.js';

/** Parameters of arithmetic. With one image, the other operand is a number for each channel. */
export interface Arithmetic {
  readonly constants: readonly number[] | undefined;
  readonly scale: number;
}

/** Parameters of blending; the images are front and back. */
export interface Blending {
  readonly premultiplied: boolean;
  readonly opacity: number;
}

/** Parameters of a normalisation: element x of channel c becomes x · factors[c] + summands[c]. */
export interface Normalising {
  readonly factors: readonly number[];
  readonly summands: readonly number[];
  readonly order: TensorOrder;
}

/** Parameters of a conversion of dtypes: numbers for each channel. */
export interface Rescaling {
  readonly scales: readonly number[];
  readonly offsets: readonly number[];
}

/** How elements are replaced: see {@link threshold}. */
export type ThresholdKind = 'binary' | 'binaryInverse' | 'toZero' | 'toZeroInverse' | 'truncate';

/** Parameters of a threshold: numbers for each channel. */
export interface Thresholding {
  readonly kind: ThresholdKind;
  readonly limits: readonly number[];
  readonly values: readonly number[];
}

/** Parameters of a histogram. */
export interface Counting {
  readonly bins: number;
  readonly from: number;
  readonly to: number;
  /** Whether each value of u8 is a bin. */
  readonly bytes: boolean;
}

/** Parameters of a border: the place of the image in the result, and the border's pixels. */
export interface BorderParameters {
  readonly left: number;
  readonly top: number;
  readonly border: Border;
  readonly color: readonly number[];
}

/** Parameters of a letterbox: the place of the image in the frame. */
export interface LetterboxParameters {
  readonly region: Region;
  readonly filter: ResizeFilter;
  readonly color: readonly number[];
}

/**
 * `horizontal` exchanges left and right, `vertical` top and bottom; `both` exchanges both, which is
 * half a turn.
 */
export type Flip = 'horizontal' | 'vertical' | 'both';

/** Parameters of `mirror`. */
export interface MirrorParameters {
  readonly flip: Flip;
}

/** Parameters of `rotateQuarters`: 0 to 3 quarters, counter-clockwise. */
export interface QuarterParameters {
  readonly quarters: number;
}

/** Parameters of resizing. */
export interface ResizeParameters {
  readonly filter: ResizeFilter;
}

/** Parameters of sampling: how pixels are read. */
export interface SamplingParameters {
  readonly filter: Filter;
  readonly border: Border;
  readonly color: readonly number[];
}

/**
 * Parameters of `remap`: images of one channel and f32, of the result's size, one for all images or
 * one for each.
 */
export interface RemapParameters extends SamplingParameters {
  readonly mapX: Image;
  readonly mapY: Image;
}

/**
 * Parameters of warps: the matrix from the result to the image, nine numbers by rows; the last
 * three of an affine one are 0, 0, 1.
 */
export interface WarpParameters extends SamplingParameters {
  readonly matrix: readonly number[];
}

export interface Surroundings {
  readonly border: Border;
  /** The border's colour, for each channel. */
  readonly colors: readonly number[];
}

/**
 * Parameters of a separable filter: the same weights along rows and columns, `weights[k]` at a
 * distance of k pixels.
 */
export interface SeparableFiltering extends Surroundings {
  readonly weights: readonly number[];
  /** The deviation of a Gaussian. */
  readonly sigma?: number;
}

/** Parameters of a filter: rows of weights. */
export interface Filtering extends Surroundings {
  readonly weights: readonly (readonly number[])[];
}

/** Parameters of an order: channel `order[c]` of the image becomes channel c. */
export interface ChannelOrder {
  readonly order: readonly number[];
}

/** The meaning of the channels of a pixel. */
export type ColorFormat = 'rgb' | 'bgr' | 'rgba' | 'bgra' | 'grey' | 'hsv';

/** Parameters of a conversion of colours. */
export interface ColorConversion {
  readonly from: ColorFormat;
  readonly to: ColorFormat;
  readonly matrix: LumaMatrix;
}

/** Parameters of a conversion between YUV and RGB. */
export interface YuvConversion {
  readonly format: YuvFormat;
  readonly rgb: RgbFormat;
  readonly matrix: LumaMatrix;
  readonly range: YuvRange;
}

/** The order of axes of a result: channels as planes, or within pixels. */
export type TensorOrder = 'nchw' | 'nhwc';

/** Colour formats besides YUV. */
export type RgbFormat = 'rgb' | 'bgr' | 'rgba' | 'bgra';
