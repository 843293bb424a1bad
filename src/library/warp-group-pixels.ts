/**
 * Two-dimensional convolution as a product by Hopper's warp groups whose both factors tensor copies
 * bring: a step is 128 bytes of channels at one place of the weights, and a copy in the mode im2col
 * reads them at the pixels of a tile, with zeros outside of the images. It needs channels that are
 * adjacent in runs of 16 bytes and a window within the limits of such copies; other convolutions
 * are those of warp-group-convolution.ts, whose threads read runs of channels one by one.
 */
import { i32 } from '../core/index.js';
import { input, output } from '../kernels/index.js';
import type { TensorCopies } from '../compiler/gpu.js';
import { convolutionKey, convolutionUses } from './convolution-sums.js';
import type { ConvolutionForm, ConvolutionGpu } from './convolution-sums.js';
import { finishParameters } from './finish.js';
import { KernelFamily } from './kernel-family.js';
import type { KernelArray, Launchable } from './kernel-family.js';
import { tileThreads } from './warp-group-tiles.js';
import type { Lines, Result } from './warp-group-tiles.js';

type Axes<N extends 3 | 4> = N extends 4
  ? readonly (readonly (readonly (readonly number[])[])[])[]
  : readonly (readonly (readonly number[])[])[];

interface Args {
  /** [1][pixel][result] */
  readonly out: Result;
  /** [image][row][column][channel], with the window of the weights. */
  readonly x: Axes<4>;
  /** [place][result][channel], where a place is a row and a column of the weights. */
  readonly weights: Axes<3>;
  readonly bias: readonly number[];
  readonly scaleA: readonly number[];
  readonly scaleB: readonly number[];
  readonly scaleOut: readonly number[];
  readonly channels: number;
  /** Rows and columns of the weights. */
  readonly rows: number;
  readonly columns: number;
  readonly outHeight: number;
  readonly outWidth: number;
  /** Pixels of the result, of all images, and result channels. */
  readonly pixels: number;
  readonly results: number;
  readonly down: number;
  readonly across: number;
  readonly top: number;
  readonly left: number;
  readonly dilationDown: number;
  readonly dilationAcross: number;
}

/** The copy of pixels: {@link TensorCopies.load}, from an image, row, column and channel. */
interface PixelCopies extends TensorCopies {
  loadPixels(
    to: Lines,
    line: number,
    count: number,
    from: Axes<4>,
    barriers: KernelArray<number>,
    barrier: number,
    image: number,
    row: number,
    column: number,
    channel: number,
    down: number,
    across: number,
  ): void;
}

interface PixelsGpu extends ConvolutionGpu {
  readonly tensor: PixelCopies;
}

const convolutions = new KernelFamily(
  'warp_group_pixels',
  (
    {
      out,
      x,
      weights,
      bias,
      scaleA,
      scaleB,
      scaleOut,
      channels,
      rows,
      columns,
      outHeight,
      outWidth,
      pixels,
      results,
      down,
      across,
      top,
      left,
      dilationDown,
      dilationAcross,
    }: Args,
    gpu: PixelsGpu,
  ) => {
    const { ROWS, COLUMNS, STAGES, DEPTH } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    gpu.beginStages(full, empty, 1);

    const warpGroup = gpu.warpIdx >> 2;
    const thread = gpu.threadIdx.x % 128;
    const tilesDown = (pixels + (ROWS - 1)) / ROWS;
    const tilesAcross = (results + (COLUMNS - 1)) / COLUMNS;
    if (warpGroup === GROUPS) {
      if (GROUPS > 1) gpu.group.fewerRegisters(40);
      if (thread === 0) {
        let stage = 0;
        let parity = 1;
        for (let tile = gpu.blockIdx.x; tile < tilesDown * tilesAcross; tile += gpu.gridDim.x) {
          const pixel = gpu.rowOf(tile, tilesDown, tilesAcross) * ROWS;
          const side = gpu.columnOf(tile, tilesDown, tilesAcross) * COLUMNS;
          const line = pixel / outWidth;
          const image = line / outHeight;
          const y = (line % outHeight) * down - top;
          const z = (pixel % outWidth) * across - left;
          for (let place = 0; place < rows * columns; place++) {
            const dy = (place / columns) * dilationDown;
            const dx = (place % columns) * dilationAcross;
            for (let at = 0; at < channels; at += DEPTH) {
              gpu.barrier.wait(empty, stage, parity);
              gpu.barrier.expect(full, stage, (ROWS + COLUMNS) * 128);
              const to = stage * (ROWS + COLUMNS);
              gpu.tensor.loadPixels(lines, to, ROWS, x, full, stage, image, y, z, at, dy, dx);
              gpu.tensor.load(
                linesOfRight,
                to + ROWS,
                COLUMNS,
                weights,
                full,
                stage,
                place,
                side,
                at,
              );
              stage++;
              if (stage === STAGES) {
                stage = 0;
                parity ^= 1;
              }
            }
          }
        }
      }
    } else {
      if (GROUPS > 1) gpu.group.moreRegisters(232);
      const steps = rows * columns * ((channels + (DEPTH - 1)) / DEPTH);
      gpu.multiplyPixels(
        out,
        bias,
        scaleA,
        scaleB,
        scaleOut,
        lines,
        linesOfRight,
        full,
        empty,
        steps,
        pixels,
        results,
        warpGroup,
        thread,
      );
    }
  },
);

/** Gives the kernel for a form. */
export function warpGroupPixels(form: ConvolutionForm): Launchable {
  const { plan, dtype, out, finish } = form;
  return convolutions.member(convolutionKey(form), () => ({
    signature: {
      out: output(out, 3),
      x: input(dtype, 4),
      weights: input(dtype, 3),
      ...finishParameters(finish, dtype),
      ...Object.fromEntries(
        [
          ...['channels', 'rows', 'columns', 'outHeight', 'outWidth', 'pixels', 'results'],
          ...['down', 'across', 'top', 'left', 'dilationDown', 'dilationAcross'],
        ].map((name) => [name, i32]),
      ),
    },
    uses: {
      ...convolutionUses(form),
    },
    block: tileThreads(plan),
  }));
}
