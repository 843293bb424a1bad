/** The kernels that letterbox images: for one image or a batch, and for several in one launch. */
import { KernelFamily, type Gpu, type Input, type Output } from '../library/kernel-family.js';
import type { Proportions } from './proportions.js';
import type { Sources } from './several-sources.js';

/** Rows of a thread. */
export const ROWS = 4;

/** Where an image lies in a letterbox, in pixels of the result. */
export interface Placement {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** A source: its size and pitch, its place in the result, and the ratio of the sizes. */
export interface Source extends Proportions {
  readonly columns: number;
  readonly rows: number;
  readonly xRow: number;
  readonly left: number;
  readonly top: number;
  readonly innerWidth: number;
  readonly innerHeight: number;
}

/** x of channel c becomes x · factor c + summand c; around the image there is pad c. */
export interface Numbers {
  readonly factor0: number;
  readonly factor1: number;
  readonly factor2: number;
  readonly factor3: number;
  readonly summand0: number;
  readonly summand1: number;
  readonly summand2: number;
  readonly summand3: number;
  readonly pad0: number;
  readonly pad1: number;
  readonly pad2: number;
  readonly pad3: number;
}

/** The result. */
export interface Result {
  readonly out: Output;
  readonly width: number;
  readonly height: number;
  readonly oImage: number;
  readonly oRow: number;
  readonly oPlane: number;
}

/** Functions and constants of the kernels. */
interface LetterboxGpu extends Gpu {
  readonly ROWS: number;
  /**
   * Writes the pixels of one column, from row `firstRow` on, of images that begin at `to` and
   * `from`.
   */
  pixels(
    out: Output,
    to: number,
    oRow: number,
    oPlane: number,
    height: number,
    x: Input,
    from: number,
    column: number,
    firstRow: number,
    columns: number,
    rows: number,
    xRow: number,
    left: number,
    top: number,
    innerWidth: number,
    innerHeight: number,
    fromX: number,
    toX: number,
    fromY: number,
    toY: number,
    factor0: number,
    factor1: number,
    factor2: number,
    factor3: number,
    summand0: number,
    summand1: number,
    summand2: number,
    summand3: number,
    pad0: number,
    pad1: number,
    pad2: number,
    pad3: number,
  ): void;
}

/** Constants of {@link pixels}. */
interface FilterGpu extends Gpu {
  readonly C: number;
  /** Elements from one column of the result to the next. */
  readonly STEP: number;
  readonly ROWS: number;
  /** Whether x is words of four elements of u8. */
  readonly WORDS: boolean;
}

export const pixels: (...args: [...Parameters<LetterboxGpu['pixels']>, gpu: FilterGpu]) => void = (
  out,
  to,
  oRow,
  oPlane,
  height,
  x,
  from,
  column,
  firstRow,
  columns,
  rows,
  xRow,
  left,
  top,
  innerWidth,
  innerHeight,
  fromX,
  toX,
  fromY,
  toY,
  factor0,
  factor1,
  factor2,
  factor3,
  summand0,
  summand1,
  summand2,
  summand3,
  pad0,
  pad1,
  pad2,
  pad3,
  gpu,
) => {
  const begin = to + column * gpu.STEP;
  const inside = column >= left && column < left + innerWidth;
  const factor = gpu.local.f32(4);
  const summand = gpu.local.f32(4);
  const pad = gpu.local.f32(4);
  factor[0] = factor0;
  factor[1] = factor1;
  factor[2] = factor2;
  factor[3] = factor3;
  summand[0] = summand0;
  summand[1] = summand1;
  summand[2] = summand2;
  summand[3] = summand3;
  pad[0] = pad0;
  pad[1] = pad1;
  pad[2] = pad2;
  pad[3] = pad3;
  // The source column is wholeX and a fraction. Beyond an edge the pixel at the edge has all the
  // weight.
  const overX = (2 * (column - left) + 1) * fromX - toX;
  const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
  const first = Math.min(Math.max(wholeX, 0), Math.max(columns - 2, 0));
  const second = Math.min(first + 1, columns - 1);
  const fx =
    wholeX < 0
      ? gpu.f32(0)
      : wholeX > first
        ? gpu.f32(1)
        : gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
  gpu.unroll(gpu.ROWS);
  for (let r = 0; r < gpu.ROWS; r++) {
    const row = firstRow + r;
    if (row < height) {
      const made = gpu.local.f32(4);
      const inner = row - top;
      if (inside && inner >= 0 && inner < innerHeight) {
        const overY = (2 * inner + 1) * fromY - toY;
        const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
        const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
        const above = from + Math.max(wholeY, 0) * xRow;
        const below = from + Math.min(wholeY + 1, rows - 1) * xRow;
        const lower = fx * fy;
        const upper = fx - lower;
        const down = fy - lower;
        const stay = 1 - fx - down;
        if (gpu.WORDS) {
          const at = first * gpu.C;
          const shift = (at & 3) * 8;
          const word = at >>> 2;
          const third = word + 1 + (gpu.C === 3 && shift === 24 ? 1 : 0);
          const a = gpu.u64(x[above + word]!) | (gpu.u64(x[above + word + 1]!) << 32);
          const b = gpu.u64(x[below + word]!) | (gpu.u64(x[below + word + 1]!) << 32);
          const pixelsAbove = a >>> shift;
          const pixelsBelow = b >>> shift;
          const restAbove = gpu.C === 3 && shift === 24 ? x[above + third]! << 8 : gpu.u32(0);
          const restBelow = gpu.C === 3 && shift === 24 ? x[below + third]! << 8 : gpu.u32(0);
          const lowAbove = gpu.u32(pixelsAbove);
          const lowBelow = gpu.u32(pixelsBelow);
          const highAbove = gpu.u32(pixelsAbove >>> 32) | restAbove;
          const highBelow = gpu.u32(pixelsBelow >>> 32) | restBelow;
          gpu.unroll(gpu.C);
          for (let c = 0; c < gpu.C; c++) {
            const next = gpu.C + c;
            const e00 = gpu.f32((lowAbove >>> (8 * c)) & 255);
            const e10 = gpu.f32((lowBelow >>> (8 * c)) & 255);
            const e01 = gpu.f32(((next < 4 ? lowAbove : highAbove) >>> (8 * (next & 3))) & 255);
            const e11 = gpu.f32(((next < 4 ? lowBelow : highBelow) >>> (8 * (next & 3))) & 255);
            const value = e11 * lower + (e10 * down + (e01 * upper + e00 * stay));
            made[c] = value * factor[c]! + summand[c]!;
          }
        } else {
          gpu.unroll(gpu.C);
          for (let c = 0; c < gpu.C; c++) {
            const e00 = gpu.f32(x[above + first * gpu.C + c]!);
            const e01 = gpu.f32(x[above + second * gpu.C + c]!);
            const e10 = gpu.f32(x[below + first * gpu.C + c]!);
            const e11 = gpu.f32(x[below + second * gpu.C + c]!);
            const value = e11 * lower + (e10 * down + (e01 * upper + e00 * stay));
            made[c] = value * factor[c]! + summand[c]!;
          }
        }
      } else {
        gpu.unroll(gpu.C);
        for (let c = 0; c < gpu.C; c++) made[c] = pad[c]!;
      }
      gpu.unroll(gpu.C);
      for (let c = 0; c < gpu.C; c++) out[begin + row * oRow + c * oPlane] = made[c]!;
    }
  }
};

/** The kernel for an image or a batch: blockIdx.z is the image. */
export const letterboxes = new KernelFamily(
  'letterbox_normalise',
  (
    args: Result & Source & Numbers & { readonly x: Input; readonly xImage: number },
    gpu: LetterboxGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= args.width) return;
    const z = gpu.blockIdx.z;
    gpu.pixels(
      args.out,
      z * args.oImage,
      args.oRow,
      args.oPlane,
      args.height,
      args.x,
      z * args.xImage,
      column,
      gpu.blockIdx.y * gpu.ROWS,
      args.columns,
      args.rows,
      args.xRow,
      args.left,
      args.top,
      args.innerWidth,
      args.innerHeight,
      args.fromX,
      args.toX,
      args.fromY,
      args.toY,
      args.factor0,
      args.factor1,
      args.factor2,
      args.factor3,
      args.summand0,
      args.summand1,
      args.summand2,
      args.summand3,
      args.pad0,
      args.pad1,
      args.pad2,
      args.pad3,
    );
  },
);

/** The kernel for images of several sizes into one batch: blocks of one z have one source. */
export const severals = new KernelFamily(
  'letterbox_normalise_batch',
  (
    {
      out,
      width,
      height,
      oImage,
      oRow,
      oPlane,
      x0,
      x1,
      x2,
      x3,
      x4,
      x5,
      x6,
      x7,
      s0,
      s1,
      s2,
      s3,
      s4,
      s5,
      s6,
      s7,
      n,
    }: Result & Sources<Source> & { readonly n: Numbers },
    gpu: LetterboxGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const z = gpu.blockIdx.z;
    const to = z * oImage;
    const row = gpu.blockIdx.y * gpu.ROWS;
    if (z === 0)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x0,
        0,
        column,
        row,
        s0.columns,
        s0.rows,
        s0.xRow,
        s0.left,
        s0.top,
        s0.innerWidth,
        s0.innerHeight,
        s0.fromX,
        s0.toX,
        s0.fromY,
        s0.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 1)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x1,
        0,
        column,
        row,
        s1.columns,
        s1.rows,
        s1.xRow,
        s1.left,
        s1.top,
        s1.innerWidth,
        s1.innerHeight,
        s1.fromX,
        s1.toX,
        s1.fromY,
        s1.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 2)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x2,
        0,
        column,
        row,
        s2.columns,
        s2.rows,
        s2.xRow,
        s2.left,
        s2.top,
        s2.innerWidth,
        s2.innerHeight,
        s2.fromX,
        s2.toX,
        s2.fromY,
        s2.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 3)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x3,
        0,
        column,
        row,
        s3.columns,
        s3.rows,
        s3.xRow,
        s3.left,
        s3.top,
        s3.innerWidth,
        s3.innerHeight,
        s3.fromX,
        s3.toX,
        s3.fromY,
        s3.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 4)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x4,
        0,
        column,
        row,
        s4.columns,
        s4.rows,
        s4.xRow,
        s4.left,
        s4.top,
        s4.innerWidth,
        s4.innerHeight,
        s4.fromX,
        s4.toX,
        s4.fromY,
        s4.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 5)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x5,
        0,
        column,
        row,
        s5.columns,
        s5.rows,
        s5.xRow,
        s5.left,
        s5.top,
        s5.innerWidth,
        s5.innerHeight,
        s5.fromX,
        s5.toX,
        s5.fromY,
        s5.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else if (z === 6)
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x6,
        0,
        column,
        row,
        s6.columns,
        s6.rows,
        s6.xRow,
        s6.left,
        s6.top,
        s6.innerWidth,
        s6.innerHeight,
        s6.fromX,
        s6.toX,
        s6.fromY,
        s6.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
    else
      gpu.pixels(
        out,
        to,
        oRow,
        oPlane,
        height,
        x7,
        0,
        column,
        row,
        s7.columns,
        s7.rows,
        s7.xRow,
        s7.left,
        s7.top,
        s7.innerWidth,
        s7.innerHeight,
        s7.fromX,
        s7.toX,
        s7.fromY,
        s7.toY,
        n.factor0,
        n.factor1,
        n.factor2,
        n.factor3,
        n.summand0,
        n.summand1,
        n.summand2,
        n.summand3,
        n.pad0,
        n.pad1,
        n.pad2,
        n.pad3,
      );
  },
);
