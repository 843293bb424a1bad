/**
 * Finds conflicting accesses that are not ordered. For every four bytes of global and shared memory
 * it keeps the last two writers of different bytes and the last two readers, with the bytes that
 * each accessed. Races are those of the PTX memory model: accesses that overlap, one of them a
 * write, neither before the other in causality order, and not both strong in a scope that contains
 * the two threads.
 */
import { ACCESS } from '../../../ptx/index.js';
import { Knowledge, THREAD_BITS, threadOf } from './block-watch.js';
import type { BlockWatch } from './block-watch.js';
import type { LaunchWatch, Work } from '../kernels/launch-watch.js';
import type { StreamOrder } from '../streams/stream-order.js';

const PAGE_BITS = 12;
const PAGE = 2 ** PAGE_BITS;
const WORDS = 2 ** (PAGE_BITS - 2);
export const MOST_BLOCKS = 2 ** 22;
const MOST_WORKS = 65536;

/** The information of an access: bytes of the word in bits 0–3, flags, and the PTX line above. */
const STRONG = 16;
const BLOCK_SCOPE = 32;
const ATOMIC = 64;
const WRITE = 128;
/**
 * A flag of a write: its thread read the same bytes before, and no ordering operation is between
 * the two.
 */
const HAS_READ = 256;
const LINE_SHIFT = 9;

/**
 * Twelve numbers for each word, so that a check accesses one or two cache lines: the thread, the
 * time and the kind of access of two writers and of two readers. A time of 0 means none. A page
 * that only the host's work has accessed as a whole has one record, which stands for all of its
 * words.
 */
type Page = Uint32Array;
const SLOT = 3;
const READERS = 2 * SLOT;
const FIELDS = 4 * SLOT;
const ACCESSOR = 0;
const WHEN = 1;
const HOW = 2;

/** The earlier access of a race. */
export interface Earlier {
  work: Work;
  block: number;
  thread: number;
  line: number;
  action: 'read' | 'write' | 'atomic';
  /** Whether it writes, and its thread has not read the written bytes before. */
  onlyWrites: boolean;
}

/** A store that races with another one. What it stores is seen when it has been carried out. */
export interface RacingStore {
  readonly watch: BlockWatch;
  readonly thread: number;
  readonly address: number;
  readonly line: number;
  readonly flags: number;
  readonly earlier: Earlier;
  /** What lay there before. */
  readonly before: Uint8Array;
}

export class RaceCheck {
  private pages: (Page | undefined)[] = [];
  private readonly order: StreamOrder;
  /** Incremented by every synchronisation. */
  now = 1;
  private nextBlock = 1;
  /** The work of the numbers below, in ascending order of its first block. */
  private works: Work[] = [];
  private running = 0;
  /** By address: the knowledge that was released there for other blocks. */
  private readonly places = new Map<number, Knowledge>();

  constructor(order: StreamOrder) {
    this.order = order;
  }

  /**
   * Assigns numbers to this many blocks. Where they are used up, the records of older accesses are
   * dropped.
   */
  number(blocks: number): number {
    if (
      (this.nextBlock + blocks > MOST_BLOCKS || this.works.length > MOST_WORKS) &&
      this.running === 0
    ) {
      this.pages = [];
      this.works = [];
      this.nextBlock = 1;
    }
    const first = this.nextBlock;
    this.nextBlock += blocks;
    return first;
  }

  begin(work: Work): void {
    this.works.push(work);
    if (work.launch !== undefined) this.running++;
  }

  end(): void {
    if (--this.running === 0) this.places.clear();
  }

  /** Drops the records of memory that is reallocated. */
  forget(address: number, bytes: number): void {
    for (let page = Math.floor(address / PAGE); page * PAGE < address + bytes; page++) {
      const kept = this.pages[page];
      if (kept === undefined) continue;
      const from = Math.max(0, address - page * PAGE) >> 2;
      const to = Math.min(PAGE, address + bytes - page * PAGE + 3) >> 2;
      if (from === 0 && to === WORDS) this.pages[page] = undefined;
      else this.page(page).fill(0, from * FIELDS, to * FIELDS);
    }
  }

  /** Returns the records of every word of a page. */
  private page(number: number): Page {
    const kept = this.pages[number];
    if (kept !== undefined && kept.length > FIELDS) return kept;
    const page = (this.pages[number] = new Uint32Array(WORDS * FIELDS));
    if (kept !== undefined) for (let at = 0; at < page.length; at += FIELDS) page.set(kept, at);
    return page;
  }

  /**
   * Records one access of a thread, or of another one for which it acts. Returns the first
   * conflict, if there is one. A conflict of two writes has the lowest precedence, because they may
   * write the same value.
   */
  access(
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
    recordedAs = thread,
  ): Earlier | undefined {
    const strong = (flags & (ACCESS.strong | ACCESS.atomic)) !== 0;
    const writes = (flags & (ACCESS.write | ACCESS.atomic)) !== 0;
    if (strong) this.synchronise(watch, thread, address, flags);
    let how =
      (strong ? STRONG : 0) |
      ((flags & ACCESS.block) !== 0 ? BLOCK_SCOPE : 0) |
      ((flags & ACCESS.atomic) !== 0 ? ATOMIC : 0) |
      (line << LINE_SHIFT);
    if (writes) how |= WRITE;
    const accessor = ((watch.number << THREAD_BITS) | recordedAs) >>> 0;
    let found: Earlier | undefined;
    for (let at = address; at < address + bytes;) {
      const first = at & 3;
      const last = Math.min(4, first + address + bytes - at);
      found = moreSevere(
        found,
        this.word(watch, thread, at, accessor, how | ((1 << last) - (1 << first)), writes),
      );
      at += last - first;
    }
    return found;
  }

  private word(
    watch: BlockWatch,
    thread: number,
    address: number,
    accessor: number,
    how: number,
    writes: boolean,
  ): Earlier | undefined {
    const page = this.page(address >>> PAGE_BITS);
    const at = ((address & (PAGE - 1)) >>> 2) * FIELDS;
    let found: Earlier | undefined;
    for (let slot = at; slot < at + (writes ? FIELDS : READERS); slot += SLOT) {
      const when = page[slot + WHEN]!;
      if (when === 0 || page[slot + ACCESSOR] === accessor) continue;
      const before = page[slot + HOW]!;
      if ((before & how & 15) === 0) continue;
      if (this.isOrdered(watch, thread, page[slot + ACCESSOR]!, when, how, before)) continue;
      if (found?.onlyWrites === false) continue;
      found = moreSevere(found, this.earlier(page[slot + ACCESSOR]!, before));
    }
    record(page, at, accessor, this.now, how, writes);
    return found;
  }

  private isOrdered(
    watch: BlockWatch,
    thread: number,
    accessor: number,
    when: number,
    how: number,
    before: number,
  ): boolean {
    const block = accessor >>> THREAD_BITS;
    if (block === watch.number) {
      return (
        (how & before & STRONG) !== 0 ||
        watch.knows(thread, accessor & (2 ** THREAD_BITS - 1), when)
      );
    }
    // Strong accesses that can see each other are never a race.
    if ((how & before & STRONG) !== 0 && ((how | before) & BLOCK_SCOPE) === 0) return true;
    if (watch.others.knows(block, when)) return true;
    const { launch } = watch;
    if (block >= launch.first && block < launch.first + launch.blocks) return false;
    return this.follows(launch, this.workOf(block));
  }

  /** Whether `work` runs after `earlier`, by the order that the program has set. */
  private follows(work: Work, earlier: Work | undefined): boolean {
    if (earlier?.stream === undefined || work.stream === undefined) return true;
    return this.order.knows(work.stream, earlier.stream, earlier.sequence);
  }

  private workOf(block: number): Work | undefined {
    let low = 0;
    let high = this.works.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.works[middle]!.first <= block) low = middle;
      else high = middle - 1;
    }
    return this.works[low];
  }

  private earlier(accessor: number, how: number): Earlier | undefined {
    const block = accessor >>> THREAD_BITS;
    const work = this.workOf(block);
    return (
      work && {
        work,
        block,
        thread: threadOf(accessor & (2 ** THREAD_BITS - 1), work.launch?.threads ?? Infinity),
        line: how >>> LINE_SHIFT,
        action: (how & ATOMIC) !== 0 ? 'atomic' : (how & WRITE) !== 0 ? 'write' : 'read',
        onlyWrites: (how & (ATOMIC | WRITE | HAS_READ)) === WRITE,
      }
    );
  }

  /**
   * Records that the host's work reads or writes a range, or signals a value. Returns the first
   * conflict. Its accesses count as strong ones for those of kernels, and signals as strong ones
   * for all.
   */
  hostAccess(
    work: Work,
    address: number,
    bytes: number,
    action: 'read' | 'write' | 'signal',
  ): { earlier: Earlier; address: number } | undefined {
    const writes = action !== 'read';
    const accessor = (work.first << THREAD_BITS) >>> 0;
    let found: { earlier: Earlier; address: number } | undefined;
    const kind = STRONG | (writes ? WRITE : 0);
    /** Checks a record of the word at `address`. */
    const touch = (page: Page, at: number, address: number, how: number): void => {
      for (
        let slot = at;
        slot < at + (writes ? FIELDS : READERS) && found === undefined;
        slot += SLOT
      ) {
        const before = page[slot + HOW]!;
        if (page[slot + WHEN] === 0 || (before & how & 15) === 0) continue;
        const block = page[slot + ACCESSOR]! >>> THREAD_BITS;
        if (block === work.first) continue;
        const other = this.workOf(block);
        // A kernel may wait for the data of a copy.
        if ((before & STRONG) !== 0 && (action === 'signal' || other?.launch !== undefined))
          continue;
        if (this.follows(work, other)) continue;
        const earlier = this.earlier(page[slot + ACCESSOR]!, before);
        if (earlier !== undefined) found = { earlier, address };
      }
      record(page, at, accessor, this.now, how, writes);
    };
    for (let at = address; at < address + bytes;) {
      const number = Math.floor(at / PAGE);
      const end = Math.min(address + bytes, (number + 1) * PAGE);
      const isWhole = end - at === PAGE;
      const kept = this.pages[number];
      if (isWhole && (kept === undefined || kept.length === FIELDS)) {
        touch((this.pages[number] ??= new Uint32Array(FIELDS)), 0, at, kind | 15);
        at = end;
        continue;
      }
      const page = this.page(number);
      for (; at < end; at += 4 - (at & 3)) {
        const first = at & 3;
        touch(
          page,
          ((at & (PAGE - 1)) >>> 2) * FIELDS,
          at,
          kind | ((1 << Math.min(4, first + end - at)) - (1 << first)),
        );
      }
      // The write replaces the records of all words.
      if (isWhole && writes) this.pages[number] = page.slice(0, FIELDS);
    }
    return found;
  }

  /** Acquires and releases knowledge by a strong access. */
  private synchronise(watch: BlockWatch, thread: number, address: number, flags: number): void {
    const reads = (flags & (ACCESS.read | ACCESS.atomic)) !== 0;
    const wide = (flags & ACCESS.block) === 0;
    if ((flags & ACCESS.barrier) !== 0 && watch.ownsShared(address)) {
      this.meetAtBarrier(watch, thread, address, flags);
      return;
    }
    if (reads) {
      const inBlock = watch.places.get(address) ?? 0;
      const elsewhere = wide ? this.places.get(address) : undefined;
      if ((flags & ACCESS.acquire) !== 0) this.acquire(watch, thread, inBlock, elsewhere);
      else {
        if (inBlock > watch.seen[thread]!) watch.seen[thread] = inBlock;
        if (elsewhere !== undefined) (watch.seenOthers[thread] ??= new Knowledge()).join(elsewhere);
      }
      this.learn(watch.launch, address);
    }
    if ((flags & (ACCESS.write | ACCESS.atomic)) === 0) return;
    const releases = (flags & ACCESS.release) !== 0;
    const time = releases ? this.now : watch.fenced[thread]!;
    if (time > 0) watch.places.set(address, Math.max(time, watch.places.get(address) ?? 0));
    const told = releases && wide ? this.tell(watch) : watch.released[thread];
    if (told !== undefined && wide) {
      const known = this.places.get(address);
      if (known === undefined) this.places.set(address, told.copy());
      else known.join(told);
    }
    if (releases) this.now++;
  }

  /**
   * An mbarrier of the own block. A thread passes on what it knows, and not what the rest of its
   * block has done: some of it may still be reading what the barrier releases.
   */
  private meetAtBarrier(watch: BlockWatch, thread: number, address: number, flags: number): void {
    const elsewhere = this.places.get(address);
    if ((flags & ACCESS.acquire) !== 0) {
      watch.acquireAt(thread, address);
      this.acquire(watch, thread, 0, elsewhere);
    }
    if ((flags & ACCESS.release) === 0) return;
    watch.releaseAt(thread, address, this.now);
    if (elsewhere !== undefined) elsewhere.join(watch.others);
    else if (!watch.others.isEmpty) this.places.set(address, watch.others.copy());
    this.now++;
  }

  /**
   * Is called for a strong read of a value that other work has written: the two communicate, and
   * count as ordered from here on.
   */
  private learn(launch: LaunchWatch, address: number): void {
    const page = this.pages[address >>> PAGE_BITS];
    if (page === undefined) return;
    const at = page.length === FIELDS ? 0 : ((address & (PAGE - 1)) >>> 2) * FIELDS;
    if (page[at + WHEN] === 0) return;
    const block = page[at + ACCESSOR]! >>> THREAD_BITS;
    if (block >= launch.first && block < launch.first + launch.blocks) return;
    const work = this.workOf(block);
    if (
      work?.stream !== undefined &&
      launch.stream !== undefined &&
      !this.order.knows(launch.stream, work.stream, work.sequence)
    ) {
      this.order.waited(launch.stream, work.stream, work.sequence);
    }
  }

  private tell(watch: BlockWatch): Knowledge {
    const told = watch.others.copy();
    told.add(watch.number, this.now);
    return told;
  }

  private acquire(
    watch: BlockWatch,
    thread: number,
    inBlock: number,
    elsewhere: Knowledge | undefined,
  ): void {
    let floor = inBlock;
    if (elsewhere !== undefined) {
      watch.others.join(elsewhere);
      floor = Math.max(floor, elsewhere.floor, elsewhere.blocks.get(watch.number) ?? 0);
    }
    if (floor > watch.threadFloor[thread]!) watch.threadFloor[thread] = floor;
  }

  /**
   * All threads of these blocks have arrived at the barrier of their cluster: the earlier accesses
   * of each are known to all.
   */
  meetCluster(blocks: readonly BlockWatch[]): void {
    for (const watch of blocks) {
      watch.floor = this.now;
      for (const other of blocks) if (other !== watch) watch.others.add(other.number, this.now);
    }
    this.now++;
  }

  fence(watch: BlockWatch, thread: number, blockOnly: boolean): void {
    this.acquire(
      watch,
      thread,
      watch.seen[thread]!,
      blockOnly ? undefined : watch.seenOthers[thread],
    );
    if (!blockOnly) watch.seenOthers[thread] = undefined;
    watch.fenced[thread] = this.now;
    if (!blockOnly) watch.released[thread] = this.tell(watch);
    this.now++;
  }
}

/** Returns the first of two conflicts, unless only the other one is with a read. */
function moreSevere(first: Earlier | undefined, second: Earlier | undefined): Earlier | undefined {
  return first === undefined || (first.onlyWrites && second?.onlyWrites === false) ? second : first;
}

function record(
  page: Page,
  at: number,
  accessor: number,
  now: number,
  how: number,
  writes: boolean,
): void {
  const readers = at + READERS;
  if (writes) {
    for (let slot = readers; slot < at + FIELDS; slot += SLOT) {
      if (
        page[slot + ACCESSOR] === accessor &&
        page[slot + WHEN] === now &&
        (page[slot + HOW]! & how & 15) !== 0
      )
        how |= HAS_READ;
    }
    // Earlier accesses to the same bytes are ordered before this one, or have been reported.
    for (let slot = at; slot < at + FIELDS; slot += SLOT)
      if ((page[slot + HOW]! & ~how & 15) === 0) page[slot + WHEN] = 0;
    keepOther(page, at, accessor, now, how);
    note(page, at, accessor, now, how);
    return;
  }
  keepOther(page, readers, accessor, now, how);
  note(page, readers, accessor, now, how);
}

/** Makes room in the first of two slots, unless its access will be part of the new one. */
function keepOther(page: Page, slot: number, accessor: number, now: number, how: number): void {
  const when = page[slot + WHEN]!;
  if (
    when === 0 ||
    (page[slot + ACCESSOR] === accessor && (when === now || (page[slot + HOW]! & ~how & 15) === 0))
  )
    return;
  page[slot + SLOT + ACCESSOR] = page[slot + ACCESSOR]!;
  page[slot + SLOT + WHEN] = page[slot + WHEN]!;
  page[slot + SLOT + HOW] = page[slot + HOW]!;
}

/** Combines the bytes of two accesses of the same thread at the same time. */
function note(page: Page, slot: number, accessor: number, now: number, how: number): void {
  if (page[slot + WHEN] === now && page[slot + ACCESSOR] === accessor)
    how |= page[slot + HOW]! & 15;
  page[slot + ACCESSOR] = accessor;
  page[slot + WHEN] = now;
  page[slot + HOW] = how;
}
