/**
 * Images as runs of adjacent pixels, which are as long as all images of an operation permit. Images
 * without gaps are one run; in others each row is a run.
 */
import type { Work } from '../library/operation.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { layoutOf } from '../tensor/layout.js';
import type { Image } from './image.js';

/** Where the pixels of images lie in a buffer, in elements. */
export interface PixelLayout {
  readonly tensor: KernelTensor;
  readonly batch: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  /**
   * Whether each channel is a plane, `planePitch` after the one before. Otherwise the channels of a
   * pixel are adjacent.
   */
  readonly planar: boolean;
  readonly rowPitch: number;
  readonly planePitch: number;
  readonly imagePitch: number;
}

/** Gives the layout of a packed image, in which the channels of a pixel are adjacent. */
export function packed(image: Image): PixelLayout {
  return { ...image, planar: false, planePitch: 0 };
}

/** Gives the layout of a tensor of [C, H, W] or [N, C, H, W], whose rows are contiguous. */
export function planes(tensor: KernelTensor): PixelLayout {
  const [channels, height, width] = tensor.shape.slice(-3) as [number, number, number];
  const [planePitch, rowPitch] = tensor.strides.slice(-3) as [number, number];
  const batched = tensor.rank === 4;
  return {
    tensor,
    batch: batched ? tensor.shape[0]! : 1,
    height,
    width,
    channels,
    planar: true,
    rowPitch,
    planePitch,
    imagePitch: batched ? tensor.strides[0]! : 0,
  };
}

/** Runs of pixels that several images have in common. */
export interface PixelRuns {
  readonly images: number;
  readonly rows: number;
  /** Pixels of a run. */
  readonly width: number;
  readonly each: readonly PixelRun[];
}

/** The place of one image's runs. */
export interface PixelRun {
  /** The elements as one axis, as kernels index them. */
  readonly elements: KernelTensor;
  readonly planar: boolean;
  /**
   * Whether pitches are in units of {@link QUAD} elements, which are then read and written at once.
   */
  readonly quads: boolean;
  readonly rowPitch: number;
  readonly planePitch: number;
  readonly imagePitch: number;
}

/** Elements from which on indices, also those of threads after the end, do not fit in 32 bits. */
export const WIDE_FROM = 2 ** 31 - 2 ** 17;
/** Elements that one instruction reads or writes. */
export const QUAD = 4;

/**
 * Gives the fewest runs that all layouts permit. They have the same number of images, rows and
 * columns.
 */
export function pixelRuns(layouts: readonly PixelLayout[]): PixelRuns {
  let { batch: images, height: rows, width } = layouts[0]!;
  const step = ({ planar, channels }: PixelLayout): number => (planar ? 1 : channels);
  if (layouts.every((each) => rows === 1 || each.rowPitch === width * step(each)))
    [rows, width] = [1, rows * width];
  if (
    rows === 1 &&
    layouts.every(
      (each) => images === 1 || (!each.planar && each.imagePitch === width * each.channels),
    )
  )
    [images, width] = [1, images * width];
  return {
    images,
    rows,
    width,
    each: layouts.map((layout) => {
      const pitches = [
        images === 1 ? 0 : layout.imagePitch,
        rows === 1 ? 0 : layout.rowPitch,
        layout.planar ? layout.planePitch : 0,
      ] as const;
      const quads = pitches.every((pitch) => pitch % QUAD === 0);
      const [imagePitch, rowPitch, planePitch] = pitches.map((pitch) =>
        quads ? pitch / QUAD : pitch,
      ) as [number, number, number];
      return {
        elements: elementsOf(layout),
        planar: layout.planar,
        quads,
        imagePitch,
        rowPitch,
        planePitch,
      };
    }),
  };
}

/** Gives the elements from the first to the last, with the gaps between them. */
export function elementsOf({
  tensor,
  batch,
  height,
  width,
  channels,
  planar,
  rowPitch,
  planePitch,
  imagePitch,
}: PixelLayout): KernelTensor {
  const length =
    (batch - 1) * imagePitch +
    (height - 1) * rowPitch +
    (planar ? (channels - 1) * planePitch + width : width * channels);
  return new Tensor(tensor.buffer, layoutOf([length], [1], tensor.layout.offset), false);
}

/**
 * Gives the layout, or that of a copy where its rows lie between those of the result, as for two
 * regions of one image: the check of a launch compares spans of memory.
 */
export function apart(work: Work, layout: PixelLayout, out: PixelLayout): PixelLayout {
  const { tensor } = layout;
  if (tensor.buffer.memory !== out.tensor.buffer.memory) return layout;
  const [a, b] = [layout, out].map((each) => {
    const elements = elementsOf(each);
    const start = elements.buffer.byteOffset + elements.layout.offset * elements.dtype.bytes;
    return { start, end: start + elements.byteLength };
  }) as [{ start: number; end: number }, { start: number; end: number }];
  if (a.start >= b.end || b.start >= a.end) return layout;
  const copy = work.temporary(tensor.dtype, [...tensor.shape]) as unknown as KernelTensor;
  work.add(copy.copyFrom(tensor));
  if (layout.planar) return planes(copy);
  const rowPitch = layout.width * layout.channels;
  return { ...layout, tensor: copy, rowPitch, imagePitch: layout.height * rowPitch };
}
