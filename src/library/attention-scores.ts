/** What attention by warp groups does with scores in registers: masks, and shares of them. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';

type MaskingUses = {
  readonly KEYS: number;
  readonly CAUSAL: boolean;
  readonly WINDOW: boolean;
};

/** Scores of keys that a query does not see become -Infinity. */
export const maskOf = (uses: MaskingUses): DeviceFunction =>
  deviceFunction(
    ((
      scores: KernelArray<number>,
      first: number,
      row: number,
      m: number,
      n: number,
      window: number,
      gpu: Gpu & MaskingUses,
    ) => {
      const { KEYS, CAUSAL, WINDOW } = gpu;
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        const position = row + 8 * r + n - m;
        const end = (CAUSAL ? Math.min(n, position + 1) : n) - first - (gpu.lane % 4) * 2;
        const begin = position - window - first - (gpu.lane % 4) * 2;
        gpu.unroll();
        for (let i = 0; i < KEYS / 4; i++) {
          const at = (i >> 1) * 4 + r * 2 + (i & 1);
          const key = 8 * (i >> 1) + (i & 1);
          if (key >= end || (WINDOW && key < begin)) scores[at] = -Infinity;
        }
      }
    }) as never,
    { uses },
  ) as DeviceFunction;

/**
 * Replaces scores by their shares relative to the greatest so far, and tells by what factor earlier
 * shares have to be multiplied. A thread has parts of two rows, and its own part of their weights.
 */
export const advanceOf = (uses: {
  readonly KEYS: number;
  readonly MASKED: boolean;
}): DeviceFunction =>
  deviceFunction(
    ((
      scores: KernelArray<number>,
      most: KernelArray<number>,
      weight: KernelArray<number>,
      fade: KernelArray<number>,
      factor: number,
      gpu: Gpu & typeof uses,
    ) => {
      const { KEYS, MASKED } = gpu;
      const base = gpu.local.f32(2);
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        let one = most[r]!;
        let other = scores[r * 2]!;
        gpu.unroll();
        for (let i = 0; i < KEYS / 8; i++) {
          one = Math.max(one, scores[i * 4 + r * 2 + 1]!);
          if (i > 0) other = Math.max(other, scores[i * 4 + r * 2]!);
        }
        let greatest = Math.max(one, other);
        greatest = Math.max(greatest, gpu.warp.shuffleXor(greatest, 1));
        greatest = Math.max(greatest, gpu.warp.shuffleXor(greatest, 2));
        // A row that has seen no key yet has no greatest score. Masks may have the least finite
        // numbers, which overflow where they are multiplied before the greatest is subtracted.
        if (MASKED) {
          base[r] = greatest === -Infinity ? 0 : -greatest;
          fade[r] = gpu.fast.exp2((most[r]! + base[r]!) * Math.LOG2E);
        } else {
          base[r] = greatest === -Infinity ? 0 : -greatest * factor;
          fade[r] = gpu.fast.exp2(gpu.fma(most[r]!, factor, base[r]!));
        }
        most[r] = greatest;
      }
      gpu.unroll();
      for (let r = 0; r < 2; r++) {
        let one = weight[r]! * fade[r]!;
        let other = gpu.f32(0);
        gpu.unroll();
        for (let i = 0; i < KEYS / 8; i++) {
          let first = scores[i * 4 + r * 2]!;
          let second = scores[i * 4 + r * 2 + 1]!;
          if (MASKED) {
            first = gpu.fast.exp2((first + base[r]!) * Math.LOG2E);
            second = gpu.fast.exp2((second + base[r]!) * Math.LOG2E);
          } else {
            first = gpu.fast.exp2(gpu.fma(first, factor, base[r]!));
            second = gpu.fast.exp2(gpu.fma(second, factor, base[r]!));
          }
          scores[i * 4 + r * 2] = first;
          scores[i * 4 + r * 2 + 1] = second;
          one += first;
          other += second;
        }
        weight[r] = one + other;
      }
    }) as never,
    { uses },
  ) as DeviceFunction;
