/** What convolutions by Hopper's warp groups have in common: the groups that multiply. */
import type { KernelDType } from '../core/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { finishKey } from './finish.js';
import type { FinishForm } from './finish.js';
import type { KernelArray } from './kernel-family.js';
import { tileOrder } from './warp-group-product.js';
import type { TileOrder, WarpGroupPlan } from './warp-group-product.js';
import { tileUses } from './warp-group-tiles.js';
import type { Lines, Result, TileGpu } from './warp-group-tiles.js';

/** What {@link convolutionUses} gives to a body. */
export interface ConvolutionGpu extends TileGpu, TileOrder {
  multiplyPixels(
    out: Result,
    bias: readonly number[],
    scaleA: readonly number[],
    scaleB: readonly number[],
    scaleOut: readonly number[],
    lines: Lines,
    linesOfRight: Lines,
    full: KernelArray<number>,
    empty: KernelArray<number>,
    steps: number,
    pixels: number,
    results: number,
    warpGroup: number,
    thread: number,
  ): void;
}

/** Computes the block's tiles of pixels and results, of so many steps each, and writes them. */
const multiplyPixels = (
  out: Result,
  bias: readonly number[],
  scaleA: readonly number[],
  scaleB: readonly number[],
  scaleOut: readonly number[],
  lines: Lines,
  linesOfRight: Lines,
  full: KernelArray<number>,
  empty: KernelArray<number>,
  steps: number,
  pixels: number,
  results: number,
  warpGroup: number,
  thread: number,
  gpu: TileGpu & TileOrder,
): void => {
  const { ROWS, COLUMNS, COPIED } = gpu;
  const tilesDown = (pixels + (ROWS - 1)) / ROWS;
  const tilesAcross = (results + (COLUMNS - 1)) / COLUMNS;
  const sums = gpu.sums();
  let half = 0;
  let before = 0;
  for (let tile = gpu.blockIdx.x; tile < tilesDown * tilesAcross; tile += gpu.gridDim.x) {
    gpu.sumTile(sums, lines, linesOfRight, full, empty, before, steps, warpGroup, thread);
    before += steps;
    half = gpu.writeTile(
      sums,
      out,
      bias,
      scaleA,
      scaleB,
      scaleOut,
      pixels,
      results,
      0,
      gpu.rowOf(tile, tilesDown, tilesAcross) * ROWS + warpGroup * 64,
      gpu.columnOf(tile, tilesDown, tilesAcross) * COLUMNS,
      warpGroup,
      thread,
      half,
    );
  }
  if (COPIED && thread === 0) gpu.tensor.waitRead(0);
};

/** What a kernel is specialised for. */
export interface ConvolutionForm {
  readonly plan: WarpGroupPlan;
  /** f16, bf16 or f32. */
  readonly dtype: KernelDType;
  readonly out: KernelDType;
  readonly copied: boolean;
  readonly finish: FinishForm;
}

/** A part of the kernel's name that is different for different forms. */
export function convolutionKey({ plan, dtype, out, copied, finish }: ConvolutionForm): string {
  const { rows, columns, stages, group } = plan;
  return (
    `${dtype.name}_${out.name}_${rows}x${columns}_${stages}_${group}${copied ? '' : '_plain'}` +
    finishKey(finish)
  );
}

/** The constants, arrays and functions of a convolution's body. */
export function convolutionUses(form: ConvolutionForm) {
  const { plan, dtype: right } = form;
  const uses = {
    ...tileUses({
      ...{ ...form, ...plan, right, clipped: false },
      ...{ leftByDepth: true, rightByDepth: true },
    }),
    ...tileOrder(plan.group),
  };
  return {
    ...uses,
    multiplyPixels: deviceFunction(multiplyPixels as never, {
      uses: uses as never,
    }) as DeviceFunction,
  };
}
