/** Groups of rows whose ends are on the device: how a warp finds the group of a tile. */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import type { Gpu, KernelArray } from './kernel-family.js';

/**
 * What a warp knows of the group that it has found, by place: its number, its rows from first to
 * end, the tiles down before it and those up to its end; and, of the 32 groups in which it is, the
 * number of the first, and the rows and tiles before that.
 */
export const FOUND = {
  GROUP: 0,
  START: 1,
  END: 2,
  TILES_BEFORE: 3,
  TILES_END: 4,
  FIRST: 5,
  ROWS_BEFORE: 6,
  FIRST_TILES: 7,
} as const;
type FoundConstants = typeof FOUND;

/** i32 or i64. */
type Ends = readonly number[];

interface FindGpu extends Gpu, FoundConstants {
  /** Rows of a tile. */
  readonly ROWS: number;
}

/**
 * Finds the group of a tile's row of tiles, at or after the one that was found before. It is
 * `ends.length` for rows after the last group, and more where there is no such tile. All lanes of
 * the warp take part. Ends that decrease or lie outside of the rows are taken as the nearest that
 * do not, so that each row is in one group, whatever the ends are.
 */
const findGroup = (
  found: KernelArray<number>,
  ends: Ends,
  rows: number,
  tile: number,
  gpu: FindGpu,
): void => {
  const { GROUP, START, END, TILES_BEFORE, TILES_END, FIRST, ROWS_BEFORE } = gpu;
  const { FIRST_TILES, lane } = gpu;
  const groups = ends.length;
  while (tile >= found[TILES_END]!) {
    const group = found[FIRST]! + lane;
    const last = ends[Math.min(group, groups - 1)]!;
    const given = group < groups ? gpu.i32(gpu.clamp(last, 0, rows)) : rows;
    let end = Math.max(given, found[ROWS_BEFORE]!);
    gpu.unroll();
    for (let d = 1; d < 32; d *= 2) end = Math.max(end, gpu.warp.shuffleUp(end, d));
    const before = gpu.warp.shuffleUp(end, 1);
    const start = lane === 0 ? found[ROWS_BEFORE]! : before;
    const own = (end - start + (gpu.ROWS - 1)) / gpu.ROWS;
    let tiles = own;
    gpu.unroll();
    for (let d = 1; d < 32; d *= 2) {
      const below = gpu.warp.shuffleUp(tiles, d);
      if (lane >= d) tiles += below;
    }
    tiles += found[FIRST_TILES]!;
    const holders = gpu.warp.ballot(tiles > tile);
    if (holders !== 0) {
      // The lowest lane.
      const holder = 31 - gpu.clz(holders & (~holders + 1));
      found[GROUP] = found[FIRST]! + holder;
      found[START] = gpu.warp.shuffle(start, holder);
      found[END] = gpu.warp.shuffle(end, holder);
      found[TILES_BEFORE] = gpu.warp.shuffle(tiles - own, holder);
      found[TILES_END] = gpu.warp.shuffle(tiles, holder);
    } else if (found[FIRST]! + 32 > groups) {
      found[GROUP] = groups + 1;
      found[TILES_END] = 0x7fffffff;
    } else {
      found[FIRST] = found[FIRST]! + 32;
      found[ROWS_BEFORE] = gpu.warp.shuffle(end, 31);
      found[FIRST_TILES] = gpu.warp.shuffle(tiles, 31);
    }
  }
};

/** What bodies use to find groups: `found()`, an array of zeros, is what a warp knows. */
export interface GroupsGpu extends FoundConstants {
  found(): KernelArray<number>;
  findGroup(found: KernelArray<number>, ends: Ends, rows: number, tile: number): void;
}

/** The functions and constants of {@link GroupsGpu}, for tiles of so many rows. */
export const groupUses = (ROWS: number) => ({
  ...FOUND,
  found: (gpu: Gpu): KernelArray<number> => gpu.local.i32(8),
  findGroup: deviceFunction(findGroup as never, { uses: { ...FOUND, ROWS } }) as DeviceFunction,
});
