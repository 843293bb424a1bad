/**
 * Grids that hang: all blocks that have begun run in loops without progress, each waiting for
 * another. A GPU hangs then; here it is detected, and the error lists where each block waits.
 *
 * Blocks are checked from time to time when they yield. A block is still if its registers and
 * shared memory have not changed and it has not read the clock. Where every block of a grid has
 * been still for the whole limit, and no operation of any stream has ended in that time, only the
 * host could help: see `stallLimit` of the device's options.
 *
 * A round of checks takes as long as all blocks need to have a turn, and a tenth of the limit at
 * least.
 */
import { CTX, TEAM, TURN_BYTES } from '../../../ptx/index.js';
import { blockAddresses } from './cluster.js';

/** After this many yields without an end, a block gets company: further blocks begin. */
export const YIELDS_BEFORE_COMPANY = 16;

/** The limit in milliseconds. A program that waits for the host longer than that sets it. */
export const STALL_LIMIT = 10_000;
/** Largest number of checks of a block within the limit. */
const LOOKS = 10;
/** A block that was equal in fewer successive checks may have changed between them. */
const LEAST_STILL = 2;
/**
 * The same where further blocks may begin, since the others may wait for these: all blocks have
 * more turns than bring one.
 */
const LEAST_BEFORE_COMPANY = YIELDS_BEFORE_COMPANY + 1;

/** Words with a block's state at its last check. */
export const WATCH = { round: 0, hash: 1, still: 2, clock: 3, words: 4 } as const;
const NEVER = -1;

/** The places of a block's state, relative to its address. */
export interface StatePlace {
  readonly shared: number;
  readonly scratch: number;
  readonly scratchBytes: number;
  /** Whether the address is that of a team's head. */
  readonly inTeams: boolean;
}

/** Resets the words for a new block in the slot. */
export function forget(watch: Int32Array, at: number): void {
  watch[at + WATCH.round] = NEVER;
  watch[at + WATCH.still] = 0;
}

/**
 * Records the clock at the beginning of the block's turn, to detect later whether the block has
 * read it.
 */
export function noteClock(
  watch: Int32Array,
  at: number,
  memory: Int32Array,
  address: number,
): void {
  watch[at + WATCH.clock] = memory[(address + CTX.clockLo) >>> 2]!;
}

/** Checks a block that has yielded, once in each round. */
export function observe(
  watch: Int32Array,
  at: number,
  round: number,
  memory: Int32Array,
  address: number,
  place: StatePlace,
): void {
  const last = watch[at + WATCH.round]!;
  if (round === 0 || last === round) return;
  const hash = place.inTeams
    ? clusterHash(memory, address, place)
    : stateHash(memory, address, place);
  const same =
    last === round - 1 &&
    hash === watch[at + WATCH.hash] &&
    memory[(address + CTX.clockLo) >>> 2] === watch[at + WATCH.clock];
  watch[at + WATCH.still] = same ? watch[at + WATCH.still]! + 1 : 0;
  watch[at + WATCH.hash] = hash;
  watch[at + WATCH.round] = round;
}

/** Returns the FNV-1a hash of the words of shared memory and scratch, except those of the turn. */
function stateHash(
  memory: Int32Array,
  address: number,
  { shared, scratch, scratchBytes }: StatePlace,
): number {
  let hash = 0x811c9dc5;
  const turn = (address + scratch) >>> 2;
  for (let i = (address + shared) >>> 2; i < turn; i++)
    hash = Math.imul(hash ^ memory[i]!, 0x01000193);
  const end = turn + (scratchBytes >>> 2);
  for (let i = turn + (TURN_BYTES >>> 2); i < end; i++)
    hash = Math.imul(hash ^ memory[i]!, 0x01000193);
  return hash;
}

function clusterHash(memory: Int32Array, head: number, place: StatePlace): number {
  let hash = memory[(head + TEAM.ended) >>> 2]!;
  for (const address of blockAddresses(memory, head))
    hash = (Math.imul(hash, 31) + stateHash(memory, address, place)) | 0;
  return hash;
}

/** The rounds of checks of one grid. */
export class StallWatch {
  /** The number of the round; 0 while blocks are not checked yet. */
  round = 0;
  private since = 0;
  /** When each of the last rounds began, by its number modulo this array's length. */
  private readonly begins = new Float64Array(LEAST_BEFORE_COMPANY + 2);
  private started = 0;
  private finished = 0;

  begin(now: number): void {
    this.round = this.started = this.finished = 0;
    this.since = now;
  }

  /**
   * Updates the round. Blocks that start or end are progress enough: while they do, none is
   * checked. `seen`: whether each block has been checked in this round.
   */
  look(
    now: number,
    limit: number,
    started: number,
    finished: number,
    seen: (round: number) => boolean,
  ): 'moved' | 'open' | 'over' {
    if (started !== this.started || finished !== this.finished) {
      this.started = started;
      this.finished = finished;
      this.since = now;
      // The number increases by two, so that checks from before and after are not successive.
      if (this.round > 0) {
        this.round += 2;
        this.begins[this.round % this.begins.length] = now;
      }
      return 'moved';
    }
    if (now - this.since < limit / LOOKS || (this.round > 0 && !seen(this.round))) return 'open';
    this.since = now;
    this.round++;
    this.begins[this.round % this.begins.length] = now;
    return 'over';
  }

  /**
   * Whether the block has been still for the limit, up to the round that is over. `complete`: no
   * further block can begin beside it.
   */
  isStill(watch: Int32Array, at: number, now: number, limit: number, complete: boolean): boolean {
    const still = Math.min(watch[at + WATCH.still]!, LEAST_BEFORE_COMPANY);
    if (
      still < (complete ? LEAST_STILL : LEAST_BEFORE_COMPANY) ||
      watch[at + WATCH.round] !== this.round - 1
    )
      return false;
    // It was first seen so in a round that was over when this one began.
    return now - this.begins[(this.round - still) % this.begins.length]! >= limit;
  }
}
