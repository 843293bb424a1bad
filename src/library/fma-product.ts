/**
 * Products of matrices by fused multiply-adds, in f32, f64 or i32, with any strides, on any device.
 * A block computes a tile of the result, and each thread a square of it; the square's rows and
 * columns are spread so that adjacent threads read adjacent elements of shared memory. While one
 * pair of tiles is multiplied, the next one is read into registers. Each element is one chain of
 * multiply-adds along the common dimension, so that results have the same bits on every device.
 */
import { i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { groupUses } from './groups-of-rows.js';
import type { GroupsGpu } from './groups-of-rows.js';
import { KernelFamily, pairName } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Launchable, Output } from './kernel-family.js';
import { CASTS } from './reduction-kernels.js';

export interface FmaForm {
  readonly dtype: KernelDType;
  /** The dtype of the second factor. */
  readonly right: KernelDType;
  readonly out: KernelDType;
  readonly accumulator: 'f32' | 'f64' | 'i32';
  /** Rows and columns of a block's tile, which has 16 threads along each. */
  readonly side: 32 | 64 | 128;
  /** Whether the common dimension has the smaller stride, of each factor. */
  readonly leftByDepth: boolean;
  readonly rightByDepth: boolean;
  readonly wide: boolean;
  /** The dtype of the ends of groups of rows, each with a second factor of its own. */
  readonly ends?: KernelDType;
}

/** Threads along each side of a tile. */
const ACROSS = 16;
export const FMA_THREADS = ACROSS * ACROSS;
/** Elements of the common dimension in each step. */
const DEPTH = 16;

type Tile = KernelArray<KernelArray<KernelArray<number>>>;

interface Args {
  readonly out: Output;
  readonly a: Input;
  readonly b: Input;
  readonly m: number;
  readonly n: number;
  readonly k: number;
  /** Strides of the factors' rows and columns, in elements. */
  readonly rowA: number;
  readonly columnA: number;
  readonly rowB: number;
  readonly columnB: number;
  /** The stride of the result's rows. */
  readonly pitch: number;
  readonly down: number;
  readonly across: number;
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
  readonly SIDE: number;
  /** A thread's elements along each side. */
  readonly EACH: number;
  /** How many of them are adjacent. */
  readonly WIDTH: number;
  /** Elements that a thread reads of a tile. */
  readonly READ: number;
  readonly LEFT_BY_DEPTH: boolean;
  readonly RIGHT_BY_DEPTH: boolean;
  /**
   * Four tiles of 16 rows of SIDE: two of a, of which one is read while the other is written, then
   * two of b.
   */
  tiles(): Tile;
  /**
   * Arrays of zeros: a thread's part of the result; the elements of a tile that it reads; its rows
   * or columns at one place of the common dimension.
   */
  sums(): KernelArray<number>;
  read(): KernelArray<number>;
  line(): KernelArray<number>;
  cast(value: number): number;
}

const products = new KernelFamily(
  'fma_product',
  (
    {
      out,
      a,
      b,
      m,
      n,
      k,
      rowA,
      columnA,
      rowB,
      columnB,
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
    const { SIDE, EACH, WIDTH, READ, LEFT_BY_DEPTH, RIGHT_BY_DEPTH, GROUPED } = gpu;
    const tiles = gpu.tiles();
    const sums = gpu.sums();
    const nextLeft = gpu.read();
    const nextRight = gpu.read();
    const fromLeft = gpu.line();
    const fromRight = gpu.line();

    const t = gpu.threadIdx.x;
    const matrix = gpu.blockIdx.x / (down * across);
    const number = gpu.blockIdx.x % (down * across);
    const found = gpu.found();
    if (GROUPED) {
      gpu.findGroup(found, ends, m, number / across);
      if (found[gpu.GROUP]! > ends.length) return;
    }
    const top = GROUPED
      ? found[gpu.START]! + (number / across - found[gpu.TILES_BEFORE]!) * SIDE
      : (number / across) * SIDE;
    const side = (number % across) * SIDE;
    const end = GROUPED ? found[gpu.END]! : m;
    // Rows after the last group are zeros.
    const depths = GROUPED && found[gpu.GROUP]! === ends.length ? 0 : k;
    const firstA = (matrix / inner) * outerA + (matrix % inner) * innerA;
    const firstB = GROUPED
      ? found[gpu.GROUP]! * innerB
      : (matrix / inner) * outerB + (matrix % inner) * innerB;
    // Adjacent threads read adjacent elements.
    const lineLeft = LEFT_BY_DEPTH ? t / 16 : t % SIDE;
    const depthLeft = LEFT_BY_DEPTH ? t % 16 : t / SIDE;
    const lineRight = RIGHT_BY_DEPTH ? t / 16 : t % SIDE;
    const depthRight = RIGHT_BY_DEPTH ? t % 16 : t / SIDE;
    const x = t % 16;
    const y = t / 16;

    let buffer = 0;
    gpu.unroll(1);
    for (let at = -16; at < depths; at += 16) {
      // Reads the tiles of the next step. Before the first step there is nothing to multiply.
      gpu.unroll();
      for (let i = 0; i < READ; i++) {
        const line = top + lineLeft + (LEFT_BY_DEPTH ? i * 16 : 0);
        const depth = at + 16 + depthLeft + (LEFT_BY_DEPTH ? 0 : i * (256 / SIDE));
        nextLeft[i] =
          line < end && depth < depths ? gpu.cast(a[firstA + line * rowA + depth * columnA]!) : 0;
      }
      gpu.unroll();
      for (let i = 0; i < READ; i++) {
        const line = side + lineRight + (RIGHT_BY_DEPTH ? i * 16 : 0);
        const depth = at + 16 + depthRight + (RIGHT_BY_DEPTH ? 0 : i * (256 / SIDE));
        nextRight[i] =
          line < n && depth < depths ? gpu.cast(b[firstB + depth * rowB + line * columnB]!) : 0;
      }
      if (at >= 0) {
        gpu.unroll();
        for (let depth = 0; depth < 16; depth++) {
          gpu.unroll();
          for (let i = 0; i < EACH; i++) {
            fromLeft[i] = tiles[buffer]![depth]![y * WIDTH + (i % WIDTH) + (i / WIDTH) * 64]!;
            fromRight[i] = tiles[2 + buffer]![depth]![x * WIDTH + (i % WIDTH) + (i / WIDTH) * 64]!;
          }
          gpu.unroll();
          for (let i = 0; i < EACH; i++) {
            gpu.unroll();
            for (let j = 0; j < EACH; j++)
              sums[i * EACH + j] = fromLeft[i]! * fromRight[j]! + sums[i * EACH + j]!;
          }
        }
      }
      buffer = 1 - buffer;
      gpu.unroll();
      for (let i = 0; i < READ; i++) {
        tiles[buffer]![depthLeft + (LEFT_BY_DEPTH ? 0 : i * (256 / SIDE))]![
          lineLeft + (LEFT_BY_DEPTH ? i * 16 : 0)
        ] = nextLeft[i]!;
        tiles[2 + buffer]![depthRight + (RIGHT_BY_DEPTH ? 0 : i * (256 / SIDE))]![
          lineRight + (RIGHT_BY_DEPTH ? i * 16 : 0)
        ] = nextRight[i]!;
      }
      gpu.block.sync();
    }
    gpu.unroll();
    for (let i = 0; i < EACH; i++) {
      const row = top + y * WIDTH + (i % WIDTH) + (i / WIDTH) * 64;
      gpu.unroll();
      for (let j = 0; j < EACH; j++) {
        const column = side + x * WIDTH + (j % WIDTH) + (j / WIDTH) * 64;
        if (row < end && column < n)
          out[matrix * (m * pitch) + row * pitch + column] = sums[i * EACH + j]!;
      }
    }
  },
);

/**
 * Elements that are added to a row of a tile: rows begin at multiples of 16 bytes, and in other
 * banks than the row before.
 */
const SPARE = 4;
/** Arrays by the type of sums: a body names the type of an array. */
const TILES = {
  f32: (gpu: Gpu & { ROW: number }) => gpu.shared.f32(4, 16, gpu.ROW),
  f64: (gpu: Gpu & { ROW: number }) => gpu.shared.f64(4, 16, gpu.ROW),
  i32: (gpu: Gpu & { ROW: number }) => gpu.shared.i32(4, 16, gpu.ROW),
};
const VALUES = {
  f32: (gpu: Gpu & { LENGTH: number }) => gpu.local.f32(gpu.LENGTH),
  f64: (gpu: Gpu & { LENGTH: number }) => gpu.local.f64(gpu.LENGTH),
  i32: (gpu: Gpu & { LENGTH: number }) => gpu.local.i32(gpu.LENGTH),
};

/** Gives the kernel for a form. Scalars are i32; with `wide`, strides are i64. */
export function fmaProduct({
  dtype,
  right,
  out,
  accumulator,
  side,
  leftByDepth,
  rightByDepth,
  wide,
  ends,
}: FmaForm): Launchable {
  const each = side / ACROSS;
  const read = (side * DEPTH) / FMA_THREADS;
  const values = (LENGTH: number): DeviceFunction =>
    deviceFunction(VALUES[accumulator] as never, { uses: { LENGTH } }) as DeviceFunction;
  return products.member(
    `${pairName(dtype, right)}_${out.name}_${side}_` +
      `${leftByDepth ? 'k' : 'm'}${rightByDepth ? 'k' : 'n'}${wide ? '_wide' : ''}` +
      (ends === undefined ? '' : `_${ends.name}`),
    () => {
      const whole = wide ? i64 : i32;
      return {
        signature: {
          out: output(out),
          a: input(dtype),
          b: input(right),
          m: i32,
          n: i32,
          k: i32,
          rowA: whole,
          columnA: whole,
          rowB: whole,
          columnB: whole,
          pitch: whole,
          down: i32,
          across: i32,
          inner: i32,
          outerA: whole,
          innerA: whole,
          outerB: whole,
          innerB: whole,
          ends: input(ends ?? dtype),
        },
        uses: {
          ...groupUses(side),
          GROUPED: ends !== undefined,
          SIDE: side,
          EACH: each,
          WIDTH: Math.min(each, 4),
          READ: read,
          LEFT_BY_DEPTH: leftByDepth,
          RIGHT_BY_DEPTH: rightByDepth,
          tiles: deviceFunction(TILES[accumulator] as never, {
            uses: { ROW: side + SPARE },
          }) as DeviceFunction,
          sums: values(each * each),
          read: values(read),
          line: values(each),
          cast: CASTS[accumulator],
        },
        block: FMA_THREADS,
      };
    },
  );
}
