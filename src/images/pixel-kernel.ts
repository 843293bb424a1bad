/**
 * The kernel that computes each pixel of a result from the pixels at its place. Elements are loaded
 * as f32 (or as words, where they are only moved), computed by a device function, and rounded once.
 * A thread has four pixels, which it reads and writes four elements at a time where rows begin at
 * multiples of four elements.
 */
import { f32, i32, i64, u16, u32, u8 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import type { Usable } from '../kernels/index.js';
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, KernelArray, Member, Output } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { QUAD, WIDE_FROM, apart, pixelRuns } from './pixel-runs.js';
import type { PixelLayout } from './pixel-runs.js';
import { STORED } from './rounding.js';

const BLOCK = 256;
/** Numbers that a call passes to the kernel. */
const NUMBERS = 8;

/** Computes a pixel `to` from pixels of up to two images and the numbers of the call. */
export type PixelFunction = (
  to: KernelArray<number>,
  from: KernelArray<number>,
  other: KernelArray<number>,
  p: KernelArray<number>,
) => void;

interface PixelGpu extends Gpu {
  /** Channels of the first image, of the second (0 where there is none), and of the result. */
  readonly CX: number;
  readonly CY: number;
  readonly CO: number;
  /** Whether the channels are planes. */
  readonly X_PLANES: boolean;
  readonly O_PLANES: boolean;
  /** Elements of a unit of pitches. */
  readonly X_UNIT: number;
  readonly Y_UNIT: number;
  readonly O_UNIT: number;
  /** Arrays of zeros: for four pixels, and for one. */
  quad(): KernelArray<number>;
  pixel(): KernelArray<number>;
  cast(value: number): number;
  f: PixelFunction;
  stored(value: number): number;
}

interface PixelArgs {
  readonly out: Output;
  readonly x: Input;
  readonly y: Input;
  readonly width: number;
  readonly xImage: number;
  readonly xRow: number;
  readonly xPlane: number;
  readonly yImage: number;
  readonly yRow: number;
  readonly oImage: number;
  readonly oRow: number;
  readonly oPlane: number;
  readonly p0: number;
  readonly p1: number;
  readonly p2: number;
  readonly p3: number;
  readonly p4: number;
  readonly p5: number;
  readonly p6: number;
  readonly p7: number;
}

const pixels = new KernelFamily(
  'pixels',
  (
    {
      out,
      x,
      y,
      width,
      xImage,
      xRow,
      xPlane,
      yImage,
      yRow,
      oImage,
      oRow,
      oPlane,
      p0,
      p1,
      p2,
      p3,
      p4,
      p5,
      p6,
      p7,
    }: PixelArgs,
    gpu: PixelGpu,
  ) => {
    const first = gpu.globalId.x * 4;
    if (first >= width) return;
    const { y: row, z: image } = gpu.blockIdx;
    const p = gpu.local.f32(8);
    p[0] = p0;
    p[1] = p1;
    p[2] = p2;
    p[3] = p3;
    p[4] = p4;
    p[5] = p5;
    p[6] = p6;
    p[7] = p7;
    const xAt = (image * xImage + row * xRow) * gpu.X_UNIT;
    const yAt = (image * yImage + row * yRow) * gpu.Y_UNIT;
    const oAt = (image * oImage + row * oRow) * gpu.O_UNIT;
    if (first + 4 <= width) {
      const from = gpu.quad();
      const other = gpu.quad();
      const to = gpu.quad();
      if (gpu.X_PLANES) {
        gpu.unroll(gpu.CX);
        for (let c = 0; c < gpu.CX; c++) {
          gpu.unroll(4);
          for (let k = 0; k < 4; k++)
            from[k * 4 + c] = gpu.cast(x[xAt + c * xPlane * gpu.X_UNIT + first + k]!);
        }
      } else {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++) {
          gpu.unroll(gpu.CX);
          for (let c = 0; c < gpu.CX; c++)
            from[k * 4 + c] = gpu.cast(x[xAt + first * gpu.CX + k * gpu.CX + c]!);
        }
      }
      gpu.unroll(4);
      for (let k = 0; k < 4; k++) {
        gpu.unroll(4);
        for (let c = 0; c < gpu.CY; c++)
          other[k * 4 + c] = gpu.cast(y[yAt + first * gpu.CY + k * gpu.CY + c]!);
      }
      gpu.unroll(4);
      for (let k = 0; k < 4; k++) {
        const one = gpu.pixel();
        const two = gpu.pixel();
        const made = gpu.pixel();
        gpu.unroll(4);
        for (let c = 0; c < 4; c++) {
          one[c] = from[k * 4 + c]!;
          two[c] = other[k * 4 + c]!;
        }
        gpu.f(made, one, two, p);
        gpu.unroll(4);
        for (let c = 0; c < 4; c++) to[k * 4 + c] = made[c]!;
      }
      if (gpu.O_PLANES) {
        gpu.unroll(gpu.CO);
        for (let c = 0; c < gpu.CO; c++) {
          gpu.unroll(4);
          for (let k = 0; k < 4; k++)
            out[oAt + c * oPlane * gpu.O_UNIT + first + k] = gpu.stored(to[k * 4 + c]!);
        }
      } else {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++) {
          gpu.unroll(gpu.CO);
          for (let c = 0; c < gpu.CO; c++)
            out[oAt + first * gpu.CO + k * gpu.CO + c] = gpu.stored(to[k * 4 + c]!);
        }
      }
    } else {
      gpu.unroll(1);
      for (let at = first; at < width; at++) {
        const one = gpu.pixel();
        const two = gpu.pixel();
        const made = gpu.pixel();
        gpu.unroll(4);
        for (let c = 0; c < gpu.CX; c++)
          one[c] = gpu.cast(
            x[gpu.X_PLANES ? xAt + c * xPlane * gpu.X_UNIT + at : xAt + at * gpu.CX + c]!,
          );
        gpu.unroll(4);
        for (let c = 0; c < gpu.CY; c++) two[c] = gpu.cast(y[yAt + at * gpu.CY + c]!);
        gpu.f(made, one, two, p);
        gpu.unroll(4);
        for (let c = 0; c < gpu.CO; c++)
          out[gpu.O_PLANES ? oAt + c * oPlane * gpu.O_UNIT + at : oAt + at * gpu.CO + c] =
            gpu.stored(made[c]!);
      }
    }
  },
);

const COMPUTED = {
  quad: (gpu: Gpu): KernelArray<number> => gpu.local.f32(16),
  pixel: (gpu: Gpu): KernelArray<number> => gpu.local.f32(4),
  cast: (value: number, gpu: Gpu): number => gpu.f32(value),
} as const;
const MOVED = {
  quad: (gpu: Gpu): KernelArray<number> => gpu.local.u32(16),
  pixel: (gpu: Gpu): KernelArray<number> => gpu.local.u32(4),
  cast: (value: number, gpu: Gpu): number => gpu.u32(value),
  stored: (value: number): number => value,
} as const;
const WORDS: Readonly<Record<number, KernelDType>> = { 1: u8, 2: u16, 4: u32 };

/** A pixel function and its numbers. */
export interface PixelWork {
  /** A key that is different for each function and its constants, of letters, digits and _. */
  readonly key: string;
  readonly f: Usable;
  /** Numbers of the call, at most {@link NUMBERS}, which are rounded to f32. */
  readonly numbers?: readonly number[];
  /** Whether elements are only moved: they are then words of their bytes, in u32. */
  readonly moves?: boolean;
}

/** Adds the launch that computes `out` from one or two images of the same size. */
export function addPixels(
  work: Work,
  { key, f, numbers = [], moves = false }: PixelWork,
  given: readonly [PixelLayout] | readonly [PixelLayout, PixelLayout],
  out: PixelLayout,
): void {
  const images = given.map((each) => apart(work, each, out)) as [PixelLayout, PixelLayout?];
  const { images: count, rows, width, each } = pixelRuns([out, ...(images as PixelLayout[])]);
  const [o, x, y = x] = each as [(typeof each)[0], (typeof each)[0], (typeof each)[0] | undefined];
  const wide = each.some(({ elements }) => elements.size >= WIDE_FROM);
  const typed = ({ elements }: { elements: KernelTensor }): KernelTensor =>
    moves ? elements.reinterpret(WORDS[elements.dtype.bytes]!) : elements;
  const [into, from, other] = [typed(o), typed(x), typed(y)];
  const unit = ({ quads }: { quads: boolean }): number => (quads ? QUAD : 1);
  const constants = {
    CX: images[0].channels,
    CY: images[1]?.channels ?? 0,
    CO: out.channels,
    X_PLANES: x.planar,
    O_PLANES: o.planar,
    X_UNIT: unit(x),
    Y_UNIT: unit(y),
    O_UNIT: unit(o),
  };
  const shapes = Object.values(constants)
    .map((value) => (typeof value === 'boolean' ? Number(value) : value))
    .join('');
  const launch = pixels.member(
    `${key}_${into.dtype.name}_${from.dtype.name}_${shapes}${wide ? '_wide' : ''}`,
    (): Member => {
      const whole = wide ? i64 : i32;
      return {
        signature: {
          out: output(into.dtype),
          x: input(from.dtype),
          y: input(other.dtype),
          width: whole,
          xImage: whole,
          xRow: whole,
          xPlane: whole,
          yImage: whole,
          yRow: whole,
          oImage: whole,
          oRow: whole,
          oPlane: whole,
          p0: f32,
          p1: f32,
          p2: f32,
          p3: f32,
          p4: f32,
          p5: f32,
          p6: f32,
          p7: f32,
        },
        uses: {
          ...constants,
          f,
          ...(moves
            ? MOVED
            : { ...COMPUTED, stored: STORED[into.dtype.name as keyof typeof STORED] }),
        },
        block: BLOCK,
      };
    },
  );
  const p = Object.fromEntries(
    Array.from({ length: NUMBERS }, (_, index) => [`p${index}`, Math.fround(numbers[index] ?? 0)]),
  );
  work.add(
    launch(
      {
        out: into,
        x: from,
        y: other,
        width,
        xImage: x.imagePitch,
        xRow: x.rowPitch,
        xPlane: x.planePitch,
        yImage: y.imagePitch,
        yRow: y.rowPitch,
        oImage: o.imagePitch,
        oRow: o.rowPitch,
        oPlane: o.planePitch,
        ...p,
      },
      { grid: [Math.ceil(width / (BLOCK * QUAD)), rows, count], ...(wide ? { index: 'i64' } : {}) },
    ),
  );
}
