/**
 * Clusters of blocks. A cluster is in one slot, its blocks one after the other at equal distances
 * after a head, and runs as one block would: a call gives each of its blocks a turn. So its blocks
 * are resident together and run on one thread at a time, and the code that runs grids treats it as
 * a block. Blocks that run side by side are laid out and begin in the same way, but are run by the
 * kernel's own code.
 */
import { CTX, EXPLICIT_CLUSTER, ORDER_SEED, STATUS, TEAM } from '../../../ptx/index.js';
import type { RunBlock } from './run-block.js';
import type { SlotLayout } from './block-slots.js';
import { windowAlignment } from './shared-window.js';

/** The number of blocks of a cluster, along each axis and in all. */
export interface ClusterShape {
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly blocks: number;
}

export function clusterShape([x, y, z]: readonly [number, number, number]): ClusterShape {
  return { x, y, z, blocks: x * y * z };
}

/** The part of a cache that blocks that run side by side may take, bytes. */
const TEAM_BYTES = 1 << 19;

/** The blocks of a row of the grid that one call runs side by side; undefined for one by one. */
export function teamOf(
  [width = 1, height = 1, depth = 1]: Int32Array,
  blockBytes: number,
  workers: number,
): ClusterShape | undefined {
  // A team for each thread: of two, each takes all the longer to go through memory (64 MB by two
  // threads: 1.65 ms for 1.72).
  const most = Math.min(
    width,
    TEAM.most,
    Math.floor(TEAM_BYTES / blockBytes),
    Math.floor((width * height * depth) / workers),
  );
  for (let x = most; x > 1; x--) if (width % x === 0) return clusterShape([x, 1, 1]);
  return undefined;
}

/** The value that blocks see as `CTX.cluster`. */
export const clusterWord = ({ x, y, z }: ClusterShape): number =>
  EXPLICIT_CLUSTER | (x - 1) | ((y - 1) << 8) | ((z - 1) << 16);

/** The offset of the seed of an order, for blocks and clusters alike. */
const SEED = TEAM.zeroed + ORDER_SEED;
/**
 * How often the blocks of a cluster have their turns in one call, where they only wait for each
 * other.
 */
const MOST_ROUNDS = 64;

/** Returns the layout of a slot for a cluster of blocks of the given layout. */
export function layOutCluster(
  block: SlotLayout,
  sharedAlign: number,
  { blocks }: ClusterShape,
): SlotLayout & { first: number; stride: number } {
  const align = Math.max(TEAM.bytes, windowAlignment(block.sharedBytes, sharedAlign));
  const stride = Math.ceil(block.bytes / align) * align;
  return {
    bytes: align + stride * blocks,
    params: CTX.bytes,
    shared: align,
    sharedBytes: block.sharedBytes,
    scratch: TEAM.zeroed,
    scratchBytes: TEAM.zeroedBytes,
    first: align,
    stride,
  };
}

export function blocksOf(words: Int32Array, head: number): number {
  const word = words[(head + CTX.cluster) >>> 2]!;
  return ((word & 255) + 1) * (((word >>> 8) & 255) + 1) * (((word >>> 16) & 255) + 1);
}

/** Returns the bytes of a cluster's slot, from its head to the end of its last block. */
export function teamBytes(words: Int32Array, head: number): number {
  return (
    words[(head + TEAM.first) >>> 2]! +
    blocksOf(words, head) * words[(head + CTX.clusterStride) >>> 2]!
  );
}

/** Yields the addresses of the cluster's blocks, by rank. */
export function* blockAddresses(words: Int32Array, head: number): Iterable<number> {
  const count = blocksOf(words, head);
  for (let rank = 0; rank < count; rank++)
    yield (
      (head >>> 0) +
      words[(head + TEAM.first) >>> 2]! +
      rank * words[(head + CTX.clusterStride) >>> 2]!
    );
}

/** Whether the block has ended. */
export const hasEnded = (words: Int32Array, head: number, rank: number): boolean =>
  ((words[(head + TEAM.ended) >>> 2]! >>> rank) & 1) !== 0;

/** Returns the address of the block that met a fault. */
export const faultyBlock = (words: Int32Array, head: number): number =>
  words[(head + TEAM.faulty) >>> 2]! >>> 0;

/** Copies the cluster's index from the head to its blocks, none of which has begun. */
export function beginCluster(
  words: Int32Array,
  head: number,
  fill: (address: number, byte: number, bytes: number) => void,
): void {
  const word = words[(head + CTX.cluster) >>> 2]!;
  const sizes = [(word & 255) + 1, ((word >>> 8) & 255) + 1, ((word >>> 16) & 255) + 1] as const;
  const [cx, cy] = sizes;
  const scratchBytes = words[(head + TEAM.scratchBytes) >>> 2]!;
  const seed = words[(head + SEED) >>> 2]!;
  let rank = 0;
  for (const address of blockAddresses(words, head)) {
    const at = address >>> 2;
    const within = [rank % cx, Math.floor(rank / cx) % cy, Math.floor(rank / (cx * cy))] as const;
    for (const axis of [0, 1, 2] as const) {
      words[at + (CTX.ctaid >> 2) + axis] =
        words[((head + CTX.ctaid) >>> 2) + axis]! * sizes[axis] + within[axis];
    }
    words[at + (CTX.faultKind >> 2)] = 0;
    words[at + (CTX.further >> 2)] = 0;
    const scratch = words[at + (CTX.scratch >> 2)]! >>> 0;
    fill(scratch, 0, scratchBytes);
    if (seed !== 0) words[(scratch + ORDER_SEED) >>> 2] = seed + rank;
    rank++;
  }
}

/**
 * Returns a function that runs clusters by the function that runs their blocks. `view` returns the
 * words of memory, `ended` is called with the address of each block that has ended.
 */
export function runClusters(
  run: RunBlock,
  view: (address: number) => Int32Array,
  ended?: (address: number) => void,
): RunBlock {
  return (head, fuel) => {
    let words = view(head);
    const blocks = blocksOf(words, head);
    const stride = words[(head + CTX.clusterStride) >>> 2]!;
    const first = (head >>> 0) + words[(head + TEAM.first) >>> 2]!;
    const all = 2 ** blocks - 1;
    // Where a seed determines the order, another block begins each time.
    const begins = nextOrder(words, head) % blocks;
    for (let round = 0; round < MOST_ROUNDS; round++) {
      let outOfFuel = false;
      for (let turn = 0; turn < blocks; turn++) {
        const rank = (begins + turn) % blocks;
        if (hasEnded(words, head, rank)) continue;
        const address = first + rank * stride;
        take(words, head, address);
        words[(head + TEAM.faulty) >>> 2] = address;
        const status = run(address, fuel);
        words = view(head);
        keepClock(words, address, head);
        if (status === STATUS.done) {
          words[(head + TEAM.ended) >>> 2]! |= 1 << rank;
          ended?.(address);
          if (words[(head + TEAM.ended) >>> 2] === all) return STATUS.done;
        } else if (status === STATUS.yielded) {
          outOfFuel = true;
        } else if (status !== STATUS.waiting) {
          return status;
        }
      }
      if (outOfFuel) break;
    }
    return STATUS.yielded;
  };
}

/** Updates, at the beginning of a block's turn, what may have changed since its last one. */
function take(words: Int32Array, head: number, block: number): void {
  words[(block + CTX.memoryTop) >>> 2] = words[(head + CTX.memoryTop) >>> 2]!;
  keepClock(words, head, block);
}

/** The clock of the next block is no earlier than that of the last one. */
function keepClock(words: Int32Array, from: number, to: number): void {
  const low = (from + CTX.clockLo) >>> 2;
  const at = (to + CTX.clockLo) >>> 2;
  words[at] = words[low]!;
  words[at + 1] = words[low + 1]!;
}

/** Returns the next number by xorshift; 0 where there is no seed. */
function nextOrder(words: Int32Array, head: number): number {
  const at = (head + SEED) >>> 2;
  let x = words[at]!;
  x ^= x << 13;
  x ^= x >>> 17;
  x ^= x << 5;
  words[at] = x;
  return x >>> 1;
}
