/** Tiles of sequences of different lengths, whose positions are one axis. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';

/**
 * The most tiles of so many positions of packed sequences. They are numbered so that the first one
 * of sequence s is s more than its first position divided by a tile's positions: some are empty.
 */
export const packedTilesOf = (positions: number, sequences: number, rows: number): number =>
  Math.floor(positions / rows) + sequences;

/** Gives the sequence of a tile, in kernels whose tiles have so many positions. */
export const sequenceOf = (rows: number): DeviceFunction => {
  const uses = { ROWS: rows };
  return deviceFunction(
    ((tile: number, offsets: readonly number[], sequences: number, gpu: typeof uses) => {
      const { ROWS } = gpu;
      let low = 0;
      let high = sequences - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (offsets[middle]! / ROWS + middle <= tile) low = middle;
        else high = middle - 1;
      }
      return low;
    }) as never,
    { uses },
  ) as DeviceFunction;
};
