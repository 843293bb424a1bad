/**
 * Grids that hang: all blocks that have begun go round in loops without getting anywhere, each
 * waiting for another. A GPU hangs then; here it is found out, and the error says where each block
 * waits.
 *
 * Blocks are looked at from time to time when they yield. One whose registers and shared memory are
 * what they were, and which has not read the clock, is still. Where every block of a grid has been
 * still for the whole limit, and no operation of any stream has ended in that time, nothing but the
 * host could help: see `stallLimit` of the device's options.
 *
 * A round of looks takes as long as all blocks take to have a turn, a tenth of the limit at least.
 */
import { CTX, TEAM, TURN_BYTES } from '../../../ptx/index.js';
import { blockAddresses } from './cluster.js';

/** A block that has yielded so often without ending gets company. */
export const YIELDS_BEFORE_COMPANY = 16;

/** Milliseconds. A program that waits for the host longer than that has to say so. */
export const STALL_LIMIT = 10_000;
/** Looks at a block within the limit, at most. */
const LOOKS = 10;
/** A block that was the same in fewer looks, one after the other, may have changed between them. */
const LEAST_STILL = 2;
/**
 * The same where further blocks may begin, since these may be what the others wait for: all have
 * more turns than bring one.
 */
const LEAST_BEFORE_COMPANY = YIELDS_BEFORE_COMPANY + 1;

/** Words that remember how a block was when it was last looked at. */
export const WATCH = { round: 0, hash: 1, still: 2, clock: 3, words: 4 } as const;
const NEVER = -1;

/** Where the state of a block lies, from its address. */
export interface StatePlace {
  readonly shared: number;
  readonly scratch: number;
  readonly scratchBytes: number;
  /** The address is that of a team's head. */
  readonly inTeams: boolean;
}

/** A new block is in the slot. */
export function forget(watch: Int32Array, at: number): void {
  watch[at + WATCH.round] = NEVER;
  watch[at + WATCH.still] = 0;
}

/** The block's turn begins: to tell later whether it has read the clock. */
export function noteClock(
  watch: Int32Array,
  at: number,
  memory: Int32Array,
  address: number,
): void {
  watch[at + WATCH.clock] = memory[(address + CTX.clockLo) >>> 2]!;
}

/** The block has yielded; once in each round it is looked at. */
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

/** FNV-1a over the words of shared memory and scratch, but for whose turn it is. */
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

/** One grid's rounds of looks. */
export class StallWatch {
  /** 0: blocks are not looked at yet. */
  round = 0;
  private since = 0;
  /** When each of the last rounds began, by its number modulo so many. */
  private readonly begins = new Float64Array(LEAST_BEFORE_COMPANY + 2);
  private started = 0;
  private finished = 0;

  begin(now: number): void {
    this.round = this.started = this.finished = 0;
    this.since = now;
  }

  /**
   * What has become of the round. Blocks that start or end are progress enough: while they do, none
   * is looked at. `seen`: whether each block has been looked at in this round.
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
      // Two on, so that looks from before and after do not follow each other.
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
