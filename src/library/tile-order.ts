/**
 * The order of tiles that take different times, for a grid of blocks that stay. Matrices are taken
 * in sections, the longest tiles of a section first; blocks take tiles in turn, in every second
 * round in the opposite order.
 */

const kept = new Map<string, number>();
const MOST_KEPT = 1000;
/** Rounds after which an order is taken to go on as before. */
const ROUNDS = 64;

/** What an order of tiles is chosen for. */
export interface Tiles {
  /** The time of each tile of a matrix, in the order of its rows: the last first. */
  readonly timeOf: (at: number) => number;
  /** Tiles of a matrix. */
  readonly down: number;
  readonly matrices: number;
  /** Blocks. */
  readonly grid: number;
  /** The most matrices of a section. */
  readonly most: number;
}

/**
 * Gives the number of matrices in a section with which the last block ends earliest.
 *
 * @param key what the times depend on: the answer is kept
 */
export function sectionOf(key: string, { timeOf, down, matrices, grid, most }: Tiles): number {
  const whole = `${key} ${down} ${matrices} ${grid} ${most}`;
  let best = kept.get(whole);
  if (best === undefined) {
    best = 1;
    let least = Infinity;
    const times = Array.from({ length: down }, (_, at) => timeOf(at));
    for (let section = 1; section <= Math.min(most, matrices); section++) {
      const time = longest(times, matrices, grid, section);
      // A smaller section shares more in the cache.
      if (time < least * 0.998) [least, best] = [time, section];
    }
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(whole, best);
  }
  return best;
}

/** The time of the block that ends last. */
function longest(
  times: readonly number[],
  matrices: number,
  grid: number,
  section: number,
): number {
  const down = times.length;
  const tiles = Math.min(matrices * down, ROUNDS * grid);
  const ends = new Float64Array(grid);
  for (let tile = 0; tile < tiles; tile++) {
    const place = tile % grid;
    const block = Math.floor(tile / grid) % 2 === 0 ? place : grid - 1 - place;
    const base = Math.floor(tile / (section * down)) * section;
    const within = tile % (section * down);
    ends[block]! += times[Math.floor(within / Math.min(matrices - base, section))]!;
  }
  return ends.reduce((a, b) => Math.max(a, b));
}
