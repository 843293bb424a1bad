/** What operations on images are told beside the images: what every engine reads. */
import type { Border } from './border.js';
import type { Region } from './crop.js';
import type { Image } from './image.js';
import type { LumaMatrix } from './luma.js';
import type { Filter, ResizeFilter } from './sampling.js';
import type { YuvFormat } from './yuv-frame.js';
import type { YuvRange } from './yuv-matrices.js';

/**
 * What an engine is told. Where there is one image, the other operand is a number for each channel.
 */
export interface Arithmetic {
  readonly constants: readonly number[] | undefined;
  readonly scale: number;
}

/** What an engine is told; the images are front and back. */
export interface Blending {
  readonly premultiplied: boolean;
  readonly opacity: number;
}

/** What an engine is told: an element x of channel c becomes x · factors[c] + summands[c]. */
export interface Normalising {
  readonly factors: readonly number[];
  readonly summands: readonly number[];
  readonly order: TensorOrder;
}

/** What an engine is told: numbers for each channel. */
export interface Rescaling {
  readonly scales: readonly number[];
  readonly offsets: readonly number[];
}

/** What becomes of elements: see {@link threshold}. */
export type ThresholdKind = 'binary' | 'binaryInverse' | 'toZero' | 'toZeroInverse' | 'truncate';

/** What an engine is told: numbers for each channel. */
export interface Thresholding {
  readonly kind: ThresholdKind;
  readonly limits: readonly number[];
  readonly values: readonly number[];
}

/** What an engine is told. */
export interface Counting {
  readonly bins: number;
  readonly from: number;
  readonly to: number;
  /** Whether each value of u8 is a bin. */
  readonly bytes: boolean;
}

/** Where the image lies in the result. */
export interface BorderParameters {
  readonly left: number;
  readonly top: number;
  readonly border: Border;
  readonly color: readonly number[];
}

/** Where the image is to lie in the frame. */
export interface LetterboxParameters {
  readonly region: Region;
  readonly filter: ResizeFilter;
  readonly color: readonly number[];
}

/**
 * `horizontal`: left and right are exchanged; `vertical`: top and bottom; `both`: both, which is
 * half a turn.
 */
export type Flip = 'horizontal' | 'vertical' | 'both';

/** Of mirror. */
export interface MirrorParameters {
  readonly flip: Flip;
}

/** Of rotateQuarters: 0 to 3, counter-clockwise. */
export interface QuarterParameters {
  readonly quarters: number;
}

/** How a resize is to be done. */
export interface ResizeParameters {
  readonly filter: ResizeFilter;
}

/** How pixels are read. */
export interface SamplingParameters {
  readonly filter: Filter;
  readonly border: Border;
  readonly color: readonly number[];
}

/**
 * Of remap: images of one channel and f32, of the result's size, one for all images or one for
 * each.
 */
export interface RemapParameters extends SamplingParameters {
  readonly mapX: Image;
  readonly mapY: Image;
}

/**
 * Of warps: from the result to the image, nine numbers by rows; of an affine one the last three are
 * 0, 0, 1.
 */
export interface WarpParameters extends SamplingParameters {
  readonly matrix: readonly number[];
}

export interface Surroundings {
  readonly border: Border;
  /** For each channel. */
  readonly colors: readonly number[];
}

/**
 * What an engine is told of a separable filter: the same weights along rows and columns,
 * `weights[k]` at a distance of k pixels.
 */
export interface SeparableFiltering extends Surroundings {
  readonly weights: readonly number[];
  /** Where it is a Gaussian. */
  readonly sigma?: number;
}

/** What an engine is told of a filter: rows of weights. */
export interface Filtering extends Surroundings {
  readonly weights: readonly (readonly number[])[];
}

/** What an engine is told: channel `order[c]` of the image becomes channel c. */
export interface ChannelOrder {
  readonly order: readonly number[];
}

/** How the channels of a pixel are to be read. */
export type ColorFormat = 'rgb' | 'bgr' | 'rgba' | 'bgra' | 'grey' | 'hsv';

/** What an engine is told. */
export interface ColorConversion {
  readonly from: ColorFormat;
  readonly to: ColorFormat;
  readonly matrix: LumaMatrix;
}

/** What an engine is told. */
export interface YuvConversion {
  readonly format: YuvFormat;
  readonly rgb: RgbFormat;
  readonly matrix: LumaMatrix;
  readonly range: YuvRange;
}

/** Where the channels of a result lie: as planes, or in pixels. */
export type TensorOrder = 'nchw' | 'nhwc';

/** Formats of colour beside YUV. */
export type RgbFormat = 'rgb' | 'bgr' | 'rgba' | 'bgra';
