/**
 * Products of matrices of f16 and bf16 on tensor cores, summed in f32. A block computes a tile of
 * the result. Asynchronous copies bring tiles of both factors to shared memory, several steps of
 * the common dimension ahead; each warp loads its fragments of the next 16 elements along it while
 * it multiplies the last ones. Factors are stored by rows or by columns: where the common dimension
 * is not the inner one, fragments are transposed as they are loaded.
 */
import { i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction, GpuWith } from '../kernels/index.js';
import { groupUses } from './groups-of-rows.js';
import type { GroupsGpu } from './groups-of-rows.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Launchable, Output } from './kernel-family.js';

/**
 * How a product is cut into tiles. Lengths are in elements and powers of two; tiles have at least
 * 32 along each side.
 */
export interface TilePlan {
  /** Rows and columns of the result for each block. */
  readonly rows: number;
  readonly columns: number;
  /** Elements of the common dimension for each step: 32 or 64. */
  readonly depth: number;
  /** The number of steps whose tiles are in shared memory at a time. */
  readonly stages: number;
  /** Rows and columns of the result for each warp: multiples of 16. */
  readonly warpRows: number;
  readonly warpColumns: number;
  /**
   * Rows of tiles that concurrent blocks compute, so that the second-level cache has what they
   * read.
   */
  readonly group: number;
}

/** Threads of a block. */
export function threadsOf({ rows, columns, warpRows, warpColumns }: TilePlan): number {
  return (rows / warpRows) * (columns / warpColumns) * 32;
}

/** Bytes of shared memory. */
export function sharedBytesOf({ rows, columns, depth, stages }: TilePlan): number {
  return (rows + columns) * depth * stages * 2;
}

/** The plan and what else a kernel is specialised for. */
export interface TensorCoreForm {
  readonly plan: TilePlan;
  /** f16 or bf16. */
  readonly dtype: KernelDType;
  readonly out: KernelDType;
  /** Whether the common dimension is the inner one of a, and of b. */
  readonly leftByDepth: boolean;
  readonly rightByDepth: boolean;
  /** Whether tiles may reach beyond the matrices. */
  readonly edges: boolean;
  /** Whether rows of the result have even lengths: two elements are written at once. */
  readonly pairs: boolean;
  /** Whether indices do not fit in 32 bits. */
  readonly wide: boolean;
  /** The dtype of the ends of groups of rows, each with a second factor of its own. */
  readonly ends?: KernelDType;
}

type Fragments = KernelArray<KernelArray<KernelArray<number>>>;

/**
 * The place of a run of 8 elements in a row of `runs` runs. Runs are permuted (swizzled) so that
 * the runs with one number of eight consecutive rows lie in different banks. A row of four runs
 * takes half of all banks.
 */
const exchanged = (run: number, row: number, runs: number): number =>
  run ^ (runs === 4 ? (row >> 1) & 3 : row & 7);

interface Exchanging {
  exchanged(run: number, row: number, runs: number): number;
}

interface TileUses extends Exchanging {
  readonly BY_DEPTH: boolean;
  readonly EXTENT: number;
  readonly DEPTH: number;
  readonly THREADS: number;
  readonly EDGES: boolean;
}

/**
 * Begins to copy a tile of one factor: EXTENT rows (in b: columns) by DEPTH. In shared memory it
 * has the factor's order, by runs of 8 elements (16 bytes) that are permuted within each row, since
 * ldmatrix reads one run of eight rows at once.
 */
const copyTile = (
  tiles: KernelArray<number>,
  to: number,
  x: Input,
  first: number,
  stride: number,
  from: number,
  extent: number,
  at: number,
  depth: number,
  gpu: Gpu & TileUses,
): void => {
  const { BY_DEPTH, EXTENT, DEPTH, THREADS, EDGES } = gpu;
  const t = gpu.threadIdx.x;
  const inner = BY_DEPTH ? DEPTH : EXTENT;
  const runs = inner / 8;
  const rowsAtOnce = THREADS / runs;
  const run = t % runs;
  const row = t / runs;
  for (let i = 0; i < (EXTENT * DEPTH) / 8 / THREADS; i++) {
    const line = row + i * rowsAtOnce;
    // Rows that are a multiple of 8 apart have the same permutation.
    const like = rowsAtOnce % 8 === 0 ? row : line;
    const swapped = gpu.exchanged(run, like, runs);
    const place = to + swapped * 8 + row * inner + i * rowsAtOnce * inner;
    if (BY_DEPTH) {
      const index = first + (from + line) * stride + run * 8 + at;
      if (EDGES)
        gpu.async.copy(tiles, place, x, index, 8, from + line < extent ? depth - at - run * 8 : 0);
      else gpu.async.copy(tiles, place, x, index, 8, at < depth ? 8 : 0);
    } else {
      const index = first + from + run * 8 + (at + line) * stride;
      if (EDGES)
        gpu.async.copy(tiles, place, x, index, 8, at + line < depth ? extent - from - run * 8 : 0);
      else gpu.async.copy(tiles, place, x, index, 8, at < depth ? 8 : 0);
    }
  }
};

interface FragmentUses extends Exchanging {
  readonly BY_DEPTH: boolean;
  readonly EXTENT: number;
  readonly DEPTH: number;
  /** The number of fragments of 16 rows, or of 16 columns. */
  readonly COUNT: number;
}

/** Loads a warp's fragments of a, from row `first` of the tile on, for one step of 16. */
const loadLeft = (
  fragments: Fragments,
  buffer: number,
  tiles: KernelArray<number>,
  tile: number,
  first: number,
  step: number,
  gpu: Gpu & FragmentUses,
): void => {
  const { BY_DEPTH, EXTENT, DEPTH, COUNT } = gpu;
  const { lane } = gpu;
  for (let i = 0; i < COUNT; i++) {
    if (BY_DEPTH) {
      const row = lane & 15;
      const run = gpu.exchanged(step * 2 + (lane >> 4), row, DEPTH / 8);
      gpu.warp.loadMatrices(
        fragments[buffer]![i]!,
        tiles,
        tile + ((first + row) * DEPTH + run * 8) + i * 16 * DEPTH,
      );
    } else {
      const row = (lane & 7) + (lane >> 4) * 8;
      const run = gpu.exchanged((first + i * 16) / 8 + ((lane >> 3) & 1), row, EXTENT / 8);
      gpu.warp.loadMatricesTransposed(
        fragments[buffer]![i]!,
        tiles,
        tile + (row * EXTENT + run * 8) + step * 16 * EXTENT,
      );
    }
  }
};

/** Loads a warp's fragments of b, two for each 16 columns, from column `first` of the tile on. */
const loadRight = (
  fragments: Fragments,
  buffer: number,
  tiles: KernelArray<number>,
  tile: number,
  first: number,
  step: number,
  gpu: Gpu & FragmentUses,
): void => {
  const { BY_DEPTH, EXTENT, DEPTH, COUNT } = gpu;
  const { lane } = gpu;
  for (let i = 0; i < COUNT; i++) {
    if (BY_DEPTH) {
      const column = (lane & 7) + (lane >> 4) * 8;
      const run = gpu.exchanged(step * 2 + ((lane >> 3) & 1), column, DEPTH / 8);
      gpu.warp.loadMatrices(
        fragments[buffer * COUNT + i]!,
        tiles,
        tile + ((first + column) * DEPTH + run * 8) + i * 16 * DEPTH,
      );
    } else {
      const row = lane & 15;
      const run = gpu.exchanged((first + i * 16) / 8 + (lane >> 4), row, EXTENT / 8);
      gpu.warp.loadMatricesTransposed(
        fragments[buffer * COUNT + i]!,
        tiles,
        tile + (row * EXTENT + run * 8) + step * 16 * EXTENT,
      );
    }
  }
};

interface Args {
  readonly out: Output;
  readonly a: Input;
  readonly b: Input;
  /** Rows of the result, columns, and the common dimension. */
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Strides of the factors' rows (or columns), in elements. */
  readonly strideA: number;
  readonly strideB: number;
  /** The stride of the result's rows: in elements, or in pairs where two are written at once. */
  readonly pitch: number;
  /** The number of tiles along the result's rows and columns. */
  readonly down: number;
  readonly across: number;
  /** The number of inner products for each outer one, and the strides of matrices, in elements. */
  readonly inner: number;
  readonly outerA: number;
  readonly innerA: number;
  readonly outerB: number;
  readonly innerB: number;
  /** Read where rows are in groups: the row after each group's last one. */
  readonly ends: readonly number[];
}

interface ProductGpu extends Gpu, GroupsGpu {
  readonly GROUPED: boolean;
  readonly ROWS: number;
  readonly COLUMNS: number;
  readonly DEPTH: number;
  readonly STAGES: number;
  readonly WARP_ROWS: number;
  readonly WARP_COLUMNS: number;
  readonly TOGETHER: number;
  readonly EDGES: boolean;
  readonly PAIRS: boolean;
  tiles(): KernelArray<number>;
  left(): Fragments;
  right(): Fragments;
  sums(): Fragments;
  copyLeft(
    tiles: KernelArray<number>,
    to: number,
    x: Input,
    first: number,
    stride: number,
    from: number,
    extent: number,
    at: number,
    depth: number,
  ): void;
  copyRight(
    tiles: KernelArray<number>,
    to: number,
    x: Input,
    first: number,
    stride: number,
    from: number,
    extent: number,
    at: number,
    depth: number,
  ): void;
  loadLeft(
    fragments: Fragments,
    buffer: number,
    tiles: KernelArray<number>,
    tile: number,
    first: number,
    step: number,
  ): void;
  loadRight(
    fragments: Fragments,
    buffer: number,
    tiles: KernelArray<number>,
    tile: number,
    first: number,
    step: number,
  ): void;
}

const products = new KernelFamily(
  'tensor_core_product',
  (
    {
      out,
      a,
      b,
      m,
      n,
      k,
      strideA,
      strideB,
      pitch,
      down,
      across,
      inner,
      outerA,
      innerA,
      outerB,
      innerB,
      ends,
    }: Args,
    gpu: ProductGpu,
  ) => {
    const { ROWS, COLUMNS, DEPTH, STAGES, WARP_ROWS, WARP_COLUMNS, EDGES, PAIRS } = gpu;
    const { TOGETHER, GROUPED } = gpu;
    const tiles = gpu.tiles();
    const left = gpu.left();
    const right = gpu.right();
    const sums = gpu.sums();

    // The matrices and the tile of the result: in TOGETHER rows of tiles the order is by columns.
    const matrix = gpu.blockIdx.x / (down * across);
    const found = gpu.found();
    if (GROUPED) {
      gpu.findGroup(found, ends, m, gpu.blockIdx.x / across);
      if (found[gpu.GROUP]! > ends.length) return;
    }
    const before = GROUPED ? found[gpu.TILES_BEFORE]! : 0;
    const number = GROUPED ? gpu.blockIdx.x - before * across : gpu.blockIdx.x % (down * across);
    const rowsOfTiles = GROUPED ? found[gpu.TILES_END]! - before : down;
    const firstDown = (number / (TOGETHER * across)) * TOGETHER;
    const rowsHere = Math.min(rowsOfTiles - firstDown, TOGETHER);
    const within = number % (TOGETHER * across);
    const top = (GROUPED ? found[gpu.START]! : 0) + (firstDown + (within % rowsHere)) * ROWS;
    const side = (within / rowsHere) * COLUMNS;
    const end = GROUPED ? found[gpu.END]! : m;
    // Rows after the last group are zeros.
    const depths = GROUPED && found[gpu.GROUP]! === ends.length ? 0 : k;
    const firstA = (matrix / inner) * outerA + (matrix % inner) * innerA;
    const firstB = GROUPED
      ? found[gpu.GROUP]! * innerB
      : (matrix / inner) * outerB + (matrix % inner) * innerB;

    const warpTop = (gpu.warpIdx / (COLUMNS / WARP_COLUMNS)) * WARP_ROWS;
    const warpSide = (gpu.warpIdx % (COLUMNS / WARP_COLUMNS)) * WARP_COLUMNS;

    let ahead = 0;
    gpu.unroll();
    for (let stage = 0; stage < STAGES - 1; stage++) {
      gpu.copyLeft(
        tiles,
        stage * (ROWS + COLUMNS) * DEPTH,
        a,
        firstA,
        strideA,
        top,
        end,
        ahead,
        depths,
      );
      gpu.copyRight(
        tiles,
        stage * (ROWS + COLUMNS) * DEPTH + ROWS * DEPTH,
        b,
        firstB,
        strideB,
        side,
        n,
        ahead,
        depths,
      );
      gpu.async.commit();
      ahead += DEPTH;
    }
    gpu.async.wait(STAGES - 2);
    gpu.block.sync();
    gpu.loadLeft(left, 0, tiles, 0, warpTop, 0);
    gpu.loadRight(right, 0, tiles, ROWS * DEPTH, warpSide, 0);

    let reading = 0;
    let writing = (STAGES - 1) * (ROWS + COLUMNS) * DEPTH;
    gpu.unroll(1);
    for (let at = 0; at < depths; at += DEPTH) {
      gpu.unroll();
      for (let step = 0; step < DEPTH / 16; step++) {
        if (step === DEPTH / 16 - 1) {
          gpu.async.wait(STAGES - 2);
          gpu.block.sync();
          reading =
            reading === (STAGES - 1) * (ROWS + COLUMNS) * DEPTH
              ? 0
              : reading + (ROWS + COLUMNS) * DEPTH;
        }
        gpu.loadLeft(left, (step + 1) % 2, tiles, reading, warpTop, (step + 1) % (DEPTH / 16));
        gpu.loadRight(
          right,
          (step + 1) % 2,
          tiles,
          reading + ROWS * DEPTH,
          warpSide,
          (step + 1) % (DEPTH / 16),
        );
        if (step === 0) {
          // After the end zeros are copied, so that each step waits for the same number of groups.
          gpu.copyLeft(tiles, writing, a, firstA, strideA, top, end, ahead, depths);
          gpu.copyRight(tiles, writing + ROWS * DEPTH, b, firstB, strideB, side, n, ahead, depths);
          gpu.async.commit();
          ahead += DEPTH;
          writing =
            writing === (STAGES - 1) * (ROWS + COLUMNS) * DEPTH
              ? 0
              : writing + (ROWS + COLUMNS) * DEPTH;
        }
        gpu.unroll();
        for (let i = 0; i < WARP_ROWS / 16; i++) {
          gpu.unroll();
          for (let j = 0; j < WARP_COLUMNS / 8; j++) {
            // Columns go forth and back, so that two products in sequence have a factor in common.
            const column = i % 2 === 0 ? j : WARP_COLUMNS / 8 - 1 - j;
            gpu.warp.mma(
              sums[i]![column]!,
              left[step % 2]![i]!,
              right[(step % 2) * (WARP_COLUMNS / 16) + column / 2]![column % 2]!,
            );
          }
        }
      }
    }

    const row = top + warpTop + gpu.lane / 4;
    const column = side + warpSide + (gpu.lane % 4) * 2;
    gpu.unroll();
    for (let i = 0; i < WARP_ROWS / 16; i++) {
      gpu.unroll();
      for (let half = 0; half < 2; half++) {
        const line = row + i * 16 + half * 8;
        gpu.unroll();
        for (let j = 0; j < WARP_COLUMNS / 8; j++) {
          if (!EDGES || (line < end && column + j * 8 < n)) {
            if (PAIRS) {
              const pair = (matrix * (m * pitch) + line * pitch + column / 2 + j * 4) * 2;
              out[pair] = sums[i]![j]![half * 2]!;
              out[pair + 1] = sums[i]![j]![half * 2 + 1]!;
            } else {
              const place = matrix * (m * pitch) + line * pitch + column + j * 8;
              out[place] = sums[i]![j]![half * 2]!;
              if (column + j * 8 + 1 < n) out[place + 1] = sums[i]![j]![half * 2 + 1]!;
            }
          }
        }
      }
    }
  },
);

const ARRAYS = {
  f16: {
    tiles: (gpu: Gpu): KernelArray<number> => gpu.dynamicShared.f16(),
    local: (A: number, B: number, C: number): DeviceFunction => {
      const uses = { A, B, C };
      return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.f16(gpu.A, gpu.B, gpu.C), {
        uses,
      }) as DeviceFunction;
    },
  },
  bf16: {
    tiles: (gpu: Gpu): KernelArray<number> => gpu.dynamicShared.bf16(),
    local: (A: number, B: number, C: number): DeviceFunction => {
      const uses = { A, B, C };
      return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.bf16(gpu.A, gpu.B, gpu.C), {
        uses,
      }) as DeviceFunction;
    },
  },
} as const;

const sumsOf = (A: number, B: number): DeviceFunction => {
  const uses = { A, B };
  return deviceFunction((gpu: GpuWith<typeof uses>) => gpu.local.f32(gpu.A, gpu.B, 4), {
    uses,
  }) as DeviceFunction;
};

/** Gives the kernel for a form. Scalars are i32; with `wide`, strides are i64. */
export function tensorCoreProduct({
  plan,
  dtype,
  out,
  leftByDepth,
  rightByDepth,
  edges,
  pairs,
  wide,
  ends,
}: TensorCoreForm): Launchable {
  const { rows, columns, depth, stages, warpRows, warpColumns, group } = plan;
  const flags =
    `${leftByDepth ? 'k' : 'm'}${rightByDepth ? 'k' : 'n'}${edges ? '_edges' : ''}` +
    `${pairs ? '' : '_odd'}${wide ? '_wide' : ''}${ends === undefined ? '' : `_${ends.name}`}`;
  return products.member(
    `${dtype.name}_${out.name}_${rows}x${columns}x${depth}_${stages}_${warpRows}x` +
      `${warpColumns}_${group}_${flags}`,
    () => {
      const threads = threadsOf(plan);
      const whole = wide ? i64 : i32;
      const arrays = ARRAYS[dtype.name as 'f16'];
      const tile = (BY_DEPTH: boolean, EXTENT: number) =>
        deviceFunction(copyTile as never, {
          uses: { BY_DEPTH, EXTENT, DEPTH: depth, THREADS: threads, EDGES: edges, exchanged },
        }) as DeviceFunction;
      const fragments = (load: unknown, BY_DEPTH: boolean, EXTENT: number, COUNT: number) =>
        deviceFunction(load as never, {
          uses: { BY_DEPTH, EXTENT, DEPTH: depth, COUNT, exchanged },
        }) as DeviceFunction;
      return {
        signature: {
          out: output(out),
          a: input(dtype),
          b: input(dtype),
          m: i32,
          n: i32,
          k: i32,
          strideA: whole,
          strideB: whole,
          down: i32,
          across: i32,
          pitch: whole,
          inner: i32,
          outerA: whole,
          innerA: whole,
          outerB: whole,
          innerB: whole,
          ends: input(ends ?? dtype),
        },
        uses: {
          ...groupUses(rows),
          GROUPED: ends !== undefined,
          ROWS: rows,
          COLUMNS: columns,
          DEPTH: depth,
          STAGES: stages,
          WARP_ROWS: warpRows,
          WARP_COLUMNS: warpColumns,
          TOGETHER: group,
          EDGES: edges,
          PAIRS: pairs,
          tiles: arrays.tiles,
          left: arrays.local(2, warpRows / 16, 8),
          right: arrays.local(warpColumns / 8, 2, 4),
          sums: sumsOf(warpRows / 16, warpColumns / 8),
          copyLeft: tile(leftByDepth, rows),
          copyRight: tile(rightByDepth, columns),
          loadLeft: fragments(loadLeft, leftByDepth, rows, warpRows / 16),
          loadRight: fragments(loadRight, rightByDepth, columns, warpColumns / 16),
        },
        block: threads,
      };
    },
  );
}
