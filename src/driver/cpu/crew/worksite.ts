/**
 * Runs blocks of a job, on any thread: it takes a block, runs it until it ends or has used up its
 * fuel, and takes the next. Blocks are started in increasing order from one counter. A block that
 * used up its fuel goes to the end of the job's queue and may continue on another thread: all of
 * its state is in device memory.
 */
import { CTX, STATUS, TEAM } from '../../../ptx/index.js';
import { beginCluster, runClusters, teamBytes } from '../kernels/cluster.js';
import type { RunBlock } from '../kernels/run-block.js';
import { YIELDS_BEFORE_COMPANY, forget, noteClock, observe } from '../kernels/stall.js';
import { ENTRY, HELD, JOB, TRAPPED, WORD, entryAt, jobAt, pieceOf, ring } from './control.js';

/** Loop back edges that one call of a kernel may take. */
export const FUEL = 65536;
/**
 * The same where several blocks take turns: they may wait for one that has not begun yet, or for
 * ever.
 */
export const SHARED_FUEL = 8192;
/** Number of blocks between two readings of the clock, for %clock. */
const CLOCK_BLOCKS = 16;

/** Why a thread has stopped working on a job. */
export const PAUSE = {
  /** There is no block to run: each has ended or is on another thread. */
  idle: 0,
  /** A block used up its fuel, and other jobs may need the thread. */
  yielded: 1,
  /** It has run the allowed number of blocks, or for the allowed time. */
  time: 2,
  /** A block has met a fault, here or on another thread. */
  fault: 3,
} as const;

/** How long a thread may stay at a job. */
export interface Stay {
  /** Whether to leave when a block yields. */
  leave(job: number): boolean;
  /** Is called after each block. Returns whether to leave now. */
  over(): boolean;
}

export class Worksite {
  readonly words: Int32Array;
  private readonly member: number;
  private readonly memory: WebAssembly.Memory;
  private readonly fill: (address: number, byte: number, bytes: number) => void;
  private readonly now: () => number;
  private view: Int32Array;
  private time = 0;
  private blocksUntilLook = 0;
  /** Blocks that have ended here. */
  ended = 0;

  constructor(
    words: Int32Array,
    member: number,
    memory: WebAssembly.Memory,
    fill: (address: number, byte: number, bytes: number) => void,
    now: () => number,
  ) {
    this.words = words;
    this.member = member;
    this.memory = memory;
    this.fill = fill;
    this.now = now;
    this.view = new Int32Array(memory.buffer);
  }

  /**
   * Runs blocks of the job until `stay` ends it. `trapped` is called with the message where
   * WebAssembly stops a kernel.
   */
  work(job: number, run: RunBlock, stay: Stay, trapped: (message: string) => void): number {
    const { words } = this;
    const at = jobAt(job);
    if (Atomics.load(words, at + JOB.fault) !== 0) return PAUSE.fault;
    let entry = this.take(at);
    if (entry === 0) return PAUSE.idle;
    this.look();
    for (;;) {
      const address = words[entryAt(entry) + ENTRY.address]!;
      const blocks = this.blocksOf(address);
      let status: number;
      try {
        status = run(address, Atomics.load(words, at + JOB.queued) > 0 ? SHARED_FUEL : FUEL);
      } catch (trap) {
        if (this.fault(at, entry, TRAPPED)) {
          trapped(trap instanceof Error ? trap.message : String(trap));
          this.faultWritten(at);
        }
        return PAUSE.fault;
      }
      if (status === STATUS.done) {
        words[entryAt(entry) + ENTRY.busy] = 0;
        this.ended += blocks;
        const finished = Atomics.add(words, at + JOB.finished, blocks) + blocks;
        if (finished === words[at + JOB.total]) {
          ring(words, WORD.news);
          return PAUSE.idle;
        }
        if (stay.over()) {
          this.giveBack(at, entry);
          return PAUSE.time;
        }
        if (--this.blocksUntilLook <= 0) this.look();
        if (!this.start(at, entry)) {
          this.giveBack(at, entry);
          entry = this.take(at);
          if (entry === 0) return PAUSE.idle;
        } else if (Atomics.load(words, at + JOB.queued) > 0) {
          entry = this.turnOver(at, entry);
        }
      } else if (status === STATUS.yielded) {
        // Of several blocks some may have ended.
        Atomics.add(words, at + JOB.finished, blocks - this.blocksOf(address));
        this.look();
        entry = this.afterYield(at, entry);
        if (stay.leave(job)) {
          this.enqueue(at, entry);
          return PAUSE.yielded;
        }
        this.refresh(entry);
      } else {
        if (this.fault(at, entry, status)) this.faultWritten(at);
        return PAUSE.fault;
      }
      if (Atomics.load(words, at + JOB.fault) !== 0) return PAUSE.fault;
    }
  }

  /** Returns a function that runs the clusters of a job by the function that runs their blocks. */
  clusterRun(run: RunBlock): RunBlock {
    return runClusters(run, (address) => this.viewOfTeam(address));
  }

  /** Returns the number of blocks that the slot's next call runs. */
  private blocksOf(address: number): number {
    return blocksToRun(this.viewOf(address), address);
  }

  /** Whether a thread that comes would find a block to run. */
  hasWork(job: number): boolean {
    const { words } = this;
    const at = jobAt(job);
    if (Atomics.load(words, at + JOB.fault) !== 0) return false;
    if (Atomics.load(words, at + JOB.queued) > 0) return true;
    return (
      Atomics.load(words, at + JOB.next) < words[at + JOB.total]! &&
      Atomics.load(words, at + JOB.spare) !== 0
    );
  }

  /** Puts the entry of a block that has begun at the end of the queue. */
  enqueue(at: number, entry: number): void {
    this.lock(at);
    this.append(at, entry);
    this.unlock(at);
  }

  /** Adds an entry that has no block. */
  giveBack(at: number, entry: number): void {
    const { words } = this;
    this.lock(at);
    words[entryAt(entry) + ENTRY.next] = words[at + JOB.spare]!;
    Atomics.store(words, at + JOB.spare, entry);
    this.unlock(at);
  }

  /**
   * Returns an entry with a block to run: one that waits for its turn, or a new one; 0 where there
   * is none.
   */
  private take(at: number): number {
    const { words } = this;
    this.lock(at);
    let entry = this.first(at);
    const fresh = entry === 0 && Atomics.load(words, at + JOB.next) < words[at + JOB.total]!;
    if (fresh) entry = this.popSpare(at);
    this.unlock(at);
    if (entry === 0) return 0;
    if (!fresh) {
      this.refresh(entry);
      return entry;
    }
    if (this.start(at, entry)) return entry;
    this.giveBack(at, entry);
    return 0;
  }

  /** Returns the entry whose turn it is after a block has yielded. */
  private afterYield(at: number, entry: number): number {
    const { words } = this;
    const yields = entryAt(entry) + ENTRY.yields;
    const round = Atomics.load(words, at + JOB.round);
    if (round !== 0) {
      const address = words[entryAt(entry) + ENTRY.address]!;
      const place = {
        shared: words[at + JOB.shared]!,
        scratch: words[at + JOB.blockScratch]!,
        scratchBytes: words[at + JOB.blockScratchBytes]!,
        inTeams: words[at + JOB.held] !== HELD.block,
      };
      const bytes = place.scratch + place.scratchBytes;
      const view = place.inTeams ? this.viewOfTeam(address) : this.viewOf(address, bytes);
      observe(words, entryAt(entry) + ENTRY.watch, round, view, address, place);
    }
    words[yields]!++;
    if (
      words[yields]! >= YIELDS_BEFORE_COMPANY &&
      Atomics.load(words, at + JOB.next) < words[at + JOB.total]!
    ) {
      words[yields] = 0;
      this.lock(at);
      const company = this.popSpare(at);
      this.unlock(at);
      if (company === 0) {
        Atomics.store(words, at + JOB.hungry, 1);
      } else if (this.start(at, company)) {
        this.enqueue(at, entry);
        // Members that found nothing to do may help with two blocks where there was one.
        if (Atomics.load(words, WORD.sleepers) > 0) ring(words, WORD.bell);
        return company;
      } else {
        this.giveBack(at, company);
      }
    }
    return Atomics.load(words, at + JOB.queued) > 0 ? this.turnOver(at, entry) : entry;
  }

  private turnOver(at: number, entry: number): number {
    this.lock(at);
    this.append(at, entry);
    const next = this.first(at);
    this.unlock(at);
    this.refresh(next);
    return next;
  }

  /** Puts the next block of the grid into the entry; false where all have begun. */
  private start(at: number, entry: number): boolean {
    const { words } = this;
    const total = words[at + JOB.total]!;
    let block = Atomics.load(words, at + JOB.next);
    let piece: number;
    for (;;) {
      if (block >= total) return false;
      piece = pieceOf(words, at, block);
      const found = Atomics.compareExchange(words, at + JOB.next, block, block + piece);
      if (found === block) break;
      block = found;
    }

    const gx = words[at + JOB.gridX]!;
    const gy = words[at + JOB.gridY]!;
    const address = words[entryAt(entry) + ENTRY.address]!;
    words[entryAt(entry) + ENTRY.yields] = 0;
    words[entryAt(entry) + ENTRY.busy] = 1;
    forget(words, entryAt(entry) + ENTRY.watch);
    const view = this.viewOf(address);
    const ctx = address >>> 2;
    const row = Math.floor(block / gx);
    view[ctx + (CTX.ctaid >> 2)] = block - row * gx;
    view[ctx + (CTX.ctaid >> 2) + 1] = row % gy;
    view[ctx + (CTX.ctaid >> 2) + 2] = Math.floor(row / gy);
    view[ctx + (CTX.faultKind >> 2)] = 0;
    view[ctx + (CTX.further >> 2)] = piece - 1;
    const scratchBytes = words[at + JOB.scratchBytes]!;
    if (scratchBytes > 0) this.fill(address + words[at + JOB.scratch]!, 0, scratchBytes);
    if (words[at + JOB.held] !== HELD.block)
      beginCluster(this.viewOfTeam(address), address, this.fill);
    this.refresh(entry);
    return true;
  }

  /** Updates what may have changed since the block ran last: the end of memory, and the time. */
  private refresh(entry: number): void {
    const { words } = this;
    const address = words[entryAt(entry) + ENTRY.address]!;
    const view = this.viewOf(address);
    view[(address + CTX.memoryTop) >>> 2] = Atomics.load(words, WORD.top);
    stampClock(view, address, this.time);
    noteClock(words, entryAt(entry) + ENTRY.watch, view, address);
  }

  private look(): void {
    this.time = this.now();
    this.blocksUntilLook = CLOCK_BLOCKS;
  }

  /**
   * Returns the words of device memory up to the end of a slot. There may be more than at the last
   * read.
   */
  private viewOf(address: number, bytes: number = CTX.bytes): Int32Array {
    if ((address >>> 0) + bytes > this.view.byteLength) {
      // Growing by zero makes this thread see the size that another thread has grown it to.
      this.memory.grow(0);
      this.view = new Int32Array(this.memory.buffer);
    }
    return this.view;
  }

  /**
   * Returns the words up to the end of all blocks of a team. The head of a team that lies across
   * the old end of memory does not contain its size in the old view.
   */
  private viewOfTeam(head: number): Int32Array {
    return this.viewOf(head, teamBytes(this.viewOf(head, TEAM.bytes), head));
  }

  /** Records a fault. Only the first fault of a job counts. */
  private fault(at: number, entry: number, status: number): boolean {
    const { words } = this;
    if (Atomics.compareExchange(words, at + JOB.fault, 0, 1) !== 0) return false;
    words[at + JOB.faultEntry] = entry;
    words[at + JOB.faultStatus] = status;
    words[at + JOB.faultMember] = this.member;
    return true;
  }

  private faultWritten(at: number): void {
    Atomics.store(this.words, at + JOB.fault, 2);
    ring(this.words, WORD.news);
  }

  // The lists, under the lock.

  private append(at: number, entry: number): void {
    const { words } = this;
    words[entryAt(entry) + ENTRY.next] = 0;
    const tail = words[at + JOB.tail]!;
    if (tail === 0) words[at + JOB.head] = entry;
    else words[entryAt(tail) + ENTRY.next] = entry;
    words[at + JOB.tail] = entry;
    Atomics.add(words, at + JOB.queued, 1);
  }

  private first(at: number): number {
    const { words } = this;
    const entry = words[at + JOB.head]!;
    if (entry === 0) return 0;
    const next = words[entryAt(entry) + ENTRY.next]!;
    words[at + JOB.head] = next;
    if (next === 0) words[at + JOB.tail] = 0;
    Atomics.sub(words, at + JOB.queued, 1);
    return entry;
  }

  private popSpare(at: number): number {
    const { words } = this;
    const entry = words[at + JOB.spare]!;
    if (entry !== 0) Atomics.store(words, at + JOB.spare, words[entryAt(entry) + ENTRY.next]!);
    return entry;
  }

  private lock(at: number): void {
    const { words } = this;
    const lock = at + JOB.lock;
    for (let i = 0; i < 100; i++) if (Atomics.compareExchange(words, lock, 0, 1) === 0) return;
    while (Atomics.exchange(words, lock, 2) !== 0) Atomics.wait(words, lock, 2);
  }

  private unlock(at: number): void {
    const { words } = this;
    if (Atomics.exchange(words, at + JOB.lock, 0) === 2) Atomics.notify(words, at + JOB.lock, 1);
  }
}

/**
 * Returns the number of blocks that a slot's next call runs: after a call that yielded, those that
 * have not ended.
 */
export const blocksToRun = (view: Int32Array, address: number): number =>
  view[(address + CTX.further) >>> 2]! + 1;

/**
 * Writes %clock and %globaltimer in nanoseconds, at the beginning of a block's turn. They never
 * decrease within a block.
 */
export function stampClock(view: Int32Array, address: number, milliseconds: number): void {
  const at = (address + CTX.clockLo) >>> 2;
  const nanoseconds = Math.floor(milliseconds * 1e6);
  const stands = (view[at]! >>> 0) + (view[at + 1]! >>> 0) * 2 ** 32;
  if (nanoseconds <= stands) return;
  view[at] = nanoseconds % 2 ** 32;
  view[at + 1] = nanoseconds / 2 ** 32;
}
