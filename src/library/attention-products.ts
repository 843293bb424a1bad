/** What the kernels of attention by warp groups share: products that they begin, and arrays. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';

/** Elements of a line of 128 bytes. */
export const LINE = 64;
export const LINE_BYTES = 128;

/** Lines of shared memory. */
export type Lines = KernelArray<KernelArray<number>>;

/** Begins products, of which {@link beginScoresOf} and {@link beginSumsOf} make one form each. */
export interface Products {
  beginScores(scores: KernelArray<number>, lines: Lines, lineQ: number, lineK: number): void;
  beginSums(
    sums: KernelArray<number>,
    shares: KernelArray<KernelArray<number>>,
    lines: Lines,
    lineV: number,
  ): void;
}

/** What a form is for. */
type Extents = {
  /** Lines of the left and of the right factor in a part of 64 channels. */
  readonly ROWS: number;
  readonly KEYS: number;
  readonly CHANNELS: number;
};

/** Begins the products of the group's queries and the keys from a line on. */
export const beginScoresOf = (uses: Extents): DeviceFunction =>
  deviceFunction(
    ((
      scores: KernelArray<number>,
      lines: Lines,
      lineQ: number,
      lineK: number,
      gpu: Gpu & typeof uses,
    ) => {
      const { ROWS, KEYS, CHANNELS } = gpu;
      gpu.unroll();
      for (let i = 0; i < KEYS / 2; i++) scores[i] = 0;
      gpu.group.begin();
      gpu.unroll();
      for (let part = 0; part < CHANNELS / 16; part++)
        gpu.group.mma(
          scores,
          lines,
          lineQ + (part >> 2) * ROWS,
          (part & 3) * 16,
          lines,
          lineK + (part >> 2) * KEYS,
          (part & 3) * 16,
        );
      gpu.group.commit();
    }) as never,
    { uses },
  ) as DeviceFunction;

/** Begins to add the products of the shares and the values from a line on. */
export const beginSumsOf = (uses: Pick<Extents, 'KEYS'>): DeviceFunction =>
  deviceFunction(
    ((
      sums: KernelArray<number>,
      shares: KernelArray<KernelArray<number>>,
      lines: Lines,
      lineV: number,
      gpu: Gpu & typeof uses,
    ) => {
      const { KEYS } = gpu;
      gpu.group.begin();
      gpu.unroll();
      for (let part = 0; part < KEYS / 16; part++)
        gpu.group.mmaOfRegisters(sums, shares[part]!, lines, lineV + part * 16, 0, KEYS);
      gpu.group.commit();
    }) as never,
    { uses },
  ) as DeviceFunction;

/** Arrays by dtype: a body names the dtype of an array. */
export const arraysOf = (
  name: string,
  uses: { readonly COUNT: number; readonly PARTS: number },
): Record<'lines' | 'shares' | 'packed', DeviceFunction> => {
  type G = Gpu & typeof uses;
  const made = {
    f16: {
      lines: (gpu: G) => gpu.dynamicShared.f16(gpu.COUNT, 64),
      shares: (gpu: G) => gpu.local.f16(gpu.PARTS, 8),
      packed: (gpu: G) => gpu.local.f16(8),
    },
    bf16: {
      lines: (gpu: G) => gpu.dynamicShared.bf16(gpu.COUNT, 64),
      shares: (gpu: G) => gpu.local.bf16(gpu.PARTS, 8),
      packed: (gpu: G) => gpu.local.bf16(8),
    },
  }[name as 'f16'];
  const device = (make: unknown): DeviceFunction =>
    deviceFunction(make as never, { uses }) as DeviceFunction;
  return { lines: device(made.lines), shares: device(made.shares), packed: device(made.packed) };
};
