/**
 * Two-dimensional convolution as a product by Hopper's warp groups: a row for each pixel of the
 * result, a column for each result channel; the common dimension goes over rows and columns of the
 * weights and over channels. The left factor is nowhere in memory: one warp group of a block reads
 * the inputs of a tile's pixels where they are, 16 bytes of a pixel's channels at a time, and zeros
 * for places outside of the image, into the lines of shared memory that products read. Tensor
 * copies bring the weights.
 */
import { i32 } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { convolutionKey, convolutionUses } from './convolution-sums.js';
import type { ConvolutionForm, ConvolutionGpu } from './convolution-sums.js';
import { finishParameters } from './finish.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Launchable } from './kernel-family.js';
import { LINE_BYTES, tileThreads } from './warp-group-tiles.js';
import type { Result } from './warp-group-tiles.js';

interface Args {
  /** [1][pixel][result] */
  readonly out: Result;
  /** All memory from the first to the last element of the images. */
  readonly x: Input;
  /** [result][row, column, channel] */
  readonly weights: readonly (readonly number[])[];
  readonly bias: readonly number[];
  readonly scaleA: readonly number[];
  readonly scaleB: readonly number[];
  readonly scaleOut: readonly number[];
  /** Strides of images, rows and columns, in elements; channels are adjacent. */
  readonly imageStride: number;
  readonly rowStride: number;
  readonly columnStride: number;
  readonly height: number;
  readonly width: number;
  readonly channels: number;
  /** Places of the weights in a row, and all of them times the channels. */
  readonly columns: number;
  readonly depths: number;
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

interface GatherGpu extends ConvolutionGpu {
  /** Elements of 16 bytes. */
  readonly RUN: number;
  /** The lines of both factors, one after the other. */
  elements(): KernelArray<number>;
}

const convolutions = new KernelFamily(
  'warp_group_convolution',
  (
    {
      out,
      x,
      weights,
      bias,
      scaleA,
      scaleB,
      scaleOut,
      imageStride,
      rowStride,
      columnStride,
      height,
      width,
      channels,
      columns,
      depths,
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
    gpu: GatherGpu,
  ) => {
    const { ROWS, COLUMNS, STAGES, DEPTH, RUN } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const elements = gpu.elements();
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    // The threads that read inputs, and the one that begins the copy of the weights.
    gpu.beginStages(full, empty, 129);

    const warpGroup = gpu.warpIdx >> 2;
    const thread = gpu.threadIdx.x % 128;
    const tilesDown = (pixels + (ROWS - 1)) / ROWS;
    const tilesAcross = (results + (COLUMNS - 1)) / COLUMNS;
    const steps = (depths + (DEPTH - 1)) / DEPTH;
    if (warpGroup === GROUPS) {
      if (GROUPS > 1) gpu.group.fewerRegisters(56);
      // Eight adjacent threads read a pixel's line, and go on 16 pixels further.
      const run = thread % 8;
      const line = thread / 8;
      const place = (run ^ (line & 7)) * RUN + line * (8 * RUN);
      const offsets = gpu.local.i32(ROWS / 16);
      const firstRows = gpu.local.i32(ROWS / 16);
      const firstColumns = gpu.local.i32(ROWS / 16);
      let stage = 0;
      let parity = 1;
      // Steps whose inputs are announced to the other groups later: copies of two are in progress.
      let begun = 0;
      let behind = 0;
      for (let tile = gpu.blockIdx.x; tile < tilesDown * tilesAcross; tile += gpu.gridDim.x) {
        const first = gpu.rowOf(tile, tilesDown, tilesAcross) * ROWS;
        const side = gpu.columnOf(tile, tilesDown, tilesAcross) * COLUMNS;
        gpu.unroll();
        for (let i = 0; i < ROWS / 16; i++) {
          const pixel = first + line + i * 16;
          const row = pixel / outWidth;
          const y = (row % outHeight) * down - top;
          const z = (pixel % outWidth) * across - left;
          offsets[i] = (row / outHeight) * imageStride + y * rowStride + z * columnStride;
          // No row is inside for pixels after the last one.
          firstRows[i] = pixel < pixels ? y : -0x40000000;
          firstColumns[i] = z;
        }
        let channel = run * RUN;
        let placeDown = 0;
        let placeAcross = 0;
        for (let step = 0; step < steps; step++) {
          while (channel >= channels) {
            channel -= channels;
            placeAcross++;
            if (placeAcross === columns) {
              placeAcross = 0;
              placeDown++;
            }
          }
          gpu.barrier.wait(empty, stage, parity);
          if (thread === 0) {
            gpu.barrier.expect(full, stage, COLUMNS * 128);
            gpu.tensor.load(
              linesOfRight,
              stage * (ROWS + COLUMNS) + ROWS,
              COLUMNS,
              weights,
              full,
              stage,
              side,
              step * DEPTH,
            );
          }
          const y = placeDown * dilationDown;
          const z = placeAcross * dilationAcross;
          const further = y * rowStride + z * columnStride + channel;
          const isInside = step * DEPTH + run * RUN < depths;
          const to = stage * ((ROWS + COLUMNS) * 8 * RUN) + place;
          gpu.unroll();
          for (let i = 0; i < ROWS / 16; i++) {
            const row = firstRows[i]! + y;
            const column = firstColumns[i]! + z;
            const given =
              isInside && row >= 0 && row < height && column >= 0 && column < width ? RUN : 0;
            gpu.async.copy(elements, to + i * (128 * RUN), x, offsets[i]! + further, RUN, given);
          }
          gpu.async.commit();
          channel += DEPTH;
          begun++;
          if (begun > STAGES - 2) {
            gpu.async.wait(STAGES - 2);
            gpu.fence.async();
            gpu.barrier.arrive(full, behind);
            behind = behind === STAGES - 1 ? 0 : behind + 1;
          }
          stage++;
          if (stage === STAGES) {
            stage = 0;
            parity ^= 1;
          }
        }
      }
      gpu.async.wait(0);
      gpu.fence.async();
      for (let step = Math.min(begun, STAGES - 2); step > 0; step--) {
        gpu.barrier.arrive(full, behind);
        behind = behind === STAGES - 1 ? 0 : behind + 1;
      }
    } else {
      if (GROUPS > 1) gpu.group.moreRegisters(224);
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

const ELEMENTS = {
  f16: (gpu: Gpu) => gpu.dynamicShared.f16(),
  bf16: (gpu: Gpu) => gpu.dynamicShared.bf16(),
  f32: (gpu: Gpu) => gpu.dynamicShared.f32(),
};

/** Gives the kernel for a form. */
export function warpGroupConvolution(form: ConvolutionForm): Launchable {
  const { plan, dtype, out, finish } = form;
  return convolutions.member(convolutionKey(form), () => ({
    signature: {
      out: output(out, 3),
      x: input(dtype),
      weights: input(dtype, 2),
      ...finishParameters(finish, dtype),
      ...Object.fromEntries(
        [
          ...['imageStride', 'rowStride', 'columnStride', 'height', 'width', 'channels'],
          ...['columns', 'depths', 'outHeight', 'outWidth', 'pixels', 'results'],
          ...['down', 'across', 'top', 'left', 'dilationDown', 'dilationAcross'],
        ].map((name) => [name, i32]),
      ),
    },
    uses: {
      ...convolutionUses(form),
      RUN: LINE_BYTES / 8 / dtype.bytes,
      elements: deviceFunction(ELEMENTS[dtype.name as 'f16'] as never, {}) as DeviceFunction,
    },
    block: tileThreads(plan),
  }));
}
