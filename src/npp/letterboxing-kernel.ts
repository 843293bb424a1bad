/**
 * The kernel that resizes with a letterbox, normalises and puts channels into planes at once. A thread has one column of the result
 * and a few rows: neighbouring threads read neighbouring pixels, and where the column comes from is worked out once. Reading is what it
 * is bound by (twelve bytes of an RGB image for a pixel, in 3 times as many lines of the cache as the six that are written), so that two
 * neighbours of u8 are read as words where the image lies at multiples of four bytes: 3 loads for 6.
 */
import { f32, i32, i64 } from '../core/index.js';
import { input, output } from '../launch/index.js';
import { KernelFamily } from '../library/kernel-family.js';
import type { Gpu, Input, Member, Output } from '../library/kernel-family.js';
import type { Work } from '../library/operation.js';
import { WORD, wordsOf } from './image-words.js';
import { flat, isWideSpan } from './image.js';
import type { Image } from './image.js';
import { WIDE_FROM, elementsOf } from './pixel-runs.js';
import type { PixelLayout } from './pixel-runs.js';

const BLOCK = 128;
/** Rows of a thread. */
const ROWS = 4;

/** Where an image lies in a letterbox, in pixels of the result. */
export interface Placement {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

interface LetterboxGpu extends Gpu {
  readonly C: number;
  /** Elements from one column of the result to the next. */
  readonly STEP: number;
  readonly ROWS: number;
  /** Whether x is words of four elements of u8. */
  readonly WORDS: boolean;
}

interface LetterboxArgs {
  readonly out: Output;
  readonly x: Input;
  readonly width: number;
  readonly height: number;
  readonly oImage: number;
  readonly oRow: number;
  readonly oPlane: number;
  readonly columns: number;
  readonly rows: number;
  readonly xImage: number;
  readonly xRow: number;
  readonly left: number;
  readonly top: number;
  readonly innerWidth: number;
  readonly innerHeight: number;
  readonly fromX: number;
  readonly toX: number;
  readonly fromY: number;
  readonly toY: number;
  /** x of channel c becomes x · factor c + summand c; around the image there is pad c. */
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

const letterboxes = new KernelFamily('letterbox_normalise', (args: LetterboxArgs, gpu: LetterboxGpu) => {
  const { out, x, columns, rows, fromX, toX, fromY, toY } = args;
  const column = gpu.globalId.x;
  if (column >= args.width) return;
  const into = gpu.blockIdx.z * args.oImage + column * gpu.STEP;
  const image = gpu.blockIdx.z * args.xImage;
  const inside = column >= args.left && column < args.left + args.innerWidth;
  const factor = gpu.local.f32(4);
  const summand = gpu.local.f32(4);
  const pad = gpu.local.f32(4);
  factor[0] = args.factor0;
  factor[1] = args.factor1;
  factor[2] = args.factor2;
  factor[3] = args.factor3;
  summand[0] = args.summand0;
  summand[1] = args.summand1;
  summand[2] = args.summand2;
  summand[3] = args.summand3;
  pad[0] = args.pad0;
  pad[1] = args.pad1;
  pad[2] = args.pad2;
  pad[3] = args.pad3;
  // The source column is wholeX and a fraction: of what is beyond an edge, the pixel there and nothing of its neighbour.
  const overX = (2 * (column - args.left) + 1) * fromX - toX;
  const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
  const first = Math.min(Math.max(wholeX, 0), Math.max(columns - 2, 0));
  const second = Math.min(first + 1, columns - 1);
  const fx = wholeX < 0 ? gpu.f32(0) : wholeX > first ? gpu.f32(1) : gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
  gpu.unroll(gpu.ROWS);
  for (let r = 0; r < gpu.ROWS; r++) {
    const row = gpu.blockIdx.y * gpu.ROWS + r;
    if (row < args.height) {
      const made = gpu.local.f32(4);
      const inner = row - args.top;
      if (inside && inner >= 0 && inner < args.innerHeight) {
        const overY = (2 * inner + 1) * fromY - toY;
        const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
        const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
        const above = image + Math.max(wholeY, 0) * args.xRow;
        const below = image + Math.min(wholeY + 1, rows - 1) * args.xRow;
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
      for (let c = 0; c < gpu.C; c++) out[into + row * args.oRow + c * args.oPlane] = made[c]!;
    }
  }
});

/** Numbers of each channel. */
export interface LetterboxNumbers {
  readonly factors: readonly number[];
  readonly summands: readonly number[];
  readonly pads: readonly number[];
}

/** Adds the launch for an image, or a batch. */
export function addLetterbox(work: Work, image: Image, out: PixelLayout, placement: Placement, { factors, summands, pads }: LetterboxNumbers): void {
  const wide = isWideSpan([image]) || elementsOf(out).size >= WIDE_FROM;
  // Of one channel there is nothing to gain, and two neighbours take two columns.
  const words = wide || image.channels === 1 || image.width < 2 ? undefined : wordsOf(image);
  const unit = words === undefined ? 1 : WORD;
  const into = elementsOf(out);
  const launch = letterboxes.member(`${words === undefined ? image.dtype.name : 'words'}_${into.dtype.name}_${image.channels}${out.planar ? '_planes' : ''}${wide ? '_wide' : ''}`, (): Member => {
    const whole = wide ? i64 : i32;
    return {
      signature: {
        out: output(into.dtype), x: input(words?.dtype ?? image.dtype), width: i32, height: i32, oImage: whole, oRow: whole, oPlane: whole, columns: i32, rows: i32, xImage: whole, xRow: whole,
        left: i32, top: i32, innerWidth: i32, innerHeight: i32, fromX: i32, toX: i32, fromY: i32, toY: i32,
        factor0: f32, factor1: f32, factor2: f32, factor3: f32, summand0: f32, summand1: f32, summand2: f32, summand3: f32, pad0: f32, pad1: f32, pad2: f32, pad3: f32,
      },
      uses: { C: image.channels, STEP: out.planar ? 1 : image.channels, ROWS, WORDS: words !== undefined },
      block: BLOCK,
    };
  });
  const [fromX, toX] = reduced(image.width, placement.width);
  const [fromY, toY] = reduced(image.height, placement.height);
  work.add(launch({
    out: into, x: words ?? flat(image), width: out.width, height: out.height, oImage: out.imagePitch, oRow: out.rowPitch, oPlane: out.planar ? out.planePitch : 1,
    columns: image.width, rows: image.height, xImage: image.imagePitch / unit, xRow: image.rowPitch / unit, left: placement.left, top: placement.top, innerWidth: placement.width, innerHeight: placement.height,
    fromX, toX, fromY, toY,
    factor0: at(factors, 0), factor1: at(factors, 1), factor2: at(factors, 2), factor3: at(factors, 3),
    summand0: at(summands, 0), summand1: at(summands, 1), summand2: at(summands, 2), summand3: at(summands, 3),
    pad0: at(pads, 0), pad1: at(pads, 1), pad2: at(pads, 2), pad3: at(pads, 3),
  }, { grid: [Math.ceil(out.width / BLOCK), Math.ceil(out.height / ROWS), image.batch], ...(wide ? { index: 'i64' } : {}) }));
}

/** The number of a channel, as the kernel is passed it. */
const at = (numbers: readonly number[], channel: number): number => Math.fround(numbers[channel] ?? 0);

/** Both without their greatest common divisor. */
function reduced(from: number, to: number): readonly [number, number] {
  let [a, b] = [from, to];
  while (b !== 0) [a, b] = [b, a % b];
  return [from / a, to / a];
}
