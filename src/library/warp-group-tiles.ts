/**
 * What bodies that compute tiles of products by Hopper's warp groups have in common: the arrays of
 * a block, the products of a step, the sums of a tile, and how a tile is written.
 */
import { FACTORS } from '../compiler/factors.js';
import { f32 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { finishing } from './finish.js';
import type { FinishForm } from './finish.js';
import type { Gpu, KernelArray } from './kernel-family.js';

/** A step of the common dimension: lines of 128 bytes. */
export const LINE_BYTES = 128;
/** Lines of a panel of a factor of 16 bits whose inner dimension is not the common one. */
const PANEL = 64;
/** Lines of a result that a warp group writes at once, and how many such parts it has. */
const PART_LINES = 64;
const PARTS = 2;

/** What the arrays and functions of a block are made for. */
export interface TileForm {
  /** Rows and columns of a tile, and the steps whose factors are in shared memory at a time. */
  readonly rows: number;
  readonly columns: number;
  readonly stages: number;
  readonly dtype: KernelDType;
  readonly right: KernelDType;
  readonly out: KernelDType;
  /** Whether the common dimension is the inner one of a, and of b. */
  readonly leftByDepth: boolean;
  readonly rightByDepth: boolean;
  /** Whether tensor copies write the result. */
  readonly copied: boolean;
  /** Whether rows of the result may end before a tile does, and others follow. */
  readonly clipped: boolean;
  readonly finish: FinishForm;
}

/**
 * Whether sums of a step are added to others by f32 arithmetic: tensor cores keep 13 bits of a sum
 * of products of f8 (H200), which a long common dimension would use up.
 */
export const addsSteps = ({ name }: KernelDType): boolean => FACTORS[name]?.addsSteps === true;

/** Threads of a block: a warp group for each 64 rows, and one that copies. */
export const tileThreads = ({ rows }: Pick<TileForm, 'rows'>): number => 128 * (1 + rows / 64);

/** Bytes of the factors in shared memory. */
export const factorBytes = ({
  rows,
  columns,
  stages,
}: Pick<TileForm, 'rows' | 'columns' | 'stages'>): number => (rows + columns) * LINE_BYTES * stages;

export type Lines = KernelArray<KernelArray<number>>;
export type Result = number[][][] & { readonly shape: readonly number[] };

interface TileConstants {
  readonly ROWS: number;
  readonly COLUMNS: number;
  readonly STAGES: number;
  /** Lines of a panel of a factor whose inner dimension is not the common one, else 0. */
  readonly PANEL_A: number;
  readonly PANEL_B: number;
  /** Elements of a step, and of the quarter of it that one instruction multiplies. */
  readonly DEPTH: number;
  readonly QUARTER: number;
  readonly ADDS_STEPS: boolean;
  readonly COPIED: boolean;
  readonly CLIPPED: boolean;
  /** Elements of the result in 128 bytes. */
  readonly WIDTH: number;
  readonly HALVES: boolean;
}

type Finished = (
  sum: number,
  bias: readonly number[],
  x: number,
  n: number,
  scaleA: readonly number[],
  scaleB: readonly number[],
  scaleOut: readonly number[],
) => number;

/** What {@link tileUses} gives to a body. */
export interface TileGpu extends Gpu, TileConstants {
  /** All lines of both factors, as elements of the left and of the right one. */
  lines(): Lines;
  linesOfRight(): Lines;
  sums(): KernelArray<number>;
  readonly finished: Finished;
  beginStages(full: KernelArray<number>, empty: KernelArray<number>, arrivals: number): void;
  beginStep(
    sums: KernelArray<number>,
    lines: Lines,
    linesOfRight: Lines,
    line: number,
    warpGroup: number,
  ): void;
  sumStep(
    sums: KernelArray<number>,
    lines: Lines,
    linesOfRight: Lines,
    full: KernelArray<number>,
    empty: KernelArray<number>,
    stage: number,
    parity: number,
    step: number,
    last: number,
    warpGroup: number,
    thread: number,
  ): void;
  endSteps(empty: KernelArray<number>, last: number, thread: number): void;
  sumTile(
    sums: KernelArray<number>,
    lines: Lines,
    linesOfRight: Lines,
    full: KernelArray<number>,
    empty: KernelArray<number>,
    before: number,
    steps: number,
    warpGroup: number,
    thread: number,
  ): void;
  writeTile(
    sums: KernelArray<number>,
    out: Result,
    bias: readonly number[],
    scaleA: readonly number[],
    scaleB: readonly number[],
    scaleOut: readonly number[],
    end: number,
    n: number,
    matrix: number,
    top: number,
    side: number,
    warpGroup: number,
    thread: number,
    half: number,
  ): number;
}

/** Makes the mbarriers of stages: `arrivals` announce a full one, each warp group an empty one. */
const beginStages = (
  full: KernelArray<number>,
  empty: KernelArray<number>,
  arrivals: number,
  gpu: Gpu & TileConstants,
): void => {
  if (gpu.threadIdx.x === 0) {
    for (let s = 0; s < gpu.STAGES; s++) {
      gpu.barrier.init(full, s, arrivals);
      gpu.barrier.init(empty, s, gpu.ROWS / 64);
    }
    gpu.fence.barriers();
  }
  gpu.block.sync();
};

/** Begins to add the products of a step, whose factors' lines begin at `line`. */
const beginStep = (
  sums: KernelArray<number>,
  lines: Lines,
  linesOfRight: Lines,
  line: number,
  warpGroup: number,
  gpu: Gpu & TileConstants,
): void => {
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
};

/**
 * Adds the products of a step when its factors are there. `last` is the stage of the step before,
 * whose products have read their factors when this returns.
 */
const sumStep = (
  sums: KernelArray<number>,
  lines: Lines,
  linesOfRight: Lines,
  full: KernelArray<number>,
  empty: KernelArray<number>,
  stage: number,
  parity: number,
  step: number,
  last: number,
  warpGroup: number,
  thread: number,
  gpu: TileGpu,
): void => {
  const { ROWS, COLUMNS, ADDS_STEPS } = gpu;
  gpu.barrier.wait(full, stage, parity);
  const line = stage * (ROWS + COLUMNS);
  if (ADDS_STEPS) {
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
    if (step > 0 && thread === 0) gpu.barrier.arrive(empty, last);
  }
};

/** Waits for the products of the last step. */
const endSteps = (
  empty: KernelArray<number>,
  last: number,
  thread: number,
  gpu: Gpu & TileConstants,
): void => {
  if (!gpu.ADDS_STEPS) {
    gpu.group.wait(0);
    if (thread === 0) gpu.barrier.arrive(empty, last);
  }
};

/**
 * Adds the products of a tile's steps, which may be none. The block has multiplied `before` steps
 * before: stages and parities follow from it.
 */
const sumTile = (
  sums: KernelArray<number>,
  lines: Lines,
  linesOfRight: Lines,
  full: KernelArray<number>,
  empty: KernelArray<number>,
  before: number,
  steps: number,
  warpGroup: number,
  thread: number,
  gpu: TileGpu,
): void => {
  const { COLUMNS, STAGES } = gpu;
  gpu.unroll();
  for (let i = 0; i < COLUMNS / 2; i++) sums[i] = 0;
  if (steps > 0) {
    let stage = before % STAGES;
    let parity = (before / STAGES) & 1;
    let last = 0;
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
        last,
        warpGroup,
        thread,
      );
      last = stage;
      stage++;
      if (stage === STAGES) {
        stage = 0;
        parity ^= 1;
      }
      step++;
    } while (step < steps);
    gpu.endSteps(empty, last, thread);
  }
};

interface WriteGpu extends Gpu, TileConstants {
  readonly finished: Finished;
  staged(): Lines;
  packed(): KernelArray<number>;
}

/**
 * Writes 64 rows of a tile from `top` on, and gives the part of shared memory that the next parts
 * of a result are written to. With CLIPPED, rows from `end` on are left as they are.
 */
const writeTile = (
  sums: KernelArray<number>,
  out: Result,
  bias: readonly number[],
  scaleA: readonly number[],
  scaleB: readonly number[],
  scaleOut: readonly number[],
  end: number,
  n: number,
  matrix: number,
  top: number,
  side: number,
  warpGroup: number,
  thread: number,
  given: number,
  gpu: WriteGpu,
): number => {
  const { COLUMNS, COPIED, CLIPPED, WIDTH, HALVES } = gpu;
  const { lane } = gpu;
  const warp = gpu.warpIdx % 4;
  // Sums 0 and 1 of a thread are in this column and the next; every four, 8 further.
  const column = side + (lane % 4) * 2;
  let half = given;
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
      if (CLIPPED && top + 64 > end) {
        // Lines of 16 rows for each warp, adjacent elements by adjacent lanes.
        const rows = Math.min(16, end - top - warp * 16);
        gpu.unroll(1);
        for (let r = 0; r < rows; r++) {
          const row = warp * 16 + r;
          gpu.unroll();
          for (let i = 0; i < WIDTH / 32; i++) {
            const at = lane + i * 32;
            if (side + first + at < n)
              out[matrix]![top + row]![side + first + at] =
                staged[to + row]![
                  ((at / (WIDTH / 8)) ^ (r & 7)) * (WIDTH / 8) + (at % (WIDTH / 8))
                ]!;
          }
        }
        // An empty group, so that the wait above counts parts.
        if (thread === 0) gpu.tensor.commit();
      } else if (thread === 0) {
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
      if (y < end && x < n)
        out[matrix]![y]![x] = gpu.finished(sums[i]!, bias, x, n, scaleA, scaleB, scaleOut);
    }
  }
  return half;
};

/** Shared and local arrays by dtype: a body names the dtype of an array. */
const stagedOf = ({ name, bytes }: KernelDType, LINES: number): DeviceFunction => {
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
const packedOf = ({ name }: KernelDType): DeviceFunction => {
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
  f32: (gpu: Gpu & { COUNT: number }) => gpu.local.f32(gpu.COUNT),
  i32: (gpu: Gpu & { COUNT: number }) => gpu.local.i32(gpu.COUNT),
};

/** The constants, arrays and functions of a body of this form. */
export function tileUses(form: TileForm) {
  const { rows, columns, stages, dtype, right, out, copied, clipped, finish } = form;
  const constants: TileConstants = {
    ROWS: rows,
    COLUMNS: columns,
    STAGES: stages,
    PANEL_A: form.leftByDepth ? 0 : PANEL,
    PANEL_B: form.rightByDepth ? 0 : PANEL,
    DEPTH: LINE_BYTES / dtype.bytes,
    QUARTER: LINE_BYTES / dtype.bytes / 4,
    ADDS_STEPS: addsSteps(dtype),
    COPIED: copied,
    CLIPPED: clipped,
    WIDTH: LINE_BYTES / out.bytes,
    HALVES: out.bytes === 2,
  };
  const made = (body: unknown, uses: object): DeviceFunction =>
    deviceFunction(body as never, { uses: uses as never }) as DeviceFunction;
  const sums = made(SUMS[dtype.kind === 'float' ? 'f32' : 'i32'], { COUNT: columns / 2 });
  const begin = made(beginStep, constants);
  const finished = finishing(finish, out.bytes <= 2);
  const steps = {
    sumStep: made(sumStep, { ...constants, sums, beginStep: begin }),
    endSteps: made(endSteps, constants),
  };
  return {
    ...constants,
    lines: linesOf(dtype, (rows + columns) * stages),
    linesOfRight: linesOf(right, (rows + columns) * stages),
    sums,
    finished,
    beginStages: made(beginStages, constants),
    beginStep: begin,
    ...steps,
    sumTile: made(sumTile, { ...constants, ...steps }),
    writeTile: made(writeTile, {
      ...constants,
      finished,
      staged: stagedOf(copied ? out : f32, copied ? (rows / 64) * PARTS * PART_LINES : 8),
      packed: packedOf(out),
    }),
  };
}
