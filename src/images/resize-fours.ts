/**
 * `linear` of u8 with three channels, four pixels of a row at a time, by words: the kernel of
 * resizing on GPUs where rows begin at multiples of four bytes. The kernel of single pixels has 12
 * loads and 3 stores of bytes for each pixel, and a conversion for each byte; here a pixel has 6
 * loads of words, four pixels have 3 stores, and conversions are additions. For 32 images of 1920 ×
 * 1080 to 640 × 640 an H200 takes 0.075 ms, with single pixels 0.085 to 0.116, and NPP takes 0.104
 * (`bench/images/resize-variants.ts`, which measures other kernels too). The bytes are the same.
 *
 * The CPU device takes a third longer with it than with the kernel of single pixels (6.3 ms an
 * image instead of 4.8), and uses the latter.
 */
import { i32, u32 } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Launchable } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import { inLaunches } from './image-launch.js';
import { WORD, wordsOf } from './image-words.js';
import { isWideSpan } from './image.js';
import type { Image } from './image.js';
import type { Proportions } from './proportions.js';
import type { ResizeArgs } from './resize-kernels.js';

/** Pixels of a thread in a row: they are 12 bytes, three words. */
const GROUP = 4;

/** The work of a thread and of a block. */
export interface FoursShape {
  /** Rows of one thread. */
  readonly rows: number;
  /** Threads of a block, along a row. */
  readonly block: number;
}

/** The fastest of the measured shapes: 2 rows take 0.083 ms. */
const SHAPE: FoursShape = { rows: 4, block: 32 };

/** Pitches are in words; `height` is that of the result. */
interface FoursArgs extends ResizeArgs {
  readonly height: number;
}

/**
 * A thread has four adjacent pixels of a few rows. The two adjacent pixels of the source are 6
 * bytes in three words, of which the last two are the same where the first byte is the first of a
 * word. A byte becomes a float as the last bits of 2²³, and an integer again as those of 1.5 · 2²³
 * (see STORES in sampling.ts).
 */
const fours = new KernelFamily(
  'resize_fours',
  (
    {
      out,
      x,
      width,
      height,
      outRow,
      outImage,
      columns,
      rows,
      inRow,
      inImage,
      fromX,
      toX,
      fromY,
      toY,
    }: FoursArgs,
    gpu: Gpu & { readonly ROWS: number },
  ) => {
    const group = gpu.globalId.x;
    if (group * 4 >= width) return;
    const z = gpu.blockIdx.z;
    const top = gpu.blockIdx.y * gpu.ROWS;
    const first = gpu.local.i32(4);
    const last = gpu.local.i32(4);
    const shift = gpu.local.i32(4);
    const fx = gpu.local.f32(4);
    gpu.unroll(4);
    for (let p = 0; p < 4; p++) {
      const overX = (2 * (group * 4 + p) + 1) * fromX - toX;
      const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
      const fraction = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
      // At the edges both source pixels are inside, and one has all the weight, which gives the
      // same bits.
      const byte = Math.max(Math.min(wholeX, columns - 2), 0) * 3;
      first[p] = z * inImage + (byte >> 2);
      last[p] = z * inImage + ((byte + 5) >> 2);
      shift[p] = (byte & 3) * 8;
      fx[p] = wholeX < 0 ? 0 * fraction : wholeX > columns - 2 ? 0 * fraction + 1 : fraction;
    }
    gpu.unroll(gpu.ROWS);
    for (let r = 0; r < gpu.ROWS; r++) {
      if (top + r < height) {
        const overY = (2 * (top + r) + 1) * fromY - toY;
        const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
        const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
        const above = Math.max(wholeY, 0) * inRow;
        const below = Math.min(wholeY + 1, rows - 1) * inRow;
        const made = gpu.local.u32(3);
        gpu.unroll(4);
        for (let p = 0; p < 4; p++) {
          const a1 = gpu.u64(x[above + first[p]! + 1]!);
          const b1 = gpu.u64(x[below + first[p]! + 1]!);
          const aLow = gpu.u32(((a1 << 32) | gpu.u64(x[above + first[p]!]!)) >>> shift[p]!);
          const aHigh = gpu.u32(((gpu.u64(x[above + last[p]!]!) << 32) | a1) >>> shift[p]!);
          const bLow = gpu.u32(((b1 << 32) | gpu.u64(x[below + first[p]!]!)) >>> shift[p]!);
          const bHigh = gpu.u32(((gpu.u64(x[below + last[p]!]!) << 32) | b1) >>> shift[p]!);
          gpu.unroll(3);
          for (let c = 0; c < 3; c++) {
            const a = gpu.fromBits(((aLow >>> (8 * c)) & 255) | 0x4b000000);
            const b = gpu.fromBits(
              ((c === 0 ? aLow >>> 24 : aHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
            );
            const d = gpu.fromBits(((bLow >>> (8 * c)) & 255) | 0x4b000000);
            const e = gpu.fromBits(
              ((c === 0 ? bLow >>> 24 : bHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
            );
            const upper = a - 8388608 + Math.fround(fx[p]! * (b - a));
            const lower = d - 8388608 + Math.fround(fx[p]! * (e - d));
            const n = p * 3 + c;
            made[n >> 2] =
              made[n >> 2]! |
              ((gpu.bits(upper + Math.fround(fy * (lower - upper)) + 12582912) & 255) <<
                (8 * (n & 3)));
          }
        }
        const to = z * outImage + (top + r) * outRow + group * 3;
        gpu.unroll(3);
        for (let w = 0; w < 3; w++) out[to + w] = made[w]!;
      }
    }
  },
);

/**
 * Whether this kernel can resize one image to the other: rows of the result are whole groups, and
 * all rows begin at a word.
 */
export function fitsFours(image: Image, out: Image): boolean {
  return (
    image.channels === 3 &&
    image.width >= 2 &&
    out.width % GROUP === 0 &&
    !isWideSpan([image, out]) &&
    wordsOf(image) !== undefined &&
    wordsOf(out) !== undefined
  );
}

/** Queues the kernel for one image or a batch, for which {@link fitsFours} is true. */
export function queueFours(
  work: Work,
  image: Image,
  out: Image,
  proportions: Proportions,
  { rows, block }: FoursShape = SHAPE,
): void {
  const launch: Launchable = fours.member(`${rows}_${block}`, () => ({
    signature: {
      out: output(u32),
      x: input(u32),
      width: i32,
      height: i32,
      outRow: i32,
      outImage: i32,
      columns: i32,
      rows: i32,
      inRow: i32,
      inImage: i32,
      fromX: i32,
      toX: i32,
      fromY: i32,
      toY: i32,
    },
    uses: { ROWS: rows },
    block,
  }));
  const { width, height } = out;
  const numbers = {
    width,
    height,
    outRow: out.rowPitch / WORD,
    outImage: out.imagePitch / WORD,
    columns: image.width,
    rows: image.height,
    inRow: image.rowPitch / WORD,
    inImage: image.imagePitch / WORD,
    ...proportions,
  };
  inLaunches([image, out], ([from, to]) => {
    work.add(
      launch(
        { out: wordsOf(to!), x: wordsOf(from!), ...numbers },
        { grid: [Math.ceil(width / (GROUP * block)), Math.ceil(height / rows), from!.batch] },
      ),
    );
  });
}
