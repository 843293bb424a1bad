/** What stands for pixels beyond an image's edges. */
import { deviceFunction } from '../launch/index.js';
import type { Usable } from '../launch/index.js';
import type { Gpu } from '../library/kernel-family.js';

/**
 * Beyond the edges, of the row `a b c d`: `constant` a colour; `replicate` `a a | a b c d | d d`; `reflect` `b a | a b c d | d c`; `reflect101`
 * `c b | a b c d | c b`; `wrap` `c d | a b c d | a b`.
 */
export type Border = 'constant' | 'replicate' | 'reflect' | 'reflect101' | 'wrap';

export const BORDERS: readonly Border[] = ['constant', 'replicate', 'reflect', 'reflect101', 'wrap'];

/** The index that is read for one that may be outside of 0 to extent - 1; of constant any that there is. */
export const INDICES: Readonly<Record<Border, Usable>> = {
  constant: (index: number, extent: number): number => Math.min(Math.max(index, 0), extent - 1),
  replicate: (index: number, extent: number): number => Math.min(Math.max(index, 0), extent - 1),
  reflect: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const turn = index % (2 * extent);
    const at = turn < 0 ? turn + 2 * extent : turn;
    return gpu.i32(at < extent ? at : 2 * extent - 1 - at);
  }),
  reflect101: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const period = Math.max(2 * extent - 2, 1);
    const turn = index % period;
    const at = turn < 0 ? turn + period : turn;
    return gpu.i32(at < extent ? at : period - at);
  }),
  wrap: deviceFunction((index: number, extent: number, gpu: Gpu): number => {
    const at = index % extent;
    return gpu.i32(at < 0 ? at + extent : at);
  }),
};
