/**
 * Products of matrices by Hopper's warp groups: f16, bf16, f32 as tf32 and f8, summed in f32, and
 * i8 and u8, summed in i32. One warp group of a
 * block begins tensor copies of both factors, several steps of the common dimension ahead; each of
 * the others multiplies 64 rows of the block's tile. Blocks stay and compute one tile after the
 * other, so that the copies for the next tile run while the results of the last one are written.
 * Where there are few tiles, a cluster of blocks computes each of them: every block a part of the
 * common dimension, and then the sums of all parts for some of the columns.
 */
import { i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { finishKey, finishParameters } from './finish.js';
import type { FinishForm } from './finish.js';
import { KernelFamily, pairName } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';
import { tileThreads, tileUses } from './warp-group-tiles.js';
import type { Result, TileGpu } from './warp-group-tiles.js';

/** How a product is cut into tiles. */
export interface WarpGroupPlan {
  /** Rows of the result for each block: 64 or 128, of which each warp group computes 64. */
  readonly rows: number;
  /** Columns of the result for each block: a multiple of 64 of at most 256. */
  readonly columns: number;
  /** The number of steps of 64 elements whose factors are in shared memory at a time. */
  readonly stages: number;
  /** The number of blocks for each tile: 1, 2, 4 or 8. */
  readonly splits: number;
  /** Rows of tiles that concurrent blocks compute, so that they share factors. */
  readonly group: number;
}

/** The plan and what else a kernel is specialised for. */
export interface WarpGroupForm {
  readonly plan: WarpGroupPlan;
  /** The dtypes of the factors: the same, or two of f8e4m3 and f8e5m2, or of i8 and u8. */
  readonly dtype: KernelDType;
  readonly right: KernelDType;
  readonly out: KernelDType;
  /** Whether the common dimension is the inner one of a, and of b. */
  readonly leftByDepth: boolean;
  readonly rightByDepth: boolean;
  /**
   * Whether tensor copies write the result: its elements have 2 or 4 bytes, and its rows begin at
   * multiples of 16 bytes.
   */
  readonly copied: boolean;
  readonly finish: FinishForm;
}

type Matrices = readonly (readonly number[][])[][] & { readonly shape: readonly number[] };

interface Args {
  readonly out: Result;
  /** [outer batch][inner batch][row][depth], or [depth][row]; b with columns for rows. */
  readonly a: Matrices;
  readonly b: Matrices;
  /** Not read where the form has none; scales of the factors and of the result. */
  readonly bias: readonly number[];
  readonly scaleA: readonly number[];
  readonly scaleB: readonly number[];
  readonly scaleOut: readonly number[];
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** The number of tiles of all matrices. */
  readonly tiles: number;
  /** The number of inner products for each outer one. */
  readonly inner: number;
  /** A bit for each axis of a batch that a factor has: outer and inner of a, then of b. */
  readonly batches: number;
}

/** What {@link tileOrder} gives to a body. */
export interface TileOrder {
  rowOf(number: number, down: number, across: number): number;
  columnOf(number: number, down: number, across: number): number;
}

interface ProductGpu extends TileGpu, TileOrder {
  readonly SPLITS: number;
  /** Sums in shared memory, and four of them in registers. */
  parts(): KernelArray<number>;
  four(): KernelArray<number>;
}

/** The first row of tiles of a tile: in GROUP rows of tiles the order is by columns. */
const rowOf = (number: number, down: number, across: number, gpu: Gpu & { GROUP: number }) => {
  const first = (number / (gpu.GROUP * across)) * gpu.GROUP;
  return first + ((number % (gpu.GROUP * across)) % Math.min(down - first, gpu.GROUP));
};
const columnOf = (number: number, down: number, across: number, gpu: Gpu & { GROUP: number }) => {
  const first = (number / (gpu.GROUP * across)) * gpu.GROUP;
  return (number % (gpu.GROUP * across)) / Math.min(down - first, gpu.GROUP);
};

const products = new KernelFamily(
  'warp_group_product',
  (
    { out, a, b, bias, scaleA, scaleB, scaleOut, m, n, k, tiles, inner, batches }: Args,
    gpu: ProductGpu,
  ) => {
    const { ROWS, COLUMNS, STAGES, SPLITS, PANEL_A, PANEL_B, COPIED } = gpu;
    const { DEPTH } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const down = (m + (ROWS - 1)) / ROWS;
    const across = (n + (COLUMNS - 1)) / COLUMNS;
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    gpu.beginStages(full, empty, 1);

    const warpGroup = gpu.warpIdx >> 2;
    const thread = gpu.threadIdx.x % 128;
    const warp = gpu.warpIdx % 4;
    const { lane } = gpu;
    // The block's part of the common dimension, in steps.
    const rank = gpu.blockIdx.x % SPLITS;
    const allSteps = (k + (DEPTH - 1)) / DEPTH;
    const firstStep = (allSteps * rank) / SPLITS;
    const steps = (allSteps * (rank + 1)) / SPLITS - firstStep;
    const stride = gpu.gridDim.x / SPLITS;
    if (warpGroup === GROUPS) {
      if (GROUPS > 1) gpu.group.fewerRegisters(40);
      if (thread === 0) {
        let stage = 0;
        let parity = 1;
        for (let tile = gpu.blockIdx.x / SPLITS; tile < tiles; tile += stride) {
          const matrix = tile / (down * across);
          const top = gpu.rowOf(tile % (down * across), down, across) * ROWS;
          const side = gpu.columnOf(tile % (down * across), down, across) * COLUMNS;
          const oA = (matrix / inner) * (batches & 1);
          const iA = (matrix % inner) * ((batches >> 1) & 1);
          const oB = (matrix / inner) * ((batches >> 2) & 1);
          const iB = (matrix % inner) * (batches >> 3);
          for (let step = 0; step < steps; step++) {
            gpu.barrier.wait(empty, stage, parity);
            gpu.barrier.expect(full, stage, (ROWS + COLUMNS) * 128);
            const line = stage * (ROWS + COLUMNS);
            const at = (firstStep + step) * DEPTH;
            if (PANEL_A === 0) gpu.tensor.load(lines, line, ROWS, a, full, stage, oA, iA, top, at);
            else {
              gpu.unroll();
              for (let p = 0; p < ROWS; p += 64)
                gpu.tensor.load(lines, line + p, 64, a, full, stage, oA, iA, at, top + p);
            }
            const to = line + ROWS;
            if (PANEL_B === 0)
              gpu.tensor.load(linesOfRight, to, COLUMNS, b, full, stage, oB, iB, side, at);
            else {
              gpu.unroll();
              for (let p = 0; p < COLUMNS; p += 64)
                gpu.tensor.load(linesOfRight, to + p, 64, b, full, stage, oB, iB, at, side + p);
            }
            stage++;
            if (stage === STAGES) {
              stage = 0;
              parity ^= 1;
            }
          }
        }
      }
    } else {
      if (GROUPS > 1) gpu.group.moreRegisters(232);
      const sums = gpu.sums();
      // Which of the two parts of shared memory the next part of a result is written to.
      let half = 0;
      let stage = 0;
      let parity = 0;
      for (let tile = gpu.blockIdx.x / SPLITS; tile < tiles; tile += stride) {
        gpu.unroll();
        for (let i = 0; i < COLUMNS / 2; i++) sums[i] = 0;
        let before = 0;
        let step = 0;
        do {
          gpu.sumStep(
            sums,
            lines,
            linesOfRight,
            full,
            empty,
            stage,
            parity,
            step,
            before,
            warpGroup,
            thread,
          );
          before = stage;
          stage++;
          if (stage === STAGES) {
            stage = 0;
            parity ^= 1;
          }
          step++;
        } while (step < steps);
        gpu.endSteps(empty, before, thread);

        if (SPLITS > 1) {
          // All copies have come, and the other groups' products have read them.
          if (GROUPS > 1) gpu.block.syncThreads(GROUPS + 1, 128 * GROUPS);
          const parts = gpu.parts();
          gpu.unroll();
          for (let i = 0; i < COLUMNS / 2; i++)
            parts[(i >> 2) * (512 * GROUPS) + gpu.threadIdx.x * 4 + (i & 3)] = sums[i]!;
        } else {
          const matrix = tile / (down * across);
          const top = gpu.rowOf(tile % (down * across), down, across) * ROWS + warpGroup * 64;
          const side = gpu.columnOf(tile % (down * across), down, across) * COLUMNS;
          half = gpu.writeTile(
            sums,
            out,
            bias,
            scaleA,
            scaleB,
            scaleOut,
            m,
            n,
            matrix,
            top,
            side,
            warpGroup,
            thread,
            half,
          );
        }
      }
      if (COPIED && SPLITS === 1 && thread === 0) gpu.tensor.waitRead(0);
    }
    if (SPLITS > 1) {
      gpu.cluster.sync();
      if (warpGroup < GROUPS) {
        const tile = gpu.blockIdx.x / SPLITS;
        const matrix = tile / (down * across);
        const row =
          gpu.rowOf(tile % (down * across), down, across) * ROWS +
          warpGroup * 64 +
          warp * 16 +
          (lane >> 2);
        const side = gpu.columnOf(tile % (down * across), down, across) * COLUMNS;
        const parts = gpu.parts();
        gpu.unroll();
        for (let i = 0; i < COLUMNS / 8 / SPLITS; i++) {
          const four = rank * (COLUMNS / 8 / SPLITS) + i;
          const total = gpu.four();
          gpu.unroll();
          for (let e = 0; e < 4; e++) total[e] = 0;
          gpu.unroll();
          for (let r = 0; r < SPLITS; r++) {
            const part = gpu.four();
            gpu.cluster.load(part, parts, four * (512 * GROUPS) + gpu.threadIdx.x * 4, r);
            gpu.unroll();
            for (let e = 0; e < 4; e++) total[e] = total[e]! + part[e]!;
          }
          gpu.unroll();
          for (let e = 0; e < 4; e++) {
            const y = row + 8 * (e >> 1);
            const x = side + (lane % 4) * 2 + 8 * four + (e & 1);
            if (y < m && x < n)
              out[matrix]![y]![x] = gpu.finished(total[e]!, bias, x, n, scaleA, scaleB, scaleOut);
          }
        }
      }
      // A block stays until the others have read its sums.
      gpu.cluster.sync();
    }
  },
);

const PARTIAL = {
  f32: {
    parts: (gpu: Gpu) => gpu.dynamicShared.f32(),
    four: (gpu: Gpu) => gpu.local.f32(4),
  },
  i32: {
    parts: (gpu: Gpu) => gpu.dynamicShared.i32(),
    four: (gpu: Gpu) => gpu.local.i32(4),
  },
};

/** Gives the number of a tile's row and column: by columns in `group` rows of tiles. */
export const tileOrder = (group: number) => ({
  rowOf: deviceFunction(rowOf as never, { uses: { GROUP: group } }) as DeviceFunction,
  columnOf: deviceFunction(columnOf as never, { uses: { GROUP: group } }) as DeviceFunction,
});

/** Gives the kernel for a form. */
export function warpGroupProduct(form: WarpGroupForm): Launchable {
  const { plan, dtype, right, out, leftByDepth, rightByDepth, copied, finish } = form;
  const { rows, columns, stages, splits, group } = plan;
  const key =
    `${pairName(dtype, right)}_${out.name}_${rows}x${columns}_${stages}_${splits}_${group}_` +
    `${leftByDepth ? 'k' : 'm'}${rightByDepth ? 'k' : 'n'}${copied ? '' : '_plain'}` +
    finishKey(finish);
  const made = PARTIAL[dtype.kind === 'float' ? 'f32' : 'i32'];
  return products.member(key, () => ({
    signature: {
      out: output(out, 3),
      a: input(dtype, 4),
      b: input(right, 4),
      ...finishParameters(finish, dtype),
      ...Object.fromEntries(
        ['m', 'n', 'k', 'tiles', 'inner', 'batches'].map((name) => [name, i32]),
      ),
    },
    uses: {
      ...tileUses({ ...form, ...plan, clipped: false }),
      ...tileOrder(group),
      SPLITS: splits,
      parts: deviceFunction(made.parts as never, {}) as DeviceFunction,
      four: deviceFunction(made.four as never, {}) as DeviceFunction,
    },
    block: tileThreads(plan),
  }));
}
