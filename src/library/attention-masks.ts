/**
 * Masks of attention by warp groups: tensor copies bring them to shared memory, in tiles of queries
 * and keys, and they are added to scores.
 */
import { i32, i64 } from '../core/index.js';
import type { KernelDType } from '../core/index.js';
import { deviceFunction, input, output } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { Tensor } from '../tensor/index.js';
import type { KernelTensor } from '../tensor/index.js';
import { fitsBoxes, inFourAxes, isWide } from './attention-operands.js';
import type { Lines } from './attention-products.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';
import type { Work } from './operation.js';

type MaskUses = { readonly ROWS: number; readonly KEYS: number };
type MaskGpu = Gpu & MaskUses & { packed(): KernelArray<number> };

/** A fragment, of the mask's dtype. */
const packedOf = (name: string): DeviceFunction =>
  deviceFunction(
    (name === 'f16' ? (gpu: Gpu) => gpu.local.f16(8) : (gpu: Gpu) => gpu.local.bf16(8)) as never,
  ) as DeviceFunction;

/**
 * Adds a tile of a mask to scores, which are multiplied by the scale. `line` is that of the lane's
 * query: lane r gives row r % 16 of the warp. A part of 64 keys has ROWS lines.
 */
export const addMaskOf = (name: string, uses: MaskUses): DeviceFunction =>
  deviceFunction(
    ((scores: KernelArray<number>, lines: Lines, line: number, scale: number, gpu: MaskGpu) => {
      const { ROWS, KEYS, lane } = gpu;
      gpu.unroll();
      for (let part = 0; part < KEYS / 16; part++) {
        const added = gpu.packed();
        gpu.warp.loadMatrices(
          added,
          lines[line + (part >> 2) * ROWS]!,
          (((part & 3) * 2 + (lane >> 4)) ^ (lane & 7)) * 8,
        );
        gpu.unroll();
        for (let i = 0; i < 8; i++)
          scores[part * 8 + i] = gpu.fma(scores[part * 8 + i]!, scale, gpu.f32(added[i]!));
      }
    }) as never,
    { uses: { ...uses, packed: packedOf(name) } },
  ) as DeviceFunction;

/**
 * The same for transposed scores, of ROWS queries: `line` is that of the first query, and `unit`
 * the first of the two units of the warp's keys. Queries 64 and on are KEYS lines after it.
 */
export const addTransposedMaskOf = (name: string, uses: MaskUses): DeviceFunction =>
  deviceFunction(
    ((
      scores: KernelArray<number>,
      lines: Lines,
      line: number,
      unit: number,
      scale: number,
      gpu: MaskGpu,
    ) => {
      const { ROWS, KEYS, lane } = gpu;
      const own = line + (lane >> 4) * 8 + (lane & 7);
      const place = ((unit + ((lane >> 3) & 1)) ^ (lane & 7)) * 8;
      gpu.unroll();
      for (let part = 0; part < ROWS / 16; part++) {
        const added = gpu.packed();
        gpu.warp.loadMatricesTransposed(
          added,
          lines[own + (part >> 2) * KEYS + (part & 3) * 16]!,
          place,
        );
        gpu.unroll();
        for (let i = 0; i < 8; i++)
          scores[part * 8 + i] = gpu.fma(scores[part * 8 + i]!, scale, gpu.f32(added[i]!));
      }
    }) as never,
    { uses: { ...uses, packed: packedOf(name) } },
  ) as DeviceFunction;

interface Args {
  /** [batch][head][query][key] */
  readonly to: number[][][][] & { readonly shape: readonly number[] };
  readonly from: readonly (readonly (readonly number[])[])[][];
  readonly seen: readonly (readonly (readonly boolean[])[])[][];
  readonly heads: number;
  readonly queries: number;
  readonly n: number;
  /** The number of keys, rounded up to whole units. */
  readonly padded: number;
}

/** Writes a mask as tensor copies read it. A block has one row. */
const copies = new KernelFamily('attention_mask', (args: Args, gpu: Gpu & { CHOSEN: boolean }) => {
  const { to, heads, queries, n, padded } = args;
  const row = gpu.blockIdx.x;
  const query = row % queries;
  const matrix = row / queries;
  const batch = matrix / heads;
  const head = matrix % heads;
  for (let key = gpu.threadIdx.x; key < padded; key += 256) {
    let value = gpu.f32(0);
    if (key < n) {
      if (gpu.CHOSEN) value = args.seen[batch]![head]![query]![key]! ? 0 : -Infinity;
      else value = gpu.f32(args.from[batch]![head]![query]![key]!);
    }
    to[batch]![head]![query]![key] = value;
  }
});

const copyOf = (dtype: KernelDType, mask: KernelDType, wide: boolean): Launchable =>
  copies.member(`${dtype.name}_${mask.name}${wide ? '_wide' : ''}`, () => {
    const chosen = mask.name === 'bool';
    return {
      signature: {
        to: output(dtype, 4),
        ...(chosen ? { seen: input(mask, 4) } : { from: input(mask, 4) }),
        ...Object.fromEntries(
          ['heads', 'queries', 'n', 'padded'].map((name) => [name, wide ? i64 : i32]),
        ),
      },
      uses: { CHOSEN: chosen },
      block: 256,
    };
  });

/** 1, or 0 along axes of a mask that have one element, or one tile of equal queries. */
export interface MaskSteps {
  readonly maskBatch: number;
  readonly maskHead: number;
  readonly maskQuery: number;
}

/** A mask as kernels by warp groups take it. */
interface BoxedMask extends MaskSteps {
  readonly mask: KernelTensor;
}

/** Keys of a unit of 16 bytes. */
const UNIT = 8;

/**
 * Gives the mask for tiles of so many queries: in place, or a copy of its own elements where it is
 * bool, or its rows are not where tensor copies begin. Axes along which it is repeated have one
 * element, but for that of queries, which has those of a tile.
 */
export function boxedMask(
  work: Work,
  given: KernelTensor,
  dtype: KernelDType,
  batches: number,
  rows: number,
): BoxedMask {
  const { buffer, layout } = inFourAxes(work, given, batches);
  const { strides } = layout;
  const [batch, head, query, n] = layout.shape.map((extent, axis) =>
    strides[axis] === 0 && axis < 3 ? 1 : extent,
  ) as [number, number, number, number];
  const isForAll = query === 1;
  const withRows = (of: KernelTensor): KernelTensor => {
    if (!isForAll) return of;
    const [, , , last] = of.shape;
    const [first, second, , unit] = of.layout.strides;
    return new Tensor(
      of.buffer,
      {
        shape: [batch, head, rows, last!],
        strides: [first!, second!, 0, unit!],
        offset: of.layout.offset,
      },
      false,
    );
  };
  const steps = {
    maskBatch: batch === 1 ? 0 : 1,
    maskHead: head === 1 ? 0 : 1,
    maskQuery: isForAll ? 0 : 1,
  };
  const own = new Tensor(buffer, { ...layout, shape: [batch, head, query, n] }, false);
  if (own.dtype === dtype && fitsBoxes(own)) return { mask: withRows(own), ...steps };
  const padded = Math.ceil(n / UNIT) * UNIT;
  const copy = work.temporary(dtype, [batch, head, query, padded]) as unknown as KernelTensor;
  const wide = isWide([own, copy]);
  work.add(
    copyOf(
      dtype,
      own.dtype,
      wide,
    )(
      {
        to: copy,
        ...(own.dtype.name === 'bool' ? { seen: own } : { from: own }),
        ...{ heads: head, queries: query, n, padded },
      },
      { grid: batch * head * query, ...(wide ? { index: 'i64' } : {}) },
    ),
  );
  return { mask: withRows(copy), ...steps };
}
