/**
 * Kernels of YUV 4:2:0: a thread has two rows of four pixels, and the two chroma samples of each
 * pair of columns.
 */
import { f32, i32, i64, u8 } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, Member, Output } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import type { KernelTensor } from '../tensor/index.js';
import { flat, isWideSpan } from './image.js';
import type { Image } from './image.js';
import { QUAD } from './pixel-runs.js';
import { STORED } from './rounding.js';
import type { YuvFormat, YuvFrame } from './yuv-frame.js';

const BLOCK = [32, 8] as const;

interface YuvGpu extends Gpu {
  /** Whether U and V have separate planes. */
  readonly PLANES: boolean;
  /**
   * Elements of a unit of pitches: 4 where rows of both begin at multiples of 4 elements, else 1.
   */
  readonly UNIT: number;
  readonly C: number;
  /** The channels of red and blue. */
  readonly R: number;
  readonly B: number;
  /** Gives where the chroma of a pixel begins, in a frame that begins at `start`. */
  chromaOf(
    start: number,
    row: number,
    column: number,
    width: number,
    rows: number,
    framePitch: number,
  ): number;
  stored(value: number): number;
}

/** Rows of I420's chroma planes are half as long as those of luma. */
const chromaOf = (
  start: number,
  row: number,
  column: number,
  width: number,
  rows: number,
  framePitch: number,
  { PLANES, UNIT }: YuvGpu,
): number =>
  PLANES
    ? (start + rows * framePitch) * UNIT + (row / 2) * (width / 2) + column / 2
    : (start + (rows + row / 2) * framePitch) * UNIT + column;

interface YuvArgs {
  readonly out: Output;
  readonly x: Input;
  readonly width: number;
  readonly rows: number;
  readonly framePitch: number;
  readonly frameImage: number;
  readonly pitch: number;
  readonly image: number;
  readonly p0: number;
  readonly p1: number;
  readonly p2: number;
  readonly p3: number;
  readonly p4: number;
  readonly p5: number;
}

const decodes = new KernelFamily(
  'yuv_decode',
  (
    { out, x, width, rows, framePitch, frameImage, pitch, image, p0, p1, p2, p3, p4, p5 }: YuvArgs,
    gpu: YuvGpu,
  ) => {
    const column = gpu.globalId.x * 4;
    const row = gpu.globalId.y * 2;
    if (column >= width || row >= rows) return;
    const n = gpu.blockIdx.z;
    const start = n * frameImage;
    const luma = (start + row * framePitch) * gpu.UNIT + column;
    const chroma = gpu.chromaOf(start, row, column, width, rows, framePitch);
    const second = gpu.PLANES ? (rows / 2) * (width / 2) : 1;
    const step = gpu.PLANES ? 1 : 2;
    const into = (n * image + row * pitch) * gpu.UNIT + column * gpu.C;
    const us = gpu.local.f32(2);
    const vs = gpu.local.f32(2);
    const ys = gpu.local.f32(8);
    const whole = column + 4 <= width;
    if (whole) {
      gpu.unroll(2);
      for (let k = 0; k < 2; k++) {
        us[k] = gpu.f32(x[chroma + k * step]!) - 128;
        vs[k] = gpu.f32(x[chroma + second + k * step]!) - 128;
      }
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++)
          ys[j * 4 + k] = gpu.f32(x[luma + j * framePitch * gpu.UNIT + k]!);
      }
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++) {
          const y = ys[j * 4 + k]! * p0 + p1;
          const u = us[k / 2]!;
          const v = vs[k / 2]!;
          const made = gpu.local.f32(4);
          made[gpu.R] = v * p2 + y;
          made[1] = v * p4 + (u * p3 + y);
          made[gpu.B] = u * p5 + y;
          made[3] = 255;
          gpu.unroll(4);
          for (let c = 0; c < gpu.C; c++)
            out[into + j * pitch * gpu.UNIT + k * gpu.C + c] = gpu.stored(made[c]!);
        }
      }
    } else {
      const u = gpu.f32(x[chroma]!) - 128;
      const v = gpu.f32(x[chroma + second]!) - 128;
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(2);
        for (let k = 0; k < 2; k++) {
          const y = gpu.f32(x[luma + j * framePitch * gpu.UNIT + k]!) * p0 + p1;
          const made = gpu.local.f32(4);
          made[gpu.R] = v * p2 + y;
          made[1] = v * p4 + (u * p3 + y);
          made[gpu.B] = u * p5 + y;
          made[3] = 255;
          gpu.unroll(4);
          for (let c = 0; c < gpu.C; c++)
            out[into + j * pitch * gpu.UNIT + k * gpu.C + c] = gpu.stored(made[c]!);
        }
      }
    }
  },
);

interface EncodeArgs extends Omit<YuvArgs, 'p0' | 'p1' | 'p2' | 'p3' | 'p4' | 'p5'> {
  readonly black: number;
  readonly yr: number;
  readonly yg: number;
  readonly yb: number;
  readonly ur: number;
  readonly ug: number;
  readonly ub: number;
  readonly vr: number;
  readonly vg: number;
  readonly vb: number;
}

const encodes = new KernelFamily(
  'yuv_encode',
  (
    {
      out,
      x,
      width,
      rows,
      framePitch,
      frameImage,
      pitch,
      image,
      black,
      yr,
      yg,
      yb,
      ur,
      ug,
      ub,
      vr,
      vg,
      vb,
    }: EncodeArgs,
    gpu: YuvGpu,
  ) => {
    const column = gpu.globalId.x * 4;
    const row = gpu.globalId.y * 2;
    if (column >= width || row >= rows) return;
    const n = gpu.blockIdx.z;
    const start = n * frameImage;
    const luma = (start + row * framePitch) * gpu.UNIT + column;
    const chroma = gpu.chromaOf(start, row, column, width, rows, framePitch);
    const second = gpu.PLANES ? (rows / 2) * (width / 2) : 1;
    const step = gpu.PLANES ? 1 : 2;
    const from = (n * image + row * pitch) * gpu.UNIT + column * gpu.C;
    const pairs = column + 4 <= width ? 2 : 1;
    if (pairs === 2) {
      const r = gpu.local.f32(8);
      const g = gpu.local.f32(8);
      const b = gpu.local.f32(8);
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++) {
          r[j * 4 + k] = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + gpu.R]!);
          g[j * 4 + k] = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + 1]!);
          b[j * 4 + k] = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + gpu.B]!);
        }
      }
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(4);
        for (let k = 0; k < 4; k++)
          out[luma + j * framePitch * gpu.UNIT + k] = gpu.stored(
            b[j * 4 + k]! * yb + (g[j * 4 + k]! * yg + (r[j * 4 + k]! * yr + black)),
          );
      }
      gpu.unroll(2);
      for (let k = 0; k < 2; k++) {
        const red = r[k * 2]! + r[k * 2 + 1]! + r[k * 2 + 4]! + r[k * 2 + 5]!;
        const green = g[k * 2]! + g[k * 2 + 1]! + g[k * 2 + 4]! + g[k * 2 + 5]!;
        const blue = b[k * 2]! + b[k * 2 + 1]! + b[k * 2 + 4]! + b[k * 2 + 5]!;
        out[chroma + k * step] = gpu.stored(blue * ub + (green * ug + (red * ur + 128)));
        out[chroma + second + k * step] = gpu.stored(blue * vb + (green * vg + (red * vr + 128)));
      }
    } else {
      let red = gpu.f32(0);
      let green = gpu.f32(0);
      let blue = gpu.f32(0);
      gpu.unroll(2);
      for (let j = 0; j < 2; j++) {
        gpu.unroll(2);
        for (let k = 0; k < 2; k++) {
          const r = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + gpu.R]!);
          const g = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + 1]!);
          const b = gpu.f32(x[from + j * pitch * gpu.UNIT + k * gpu.C + gpu.B]!);
          out[luma + j * framePitch * gpu.UNIT + k] = gpu.stored(
            b * yb + (g * yg + (r * yr + black)),
          );
          red += r;
          green += g;
          blue += b;
        }
      }
      out[chroma] = gpu.stored(blue * ub + (green * ug + (red * ur + 128)));
      out[chroma + second] = gpu.stored(blue * vb + (green * vg + (red * vr + 128)));
    }
  },
);

/** The channels of red and blue. */
export interface ColorPlaces {
  readonly red: 0 | 2;
  readonly blue: 0 | 2;
}

/** Adds the launch that converts a frame to an image, or an image to a frame. */
function addYuv(
  work: Work,
  decode: boolean,
  format: YuvFormat,
  frame: YuvFrame,
  image: Image,
  { red, blue }: ColorPlaces,
  numbers: Readonly<Record<string, number>>,
): void {
  const wide = isWideSpan([frame, image]);
  const quads = [frame.rowPitch, frame.imagePitch, image.rowPitch, image.imagePitch].every(
    (pitch) => pitch % QUAD === 0,
  );
  const unit = quads ? QUAD : 1;
  const launch = (decode ? decodes : encodes).member(
    `${format}_${image.channels}_${red}_${unit}${wide ? '_wide' : ''}`,
    (): Member => {
      const whole = wide ? i64 : i32;
      const shared = { PLANES: format === 'i420', UNIT: unit };
      return {
        signature: {
          out: output(u8),
          x: input(u8),
          width: whole,
          rows: whole,
          framePitch: whole,
          frameImage: whole,
          pitch: whole,
          image: whole,
          ...Object.fromEntries(Object.keys(numbers).map((name) => [name, f32])),
        },
        uses: {
          ...shared,
          C: image.channels,
          R: red,
          B: blue,
          chromaOf: deviceFunction(chromaOf as never, { uses: shared }),
          stored: STORED.u8,
        },
        block: BLOCK,
      };
    },
  );
  const [frameElements, imageElements]: readonly KernelTensor[] = [flat(frame), flat(image)];
  work.add(
    launch(
      {
        out: decode ? imageElements : frameElements,
        x: decode ? frameElements : imageElements,
        width: frame.width,
        rows: frame.rows,
        framePitch: frame.rowPitch / unit,
        frameImage: frame.imagePitch / unit,
        pitch: image.rowPitch / unit,
        image: image.imagePitch / unit,
        ...numbers,
      },
      {
        grid: [
          Math.ceil(frame.width / QUAD / BLOCK[0]),
          Math.ceil(frame.rows / 2 / BLOCK[1]),
          frame.batch,
        ],
        ...(wide ? { index: 'i64' } : {}),
      },
    ),
  );
}

/** Adds the launch that converts a frame to an image. */
export function addYuvDecode(
  work: Work,
  format: YuvFormat,
  frame: YuvFrame,
  image: Image,
  places: ColorPlaces,
  factors: readonly number[],
): void {
  addYuv(
    work,
    true,
    format,
    frame,
    image,
    places,
    Object.fromEntries(factors.map((factor, index) => [`p${index}`, Math.fround(factor)])),
  );
}

/**
 * Adds the launch that converts an image to a frame. Factors of sums of four pixels are a quarter
 * of those of one pixel.
 */
export function addYuvEncode(
  work: Work,
  format: YuvFormat,
  frame: YuvFrame,
  image: Image,
  places: ColorPlaces,
  {
    black,
    y,
    u,
    v,
  }: {
    readonly black: number;
    readonly y: readonly number[];
    readonly u: readonly number[];
    readonly v: readonly number[];
  },
): void {
  const [yr, yg, yb] = y.map(Math.fround) as [number, number, number];
  const [ur, ug, ub] = u.map((factor) => Math.fround(factor / 4)) as [number, number, number];
  const [vr, vg, vb] = v.map((factor) => Math.fround(factor / 4)) as [number, number, number];
  addYuv(work, false, format, frame, image, places, { black, yr, yg, yb, ur, ug, ub, vr, vg, vb });
}
