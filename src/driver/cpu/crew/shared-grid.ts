/**
 * A grid that is open to the crew, on the owner's side: the job that describes it, the slots that
 * its blocks run in, and the owner's own share of the work.
 */
import { STATUS } from '../../../ptx/index.js';
import type { BlockSlot, SlotLayout } from '../kernels/block-slots.js';
import type { KernelCode } from '../kernels/kernel-code.js';
import type { KernelFunction } from '../kernels/kernel-function.js';
import { STEP } from '../streams/operation.js';
import type { Slice } from '../streams/operation.js';
import { ENTRY, HELD, JOB, TRAPPED, entryAt, jobAt } from './control.js';
import type { Crew } from './crew.js';
import { PAUSE } from './worksite.js';
import type { Stay } from './worksite.js';

/** The progress of a grid, and the way to get room for more blocks of it. */
export interface GridState {
  readonly func: KernelFunction;
  readonly code: KernelCode;
  readonly gridX: number;
  readonly gridY: number;
  readonly total: number;
  readonly started: number;
  readonly finished: number;
  readonly layout: SlotLayout;
  /** Whether a slot contains a team of blocks of this layout, and whether the team is a cluster. */
  readonly inTeams: boolean;
  readonly inClusters: boolean;
  readonly blockLayout: SlotLayout;
  /** How long one block takes, in milliseconds; 0 where it is unknown. */
  readonly blockMs: number;
  /** Slots of blocks that have begun. */
  readonly begun: readonly BlockSlot[];
  /** Returns a slot that a block can be put into; undefined where memory is short. */
  newSlot(): BlockSlot | undefined;
}

/** The first fault of a grid: its place, and the kernel's status or WebAssembly's message. */
export interface SharedFault {
  readonly slot: BlockSlot;
  readonly status: number;
  readonly trap: Error | undefined;
}

/** The block counter is a word. */
const MOST_BLOCKS = 2 ** 31 - 1;
const BLOCKS_PER_STEP = 64;
/**
 * The longest time that one call runs, in milliseconds, the largest number of its blocks, and its
 * shortest time, below which taking the next blocks would cost as much.
 */
const MOST_MS = 0.05;
const MOST_PER_CALL = 1024;
const LEAST_MS = 0.005;
/** A call takes one part of the remaining blocks, of this many for each thread. */
const PARTS_PER_THREAD = 2;
/** A grid with this many milliseconds of work is opened to members at once. */
const WORTH_OPENING_MS = 0.25;

/** Whether a grid of this much work, in milliseconds, is opened as it begins. */
export const opensAtOnce = (work: number): boolean => work >= WORTH_OPENING_MS;

const blocksIn = (milliseconds: number, blockMs: number): number =>
  Math.max(1, Math.min(MOST_PER_CALL, Math.floor(milliseconds / blockMs)));

export class SharedGrid implements Stay {
  private readonly crew: Crew;
  private readonly state: GridState;
  private readonly job: number;
  private readonly slots = new Map<number, BlockSlot>();
  private readonly mostSlots: number;
  private blocks = 0;
  /** The owner's share: the number of blocks, and their milliseconds. */
  private done = 0;
  private doneMs = 0;
  private stride = 1;
  private untilLook = 1;
  private looked = 0;
  private slice: Slice | undefined = undefined;
  private trap: string | undefined = undefined;

  /**
   * Opens a grid to the crew; undefined where that is not possible now. `resident` is the number of
   * blocks that may run at once.
   */
  static open(crew: Crew, state: GridState, resident: number): SharedGrid | undefined {
    if (state.total > MOST_BLOCKS) return undefined;
    const job = crew.takeJob(state.begun.length);
    return job === undefined
      ? undefined
      : new SharedGrid(crew, state, job, Math.max(resident, state.begun.length) + crew.size);
  }

  private constructor(crew: Crew, state: GridState, job: number, mostSlots: number) {
    this.crew = crew;
    this.state = state;
    this.job = job;
    this.mostSlots = mostSlots;
    const { words, site } = crew;
    const { code, layout, blockLayout } = state;
    const at = jobAt(job);
    words[at + JOB.next] = state.started;
    words[at + JOB.total] = state.total;
    words[at + JOB.finished] = state.finished;
    words[at + JOB.module] = crew.moduleNumber(code.module);
    words[at + JOB.kernel] = code.index;
    words[at + JOB.most] = code.runsOn ? state.func.stride : 1;
    words[at + JOB.least] = 1;
    this.divide(state.blockMs);
    words[at + JOB.parts] = PARTS_PER_THREAD * (crew.size + 1);
    words[at + JOB.strip] =
      state.total > state.gridX ? Math.ceil(state.gridX / (crew.size + 1)) : state.gridX;
    words[at + JOB.gridX] = state.gridX;
    words[at + JOB.gridY] = state.gridY;
    words[at + JOB.scratch] = layout.scratch;
    words[at + JOB.scratchBytes] = layout.scratchBytes;
    words[at + JOB.shared] = blockLayout.shared;
    words[at + JOB.held] = state.inClusters ? HELD.cluster : state.inTeams ? HELD.team : HELD.block;
    words[at + JOB.blockScratch] = blockLayout.scratch;
    words[at + JOB.blockScratchBytes] = blockLayout.scratchBytes;
    for (const slot of state.begun) {
      const entry = this.enter(slot);
      words[entryAt(entry) + ENTRY.busy] = 1;
      site.enqueue(at, entry);
    }
    const wanted = Math.min(crew.size + 1 - state.begun.length, state.total - state.started);
    for (let i = 0; i < wanted && this.addSpare(); i++);
    crew.attend();
    crew.openJob(job);
  }

  /** Sets how many blocks a call runs, as far as the duration of one is known. */
  private divide(blockMs: number): void {
    if (blockMs === 0 || !this.state.code.runsOn) return;
    const { words } = this.crew;
    const at = jobAt(this.job);
    Atomics.store(words, at + JOB.most, blocksIn(MOST_MS, blockMs));
    Atomics.store(words, at + JOB.least, blocksIn(LEAST_MS, blockMs));
  }

  private enter(slot: BlockSlot): number {
    const entry = this.crew.takeEntry(slot);
    if (entry !== 0) this.slots.set(entry, slot);
    return entry;
  }

  private addSpare(): boolean {
    const slot = this.slots.size < this.mostSlots ? this.state.newSlot() : undefined;
    if (slot === undefined) return false;
    const entry = this.enter(slot);
    if (entry === 0) {
      this.state.func.context.slots.giveBack(slot);
      return false;
    }
    this.crew.site.giveBack(jobAt(this.job), entry);
    return true;
  }

  /** The owner's turn: one step of the grid, or the news that members run what is left of it. */
  step(slice: Slice): number {
    const { crew, job } = this;
    const { words, site } = crew;
    const at = jobAt(job);
    crew.attend();
    if (Atomics.load(words, at + JOB.hungry) !== 0) {
      Atomics.store(words, at + JOB.hungry, 0);
      if (this.addSpare()) crew.wakeMembers();
    }
    this.slice = slice;
    this.looked = 0;
    this.untilLook = this.stride;
    const before = site.ended;
    const begun = slice.now();
    const outcome = site.work(job, this.state.code.run, this, (message) => (this.trap = message));
    if (site.ended !== before) {
      this.done += site.ended - before;
      this.doneMs += slice.now() - begun;
      // Blocks of another grid of the function may have had less work.
      this.divide(this.blockMs);
    }
    slice.crew = crew;
    const fault = Atomics.load(words, at + JOB.fault);
    // While it is being recorded there is nothing to do.
    if (fault !== 0) return fault === 2 ? STEP.fault : STEP.blocked;
    if (Atomics.load(words, at + JOB.finished) === this.state.total) {
      crew.readAllTexts();
      return STEP.done;
    }
    switch (outcome) {
      case PAUSE.idle:
        return STEP.blocked;
      case PAUSE.yielded:
        this.blocks = 0;
        return STEP.more;
      default: {
        const whole = this.blocks >= BLOCKS_PER_STEP;
        if (whole) this.blocks = 0;
        return whole ? STEP.more : STEP.paused;
      }
    }
  }

  leave(): boolean {
    return true;
  }

  over(): boolean {
    if (++this.blocks >= BLOCKS_PER_STEP) return true;
    if (--this.untilLook > 0) return false;
    const { slice } = this;
    const now = slice!.now();
    // Where blocks are shorter than the check itself, it is made less often.
    if (this.looked !== 0) {
      if (now - this.looked < 0.01) this.stride = Math.min(this.stride * 2, BLOCKS_PER_STEP);
      else if (now - this.looked > 0.05) this.stride = Math.max(this.stride >> 1, 1);
    }
    this.looked = now;
    this.untilLook = this.stride;
    return now >= slice!.deadline;
  }

  /** The number of blocks that have begun; {@link finished} is that of blocks that have ended. */
  get started(): number {
    return Math.min(Atomics.load(this.crew.words, jobAt(this.job) + JOB.next), this.state.total);
  }

  get finished(): number {
    return Atomics.load(this.crew.words, jobAt(this.job) + JOB.finished);
  }

  /** How long a block took the owner, in milliseconds; 0 where it has run none. */
  get blockMs(): number {
    return this.done === 0 ? 0 : this.doneMs / this.done;
  }

  /** The slots of blocks that have begun and not ended, each with its recorded state. */
  *residents(): Iterable<{ slot: BlockSlot; watch: Int32Array; at: number }> {
    const { words } = this.crew;
    for (const [entry, slot] of this.slots) {
      if (words[entryAt(entry) + ENTRY.busy] === 1)
        yield { slot, watch: words, at: entryAt(entry) + ENTRY.watch };
    }
  }

  /** From now on each block is checked once when it yields. */
  beginRound(round: number): void {
    Atomics.store(this.crew.words, jobAt(this.job) + JOB.round, round);
  }

  /** The fault, after a step that returned `fault`. */
  get fault(): SharedFault {
    const { crew } = this;
    const { words } = crew;
    const at = jobAt(this.job);
    const status = words[at + JOB.faultStatus]!;
    const member = words[at + JOB.faultMember]!;
    const message = crew.reportOf(member);
    return {
      slot: this.slots.get(words[at + JOB.faultEntry]!)!,
      status: status === TRAPPED ? STATUS.fault : status,
      trap: status === TRAPPED ? new Error(this.trap ?? message) : undefined,
    };
  }

  /** Takes everything back. The grid has ended. */
  close(): void {
    const { slots } = this.state.func.context;
    this.crew.closeJob(this.job, this.slots.keys());
    for (const slot of this.slots.values()) slots.giveBack(slot);
  }
}
