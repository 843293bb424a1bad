/** Transposed copies of matrices, by tiles: read and written along rows, turned in shared memory. */
import { i32, i64 } from '../core/index.js';
import type { DTypeName } from '../core/index.js';
import { invalid } from '../core/arguments.js';
import { input, output } from '../launch/index.js';
import type { DeviceOp, OrOp } from '../ops/index.js';
import type { AnyTensor, Known, Shape, Tensor, Transposed } from '../tensor/index.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, Input, KernelArray, Output } from './kernel-family.js';
import { checkTensor, operation } from './operation.js';
import { isWide } from './reduction-kernels.js';
import { wordOf, words } from './words.js';

const TILE = 32;

interface TransposeGpu extends Gpu {
  /** 32 × 33: neighbours of a column lie in different banks. */
  tile(): KernelArray<KernelArray<number>>;
}

const transposes = new KernelFamily('transpose', ({ out, x, rows, columns, across, down }: { out: Output; x: Input; rows: number; columns: number; across: number; down: number }, gpu: TransposeGpu) => {
  const tile = gpu.tile();
  const { x: tx, y: ty } = gpu.threadIdx;
  const at = gpu.blockIdx.x % (across * down);
  const matrix = (gpu.blockIdx.x / (across * down)) * rows * columns;
  const left = (at % across) * 32;
  const top = (at / across) * 32;
  for (let j = 0; j < 32; j += 8) {
    if (left + tx < columns && top + ty + j < rows) tile[ty + j]![tx] = x[matrix + (top + ty + j) * columns + left + tx]!;
  }
  gpu.block.sync();
  for (let j = 0; j < 32; j += 8) {
    if (top + tx < rows && left + ty + j < columns) out[matrix + (left + ty + j) * rows + top + tx] = tile[tx]![ty + j]!;
  }
});

const TILES = {
  u8: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u8(32, 33), u16: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u16(32, 33),
  u32: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u32(32, 33), u64: (gpu: Gpu): KernelArray<KernelArray<number>> => gpu.shared.u64(32, 33),
} as const;

/**
 * A contiguous copy with the last two axes exchanged; axes before them count matrices. Words are moved as they are, of
 * whichever dtype. The view `x.transpose()` costs nothing: this is for what then reads it often.
 *
 * @throws CudaArgumentError for fewer than two axes; at the call, or when it is run where an operation gives the operand
 */
export function transpose<D extends DTypeName, S extends Shape>(x: OrOp<Tensor<D, S>>): DeviceOp<Tensor<D, Known<Transposed<S, -2, -1>>>>;
export function transpose(given: unknown): unknown {
  return operation('transpose', [given], ([x]) => {
    checkTensor('transpose', 'x', x);
    if (x.rank < 2) throw invalid('x', 'at least two axes, for transpose(…)', x);
    const [rows, columns] = x.shape.slice(-2) as [number, number];
    return (work) => {
      const out = work.result(x.dtype, [...x.shape.slice(0, -2), columns, rows]) as unknown as AnyTensor;
      if (out.size === 0) return out;
      const dtype = wordOf(x.dtype);
      const [across, down] = [Math.ceil(columns / TILE), Math.ceil(rows / TILE)];
      const wide = isWide(x);
      const whole = wide ? i64 : i32;
      const launch = transposes.member(`${dtype.name}${wide ? '_wide' : ''}`, () => ({
        signature: { out: output(dtype), x: input(dtype), rows: whole, columns: whole, across: whole, down: whole }, uses: { tile: TILES[dtype.name as keyof typeof TILES] }, block: [TILE, 8],
      }));
      work.add(launch({ out: words(out), x: words(work.dense(x)), rows, columns, across, down }, { grid: (x.size / (rows * columns)) * across * down, ...(wide ? { index: 'i64' } : {}) }));
      return out;
    };
  });
}
