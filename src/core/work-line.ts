/**
 * Host work in the order of one stream, of which threads are notified in shared memory (in
 * `host-work.ts` the caller notifies them). Each piece holds its stream until it has ended. A
 * thread is notified of it through shared memory once all work before it has ended, and releases
 * the stream. Pieces that directly follow other pieces of the line are passed to the thread
 * together.
 *
 * Threads do not belong to streams. A program that awaits one piece after the other goes from
 * stream to stream, and all pieces go to the thread that worked last. Four threads in turn would
 * each have to be woken, and where there are no more processors than the work uses they wait for
 * one another's time slices to end (a model's run of 6.5 ms took 10 ms in one of ten cases,
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

/** Used by the threads: */
export { LINE_ARGS, takeFrom } from '../runtime/work-line.js';
export type { LineMemory } from '../runtime/work-line.js';

/** The parts of work that are the same each time that it is queued. */
export interface LineWork {
  /** The name in errors. */
  readonly name: string;
  readonly uses: readonly HostUse[];
  /** The description of the hold. */
  readonly held: Held;
  /**
   * The numbers that are passed to the thread; undefined where {@link prepare} has to be awaited
   * first. `number` is the number that {@link WorkLine.queue} returned.
   */
  ready(line: WorkLine, number: number): Float64Array | undefined;
  /** Called with the device's addresses of the memory, in the order of the uses. */
  prepare(addresses: readonly number[]): Promise<unknown>;
  /** The error for the thread's failure. Default: the failure itself. */
  refusal?(error: unknown): unknown;
}

/**
 * Makes a thread process the memory. Resolves when the thread has left; rejects with the failure of
 * its current piece.
 */
export type ProcessLine = (memory: LineMemory) => Promise<unknown>;

interface Entry {
  readonly work: LineWork;
  readonly number: number;
  /** The operation that it is part of. */
  readonly root: number;
  readonly hold: number;
  /**
   * The fence after which it may begin; 0 where nothing was queued between it and the piece before.
   */
  readonly fence: number;
  /** The reason why it failed before it began. */
  failure: unknown;
}

/** The entries of one thread, all of one line at a time. */
class Post {
  readonly writer = new LineWriter();
  /** The line whose entries are, or were last, in it. */
  line: WorkLine | undefined = undefined;
  private readonly runtime: Runtime;
  private readonly memory: LineMemory;
  private readonly process: ProcessLine;
  /** The entries by their place. */
  private readonly entries: (Entry | undefined)[] = new Array<undefined>(LINE_CAPACITY).fill(
    undefined,
  );
  /** The number of entries that the thread is known to have processed. */
  private seen = 0;
  private watching = false;

  constructor(runtime: Runtime, process: ProcessLine) {
    this.runtime = runtime;
    this.process = process;
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

  /** Whether no place is free. The place of an ended entry is freed by {@link update}. */
  get isFull(): boolean {
    this.update();
    return ((this.writer.written - this.seen) | 0) >= LINE_CAPACITY;
  }

  /** Adds an entry of its line. It must not be full. */
  put(entry: Entry, args: Float64Array): void {
    this.entries[this.writer.written & (LINE_CAPACITY - 1)] = entry;
    const alone = this.writer.write(this.line!.stream.transferSlot.index, entry.hold, args);
    if (this.memory.slots === undefined && !this.watching) void this.watch();
    if (alone) this.begin();
  }

  /**
   * All work that its line's stream has queued has ended when the thread has processed its last
   * entry, where the thread releases the stream itself.
   */
  announceEnd(): void {
    if (this.memory.slots !== undefined)
      this.line?.stream.setEarlyEnd(
        this.writer.progress,
        LineWriter.progressAt,
        this.writer.written,
      );
  }

  /** Records the thread's progress, and releases holds that the thread could not. */
  update(): void {
    const { runtime, line } = this;
    const { done } = this.writer;
    while (this.seen !== done) {
      const at = this.seen & (LINE_CAPACITY - 1);
      if (this.memory.slots === undefined && runtime.lost === undefined)
        runtime.release(line!.stream.transferSlot, this.entries[at]!.hold);
      this.entries[at] = undefined;
      this.seen = (this.seen + 1) | 0;
      line!.countOver();
    }
  }

  private begin(): void {
    this.process(this.memory).then(
      () => {
        this.update();
        if (this.writer.isLeft()) this.begin();
      },
      (error: unknown) => {
        // The thread has left at the entry that failed. The entries after it are queued again.
        this.line?.stream.clearEarlyEnd();
        this.update();
        const left: Entry[] = [];
        for (let at = this.writer.done; at !== this.writer.written; at = (at + 1) | 0)
          left.push(this.entries[at & (LINE_CAPACITY - 1)]!);
        this.writer.takeBack();
        this.line?.failed(left, error);
      },
    );
  }

  /** Releases the holds of ended entries, where the thread cannot. */
  private async watch(): Promise<void> {
    const { completion } = this.runtime;
    this.watching = true;
    try {
      while (this.isUnderway) {
        await completion.until(() => this.writer.done !== this.seen || !this.isUnderway);
        this.update();
      }
    } catch {
      // The device is lost: nothing waits for holds.
    } finally {
      this.watching = false;
    }
  }
}

/** The threads that process the lines of a device's streams. */
export class LinePosts {
  private readonly runtime: Runtime;
  private readonly process: ProcessLine;
  /** The posts; the one that was taken last is at the end. */
  private readonly posts: Post[] = [];

  constructor(runtime: Runtime, process: ProcessLine) {
    this.runtime = runtime;
    this.process = process;
  }

  /** The idle post that worked last, or a new one. */
  take(line: WorkLine): Post {
    const { posts } = this;
    let at = posts.length - 1;
    while (at >= 0 && posts[at]!.isUnderway) at--;
    const post = at < 0 ? new Post(this.runtime, this.process) : posts[at]!;
    if (at < 0) posts.push(post);
    else if (at !== posts.length - 1) posts.push(...posts.splice(at, 1));
    // The previous line records the post's last entries first.
    post.update();
    if (post.line !== line) post.line?.drop(post);
    post.line = line;
    return post;
  }
}

export class WorkLine {
  readonly stream: Stream;
  private readonly posts: LinePosts;
  /** The post of the last entry. */
  private post: Post | undefined = undefined;
  /** Entries of the line. Those before `next` were passed to a thread. */
  private waiting: Entry[] = [];
  private next = 0;
  /** Whether the next entry has to wait; and the number of such waits so far. */
  private stopped = false;
  private stops = 0;
  private queued = 0;
  private over = 0;
  /** The stream's mark after the last entry. */
  private mark = -1;

  constructor(stream: Stream, posts: LinePosts) {
    this.stream = stream;
    this.posts = posts;
  }

  /** Queues the work. Returns its number in the line. */
  queue(work: LineWork): number {
    const { stream } = this;
    stream.check();
    stream.checkNotCaptured(work.name, 'run it before the capture, or after graph.launch()');
    const { runtime, transferSlot } = stream;
    const { uses } = work;
    for (let i = 0; i < uses.length; i++)
      stream.order(uses[i]!.buffer.memory, ACCESSES[uses[i]!.access]);
    const before = stream.mark;
    // A stream on which nothing was queued always gets a fence: after it, it is known whether the
    // stream could be created.
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
      this.submit();
      if (this.waiting.length === 0) this.post?.announceEnd();
    }
    return number;
  }

  /** Whether the work of this number has ended, with success or not. */
  isOver(number: number): boolean {
    this.post?.update();
    return this.over >= number;
  }

  /** Resolves when the work of this number has ended, or the device is lost. */
  async ended(number: number): Promise<void> {
    await this.stream.runtime.completion.until(() => this.isOver(number)).catch(ignore);
  }

  /** The post belongs to another line from here on. */
  drop(post: Post): void {
    if (this.post === post) this.post = undefined;
  }

  /** One more entry has ended. */
  countOver(): void {
    this.over++;
  }

  /** Passes all entries that may begin to the thread. */
  private submit(): void {
    const { runtime, slot } = this.stream;
    while (this.next < this.waiting.length) {
      if (runtime.lost !== undefined) {
        this.waiting = [];
        this.next = 0;
        return;
      }
      const entry = this.waiting[this.next]!;
      if (entry.fence !== 0 && !runtime.completion.passed(slot, entry.fence)) {
        this.goOnAfter(runtime.wait(slot, entry.fence, slot.index, false));
        return;
      }
      entry.failure ??= this.whyNot(entry);
      if (entry.failure !== undefined) {
        // Its hold is released after those of earlier entries.
        if (this.isUnderway) this.goOnAfter(runtime.completion.until(() => !this.isUnderway));
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
        this.goOnAfter(
          entry.work.prepare(addresses).catch((error: unknown) => {
            entry.failure = error;
          }),
        );
        return;
      }
      const post = this.postForNext();
      if (post.isFull) {
        this.goOnAfter(runtime.completion.until(() => !post.isFull));
        return;
      }
      this.next++;
      post.put(entry, args);
    }
    this.waiting = [];
    this.next = 0;
    this.post?.update();
  }

  /** The post of the entries that run, so that the next one begins after them; else an idle one. */
  private postForNext(): Post {
    if (this.post?.isUnderway === true) return this.post;
    this.post?.update();
    return (this.post = this.posts.take(this));
  }

  private get isUnderway(): boolean {
    return this.post?.isUnderway === true;
  }

  private goOnAfter(promise: Promise<unknown>): void {
    this.stopped = true;
    const stop = ++this.stops;
    const goOn = (): void => {
      if (stop !== this.stops) return;
      this.stopped = false;
      this.submit();
    };
    // Nothing is passed to threads of a lost device.
    promise.then(goOn, goOn);
  }

  /** A thread has left at the first of these entries, with an error. */
  failed([failed, ...others]: readonly Entry[], error: unknown): void {
    this.waiting = [...others, ...this.waiting.slice(this.next)];
    this.next = 0;
    if (failed !== undefined) this.fail(failed, failed.work.refusal?.(error) ?? error);
  }

  /** The reason why an entry cannot begin. */
  private whyNot({ work: { name, uses }, root }: Entry): CudaError | undefined {
    const { stream } = this;
    const { runtime } = stream;
    // Work after the failure of an operation does not run, and fails with the operation.
    return (
      runtime.whyUnmade(stream.slot, name) ??
      runtime.unclaimedFailureOf(root) ??
      whyUndefined(stream, name, uses)
    );
  }

  /**
   * Clears earlier failures of memory that the work writes whole. Returns whether the line has to
   * wait for that.
   */
  private mend({ work: { uses } }: Entry): boolean {
    const { stream } = this;
    if (!mend(stream, uses)) return false;
    const { runtime, transferSlot } = stream;
    // Later work must not see the failure when the thread releases the stream.
    this.goOnAfter(
      runtime.wait(
        transferSlot,
        runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS),
        stream.slot.index,
        false,
      ),
    );
    return true;
  }

  /**
   * Fails the entry: its operation fails, the memory that it would have written is undefined, and
   * the stream goes on.
   */
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
    // Later entries check which memory is undefined.
    const fence = runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS);
    runtime.release(transferSlot, hold);
    this.goOnAfter(runtime.wait(transferSlot, fence, stream.slot.index, false));
  }
}

function ignore(): void {
  // Work of a lost device counts as ended.
}
