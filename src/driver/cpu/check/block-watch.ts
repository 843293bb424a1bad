/**
 * A block that runs under the checker: the accesses of each thread that are ordered before those of
 * the others.
 *
 * Time is a counter that is incremented by every synchronisation. A thread's knowledge is a vector
 * clock. It contains, for each other thread, a time: accesses of that thread after it are not
 * ordered before this thread's next accesses. Where exact bookkeeping would cost too much, a clock
 * has later times than the exact ones, never earlier: every report is then a race, and some races
 * are missed.
 */
import type { InFlight, ProductsInFlight } from './in-flight.js';
import { CHECK_GAP } from '../../../ptx/index.js';
import type { LaunchWatch } from '../kernels/launch-watch.js';

/** What a thread waits for. */
export interface Arrival {
  kind: number;
  a: number;
  b: number;
  line: number;
}

/** More blocks than this are combined into one time. */
const MOST_BLOCKS = 512;

/** The accesses of other blocks that are known. */
export class Knowledge {
  floor = 0;
  readonly blocks = new Map<number, number>();

  add(block: number, time: number): void {
    if (time > (this.blocks.get(block) ?? 0)) this.blocks.set(block, time);
    if (this.blocks.size <= MOST_BLOCKS) return;
    this.floor = Math.max(this.floor, ...this.blocks.values());
    this.blocks.clear();
  }

  join(other: Knowledge): void {
    this.floor = Math.max(this.floor, other.floor);
    for (const [block, time] of other.blocks) this.add(block, time);
  }

  get isEmpty(): boolean {
    return this.floor === 0 && this.blocks.size === 0;
  }

  copy(): Knowledge {
    const copy = new Knowledge();
    copy.join(this);
    return copy;
  }

  knows(block: number, time: number): boolean {
    return time <= this.floor || time <= (this.blocks.get(block) ?? 0);
  }
}

/** A `who` of the race check has so many bits for the thread. */
export const THREAD_BITS = 10;

/**
 * The number under which the products of a thread's warp group are recorded: above those of the
 * threads, or in the largest blocks that of the group's first thread.
 */
export const groupOf = (thread: number, threads: number): number =>
  threads + 8 < 2 ** THREAD_BITS ? threads + (thread >> 7) : thread & -128;

/** The thread, or the first one of the warp group, with a number. */
export const threadOf = (number: number, threads: number): number =>
  number < threads ? number : (number - threads) << 7;

export class BlockWatch {
  readonly launch: LaunchWatch;
  readonly ctx: number;
  /** Its number among all blocks that have ever run. */
  readonly number: number;
  readonly index: readonly [number, number, number];
  readonly threads: number;
  /** Address of the shared window, of the threads' frames and of the stack after them. */
  readonly shared: number;
  readonly frames: number;
  readonly stack: number;

  /** All accesses of any of its threads up to this time are known to all of them. */
  floor = 0;
  /** The same, for each thread. */
  readonly threadFloor: Float64Array;
  /**
   * By thread: its times of each other one. Threads with equal knowledge share an array, which is
   * then never written.
   */
  readonly known: Float64Array[];
  /** The knowledge of its threads about other blocks. */
  readonly others = new Knowledge();
  /** By thread: its last fence, and the knowledge that it made ready for release then. */
  readonly fenced: Float64Array;
  readonly released: (Knowledge | undefined)[] = [];
  /** By thread: the times that strong reads have seen, which the next fence acquires. */
  readonly seen: Float64Array;
  readonly seenOthers: (Knowledge | undefined)[] = [];
  /** By address: when one of its threads released there. */
  readonly places = new Map<number, number>();

  /**
   * Frames of called functions that live, the innermost last: the stack belongs to one thread at a
   * time.
   */
  readonly calls: { address: number; number: number }[] = [];

  /** By address of an mbarrier of this block: what arriving threads knew, by thread. */
  private readonly barriers = new Map<number, Float64Array>();
  /** By thread: its asynchronous operations that it has not waited for. */
  readonly inFlight: (InFlight | undefined)[] = [];
  /** By warp group: products that it has not waited for. */
  readonly products: (ProductsInFlight | undefined)[] = [];

  readonly waiting: (Arrival | undefined)[];
  /** Threads that arrived at a barrier and continued, by barrier. */
  readonly arrivals = new Map<number, { thread: number; time: number; known: Float64Array }[]>();

  constructor(
    launch: LaunchWatch,
    ctx: number,
    number: number,
    index: readonly [number, number, number],
    shared: number,
    frames: number,
  ) {
    const { threads } = launch;
    this.launch = launch;
    this.ctx = ctx;
    this.number = number;
    this.index = index;
    this.threads = threads;
    this.shared = shared;
    this.frames = frames;
    this.stack = frames + launch.check.frameBytes * threads;
    this.threadFloor = new Float64Array(threads);
    const nothing = new Float64Array(groupOf(threads, threads) + 1);
    this.known = new Array<Float64Array>(threads).fill(nothing);
    this.fenced = new Float64Array(threads);
    this.seen = new Float64Array(threads);
    this.waiting = new Array<undefined>(threads).fill(undefined);
  }

  /**
   * Whether the accesses of thread `other` at `time` are ordered before those of thread `thread`
   * from now on.
   */
  knows(thread: number, other: number, time: number): boolean {
    return (
      time <= this.floor || time <= this.threadFloor[thread]! || time <= this.known[thread]![other]!
    );
  }

  /** Whether an address is in the block's shared memory. */
  ownsShared(address: number): boolean {
    return address >= this.shared && address < this.shared + this.launch.sharedBytes + CHECK_GAP;
  }

  /** A thread arrives at an mbarrier. */
  releaseAt(thread: number, address: number, now: number): void {
    let place = this.barriers.get(address);
    if (place === undefined)
      this.barriers.set(address, (place = new Float64Array(this.known[0]!.length)));
    const known = this.known[thread]!;
    const floor = this.threadFloor[thread]!;
    for (let i = 0; i < place.length; i++) place[i] = Math.max(place[i]!, known[i]!, floor);
    place[thread] = now;
  }

  /** A thread waits at an mbarrier. */
  acquireAt(thread: number, address: number): void {
    const place = this.barriers.get(address);
    if (place === undefined) return;
    const known = this.known[thread]!;
    let isNewer = false;
    for (let i = 0; i < place.length && !isNewer; i++) isNewer = place[i]! > known[i]!;
    // A thread that polls mostly finds nothing new.
    if (!isNewer) return;
    this.known[thread] = known.map((time, i) => Math.max(time, place[i]!));
  }

  /** A thread has waited for accesses that are recorded as those of another one. */
  learn(thread: number, other: number, now: number): void {
    const known = this.known[thread]!.slice();
    known[other] = now;
    this.known[thread] = known;
  }

  /** These threads have synchronised: each gets the latest times of all of them. */
  meet(
    group: readonly number[],
    arrived: readonly { thread: number; time: number; known: Float64Array }[],
    now: number,
  ): void {
    if (group.length === this.threads) {
      this.floor = now;
      return;
    }
    const joined = new Float64Array(this.known[0]!.length);
    let floor = 0;
    const sources = new Set([
      ...group.map((thread) => this.known[thread]!),
      ...arrived.map(({ known }) => known),
    ]);
    for (const known of sources)
      for (let i = 0; i < joined.length; i++) if (known[i]! > joined[i]!) joined[i] = known[i]!;
    for (const thread of group) {
      joined[thread] = now;
      floor = Math.max(floor, this.threadFloor[thread]!);
    }
    for (const { thread, time } of arrived) joined[thread] = Math.max(joined[thread]!, time);
    for (const thread of group) {
      this.known[thread] = joined;
      this.threadFloor[thread] = floor;
    }
  }
}
