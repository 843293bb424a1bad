/**
 * Work of the host in the order of one stream, of which threads are told in shared memory (in
 * `host-work.ts`: whom the caller tells). Each piece holds its stream until it is over; a thread is
 * told of it through shared memory once all before it is over, and lets the stream go on. What
 * directly follows other work of the line is told together with it.
 *
 * Threads are not the streams' own: a program that awaits one piece after the other goes from
 * stream to stream, and all of it goes to the thread that has just been at work. Four that take
 * turns would each have to be woken, and where there are no more processors than the work wants
 * they wait for one another's time to be up (a model's run of 6.5 ms took 10 in one of ten cases,
 * measured).
 */
import { FLAG_BYPASS } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import type { Runtime } from '../runtime/runtime.js';
import { LINE_CAPACITY, LineWriter } from '../runtime/work-line.js';
import type { LineMemory } from '../runtime/work-line.js';
import { leaveUndefined, mend, whyUndefined } from './host-work.js';
import type { HostUse } from './host-work.js';
import { ACCESSES } from './native-library.js';
import { isSharedArrayBuffer } from '../ground/other-realms.js';
import type { Held } from './queued-operation.js';
import type { Stream } from './stream.js';

/** What a thread needs. */
export { LINE_ARGS, takeFrom } from '../runtime/work-line.js';
export type { LineMemory } from '../runtime/work-line.js';

/** What is the same each time that the work is queued. */
export interface LineWork {
  /** As errors call it. */
  readonly name: string;
  readonly uses: readonly HostUse[];
  /** What the hold is told to be for. */
  readonly held: Held;
  /**
   * The numbers that its thread is told, when its turn has come; undefined where {@link prepare}
   * has to be awaited first. `number`: what {@link WorkLine.queue} has returned for it.
   */
  ready(line: WorkLine, number: number): Float64Array | undefined;
  /** Is given the device's addresses of the memory, in the order of the uses. */
  prepare(addresses: readonly number[]): Promise<unknown>;
  /** The error for what its thread has failed with. Default: that. */
  refusal?(error: unknown): unknown;
}

/**
 * Has a thread see to the memory: resolves when it has left, rejects with why what it was at has
 * failed.
 */
export type SeeTo = (memory: LineMemory) => Promise<unknown>;

interface Entry {
  readonly work: LineWork;
  readonly number: number;
  /** The operation that it is part of. */
  readonly root: number;
  readonly hold: number;
  /**
   * The fence behind which it may begin; 0 where nothing was queued between it and the one before.
   */
  readonly fence: number;
  /** Why it was given up before it began. */
  failure: unknown;
}

/** What one thread is told, all of one line at a time. */
class Post {
  readonly writer = new LineWriter();
  /** Whose entries are in it, or were last. */
  line: WorkLine | undefined = undefined;
  private readonly runtime: Runtime;
  private readonly memory: LineMemory;
  private readonly seeTo: SeeTo;
  /** By their place. */
  private readonly told: (Entry | undefined)[] = new Array<undefined>(LINE_CAPACITY).fill(
    undefined,
  );
  /** Those that the thread is known to be done with. */
  private seen = 0;
  private watching = false;

  constructor(runtime: Runtime, seeTo: SeeTo) {
    this.runtime = runtime;
    this.seeTo = seeTo;
    const { buffers, slots } = runtime.shared;
    const { pinned } = buffers;
    this.memory = {
      line: this.writer.memory,
      control: buffers.control,
      slots:
        isSharedArrayBuffer(pinned) && !runtime.isInline
          ? { buffer: pinned, offset: slots.byteOffset }
          : undefined,
    };
  }

  get isUnderway(): boolean {
    return this.writer.done !== this.writer.written;
  }

  /** What is over has its place until it has been looked at. */
  get isFull(): boolean {
    this.look();
    return ((this.writer.written - this.seen) | 0) >= LINE_CAPACITY;
  }

  /** For its line, where it is not full. */
  put(entry: Entry, args: Float64Array): void {
    this.told[this.writer.written & (LINE_CAPACITY - 1)] = entry;
    const alone = this.writer.write(this.line!.stream.transferSlot.index, entry.hold, args);
    if (this.memory.slots === undefined && !this.watching) void this.watch();
    if (alone) this.begin();
  }

  /**
   * All that its line's stream has queued is over when the thread is done with what it was told
   * last, where it lets the stream go on itself.
   */
  foretell(): void {
    if (this.memory.slots !== undefined)
      this.line?.stream.endsWith(this.writer.progress, LineWriter.progressAt, this.writer.written);
  }

  /** Takes note of what the thread has done, and releases what it could not. */
  look(): void {
    const { runtime, line } = this;
    const { done } = this.writer;
    while (this.seen !== done) {
      const at = this.seen & (LINE_CAPACITY - 1);
      if (this.memory.slots === undefined && runtime.lost === undefined)
        runtime.release(line!.stream.transferSlot, this.told[at]!.hold);
      this.told[at] = undefined;
      this.seen = (this.seen + 1) | 0;
      line!.countOver();
    }
  }

  private begin(): void {
    this.seeTo(this.memory).then(
      () => {
        this.look();
        if (this.writer.isLeft()) this.begin();
      },
      (error: unknown) => {
        // The thread has left at the one that failed; those behind it were told too soon.
        this.line?.stream.endsWithNothing();
        this.look();
        const left: Entry[] = [];
        for (let at = this.writer.done; at !== this.writer.written; at = (at + 1) | 0)
          left.push(this.told[at & (LINE_CAPACITY - 1)]!);
        this.writer.takeBack();
        this.line?.failed(left, error);
      },
    );
  }

  /** Releases what is over, where the thread cannot do that itself. */
  private async watch(): Promise<void> {
    const { completion } = this.runtime;
    this.watching = true;
    try {
      while (this.isUnderway) {
        await completion.until(() => this.writer.done !== this.seen || !this.isUnderway);
        this.look();
      }
    } catch {
      // The device is lost: nothing waits for holds.
    } finally {
      this.watching = false;
    }
  }
}

/** The threads that see to the lines of a device's streams. */
export class LinePosts {
  private readonly runtime: Runtime;
  private readonly seeTo: SeeTo;
  /** The one that was taken last at the end. */
  private readonly posts: Post[] = [];

  constructor(runtime: Runtime, seeTo: SeeTo) {
    this.runtime = runtime;
    this.seeTo = seeTo;
  }

  /** The one that was at work last of those that have nothing to do, or one more. */
  take(line: WorkLine): Post {
    const { posts } = this;
    let at = posts.length - 1;
    while (at >= 0 && posts[at]!.isUnderway) at--;
    const post = at < 0 ? new Post(this.runtime, this.seeTo) : posts[at]!;
    if (at < 0) posts.push(post);
    else if (at !== posts.length - 1) posts.push(...posts.splice(at, 1));
    // Whose it was is told of its last.
    post.look();
    if (post.line !== line) post.line?.lose(post);
    post.line = line;
    return post;
  }
}

export class WorkLine {
  readonly stream: Stream;
  private readonly posts: LinePosts;
  /** Where the last entry was told. */
  private post: Post | undefined = undefined;
  /** Not told to a thread yet; those before `next` are. */
  private waiting: Entry[] = [];
  private next = 0;
  /**
   * Whether something is waited for before the next may be told; and how often there was something.
   */
  private stopped = false;
  private stops = 0;
  private queued = 0;
  private over = 0;
  /** How far the stream was behind the last one. */
  private mark = -1;

  constructor(stream: Stream, posts: LinePosts) {
    this.stream = stream;
    this.posts = posts;
  }

  /** Queues the work. Returns its number among all of the line. */
  queue(work: LineWork): number {
    const { stream } = this;
    stream.check();
    stream.checkNotCaptured(work.name, 'run it before the capture, or after graph.launch()');
    const { runtime, transferSlot } = stream;
    const { uses } = work;
    for (let i = 0; i < uses.length; i++)
      stream.order(uses[i]!.buffer.memory, ACCESSES[uses[i]!.access]);
    const before = stream.mark;
    // Of a stream on which nothing was queued it is not known either whether it could be made.
    const fence =
      before === this.mark || (before !== 0 && stream.hasPassed(before))
        ? 0
        : stream.fenceAt(before);
    const hold = runtime.nextHold(transferSlot);
    const root = stream.nextRoot();
    const mark = stream.hold(transferSlot, hold, work.held);
    this.mark = stream.mark;
    for (let i = 0; i < uses.length; i++)
      stream.used(uses[i]!.buffer.memory, ACCESSES[uses[i]!.access], mark);
    const number = ++this.queued;
    this.waiting.push({ work, number, root, hold, fence, failure: undefined });
    if (!this.stopped) {
      this.tell();
      if (this.waiting.length === 0) this.post?.foretell();
    }
    return number;
  }

  /** Whether the work of this number is over, whether it succeeded or not. */
  isOver(number: number): boolean {
    this.post?.look();
    return this.over >= number;
  }

  /** Resolves when it is; also where the device is lost. */
  async ended(number: number): Promise<void> {
    await this.stream.runtime.completion.until(() => this.isOver(number)).catch(ignore);
  }

  /** Its thread is another line's from here on. */
  lose(post: Post): void {
    if (this.post === post) this.post = undefined;
  }

  /** One more is over. */
  countOver(): void {
    this.over++;
  }

  /** Tells the thread of whatever may begin. */
  private tell(): void {
    const { runtime, slot } = this.stream;
    while (this.next < this.waiting.length) {
      if (runtime.lost !== undefined) {
        this.waiting = [];
        this.next = 0;
        return;
      }
      const entry = this.waiting[this.next]!;
      if (entry.fence !== 0 && !runtime.completion.passed(slot, entry.fence)) {
        this.goOnBehind(runtime.wait(slot, entry.fence, slot.index, false));
        return;
      }
      entry.failure ??= this.whyNot(entry);
      if (entry.failure !== undefined) {
        // Its hold is released behind theirs.
        if (this.isUnderway) this.goOnBehind(runtime.completion.until(() => !this.isUnderway));
        else {
          this.next++;
          this.fail(entry, entry.failure);
        }
        return;
      }
      if (this.mend(entry)) return;
      const args = entry.work.ready(this, entry.number);
      if (args === undefined) {
        const { values } = runtime.shared;
        const addresses = entry.work.uses.map(
          ({ buffer }) => values[buffer.memory.handle]! + buffer.byteOffset,
        );
        this.goOnBehind(
          entry.work.prepare(addresses).catch((error: unknown) => {
            entry.failure = error;
          }),
        );
        return;
      }
      const post = this.postForNext();
      if (post.isFull) {
        this.goOnBehind(runtime.completion.until(() => !post.isFull));
        return;
      }
      this.next++;
      post.put(entry, args);
    }
    this.waiting = [];
    this.next = 0;
    this.post?.look();
  }

  /** Where what is under way is, so that it begins behind that, or any. */
  private postForNext(): Post {
    if (this.post?.isUnderway === true) return this.post;
    this.post?.look();
    return (this.post = this.posts.take(this));
  }

  private get isUnderway(): boolean {
    return this.post?.isUnderway === true;
  }

  private goOnBehind(promise: Promise<unknown>): void {
    this.stopped = true;
    const stop = ++this.stops;
    const goOn = (): void => {
      if (stop !== this.stops) return;
      this.stopped = false;
      this.tell();
    };
    // Of a device that was lost nothing is told any more.
    promise.then(goOn, goOn);
  }

  /** A thread has left at the first of these, with an error. */
  failed([failed, ...others]: readonly Entry[], error: unknown): void {
    this.waiting = [...others, ...this.waiting.slice(this.next)];
    this.next = 0;
    if (failed !== undefined) this.fail(failed, failed.work.refusal?.(error) ?? error);
  }

  /** Why it cannot begin. */
  private whyNot({ work: { name, uses }, root }: Entry): CudaError | undefined {
    const { stream } = this;
    const { runtime } = stream;
    // What comes behind the failure of an operation is not carried out, and fails with it.
    return (
      runtime.whyUnmade(stream.slot, name) ??
      runtime.unclaimedFailureOf(root) ??
      whyUndefined(stream, name, uses)
    );
  }

  /**
   * What it writes all of is good again where an earlier failure left it undefined. Returns whether
   * that has to be waited for.
   */
  private mend({ work: { uses } }: Entry): boolean {
    const { stream } = this;
    if (!mend(stream, uses)) return false;
    const { runtime, transferSlot } = stream;
    // What comes behind must not meet the failure any more when the thread lets the stream go on.
    this.goOnBehind(
      runtime.wait(
        transferSlot,
        runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS),
        stream.slot.index,
        false,
      ),
    );
    return true;
  }

  /** Its operation fails, what it would have written is undefined, and the stream goes on. */
  private fail({ work, root, hold }: Entry, reason: unknown): void {
    const { stream } = this;
    const { runtime, transferSlot } = stream;
    this.over++;
    if (runtime.lost !== undefined) return;
    const error =
      reason instanceof CudaError
        ? reason
        : new CudaError('ERR_CUDA_INTERNAL', String(reason), { cause: reason });
    leaveUndefined(stream, work.uses, runtime.fail(root, error));
    // Those behind it look at what is undefined.
    const fence = runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS);
    runtime.release(transferSlot, hold);
    this.goOnBehind(runtime.wait(transferSlot, fence, stream.slot.index, false));
  }
}

function ignore(): void {
  // What a lost device did is over.
}
