/**
 * Checks all accesses of kernels and of the host to one device's memory, and reports errors.
 * Kernels are compiled to report their accesses, fences and waits through the functions of
 * {@link Checker.imports}; operations report the host's work.
 */
import { ACCESS, CHECK_GAP, CTX, FAULT, IN_FLIGHT, RESERVED_SHARED } from '../../../ptx/index.js';
import type { CheckKind, CheckPlace, CheckReport } from '../../../ground/check-report.js';
import { CUresult } from '../../../ground/result.js';
import type { KernelChecker, KernelContext } from '../kernels/kernel-context.js';
import { hex } from '../failure.js';
import { blocksOf } from '../kernels/cluster.js';
import type { SlotLayout } from '../kernels/block-slots.js';
import type { CpuModule } from '../kernels/module.js';
import { waitGroups, waitsOf, waitsText } from '../kernels/waits.js';
import type { Allocation, MemoryWatch } from '../memory/device-memory.js';
import { FOREIGN_WORD } from '../memory/peer-memory.js';
import type { Stream } from '../streams/stream.js';
import { enterFrame, mayAccess, refusal } from './allowed-access.js';
import { BlockWatch, groupOf } from './block-watch.js';
import { HostWork } from './host-work.js';
import type { HostAction } from './host-work.js';
import { groupEvent, ownConflict, recordedAs } from './in-flight.js';
import { LaunchWatch } from '../kernels/launch-watch.js';
import type { WatchedLaunch } from '../kernels/launch-watch.js';
import { MemoryMap } from './memory-map.js';
import { MOST_BLOCKS, RaceCheck } from './race-check.js';
import type { Earlier, RacingStore } from './race-check.js';
import { ReportWriter, actionOf, faultText, freeText, keyOf, raceText, racers } from './reports.js';
import { CheckStop } from './settings.js';
import type { CheckSettings } from './settings.js';
import { BYTE, Shadow } from './shadow.js';
import { StreamOrder } from '../streams/stream-order.js';
import { summary } from './summary.js';
import { SyncCheck } from './sync-check.js';

/** Distinct findings of one launch that are kept; more of the same place are counted. */
const MOST_REPORTS = 64;

/** An instruction whose address is one of shared memory; copies have others, too. */
const SHARED_ACCESS = /^(@!?\S+\s+)?(?!cp\.)\w[\w.:]*\.shared\b/;

/** Bytes of the widest plain access. */
const MOST_BYTES = 32;
/** A bit for each of them. */
const ALL_BYTES = -1;

/** Milliseconds that a kernel may go on after it has read unwritten memory: it may never end. */
const DOUBT = 2000;

export class Checker implements KernelChecker, MemoryWatch {
  readonly settings: CheckSettings;
  readonly order = new StreamOrder();
  readonly map: MemoryMap;
  private readonly context: KernelContext;
  private readonly shadow = new Shadow();
  private readonly races = new RaceCheck(this.order);
  private readonly sync: SyncCheck;
  private readonly reports: ReportWriter;
  private readonly blocks = new Map<number, BlockWatch>();
  private lastCtx = -1;
  private last: BlockWatch | undefined = undefined;
  /** By number of a load in its block: a bit for each of its bytes that was unwritten. */
  private readonly loaded: number[] = [];
  /** The same loads, where there are such bytes. */
  private readonly loads: { address: number; bytes: number; flags: number; line: number }[] = [];
  private racingStore: RacingStore | undefined = undefined;
  private readonly host: HostWork;
  /** The thread that calls a function of the host or of the run time, for its reports. */
  private caller: { watch: BlockWatch; thread: number; line: number } | undefined = undefined;
  /** The reports that end the context as soon as the running operation returns. */
  private failed: readonly CheckReport[] | undefined = undefined;

  constructor(context: KernelContext, settings: CheckSettings, seed: number | undefined) {
    this.context = context;
    this.settings = settings;
    this.reports = new ReportWriter(seed);
    this.map = new MemoryMap(context.memory);
    this.host = new HostWork(
      context.machine.scheduler,
      this.races,
      this.order,
      this.map,
      this.reports,
    );
    this.sync = new SyncCheck(this.races, settings.sync, (watch, kind, thread, line, message) => {
      this.found(
        watch.launch,
        this.reports.report(kind, message, {
          place: this.reports.place(watch, thread, line, 'wait'),
        }),
        false,
      );
    });
  }

  /** What code compiled with `check` imports. */
  imports(): Record<string, (...args: number[]) => unknown> {
    const { races, sync, settings } = this;
    return {
      check_access: (ctx = 0, thread = 0, address = 0, bytes = 0, flags = 0, line = 0) =>
        this.accesses(this.watch(ctx), thread, address >>> 0, bytes, flags, line) ? 1 : 0,
      check_load: (
        ctx = 0,
        thread = 0,
        address = 0,
        bytes = 0,
        flags = 0,
        line = 0,
        decisive = 0,
        slot = 0,
      ) => {
        const at = address >>> 0;
        if (slot >= 0) {
          this.loaded[slot] = settings.uninitialised ? this.shadow.unwritten(at, bytes) : 0;
          if (this.loaded[slot] !== 0) this.loads[slot] = { address: at, bytes, flags, line };
        }
        return this.access(this.watch(ctx), thread, at, bytes, flags, line, decisive) ? 1 : 0;
      },
      check_chosen: (ctx = 0, thread = 0, slot = 0, mask = 0) => {
        const unwritten = this.loaded[slot]! & mask;
        if (unwritten === 0) return;
        const { address, bytes, flags, line } = this.loads[slot]!;
        this.uninitialised(this.watch(ctx), thread, address, bytes, flags, line, unwritten);
      },
      check_stored: (address = 0, bytes = 0, slot = 0, from = 0) => {
        this.shadow.stored(address >>> 0, bytes, this.loaded[slot]! >>> from);
      },
      check_copied: (to = 0, from = 0, bytes = 0) => {
        if (settings.uninitialised) this.shadow.copied(to >>> 0, from >>> 0, bytes >>> 0);
      },
      check_fence: (ctx = 0, thread = 0, blockOnly = 0) => {
        if (settings.races) races.fence(this.watch(ctx), thread, blockOnly === 1);
      },
      check_arrive: (ctx = 0, thread = 0, kind = 0, a = 0, b = 0, line = 0) => {
        sync.arrive(this.watch(ctx), thread, kind, a, b, line);
      },
      check_released: (ctx = 0, first = 0, end = 0) => {
        sync.released(this.watch(ctx), first, end, this.context.memory.words);
      },
      check_cluster: (ctx = 0) => {
        races.meetCluster(this.clusterOf(ctx));
      },
      check_frame: (ctx = 0, _thread = 0, address = 0, number = 0) => {
        enterFrame(this.watch(ctx), this.shadow, address >>> 0, number);
      },
      check_caller: (ctx = 0, thread = 0, line = 0) => {
        this.caller = { watch: this.watch(ctx), thread, line };
      },
      check_group: (ctx = 0, thread = 0, operations = 0, event = 0) => {
        if (settings.races) this.group(this.watch(ctx), thread, operations, event);
      },
      check_touch: (address = 0, bytes = 0, flags = 0) => {
        const { watch, thread, line } = this.caller!;
        if (this.accesses(watch, thread, address >>> 0, bytes, flags, line))
          throw new CheckStop(watch.launch.fatal!.message);
      },
    };
  }

  private watch(ctx: number): BlockWatch {
    // The code goes on: a store that it has reported before has been carried out.
    if (this.racingStore !== undefined) this.settleStore();
    if (ctx !== this.lastCtx) {
      this.lastCtx = ctx;
      this.last = this.blocks.get(ctx >>> 0)!;
    }
    return this.last!;
  }

  /** The blocks of a block's cluster that have not ended. */
  private clusterOf(ctx: number): BlockWatch[] {
    const { words } = this.context.memory;
    const count = blocksOf(words, ctx);
    const stride = words[(ctx + CTX.clusterStride) >>> 2]!;
    const first = (ctx >>> 0) - words[(ctx + CTX.clusterRank) >>> 2]! * stride;
    return Array.from({ length: count }, (_, rank) =>
      this.blocks.get(first + rank * stride),
    ).filter((watch) => watch !== undefined);
  }

  // Launches

  beginLaunch(operation: WatchedLaunch, stream: Stream | undefined): LaunchWatch | undefined {
    const { check } = operation.func.kernel;
    if (check === undefined) return undefined;
    if (stream !== undefined) this.order.begins(stream);
    const [x = 1, y = 1, z = 1] = operation.grid;
    const launch = new LaunchWatch(operation, check, stream, this.races.number(x * y * z));
    this.races.begin(launch);
    return launch;
  }

  /**
   * A block begins at the address of its context: nothing in its shared memory and frames has been
   * written.
   */
  beginBlock(launch: LaunchWatch, address: number, layout: SlotLayout): void {
    const { shadow } = this;
    const { check, threads } = launch;
    const [gx, gy] = launch.grid;
    const { words } = this.context.memory;
    const at = (address + CTX.ctaid) >>> 2;
    const index = [words[at]!, words[at + 1]!, words[at + 2]!] as const;
    const number = launch.first + index[0] + gx * (index[1] + gy * index[2]);
    const shared = address + layout.shared;
    const frames = check.frames(address + layout.scratch, threads);
    const watch = new BlockWatch(launch, address, number, index, shared, frames);
    this.blocks.set(address, watch);
    this.lastCtx = -1;
    const end = address + layout.bytes;
    shadow.set(address, layout.bytes, 0);
    this.races.forget(shared, end - shared);
    shadow.set(
      address + layout.params,
      launch.func.kernel.paramBytes,
      BYTE.live | BYTE.written | BYTE.readOnly | BYTE.param,
    );
    const own = BYTE.live | BYTE.shared;
    for (const { name, offset, size } of check.shared) {
      // Cooperative groups of several warps clear a bit in each word of theirs that the system
      // gives them.
      shadow.set(shared + offset, size, name === RESERVED_SHARED.name ? own | BYTE.written : own);
    }
    if (layout.sharedBytes > check.dynamicShared)
      shadow.set(shared + check.dynamicShared, layout.sharedBytes - check.dynamicShared, own);
    for (let thread = 0; thread < threads && check.frame.length > 0; thread++) {
      for (const { offset, size } of check.frame)
        shadow.set(frames + thread * check.frameBytes + offset, size, BYTE.live | BYTE.local);
    }
  }

  /** Words of the barrier of a cooperative launch's blocks. */
  workspace(address: number, bytes: number): void {
    this.shadow.set(address, bytes, BYTE.live | BYTE.written);
    this.races.forget(address, bytes);
  }

  endBlock(address: number): void {
    this.settleStore();
    this.blocks.delete(address);
    this.lastCtx = -1;
  }

  /** Whether the launch is to end: it has gone on for {@link DOUBT} after an unwritten read. */
  isOverdue(launch: LaunchWatch, now: number): boolean {
    return (
      launch.doubtful !== undefined && now - launch.doubtful > DOUBT && !this.settings.keepGoing
    );
  }

  endLaunch(launch: LaunchWatch): void {
    this.settleStore();
    this.races.end();
    const reports = this.tell(launch);
    if (reports.length > 0 && !this.settings.keepGoing) this.failed = reports;
  }

  /** What the kernel's fault was about, where it is something that is checked. */
  describeFault(
    launch: LaunchWatch,
    ctx: number,
    kind: number,
    thread: number,
    line: number,
    exact: bigint,
  ): readonly CheckReport[] {
    const watch = this.blocks.get(ctx)!;
    if (kind === FAULT.divergentBarrier)
      launch.fatal = this.deadlock(
        watch,
        'every thread of the block waits for others that will not come',
      );
    else if (
      launch.fatal === undefined &&
      (kind === FAULT.outOfBounds || kind === FAULT.misaligned)
    ) {
      const address = Number(exact);
      const place = this.reports.place(watch, thread, line, 'access');
      const memory = SHARED_ACCESS.test(place.instruction ?? '')
        ? this.map.findShared(this.neighbour(watch, address), address)
        : this.map.find(watch, address);
      const [what, message] = faultText(kind, exact, memory);
      launch.fatal = this.reports.report(what, message, { place, address, memory });
    }
    return this.fail(launch);
  }

  /** No block of the grid can continue: the first of them calls this. */
  describeStall(
    launch: LaunchWatch,
    waiting: readonly number[],
    unstarted: number,
    milliseconds: number,
  ): readonly CheckReport[] {
    const others =
      `${waiting.length} ` +
      (waiting.length === 1 ? 'block waits' : 'blocks wait') +
      (unstarted > 0 ? `, ${unstarted} have not begun` : '');
    launch.fatal = this.deadlock(
      this.blocks.get(waiting[0]!)!,
      `no block of the grid has got any further for ${milliseconds / 1000} s: ${others}; in ` +
        'the first of them',
    );
    return this.fail(launch);
  }

  private deadlock(watch: BlockWatch, what: string): CheckReport {
    const { launch } = watch;
    const waiting = waitsOf(launch.func, watch.ctx);
    const first = waiting.find(({ exited, line }) => !exited && line > 0);
    const place = this.reports.place(watch, first?.threads[0] ?? 0, first?.line ?? 0, 'wait');
    const text = waitsText(waiting, (thread) => `thread (${launch.threadIndex(thread).join()})`);
    return this.reports.report('deadlock', `${what}: ${text}`, {
      place,
      waits: waitGroups(waiting),
    });
  }

  /** Ends what is watched of a launch that failed, or is to fail: what was found. */
  fail(launch: LaunchWatch): readonly CheckReport[] {
    this.settleStore();
    this.races.end();
    for (const [address, { launch: other }] of this.blocks)
      if (other === launch) this.blocks.delete(address);
    this.lastCtx = -1;
    if (launch.fatal !== undefined) launch.found.set('fatal', launch.fatal);
    return this.tell(launch);
  }

  /** Reports what was found. Returns what fails the launch. */
  private tell(launch: LaunchWatch): readonly CheckReport[] {
    // A read of unwritten memory may be a consequence of the other errors.
    const isDoubt = ({ kind }: CheckReport): number => (kind === 'uninitialised' ? 1 : 0);
    const reports = [...launch.found.values()].sort((a, b) => isDoubt(a) - isDoubt(b));
    for (const report of reports) this.context.machine.services.report(report);
    return reports.filter(({ kind }) => kind !== 'same-value' || this.settings.sameValue);
  }

  /** Ends the context for what was found since; called after every step of work. */
  stop(): boolean {
    const { failed } = this;
    if (failed === undefined) return false;
    this.failed = undefined;
    this.context.raise(CUresult.CUDA_ERROR_LAUNCH_FAILED, summary(failed), failed);
    return true;
  }

  /** The stream's first operation has ended. */
  completes(stream: Stream): void {
    const { meets } = stream.head!;
    if (meets === 'host') this.order.observed(stream, stream.completed + 1);
    else if (meets === 'any') this.order.waitedForValue(stream, this.context.streams);
  }

  // What kernels do

  /** As {@link access}, of as many bytes as there are: those of a bulk copy may cross pages. */
  private accesses(
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
  ): boolean {
    const decisive = (flags & ACCESS.copy) !== 0 ? 0 : ALL_BYTES;
    for (let done = 0; done < bytes; done += MOST_BYTES) {
      if (
        this.access(
          watch,
          thread,
          address + done,
          Math.min(MOST_BYTES, bytes - done),
          flags,
          line,
          decisive,
        )
      )
        return true;
    }
    return false;
  }

  /** `decisive`: a bit for each byte that is not only put elsewhere. */
  private access(
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
    decisive = ALL_BYTES,
  ): boolean {
    const { settings, shadow } = this;
    const number = address >>> 16;
    const states = shadow.page(number);
    const from = address & 65535;
    let all = 0xff;
    let any = 0;
    for (let i = from; i < from + bytes; i++) {
      all &= states[i]!;
      any |= states[i]!;
    }
    const reads = (flags & (ACCESS.read | ACCESS.atomic)) !== 0;
    const writes = (flags & (ACCESS.write | ACCESS.atomic)) !== 0;
    let stops = false;
    if (settings.memory && !mayAccess(watch, thread, address, flags, writes, all, any)) {
      stops = this.badAccess(watch, thread, address, bytes, flags, line, all, any);
      if (stops) return true;
    } else if (
      reads &&
      settings.uninitialised &&
      (all & BYTE.written) === 0 &&
      (all & BYTE.live) !== 0
    ) {
      const unwritten = this.shadow.unwritten(address, bytes) & decisive;
      stops =
        unwritten !== 0 &&
        this.uninitialised(watch, thread, address, bytes, flags, line, unwritten);
      if (stops) return true;
    }
    if (writes && (all & BYTE.written) === 0) {
      for (let i = from; i < from + bytes; i++)
        if ((states[i]! & BYTE.live) !== 0) states[i]! |= BYTE.written;
    }
    if (!settings.races) return false;
    const space = any & BYTE.spaceMask;
    if (
      space === BYTE.local ||
      space === BYTE.param ||
      (any & BYTE.readOnly) !== 0 ||
      watch.number >= MOST_BLOCKS
    )
      return false;
    const own = ownConflict(watch, thread, address, bytes, flags, line);
    const as = recordedAs(watch, thread, flags);
    const earlier = own ?? this.races.access(watch, thread, address, bytes, flags, line, as);
    if (earlier === undefined) return false;
    if (earlier.work === watch.launch && earlier.onlyWrites && (flags & ACCESS.store) !== 0) {
      const before = this.context.memory.bytes.slice(address, address + bytes);
      this.racingStore = { watch, thread, address, flags, line, earlier, before };
      return false;
    }
    this.race('race', watch, thread, address, bytes, flags, line, earlier);
    return false;
  }

  /** A thread has committed a group of asynchronous operations, or waited for some. */
  private group(watch: BlockWatch, thread: number, operations: number, event: number): void {
    for (const { address, bytes, flags, line } of groupEvent(watch, thread, operations, event)) {
      const as = recordedAs(watch, thread, flags);
      const earlier = this.races.access(watch, thread, address, bytes, flags, line, as);
      if (earlier) this.race('race', watch, thread, address, bytes, flags, line, earlier);
    }
    // From here on it is known what the group's products read.
    if (operations === IN_FLIGHT.product && event >= 0)
      watch.learn(thread, groupOf(thread, watch.threads), this.races.now);
  }

  /** The block of the cluster whose shared memory an address is in or next to. */
  private neighbour(watch: BlockWatch, address: number): BlockWatch {
    const { sharedBytes } = watch.launch;
    return (
      this.clusterOf(watch.ctx).find(
        ({ shared }) => address >= shared && address < shared + sharedBytes + CHECK_GAP,
      ) ?? watch
    );
  }

  private badAccess(
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
    all: number,
    any: number,
  ): boolean {
    const action = actionOf(flags);
    const memory = this.map.find(this.neighbour(watch, address), address, bytes);
    const place = this.reports.place(watch, thread, line, action);
    const what = `${action} of ${bytes} bytes at ${hex(address)}`;
    const freed = memory?.freed === true;
    const [kind, message] = refusal(watch, thread, address, what, flags, all, any, freed);
    return this.found(
      watch.launch,
      this.reports.report(kind, message, { place, address, bytes, memory }),
      true,
    );
  }

  private uninitialised(
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
    unwritten: number,
  ): boolean {
    // Another device's thread writes past all watching.
    if (
      this.context.memory.words[FOREIGN_WORD] !== 0 ||
      this.again(watch.launch, 'uninitialised', line)
    )
      return false;
    const at = address + 31 - Math.clz32(unwritten & -unwritten);
    const memory = this.map.find(this.neighbour(watch, at), at);
    const place = this.reports.place(watch, thread, line, actionOf(flags));
    const message =
      `${actionOf(flags)} of ${bytes} bytes at ${hex(address)} that were never ` +
      `written${at === address ? '' : `, from ${hex(at)} on`}`;
    // Another thread may write them too late: the race, which is found with that write, is the
    // better report.
    watch.launch.doubtful ??= this.context.machine.services.now();
    return this.found(
      watch.launch,
      this.reports.report('uninitialised', message, { place, address: at, bytes, memory }),
      false,
    );
  }

  /**
   * Two stores of the same value do no harm on any GPU there is, and compilers write some: Triton,
   * of values that several lanes hold.
   */
  private settleStore(): void {
    const store = this.racingStore;
    if (store === undefined) return;
    this.racingStore = undefined;
    const { watch, thread, address, flags, line, earlier, before } = store;
    const { bytes } = this.context.memory;
    const isSame = before.every((byte, index) => bytes[address + index] === byte);
    this.race(
      isSame ? 'same-value' : 'race',
      watch,
      thread,
      address,
      before.length,
      flags,
      line,
      earlier,
    );
  }

  private race(
    kind: 'race' | 'same-value',
    watch: BlockWatch,
    thread: number,
    address: number,
    bytes: number,
    flags: number,
    line: number,
    earlier: Earlier,
  ): void {
    const other = this.reports.placeOf(earlier);
    if (this.again(watch.launch, kind, line, other)) return;
    const place = this.reports.place(watch, thread, line, actionOf(flags));
    const memory = this.map.find(this.neighbour(watch, address), address, bytes);
    const message = raceText(kind, racers(watch, thread, earlier), address);
    this.found(
      watch.launch,
      this.reports.report(kind, message, { place, other, address, bytes, memory }),
      false,
    );
  }

  /** Counts it, if the same was found before: thousands of threads may find it. */
  private again(launch: LaunchWatch, kind: CheckKind, line: number, other?: CheckPlace): boolean {
    const known = launch.found.get(keyOf(kind, line, other));
    if (known !== undefined) known.count++;
    return known !== undefined;
  }

  /** Notes it with the launch. Returns whether the launch ends here. */
  private found(launch: LaunchWatch, report: CheckReport, fatal: boolean): boolean {
    const key = keyOf(report.kind, report.place?.line, report.other);
    const known = launch.found.get(key);
    if (known !== undefined) known.count++;
    if (fatal && !this.settings.keepGoing) {
      launch.fatal = report;
      return true;
    }
    if (known === undefined && launch.found.size < MOST_REPORTS) launch.found.set(key, report);
    return false;
  }

  // What kernels allocate

  heapTaken(address: number, bytes: number): void {
    this.shadow.set(address, bytes, BYTE.live);
    this.races.forget(address, bytes);
    this.map.heapTaken(address, bytes);
  }

  /** Whether the block is one that can be freed; a report where it is not. */
  heapFreed(address: number): boolean {
    const block = this.map.heapFreed(address);
    if (block !== undefined) {
      this.shadow.set(address, block, BYTE.freed);
      return true;
    }
    const { caller } = this;
    if (caller === undefined || !this.settings.memory) return false;
    const memory = this.map.find(caller.watch, address);
    const [kind, message] = freeText(address, memory);
    const place = this.reports.place(caller.watch, caller.thread, caller.line, 'free');
    if (
      this.found(
        caller.watch.launch,
        this.reports.report(kind, message, { place, address, memory }),
        true,
      )
    )
      throw new CheckStop(message);
    return false;
  }

  // What the host allocates

  allocated(allocation: Allocation): void {
    const { address, bytes, kind } = allocation;
    if (kind === 'module') return;
    // Managed memory is written by the host past all watching; descriptions of textures are for the
    // compiler's code alone.
    this.shadow.set(
      address,
      bytes,
      kind === 'managed' ? BYTE.live | BYTE.written : kind === 'texture' ? 0 : BYTE.live,
    );
    this.races.forget(address, allocation.range.bytes);
    this.map.allocated(allocation);
  }

  placed(allocation: Allocation, module: CpuModule): void {
    for (const { offset, size, space } of module.compiled.variables) {
      this.shadow.set(
        module.dataAddress + offset,
        size,
        BYTE.live | BYTE.written | (space === 'const' ? BYTE.readOnly : 0),
      );
    }
    this.map.placed(allocation, module);
  }

  freed(allocation: Allocation): void {
    this.shadow.set(allocation.address, allocation.bytes, BYTE.freed);
    this.map.freed(allocation);
  }

  /** Reports what is still allocated. */
  leaks(): void {
    if (!this.settings.leaks) return;
    for (const memory of this.map.leaks()) {
      this.context.machine.services.report(
        this.reports.report(
          'leak',
          `${memory.bytes} bytes at ${hex(memory.address)} were never freed`,
          {
            memory,
            address: memory.address,
          },
        ),
      );
    }
  }

  // What the host does

  wrote(address: number, bytes: number): void {
    this.shadow.written(address, bytes);
    this.hostAccess(address, bytes, 'write');
  }

  signalled(address: number, bytes: number): void {
    this.shadow.written(address, bytes);
    this.hostAccess(address, bytes, 'signal');
  }

  read(address: number, bytes: number): void {
    this.hostAccess(address, bytes, 'read');
  }

  copied(to: number, from: number, bytes: number): void {
    this.shadow.copied(to, from, bytes);
    this.hostAccess(from, bytes, 'read');
    this.hostAccess(to, bytes, 'write');
  }

  private hostAccess(address: number, bytes: number, action: HostAction): void {
    if (!this.settings.races) return;
    const report = this.host.access(address, bytes, action);
    if (report === undefined) return;
    this.context.machine.services.report(report);
    if (!this.settings.keepGoing) this.failed = [report];
  }
}
