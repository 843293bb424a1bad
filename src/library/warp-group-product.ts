/**
 * Products of matrices by Hopper's warp groups: f16, bf16, f32 as tf32 and f8, summed in f32, and
 * i8 and u8, summed in i32. One warp group of a
 * block begins tensor copies of both factors, several steps of the common dimension ahead; each of
 * the others multiplies 64 rows of the block's tile. Blocks stay and compute one tile after the
 * other, so that the copies for the next tile run while the results of the last one are written.
 * Where there are few tiles, a cluster of blocks computes each of them: every block a part of the
 * common dimension, and then the sums of all parts for some of the columns.
 */
import { FACTORS } from '../compiler/factors.js';
import { f32, i32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { finishKey, finishParameters, finishing } from './finish.js';
import type { FinishForm } from './finish.js';
import { KernelFamily, pairName } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';

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

/** A step of the common dimension: lines of 128 bytes. */
export const LINE_BYTES = 128;
/** Lines of a panel of a factor of 16 bits whose inner dimension is not the common one. */
const PANEL = 64;
/** Lines of a result that a warp group writes at once, and how many such parts it has. */
const PART_LINES = 64;
const PARTS = 2;

/** Threads of a block. */
export const threadsOf = ({ rows }: WarpGroupPlan): number => 128 * (1 + rows / 64);

/** Bytes of dynamic shared memory. */
export const sharedBytesOf = ({ rows, columns, stages }: WarpGroupPlan): number =>
  (rows + columns) * LINE_BYTES * stages;

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

/** Whether sums of a step are added to others by f32 arithmetic. */
export const addsSteps = ({ name }: KernelDType): boolean => FACTORS[name]?.addsSteps === true;

type Lines = KernelArray<KernelArray<number>>;
type Matrices = readonly (readonly number[][])[][] & { readonly shape: readonly number[] };

interface Args {
  readonly out: number[][][] & { readonly shape: readonly number[] };
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

interface ProductGpu extends Gpu {
  readonly ROWS: number;
  readonly COLUMNS: number;
  readonly STAGES: number;
  readonly SPLITS: number;
  /** Lines of a panel of a factor whose inner dimension is not the common one, else 0. */
  readonly PANEL_A: number;
  readonly PANEL_B: number;
  readonly COPIED: boolean;
  /** Elements of the result in 128 bytes. */
  readonly WIDTH: number;
  readonly HALVES: boolean;
  /** Elements of a step, and of the quarter of it that one instruction multiplies. */
  readonly DEPTH: number;
  readonly QUARTER: number;
  readonly ADDS_STEPS: boolean;
  rowOf(number: number, down: number, across: number): number;
  columnOf(number: number, down: number, across: number): number;
  finished(
    sum: number,
    bias: readonly number[],
    x: number,
    n: number,
    scaleA: readonly number[],
    scaleB: readonly number[],
    scaleOut: readonly number[],
  ): number;
  beginStep(
    sums: KernelArray<number>,
    lines: Lines,
    linesOfRight: Lines,
    line: number,
    warpGroup: number,
  ): void;
  /** All lines of both factors, as elements of the left and of the right one. */
  lines(): Lines;
  linesOfRight(): Lines;
  sums(): KernelArray<number>;
  /** Sums in shared memory, and four of them in registers. */
  parts(): KernelArray<number>;
  four(): KernelArray<number>;
  staged(): Lines;
  packed(): KernelArray<number>;
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

type Step = Pick<ProductGpu, 'ROWS' | 'PANEL_A' | 'PANEL_B' | 'QUARTER'>;

/** Begins to add the products of a step, whose factors' lines begin at `line`. */
const beginStepOf = (uses: Step): DeviceFunction =>
  deviceFunction(
    ((
      sums: KernelArray<number>,
      lines: Lines,
      linesOfRight: Lines,
      line: number,
      warpGroup: number,
      gpu: Gpu & typeof uses,
    ) => {
      const { ROWS, PANEL_A, PANEL_B, QUARTER } = gpu;
      gpu.group.begin();
      gpu.unroll();
      for (let part = 0; part < 4; part++)
        gpu.group.mma(
          sums,
          lines,
          line + warpGroup * 64 + (PANEL_A === 0 ? 0 : part * QUARTER),
          PANEL_A === 0 ? part * QUARTER : 0,
          linesOfRight,
          line + ROWS + (PANEL_B === 0 ? 0 : part * QUARTER),
          PANEL_B === 0 ? part * QUARTER : 0,
          PANEL_A,
          PANEL_B,
        );
      gpu.group.commit();
    }) as never,
    { uses },
  ) as DeviceFunction;

const products = new KernelFamily(
  'warp_group_product',
  (
    { out, a, b, bias, scaleA, scaleB, scaleOut, m, n, k, tiles, inner, batches }: Args,
    gpu: ProductGpu,
  ) => {
    const { ROWS, COLUMNS, STAGES, SPLITS, PANEL_A, PANEL_B, COPIED, WIDTH, HALVES } = gpu;
    const { DEPTH } = gpu;
    const GROUPS = ROWS / 64;
    const lines = gpu.lines();
    const linesOfRight = gpu.linesOfRight();
    const down = (m + (ROWS - 1)) / ROWS;
    const across = (n + (COLUMNS - 1)) / COLUMNS;
    const full = gpu.shared.u64(STAGES);
    const empty = gpu.shared.u64(STAGES);
    if (gpu.threadIdx.x === 0) {
      for (let s = 0; s < STAGES; s++) {
        gpu.barrier.init(full, s, 1);
        gpu.barrier.init(empty, s, GROUPS);
      }
      gpu.fence.barriers();
    }
    gpu.block.sync();

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
          gpu.barrier.wait(full, stage, parity);
          const line = stage * (ROWS + COLUMNS);
          if (gpu.ADDS_STEPS) {
            const stepSums = gpu.sums();
            gpu.unroll();
            for (let i = 0; i < COLUMNS / 2; i++) stepSums[i] = 0;
            gpu.beginStep(stepSums, lines, linesOfRight, line, warpGroup);
            gpu.group.wait(0);
            if (thread === 0) gpu.barrier.arrive(empty, stage);
            gpu.unroll();
            for (let i = 0; i < COLUMNS / 2; i++) sums[i] = sums[i]! + stepSums[i]!;
          } else {
            gpu.beginStep(sums, lines, linesOfRight, line, warpGroup);
            gpu.group.wait(1);
            // The products of the step before have read their factors.
            if (step > 0 && thread === 0) gpu.barrier.arrive(empty, before);
            before = stage;
          }
          stage++;
          if (stage === STAGES) {
            stage = 0;
            parity ^= 1;
          }
          step++;
        } while (step < steps);
        if (!gpu.ADDS_STEPS) {
          gpu.group.wait(0);
          if (thread === 0) gpu.barrier.arrive(empty, before);
        }

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
          // Sums 0 and 1 of a thread are in this column and the next; every four, 8 further.
          const column = side + (lane % 4) * 2;
          if (COPIED) {
            const staged = gpu.staged();
            gpu.unroll();
            for (let first = 0; first < COLUMNS; first += WIDTH) {
              const to = (warpGroup * 2 + half) * 64;
              half ^= 1;
              // The copy that began two parts ago has read these lines.
              if (thread === 0) gpu.tensor.waitRead(1);
              gpu.block.syncThreads(warpGroup + 1, 128);
              gpu.unroll();
              for (let q = 0; q < 4; q++) {
                if (HALVES) {
                  const line = to + warp * 16 + (lane & 15);
                  const packed = gpu.packed();
                  gpu.unroll();
                  for (let i = 0; i < 8; i++) {
                    const x = column + first + q * 16 + 8 * (i >> 2) + (i & 1);
                    packed[i] = gpu.finished(
                      sums[first / 2 + q * 8 + i]!,
                      bias,
                      x,
                      n,
                      scaleA,
                      scaleB,
                      scaleOut,
                    );
                  }
                  const place = ((q * 2 + (lane >> 4)) ^ (lane & 7)) * 8;
                  gpu.warp.storeMatrices(staged[line]!, place, packed);
                } else {
                  const line = to + warp * 16 + (lane >> 2);
                  const place = ((q * 2 + ((lane & 3) >> 1)) ^ (lane >> 2)) * 4 + (lane & 1) * 2;
                  gpu.unroll();
                  for (let i = 0; i < 4; i++) {
                    const x = column + first + q * 8 + (i & 1);
                    staged[line + 8 * (i >> 1)]![place + (i & 1)] = gpu.finished(
                      sums[first / 2 + q * 4 + i]!,
                      bias,
                      x,
                      n,
                      scaleA,
                      scaleB,
                      scaleOut,
                    );
                  }
                }
              }
              gpu.fence.async();
              gpu.block.syncThreads(warpGroup + 1, 128);
              if (thread === 0) {
                gpu.tensor.store(out, staged, to, 64, matrix, top, side + first);
                gpu.tensor.commit();
              }
            }
          } else {
            const row = top + warp * 16 + (lane >> 2);
            gpu.unroll();
            for (let i = 0; i < COLUMNS / 2; i++) {
              const y = row + 8 * ((i >> 1) & 1);
              const x = column + 8 * (i >> 2) + (i & 1);
              if (y < m && x < n)
                out[matrix]![y]![x] = gpu.finished(sums[i]!, bias, x, n, scaleA, scaleB, scaleOut);
            }
          }
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

/** Shared and local arrays by dtype: a body names the dtype of an array. */
const staged = ({ name, bytes }: KernelDType, LINES: number): DeviceFunction => {
  const uses = { LINES, WIDTH: LINE_BYTES / bytes };
  type G = Gpu & typeof uses;
  const make = {
    f16: (gpu: G) => gpu.shared.f16(gpu.LINES, gpu.WIDTH),
    bf16: (gpu: G) => gpu.shared.bf16(gpu.LINES, gpu.WIDTH),
    f32: (gpu: G) => gpu.shared.f32(gpu.LINES, gpu.WIDTH),
    i32: (gpu: G) => gpu.shared.i32(gpu.LINES, gpu.WIDTH),
  }[name as 'f16'];
  return deviceFunction(make as never, { uses }) as DeviceFunction;
};
const packed = ({ name }: KernelDType): DeviceFunction => {
  const make = {
    f16: (gpu: Gpu) => gpu.local.f16(8),
    bf16: (gpu: Gpu) => gpu.local.bf16(8),
  };
  return deviceFunction((make[name as 'f16'] ?? make.f16) as never, {}) as DeviceFunction;
};
const linesOf = ({ name, bytes }: KernelDType, LINES: number): DeviceFunction => {
  const uses = { LINES, WIDTH: LINE_BYTES / bytes };
  type G = Gpu & typeof uses;
  const make = {
    f16: (gpu: G) => gpu.dynamicShared.f16(gpu.LINES, gpu.WIDTH),
    bf16: (gpu: G) => gpu.dynamicShared.bf16(gpu.LINES, gpu.WIDTH),
    f32: (gpu: G) => gpu.dynamicShared.f32(gpu.LINES, gpu.WIDTH),
    f8e4m3: (gpu: G) => gpu.dynamicShared.f8e4m3(gpu.LINES, gpu.WIDTH),
    f8e5m2: (gpu: G) => gpu.dynamicShared.f8e5m2(gpu.LINES, gpu.WIDTH),
    i8: (gpu: G) => gpu.dynamicShared.i8(gpu.LINES, gpu.WIDTH),
    u8: (gpu: G) => gpu.dynamicShared.u8(gpu.LINES, gpu.WIDTH),
  }[name as 'f16'];
  return deviceFunction(make as never, { uses }) as DeviceFunction;
};
const SUMS = {
  f32: {
    sums: (gpu: Gpu & { COUNT: number }) => gpu.local.f32(gpu.COUNT),
    parts: (gpu: Gpu) => gpu.dynamicShared.f32(),
    four: (gpu: Gpu) => gpu.local.f32(4),
  },
  i32: {
    sums: (gpu: Gpu & { COUNT: number }) => gpu.local.i32(gpu.COUNT),
    parts: (gpu: Gpu) => gpu.dynamicShared.i32(),
    four: (gpu: Gpu) => gpu.local.i32(4),
  },
};

/** Gives the kernel for a form. */
export function warpGroupProduct(form: WarpGroupForm): Launchable {
  const { plan, dtype, right, out, leftByDepth, rightByDepth, copied, finish } = form;
  const { rows, columns, stages, splits, group } = plan;
  const key =
    `${pairName(dtype, right)}_${out.name}_${rows}x${columns}_${stages}_${splits}_${group}_` +
    `${leftByDepth ? 'k' : 'm'}${rightByDepth ? 'k' : 'n'}${copied ? '' : '_plain'}` +
    finishKey(finish);
  const made = SUMS[dtype.kind === 'float' ? 'f32' : 'i32'];
  const COUNT = columns / 2;
  const step: Step = {
    ROWS: rows,
    PANEL_A: leftByDepth ? 0 : PANEL,
    PANEL_B: rightByDepth ? 0 : PANEL,
    QUARTER: LINE_BYTES / dtype.bytes / 4,
  };
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
      ...step,
      beginStep: beginStepOf(step),
      COLUMNS: columns,
      STAGES: stages,
      SPLITS: splits,
      rowOf: deviceFunction(rowOf as never, { uses: { GROUP: group } }) as DeviceFunction,
      columnOf: deviceFunction(columnOf as never, { uses: { GROUP: group } }) as DeviceFunction,
      DEPTH: LINE_BYTES / dtype.bytes,
      ADDS_STEPS: addsSteps(dtype),
      COPIED: copied,
      WIDTH: LINE_BYTES / out.bytes,
      HALVES: out.bytes === 2,
      finished: finishing(finish, out.bytes <= 2),
      lines: linesOf(dtype, (rows + columns) * stages),
      linesOfRight: linesOf(right, (rows + columns) * stages),
      sums: deviceFunction(made.sums as never, { uses: { COUNT } }) as DeviceFunction,
      parts: deviceFunction(made.parts as never, {}) as DeviceFunction,
      four: deviceFunction(made.four as never, {}) as DeviceFunction,
      staged: staged(copied ? out : f32, copied ? (rows / 64) * PARTS * PART_LINES : 8),
      packed: packed(out),
    },
    block: threadsOf(plan),
  }));
}
