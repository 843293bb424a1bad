/**
 * Follows threads to their synchronising instructions and away from them: threads that have met
 * there order their accesses, and a thread that did not come is an error of the program.
 */
import { ARRIVAL, CTX, SHUFFLE, SCRATCH_STATES, THREAD_EXITED } from '../../../ptx/index.js';
import type { CheckKind } from '../../../ground/check-report.js';
import type { Arrival, BlockWatch } from './block-watch.js';
import type { RaceCheck } from './race-check.js';

const WARP = 32;
/** The number of barriers of a block. */
const BARRIERS = 16;
/** The largest number of threads of a block. */
const MOST_THREADS = 1024;

type Tell = (
  watch: BlockWatch,
  kind: CheckKind,
  thread: number,
  line: number,
  message: string,
) => void;

export class SyncCheck {
  private readonly races: RaceCheck;
  private readonly wanted: boolean;
  private readonly tellAlways: Tell;

  constructor(races: RaceCheck, wanted: boolean, tell: Tell) {
    this.races = races;
    this.wanted = wanted;
    this.tellAlways = tell;
  }

  private tell(...args: Parameters<Tell>): void {
    if (this.wanted) this.tellAlways(...args);
  }

  arrive(
    watch: BlockWatch,
    thread: number,
    kind: number,
    a: number,
    b: number,
    line: number,
  ): void {
    if (kind === ARRIVAL.alignedBarrier || kind === ARRIVAL.barrier || kind === ARRIVAL.arrive) {
      if (a >>> 0 >= BARRIERS) {
        this.tell(
          watch,
          'barrier-count',
          thread,
          line,
          `barrier ${a >>> 0}: a block has barriers 0 to ${BARRIERS - 1}`,
        );
        a &= BARRIERS - 1;
      }
      if (b < 0 || b > MOST_THREADS || b % WARP !== 0) {
        this.tell(
          watch,
          'barrier-count',
          thread,
          line,
          `barrier ${a} for ${b} threads: the number must be a multiple of the warp's ${WARP}`,
        );
      } else if (b > Math.ceil(watch.threads / WARP) * WARP) {
        this.tell(
          watch,
          'barrier-count',
          thread,
          line,
          `barrier ${a} for ${b} threads in a block of ${watch.threads}`,
        );
      }
    } else if (
      kind !== ARRIVAL.cluster &&
      kind !== ARRIVAL.gathering &&
      ((a >>> (thread % WARP)) & 1) === 0
    ) {
      this.tell(
        watch,
        'warp-mask',
        thread,
        line,
        `the mask 0x${(a >>> 0).toString(16)} does not name lane ${thread % WARP}, which ` +
          'executes the instruction',
      );
    }
    if (kind === ARRIVAL.arrive) {
      const list = watch.arrivals.get(a);
      const arrived = { thread, time: this.races.now++, known: watch.known[thread]! };
      if (list === undefined) watch.arrivals.set(a, [arrived]);
      else list.push(arrived);
      return;
    }
    watch.waiting[thread] = { kind, a, b, line };
  }

  /** Some of the threads from `first` to `end` may continue: `words` contains their states. */
  released(watch: BlockWatch, first: number, end: number, words: Int32Array): void {
    const states = ((words[(watch.ctx + CTX.scratch) >>> 2]! >>> 0) + SCRATCH_STATES) >>> 2;
    const groups = new Map<number, number[]>();
    const { waiting } = watch;
    for (let thread = first; thread < end; thread++) {
      const arrival = waiting[thread];
      if (arrival === undefined || words[states + thread]! < 0) continue;
      if (arrival.kind === ARRIVAL.cluster) {
        // The threads exchanged their knowledge when the barrier was complete.
        waiting[thread] = undefined;
        continue;
      }
      // Barriers are keyed by their number, warp operations by their warp and mask.
      const key =
        arrival.kind <= ARRIVAL.barrier
          ? -1 - arrival.a
          : (thread >>> 5) * 2 ** 32 + (arrival.a >>> 0);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [thread]);
      else group.push(thread);
    }
    for (const group of groups.values()) {
      const arrival = waiting[group[0]!]!;
      if (arrival.kind <= ARRIVAL.barrier) this.barrier(watch, group, arrival, words, states);
      else this.warp(watch, group, arrival, groups);
    }
    for (const group of groups.values()) for (const thread of group) waiting[thread] = undefined;
  }

  private barrier(
    watch: BlockWatch,
    group: readonly number[],
    arrival: Arrival,
    words: Int32Array,
    states: number,
  ): void {
    const arrived = watch.arrivals.get(arrival.a) ?? [];
    watch.arrivals.delete(arrival.a);
    const lineOfWarp = new Map<number, Arrival>();
    for (const thread of group) {
      const other = watch.waiting[thread]!;
      if (other.b !== arrival.b) {
        this.tell(
          watch,
          'barrier-count',
          thread,
          other.line,
          `barrier ${arrival.a}: ${countText(other.b)} here, ${countText(arrival.b)} on PTX ` +
            `line ${arrival.line}`,
        );
        break;
      }
      const before = lineOfWarp.get(thread >>> 5);
      if (before === undefined) lineOfWarp.set(thread >>> 5, other);
      else if (
        before.line !== other.line &&
        (other.kind === ARRIVAL.alignedBarrier || before.kind === ARRIVAL.alignedBarrier)
      ) {
        this.tell(
          watch,
          'divergent-barrier',
          thread,
          other.line,
          'threads of one warp are at different barrier instructions: another is on PTX line ' +
            `${before.line}`,
        );
        break;
      }
    }
    let exited = 0;
    let firstExited = -1;
    for (let thread = 0; thread < watch.threads; thread++) {
      if (words[states + thread] !== THREAD_EXITED) continue;
      if (exited++ === 0) firstExited = thread;
    }
    const whole = group.length + exited === watch.threads && arrived.length === 0;
    if (arrival.b === 0 && exited > 0) {
      this.tell(
        watch,
        'divergent-barrier',
        group[0]!,
        arrival.line,
        `a barrier for all ${watch.threads} threads was reached by ${group.length}; ` +
          `${exited} had exited, thread ${firstExited} the first of them`,
      );
    }
    // Threads that have exited are known to all threads that were waited for.
    if (whole) watch.floor = this.races.now;
    else watch.meet(group, arrived, this.races.now);
    this.races.now++;
  }

  /**
   * The value from a lane that the mask does not name is undefined. Single lanes may ignore their
   * value, as the last ones of a scan do; where all lanes name such a lane it is an error.
   */
  private shuffle(
    watch: BlockWatch,
    group: readonly number[],
    { a, b, line, kind }: Arrival,
  ): void {
    if (kind !== ARRIVAL.warpOperation || (b & SHUFFLE.named) === 0) return;
    const isUndefined = (thread: number): boolean => {
      const other = watch.waiting[thread]!;
      return (
        other.line === line &&
        (other.b & SHUFFLE.named) !== 0 &&
        ((a >>> sourceLane(thread % WARP, other.b)) & 1) === 0
      );
    };
    if (!group.every(isUndefined)) return;
    const [first = 0] = group;
    this.tell(
      watch,
      'warp-mask',
      first,
      line,
      `the shuffle reads from lane ${sourceLane(first % WARP, b)}, which its mask ` +
        `0x${(a >>> 0).toString(16)} does not name`,
    );
  }

  private warp(
    watch: BlockWatch,
    group: readonly number[],
    arrival: Arrival,
    groups: ReadonlyMap<number, readonly number[]>,
  ): void {
    if (arrival.kind === ARRIVAL.gathering) return;
    const [first = 0] = group;
    for (const others of groups.values()) {
      const [other = 0] = others;
      const { a, kind, line } = watch.waiting[other] ?? arrival;
      // Each pair of groups is seen twice: the lower one reports.
      if (others === group || other < first || other >>> 5 !== first >>> 5 || kind !== arrival.kind)
        continue;
      if (!others.some((thread) => ((arrival.a >>> (thread % WARP)) & 1) !== 0)) continue;
      this.tell(
        watch,
        'warp-mask',
        other,
        line,
        `the masks of one warp operation differ: 0x${(a >>> 0).toString(16)} here, ` +
          `0x${(arrival.a >>> 0).toString(16)} in lane ${first % WARP} on PTX line ` +
          `${arrival.line}`,
      );
    }
    this.shuffle(watch, group, arrival);
    // Shuffles and votes do not order accesses.
    if (arrival.kind !== ARRIVAL.warpBarrier) return;
    watch.meet(group, [], this.races.now);
    this.races.now++;
  }
}

/**
 * Returns the lane that a lane reads from: PTX ISA, shfl.sync, .idx. Bits 8 to 12 of the control
 * word are the bits of its own number that the lane keeps.
 */
function sourceLane(lane: number, b: number): number {
  const segment = (b >>> (SHUFFLE.control + 8)) & 31;
  const last = (lane & segment) | ((b >>> SHUFFLE.control) & 31 & ~segment);
  const source = (lane & segment) | (b & 31 & ~segment);
  return source <= last ? source : lane;
}

function countText(count: number): string {
  return count === 0 ? 'all threads' : `${count} threads`;
}
