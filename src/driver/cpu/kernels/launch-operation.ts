/**
 * A grid that runs. Its blocks run one after the other in increasing order, each until it ends or
 * has used up its fuel.
 *
 * A block that keeps using up its fuel may be waiting for another one: after a while the next block
 * is started beside it and the two take turns, up to {@link MAX_RESIDENT}, as many small blocks as
 * a multiprocessor holds twice over. A cooperative launch starts all its blocks at once. How far a
 * step goes is counted in blocks and fuel, never in time.
 *
 * A grid of clusters is one of blocks to all of this, each of which is a cluster: see `cluster.ts`.
 * So is one of teams of blocks that the kernel's code runs side by side.
 *
 * Where the device has more threads, a grid that has run for some time is opened to them: see
 * `../crew/`.
 */
import { CTX, ORDER_SEED, STATUS, TEAM } from '../../../ptx/index.js';
import { Crew } from '../crew/crew.js';
import { SharedGrid, opensAtOnce } from '../crew/shared-grid.js';
import { FUEL, SHARED_FUEL, blocksToRun, stampClock } from '../crew/worksite.js';
import {
  beginCluster,
  blockAddresses,
  clusterWord,
  faultyBlock,
  hasEnded,
  layOutCluster,
  runClusters,
  teamOf,
} from './cluster.js';
import type { ClusterShape } from './cluster.js';
import { CUgraphExecUpdateResult, CUgraphNodeType } from '../../flags.js';
import { CUresult } from '../../../ground/result.js';
import { Operation, STEP } from '../streams/operation.js';
import type { Slice } from '../streams/operation.js';
import { writeBlockContext } from './block-context.js';
import type { BlockSlot, SlotLayout } from './block-slots.js';
import type { KernelCode } from './kernel-code.js';
import type { Schedule } from '../schedule.js';
import { summary } from '../check/summary.js';
import type { LaunchWatch } from './launch-watch.js';
import type { FailedAssertion } from './assertions.js';
import { describeAssertion, describeFault, describeStall, describeTrap } from './fault.js';
import type { KernelFunction } from './kernel-function.js';
import { StallWatch, WATCH, YIELDS_BEFORE_COMPANY, forget, noteClock, observe } from './stall.js';

/**
 * Loop back edges that one call of a kernel that is watched may take: it is slower, and a step
 * takes about as long.
 */
const WATCHED_FUEL = 1024;
/** Turns in an order that a seed decides are short: blocks interleave in many ways. */
const MOST_SEEDED_FUEL = 512;
const BLOCKS_PER_STEP = 64;
/** Blocks that one call of a kernel runs at most: some ten microseconds of the shortest. */
const MOST_BLOCKS_PER_CALL = 1024;
export const MAX_RESIDENT = 64;

export class LaunchOperation extends Operation {
  readonly nodeType = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL;
  func!: KernelFunction;
  readonly grid = new Int32Array(3);
  readonly block = new Int32Array(3);
  threads = 0;
  private dynamicShared = 0;
  /** Set while it runs on a device that is checked. */
  watch: LaunchWatch | undefined = undefined;
  params = new Int32Array(16);
  private cooperative = false;
  /** Undefined where no clusters were requested. */
  private cluster: ClusterShape | undefined = undefined;
  /** What a slot holds beside one block: a cluster, or blocks that run side by side. */
  private team: ClusterShape | undefined = undefined;
  /** The grid of what takes its turn: blocks, or teams of several. */
  private readonly turns = new Int32Array(3);

  /** What runs the blocks, and the memory that it needs. */
  private code!: KernelCode;
  /** The same for blocks one by one. */
  private apart!: KernelCode;
  private layout!: SlotLayout;
  /** Where in a slot its blocks lie, of which there may be several. */
  private blockLayout!: SlotLayout;
  private firstBlock = 0;
  private stride = 0;
  private total = 0;
  private started = 0;
  private finished = 0;
  private running = false;
  /** Index of the next block to start. */
  private nextX = 0;
  private nextY = 0;
  private nextZ = 0;
  private current: BlockSlot | undefined = undefined;
  /** Blocks that have begun and wait for their turn, longest first. */
  private readonly resident: BlockSlot[] = [];
  barrier: BlockSlot | undefined = undefined;
  gridId = 0;
  /** Decides the order of blocks and warps, and how far each turn goes, where a seed does. */
  private schedule: Schedule | undefined = undefined;
  private order: ((position: number) => number) | undefined = undefined;
  private blocksThisStep = 0;
  /** When the grid began, in milliseconds. */
  private begun = 0;
  /** When its clock was looked at last; 0 where it has not been. */
  private looked = 0;
  private finishedAtLook = 0;
  /**
   * The expected duration in milliseconds of one thread, from the last grid of its function; 0
   * where it is not known.
   */
  private expected = 0;
  private steps = 0;
  private readonly stall = new StallWatch();
  /** The grid once other threads may work on it. */
  private shared: SharedGrid | undefined = undefined;

  private static readonly spare: LaunchOperation[] = [];

  static take(
    func: KernelFunction,
    gx: number,
    gy: number,
    gz: number,
    bx: number,
    by: number,
    bz: number,
    dynamicShared: number,
    cooperative: boolean,
    cluster: ClusterShape | undefined,
    params: Int32Array,
    paramStart: number,
  ): LaunchOperation {
    const op = LaunchOperation.spare.pop() ?? new LaunchOperation();
    const { grid, block } = op;
    op.func = func;
    grid[0] = gx;
    grid[1] = gy;
    grid[2] = gz;
    block[0] = bx;
    block[1] = by;
    block[2] = bz;
    op.threads = bx * by * bz;
    op.cluster = cluster;
    op.dynamicShared = dynamicShared;
    op.cooperative = cooperative;
    const words = func.paramWords;
    if (op.params.length < words) op.params = new Int32Array(words);
    for (let i = 0; i < words; i++) op.params[i] = params[paramStart + i]!;
    return op;
  }

  step(slice: Slice): number {
    if (this.shared !== undefined) return this.stepShared(this.shared, slice);
    const { func } = this;
    const { context } = func;
    const fresh = !this.running;
    if (fresh && !this.begin(slice)) {
      context.raise(
        CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        `${func.name}: no device memory is left for the ${this.cooperative ? this.total : 1} ` +
          'blocks that must run at once',
      );
      return STEP.fault;
    }
    const time = fresh ? slice.time : slice.now();
    if (!fresh || opensAtOnce(this.expected) || context.machine.services.crew?.eager === true) {
      const shared = this.share(fresh ? this.expected : time - this.begun);
      if (shared !== undefined) return this.stepShared(shared, slice);
    }
    if (!fresh && (this.hangs(time, slice) || this.failsEarly())) return STEP.fault;
    if (this.watch !== undefined && context.checker!.isOverdue(this.watch, time)) {
      const reports = context.checker!.fail(this.watch);
      context.raise(CUresult.CUDA_ERROR_LAUNCH_FAILED, summary(reports), reports);
      return STEP.fault;
    }
    this.stamp(this.current!, time);
    const { run, runsOn } = this.code;
    // If a grid runs alone, its step does not end after BLOCKS_PER_STEP blocks.
    const alone =
      this.schedule === undefined &&
      this.watch === undefined &&
      context.machine.scheduler.streams.length < 2;
    let untilLook = func.stride;
    for (let looked = 0; ;) {
      const slot = this.current!;
      const blocks = blocksToRun(context.memory.words, slot.address);
      let status: number;
      try {
        status = run(slot.address, this.fuel());
      } catch (trap) {
        const { result, detail, reports } = describeTrap(this, slot, trap);
        context.raise(result, detail, reports);
        return STEP.fault;
      }
      if (status === STATUS.done) {
        if (this.watch !== undefined && !this.inTeams) context.checker!.endBlock(slot.address);
        this.finished += blocks;
        if (this.finished === this.total) {
          if (this.failsAtEnd()) return STEP.fault;
          if (func.hasRun && this.looked !== 0) {
            Crew.ran(context, this.looked - this.begun, this.looked);
            this.remember((this.looked - this.begun) / this.finishedAtLook);
          }
          this.end();
          return STEP.done;
        }
        this.blocksThisStep += blocks;
        if (this.started < this.total) {
          slot.yields = 0;
          this.prepareBlock(
            slot,
            !runsOn
              ? 1
              : alone
                ? func.stride
                : Math.min(func.stride, BLOCKS_PER_STEP - (this.blocksThisStep % BLOCKS_PER_STEP)),
          );
          if (this.resident.length > 0) this.turnOver(slot);
        } else {
          context.slots.giveBack(slot);
          this.current = this.resident.shift();
        }
      } else if (status === STATUS.fault || status === STATUS.stuck) {
        const { result, detail, reports } = describeFault(this, slot, status);
        context.raise(result, detail, reports);
        return STEP.fault;
      } else {
        // Of several blocks some may have ended.
        this.finished += blocks - blocksToRun(context.memory.words, slot.address);
        this.yieldBlock(slot);
        this.blocksThisStep = 0;
        return STEP.more;
      }
      if (this.blocksThisStep >= BLOCKS_PER_STEP) {
        this.blocksThisStep = 0;
        if (!alone) return STEP.more;
      }
      untilLook -= blocks;
      if (untilLook <= 0) {
        const now = slice.now();
        this.looked = now;
        this.finishedAtLook = this.finished;
        // For blocks shorter than the look itself, the clock is not read after each.
        if (looked !== 0) {
          if (now - looked < 0.08) func.stride = Math.min(func.stride * 2, MOST_BLOCKS_PER_CALL);
          else if (now - looked > 0.2) func.stride = Math.max(func.stride >> 1, 1);
        }
        if (now >= slice.deadline) return STEP.paused;
        // Idle threads need not wait for the end of the step.
        if ((fresh || alone) && Crew.standsBy(context, now - this.begun)) {
          this.blocksThisStep = 0;
          return STEP.more;
        }
        looked = now;
        untilLook = func.stride;
      }
    }
  }

  /** Opens the grid to other threads if it is time and there is something for them. */
  private share(milliseconds: number): SharedGrid | undefined {
    const { func, turns, total } = this;
    const { context } = func;
    // The last block of the only stream with work is best left where it is.
    if (total - this.finished < 2 && context.machine.scheduler.streams.length < 2) return undefined;
    const crew = Crew.for(context, milliseconds, ++this.steps);
    if (crew === undefined) return undefined;
    this.shared = SharedGrid.open(
      crew,
      {
        func,
        code: this.code,
        gridX: turns[0]!,
        gridY: turns[1]!,
        total,
        started: this.started,
        finished: this.finished,
        layout: this.layout,
        blockLayout: this.blockLayout,
        blockMs: this.expected / total,
        inTeams: this.inTeams,
        inClusters: this.inTeams && this.cluster !== undefined,
        begun: [this.current!, ...this.resident],
        newSlot: () => {
          const slot = this.slot(this.layout.bytes);
          if (slot !== undefined) this.prepareSlot(slot);
          return slot;
        },
      },
      MAX_RESIDENT,
    );
    if (this.shared !== undefined) {
      this.shared.beginRound(this.stall.round);
      this.current = undefined;
      this.resident.length = 0;
    }
    return this.shared;
  }

  /** Raises a fault if no block of the grid will get any further. */
  private hangs(now: number, slice: Slice): boolean {
    const { shared, stall } = this;
    const { context } = this.func;
    const limit = context.machine.services.stallLimit;
    const blocks = (): { slot: BlockSlot; watch: Int32Array; at: number }[] => [
      ...(shared?.residents() ??
        [this.current!, ...this.resident].map((slot) => ({ slot, watch: slot.watch, at: 0 }))),
    ];
    const news = stall.look(
      now,
      limit,
      shared?.started ?? this.started,
      shared?.finished ?? this.finished,
      (round) => blocks().every(({ watch, at }) => watch[at + WATCH.round] === round),
    );
    if (news === 'open') return false;
    shared?.beginRound(stall.round);
    if (news === 'moved') {
      slice.moved = now;
      return false;
    }
    const residents = blocks();
    const complete =
      residents.length >= MAX_RESIDENT || (shared?.started ?? this.started) === this.total;
    if (!residents.every(({ watch, at }) => stall.isStill(watch, at, now, limit, complete)))
      slice.moved = now;
    if (now - slice.moved < limit) return false;
    const { result, detail, reports } = describeStall(
      this,
      residents.flatMap(({ slot }) => this.waitingBlocks(slot)),
      this.total - (shared?.started ?? this.started),
      limit,
    );
    context.raise(result, detail, reports);
    return true;
  }

  get failedAssertion(): FailedAssertion | undefined {
    return this.func.context.failedAssertions.of(this.gridId);
  }

  /** Raises an assertion that failed in the grid, all blocks of which have ended. */
  private failsAtEnd(): boolean {
    const failed = describeAssertion(this);
    if (failed === undefined) return false;
    this.func.context.raise(failed.result, failed.detail);
    return true;
  }

  private failsEarly(): boolean {
    return this.func.context.failedAssertions.endsEarly(this.gridId) && this.failsAtEnd();
  }

  private stepShared(shared: SharedGrid, slice: Slice): number {
    const { func } = this;
    const { context } = func;
    const now = slice.now();
    if (this.hangs(now, slice) || this.failsEarly()) return STEP.fault;
    const outcome = shared.step(slice);
    if (outcome === STEP.done) {
      if (this.failsAtEnd()) return STEP.fault;
      if (func.hasRun) {
        Crew.ran(context, now - this.begun, now);
        if (shared.blockMs > 0) this.remember(shared.blockMs);
      }
      shared.close();
      this.end();
    } else if (outcome === STEP.fault) {
      const { slot, status, trap } = shared.fault;
      const { result, detail } =
        trap === undefined ? describeFault(this, slot, status) : describeTrap(this, slot, trap);
      context.raise(result, detail);
    }
    return outcome;
  }

  /**
   * What one block (of those that take turns) took is what the next grid of the function is
   * expected to take, for each of its threads.
   */
  private remember(milliseconds: number): void {
    const { func, grid } = this;
    const threadMs = (milliseconds * this.total) / (this.threads * grid[0]! * grid[1]! * grid[2]!);
    // Once it may have waited for a processor.
    func.threadMs = func.threadMs === 0 ? threadMs : Math.min(threadMs, 2 * func.threadMs);
  }

  private begin(slice: Slice): boolean {
    const { func, grid, cluster } = this;
    const { context } = func;
    this.code = this.apart = func.codes.choose(
      grid[0]! * grid[1]! * grid[2]! * this.threads,
      this.block,
    );
    this.layout = this.blockLayout = func.slotLayout(this.code, this.threads, this.dynamicShared);
    this.schedule = context.machine.schedule?.of(context.launches + 1);
    this.team =
      cluster === undefined ? this.sideBySide() : cluster.blocks > 1 ? cluster : undefined;
    if (this.team !== undefined) this.layOutTeams(this.team);
    this.divide();
    const { total } = this;
    this.started = this.finished = this.blocksThisStep = 0;
    this.nextX = this.nextY = this.nextZ = 0;
    this.begun = slice.time;
    this.looked = 0;
    this.expected = func.threadMs * this.threads * grid[0]! * grid[1]! * grid[2]!;
    this.steps = 0;
    this.stall.begin(slice.time);
    this.gridId = ++context.launches;
    this.order = this.schedule?.order(total);
    this.watch = context.checker?.beginLaunch(this, context.machine.scheduler.current);
    if (this.cooperative) {
      this.barrier = this.slot(256);
      if (this.barrier === undefined) return false;
      context.memory.fill(this.barrier.address, 0, 256);
      context.checker?.workspace(this.barrier.address, 256);
    }
    const wanted = this.cooperative ? total : 1;
    for (let i = 0; i < wanted; i++) {
      const slot = this.slot(this.layout.bytes) ?? this.slotForOne();
      if (slot === undefined) return false;
      this.prepareSlot(slot);
      this.prepareBlock(slot, 1);
      if (i === 0) this.current = slot;
      else this.resident.push(slot);
    }
    this.running = true;
    return true;
  }

  /** Turns are those of blocks, or of teams. */
  private divide(): void {
    const { grid, turns, team } = this;
    turns[0] = grid[0]! / (team?.x ?? 1);
    turns[1] = grid[1]! / (team?.y ?? 1);
    turns[2] = grid[2]! / (team?.z ?? 1);
    this.total = turns[0] * turns[1] * turns[2];
  }

  /** The blocks that one call runs side by side, if the kernel's code can and it pays. */
  private sideBySide(): ClusterShape | undefined {
    const {
      code,
      cooperative,
      schedule,
      func: { context },
    } = this;
    if (
      code.sideBySide === undefined ||
      cooperative ||
      schedule !== undefined ||
      context.checker !== undefined
    )
      return undefined;
    const { workers = 1 } = context.machine.services.crew ?? {};
    return teamOf(this.grid, this.layout.bytes, workers);
  }

  /** There is no room for blocks side by side: perhaps for one. */
  private slotForOne(): BlockSlot | undefined {
    if (this.team === undefined || this.cluster !== undefined) return undefined;
    this.team = undefined;
    this.code = this.apart;
    this.layout = this.blockLayout;
    this.divide();
    return this.slot(this.layout.bytes);
  }

  private layOutTeams(team: ClusterShape): void {
    const { func, code, blockLayout } = this;
    const { context } = func;
    const layout = layOutCluster(blockLayout, func.kernel.sharedAlign, team);
    this.layout = layout;
    this.firstBlock = layout.first;
    this.stride = layout.stride;
    if (this.cluster === undefined) {
      this.code = { ...code, ...code.sideBySide, runsOn: false };
      return;
    }
    const ended =
      context.checker === undefined
        ? undefined
        : (address: number): void => {
            context.checker!.endBlock(address);
          };
    this.code = {
      ...code,
      runsOn: false,
      run: runClusters(code.run, () => context.memory.words, ended),
    };
  }

  /** Whether a slot holds several blocks. */
  private get inTeams(): boolean {
    return this.team !== undefined;
  }

  /** Address of the block in the slot that has met a fault. */
  faultyBlock(slot: BlockSlot): number {
    return this.inTeams ? faultyBlock(this.func.context.memory.words, slot.address) : slot.address;
  }

  /** Addresses of the slot's blocks that have not ended. */
  private waitingBlocks({ address }: BlockSlot): number[] {
    const { words } = this.func.context.memory;
    return this.inTeams
      ? [...blockAddresses(words, address)].filter((_, rank) => !hasEnded(words, address, rank))
      : [address];
  }

  private slot(bytes: number): BlockSlot | undefined {
    const { context } = this.func;
    return (
      context.slots.take(bytes) ?? (context.slots.trim() ? context.slots.take(bytes) : undefined)
    );
  }

  /** What is the same for all blocks that will run in the slot. */
  private prepareSlot(slot: BlockSlot): void {
    const { cluster, team, stride } = this;
    const { address } = slot;
    const { words } = this.func.context.memory;
    const seen = cluster === undefined ? 0 : clusterWord(cluster);
    slot.yields = 0;
    if (team === undefined) {
      writeBlockContext(words, address, this.blockLayout, this, seen, 0, 0);
      return;
    }
    const first = this.firstBlock;
    for (let rank = 0; rank < team.blocks; rank++)
      writeBlockContext(
        words,
        address + first + rank * stride,
        this.blockLayout,
        this,
        seen,
        cluster === undefined ? 0 : rank,
        cluster === undefined ? 0 : stride,
      );
    const at = address >>> 2;
    words[at + (CTX.cluster >> 2)] = clusterWord(team);
    words[at + (CTX.clusterStride >> 2)] = stride;
    words[at + (TEAM.blocks >> 2)] = team.blocks;
    words[at + (CTX.clockLo >> 2)] = words[at + (CTX.clockHi >> 2)] = 0;
    words[at + (TEAM.first >> 2)] = first;
    words[at + (TEAM.scratchBytes >> 2)] = this.blockLayout.scratchBytes;
  }

  /** Puts the next block of the grid into the slot, or as many in a row as may be. */
  private prepareBlock(slot: BlockSlot, most: number): void {
    const { turns, layout, func } = this;
    const { memory } = func.context;
    const words = memory.words;
    const at = slot.address >>> 2;
    if (this.order !== undefined) this.choose(this.order(this.started));
    words[at + (CTX.ctaid >> 2)] = this.nextX;
    words[at + (CTX.ctaid >> 2) + 1] = this.nextY;
    words[at + (CTX.ctaid >> 2) + 2] = this.nextZ;
    words[at + (CTX.memoryTop >> 2)] = memory.top;
    words[at + (CTX.faultKind >> 2)] = 0;
    // Rows begin at multiples of their length: where the grid is opened to other threads these,
    // too, take several at a time.
    const aligned = this.started === 0 ? most : Math.min(most, this.started & -this.started);
    const count = Math.min(aligned, turns[0]! - this.nextX);
    words[at + (CTX.further >> 2)] = count - 1;
    forget(slot.watch, 0);
    if (layout.scratchBytes > 0) memory.fill(slot.address + layout.scratch, 0, layout.scratchBytes);
    if (this.schedule !== undefined)
      words[(slot.address + layout.scratch + ORDER_SEED) >>> 2] = this.schedule.word();
    if (this.inTeams)
      beginCluster(words, slot.address, (address, byte, bytes) => {
        memory.fill(address, byte, bytes);
      });
    if (this.watch !== undefined)
      for (const address of this.waitingBlocks(slot))
        func.context.checker!.beginBlock(this.watch, address, this.blockLayout);
    this.started += count;
    this.nextX += count;
    if (this.nextX === turns[0]) {
      this.nextX = 0;
      if (++this.nextY === turns[1]) {
        this.nextY = 0;
        this.nextZ++;
      }
    }
  }

  private choose(index: number): void {
    const [gx = 1, gy = 1] = this.turns;
    this.nextX = index % gx;
    this.nextY = Math.floor(index / gx) % gy;
    this.nextZ = Math.floor(index / (gx * gy));
  }

  /** Bytes of a block's shared memory. */
  get sharedBytes(): number {
    return this.layout.sharedBytes;
  }

  private stamp(slot: BlockSlot, milliseconds: number): void {
    const { words } = this.func.context.memory;
    stampClock(words, slot.address, milliseconds);
    noteClock(slot.watch, 0, words, slot.address);
  }

  /** The block used up its fuel: whose turn is it now? */
  private yieldBlock(slot: BlockSlot): void {
    const { memory } = this.func.context;
    observe(slot.watch, 0, this.stall.round, memory.words, slot.address, {
      ...this.blockLayout,
      inTeams: this.inTeams,
    });
    if (
      ++slot.yields >= (this.schedule === undefined ? YIELDS_BEFORE_COMPANY : 1) &&
      this.started < this.total &&
      this.resident.length + 1 < MAX_RESIDENT
    ) {
      slot.yields = 0;
      const company = this.func.context.slots.take(this.layout.bytes);
      if (company !== undefined) {
        this.prepareSlot(company);
        this.prepareBlock(company, 1);
        this.resident.unshift(company);
      }
    }
    if (this.resident.length > 0) this.turnOver(slot);
    // Memory may have grown since the block began.
    memory.words[(this.current!.address + CTX.memoryTop) >>> 2] = memory.top;
  }

  private turnOver(slot: BlockSlot): void {
    this.resident.push(slot);
    const { schedule } = this;
    this.current =
      schedule === undefined
        ? this.resident.shift()
        : this.resident.splice(schedule.next(this.resident.length), 1)[0];
  }

  private fuel(): number {
    if (this.schedule !== undefined) return 1 + this.schedule.next(MOST_SEEDED_FUEL);
    if (this.watch !== undefined) return WATCHED_FUEL;
    return this.resident.length > 0 ? SHARED_FUEL : FUEL;
  }

  private end(): void {
    const { slots, checker } = this.func.context;
    if (this.watch !== undefined) checker!.endLaunch(this.watch);
    if (this.current !== undefined) slots.giveBack(this.current);
    if (this.barrier !== undefined) slots.giveBack(this.barrier);
    this.current = this.barrier = this.watch = this.shared = undefined;
    this.running = false;
    this.func.hasRun = true;
  }

  override restart(): void {
    this.running = false;
    this.current = this.barrier = this.watch = this.shared = undefined;
    this.resident.length = 0;
  }

  copy(): Operation {
    const { grid, block } = this;
    return LaunchOperation.take(
      this.func,
      grid[0]!,
      grid[1]!,
      grid[2]!,
      block[0]!,
      block[1]!,
      block[2]!,
      this.dynamicShared,
      this.cooperative,
      this.cluster,
      this.params,
      0,
    );
  }

  describe(): string {
    return (
      `${this.func.name} <<<(${this.grid.join()}), (${this.block.join()}), ` +
      `${this.dynamicShared}>>>`
    );
  }

  override replaces(old: Operation): number {
    return old instanceof LaunchOperation && old.func.context === this.func.context
      ? CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS
      : CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
  }

  override release(): void {
    // A spare operation must not keep a context, and with it gigabytes of memory, alive.
    this.func = undefined!;
    this.code = this.apart = undefined!;
    LaunchOperation.spare.push(this);
  }
}
