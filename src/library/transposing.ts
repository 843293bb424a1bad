/** Transposed copies of matrices: tiles are read and written along rows by way of shared memory. */
import { i32, i64 } from '../core/index.js';
import type { KernelDTypeName } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { input, output } from '../kernels/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { KernelTensor, Known, Shape, Tensor, Transposed } from '../tensor/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import { checkNoOptions, checkTensor, operation } from './operation.js';
import { isWide } from './reduction-kernels.js';
import { wordOf, words } from './words.js';

/**
 * Rows and columns of a tile, which a block transposes. A thread has 16 elements, and reads all of
 * them before it writes the first.
 */
const TILE = 64;
const BLOCK = 256;
/** Elements of an access, where rows begin at multiples of so many. */
const WIDTH = 4;
/** Rows or columns below which a tile would be mostly empty. */
const NARROW = 16;

interface TransposeGpu extends Gpu {
  /** Elements of an access to the operand, and to the result. */
  readonly IN: number;
  readonly OUT: number;
  /** 64 × 65 elements, so that adjacent elements of a column lie in different banks. */
  tile(): KernelArray<KernelArray<number>>;
  values(): KernelArray<number>;
}

interface TransposeArgs {
  readonly out: Output;
  readonly x: Input;
  readonly rows: number;
  readonly columns: number;
  /** The number of tiles along the columns and along the rows. */
  readonly across: number;
  readonly down: number;
  /** Accesses that a row of the operand takes, and a row of the result. */
  readonly unitsIn: number;
  readonly unitsOut: number;
}

const transposes = new KernelFamily(
  'transpose',
  (
    { out, x, rows, columns, across, down, unitsIn, unitsOut }: TransposeArgs,
    gpu: TransposeGpu,
  ) => {
    const tile = gpu.tile();
    const values = gpu.values();
    const t = gpu.threadIdx.x;
    const at = gpu.blockIdx.x % (across * down);
    const matrix = gpu.blockIdx.x / (across * down);
    const left = (at % across) * 64;
    const top = (at / across) * 64;
    const column = t % (64 / gpu.IN);
    const row = t / (64 / gpu.IN);
    // Beyond the edge the last elements are read again, and not written, so that no read depends on
    // a comparison.
    const unit = Math.min(left / gpu.IN + column, unitsIn - 1);
    gpu.unroll(16);
    for (let p = 0; p < 16 / gpu.IN; p++) {
      const from = Math.min(top + row + p * 4 * gpu.IN, rows - 1);
      for (let k = 0; k < gpu.IN; k++)
        values[p * gpu.IN + k] = x[((matrix * rows + from) * unitsIn + unit) * gpu.IN + k]!;
    }
    gpu.unroll(16);
    for (let p = 0; p < 16 / gpu.IN; p++) {
      for (let k = 0; k < gpu.IN; k++)
        tile[row + p * 4 * gpu.IN]![column * gpu.IN + k] = values[p * gpu.IN + k]!;
    }
    gpu.block.sync();
    const below = t % (64 / gpu.OUT);
    const beside = t / (64 / gpu.OUT);
    gpu.unroll(16);
    for (let p = 0; p < 16 / gpu.OUT; p++) {
      const to = beside + p * 4 * gpu.OUT;
      for (let k = 0; k < gpu.OUT; k++) values[p * gpu.OUT + k] = tile[below * gpu.OUT + k]![to]!;
    }
    gpu.unroll(16);
    for (let p = 0; p < 16 / gpu.OUT; p++) {
      const to = left + beside + p * 4 * gpu.OUT;
      if (to < columns && top / gpu.OUT + below < unitsOut) {
        for (let k = 0; k < gpu.OUT; k++)
          out[((matrix * columns + to) * unitsOut + top / gpu.OUT + below) * gpu.OUT + k] =
            values[p * gpu.OUT + k]!;
      }
    }
  },
);

const TILES = {
  u8: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u8(64, 65),
  u16: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u16(64, 65),
  u32: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u32(64, 65),
  u64: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u64(64, 65),
} as const;

const narrowValues = (gpu: Gpu): KernelArray<number> => gpu.local.u32(16);
const wideValues = (gpu: Gpu): KernelArray<number> => gpu.local.u64(16);

/**
 * Makes a contiguous copy with the last two axes exchanged; axes before them count matrices. It
 * takes any dtype. The view `x.transpose()` copies nothing: the copy is for operations that read it
 * often.
 *
 * @throws CudaArgumentError for fewer than two axes; at the call, or when run where an operation
 *   gives the operand
 *
 * @example
 * ```ts
 * using x = await device.tensor(f32, [1, 2, 3, 4, 5, 6], [2, 3]);
 * using y = await transpose(x);
 * console.log(y.shape, (await y.read()).join(' ')); // [ 3, 2 ] 1 4 2 5 3 6
 * ```
 */
export function transpose<D extends KernelDTypeName, S extends Shape>(
  x: OrOp<Tensor<D, S>>,
): DeviceOp<Tensor<D, Known<Transposed<S, -2, -1>>>>;
export function transpose(given: unknown, more?: unknown, further?: unknown): unknown {
  checkNoOptions(
    'transpose',
    more,
    further,
    'It exchanges the last two axes: for others take x.transpose(a, b).contiguous().',
  );
  return operation('transpose', [given], ([x]) => {
    checkTensor('transpose', 'x', x);
    if (x.rank < 2) throw invalid('x', 'at least two axes, for transpose(…)', x);
    const [rows, columns] = x.shape.slice(-2) as [number, number];
    return (work) => {
      const out = work.result(x.dtype, [
        ...x.shape.slice(0, -2),
        columns,
        rows,
      ]) as unknown as KernelTensor;
      if (out.size === 0) return out;
      if (Math.min(rows, columns) < NARROW) {
        work.add(out.copyFrom(x.transpose()));
        return out;
      }
      const dtype = wordOf(x.dtype);
      const [across, down] = [Math.ceil(columns / TILE), Math.ceil(rows / TILE)];
      const [IN, OUT] = [columns, rows].map((length) => (length % WIDTH === 0 ? WIDTH : 1)) as [
        number,
        number,
      ];
      const wide = isWide(x);
      const launch = transposes.member(`${dtype.name}_${IN}_${OUT}${wide ? '_wide' : ''}`, () => {
        const whole = wide ? i64 : i32;
        return {
          signature: {
            out: output(dtype),
            x: input(dtype),
            rows: whole,
            columns: whole,
            across: whole,
            down: whole,
            unitsIn: whole,
            unitsOut: whole,
          },
          uses: {
            IN,
            OUT,
            tile: TILES[dtype.name as keyof typeof TILES],
            values: dtype.bytes === 8 ? wideValues : narrowValues,
          },
          block: BLOCK,
        };
      });
      const grid = (x.size / (rows * columns)) * across * down;
      work.add(
        launch(
          {
            out: words(out),
            x: words(work.dense(x)),
            rows,
            columns,
            across,
            down,
            unitsIn: columns / IN,
            unitsOut: rows / OUT,
          },
          { grid, ...(wide ? { index: 'i64' } : {}) },
        ),
      );
      return out;
    };
  });
}
