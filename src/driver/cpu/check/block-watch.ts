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

  copy(): Knowledge {
    const copy = new Knowledge();
    copy.join(this);
    return copy;
  }

  knows(block: number, time: number): boolean {
    return time <= this.floor || time <= (this.blocks.get(block) ?? 0);
  }
}

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
    const nothing = new Float64Array(threads);
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
    const joined = new Float64Array(this.threads);
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
