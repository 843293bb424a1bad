/**
 * The threads that run a device's blocks besides the thread that owns the device. The owner opens a
 * grid to them as a job, works on it as they do, and alone does what needs more than device memory:
 * memory for more blocks, malloc and free, the texts that kernels print.
 *
 * A member costs ten milliseconds and some megabytes to start, so members are started by the first
 * grid that runs long, or by grids that do so together. A grid is opened to them only after it has
 * run for some time: earlier, waking them would cost more than it saves.
 */
import type { KernelContext, KernelCrew } from '../kernels/kernel-context.js';
import { hostFunctions } from '../kernels/host-functions.js';
import type { CodeModule } from '../kernels/kernel-code.js';
import type { BlockSlot } from '../kernels/block-slots.js';
import { forget } from '../kernels/stall.js';
import {
  ENTRY,
  JOB,
  JOB_WORDS,
  MAX_ENTRIES,
  MAX_JOBS,
  MEMBER,
  WORD,
  controlBytes,
  entryAt,
  jobAt,
  memberAt,
  ring,
} from './control.js';
import type { MemberMessage } from './control.js';
import type { CrewOptions, Member } from './crew-options.js';
import { Mailbox, halvesOf } from './mailbox.js';
import { Worksite } from './worksite.js';

/**
 * Milliseconds that a grid has run before members are started for it; {@link OPEN_AFTER} is the
 * time before it is opened to running members.
 */
const START_AFTER = 10;
/**
 * The number of steps that it must have made, too: a short grid's first step may take long because
 * the kernel is compiled in it, or the machine is busy.
 */
const START_STEPS = 8;
const OPEN_AFTER = 0.1;
/** Grids further apart, in milliseconds, do not count together. */
const APART = 1000;
/** Milliseconds that an eager owner waits for members to start. */
const EAGER_WAIT = 10_000;
/**
 * How long the owner looks for news after the last of its own blocks before it sleeps, in
 * milliseconds: most of the other threads' blocks end by then, and a wake-up takes 50 µs.
 */
const LOOK_MS = 0.1;
const LOOKS = 100;
/** On more processors another one is idle when a member is woken. */
const MOST_KEPT_APART = 8;

export class Crew implements KernelCrew {
  readonly context: KernelContext;
  readonly words: Int32Array;
  readonly site: Worksite;
  private readonly options: CrewOptions;
  private readonly control: SharedArrayBuffer;
  private readonly members: { member: Member; mailbox: Mailbox }[] = [];
  private readonly modules = new Map<CodeModule, number>();
  private readonly hosts = new Map<number, Record<string, (...args: never[]) => unknown>>();
  private readonly sent: MemberMessage[] = [];
  private nextModule = 1;
  /** Numbers of the members that are running. */
  private threads = new Int32Array(0);
  private readonly freeJobs: number[] = [];
  /** Closed jobs that some thread may still be leaving, with their entries. */
  private readonly leaving: { job: number; entries: Iterable<number> }[] = [];
  private readonly freeEntries: number[] = [];
  private seen = 0;
  /** Since when the owner has had no block to run, and how many it had run by then. */
  private restingSince = 0;
  private endedBeforeRest = 0;
  /**
   * How long grids that were not opened to members have run, and when the last of them ended, in
   * milliseconds.
   */
  private worked = 0;
  private workedUntil = -Infinity;

  private constructor(context: KernelContext, options: CrewOptions) {
    this.context = context;
    this.options = options;
    this.control = new SharedArrayBuffer(controlBytes(this.size));
    this.words = new Int32Array(this.control);
    const { memory } = context;
    this.site = new Worksite(
      this.words,
      this.size,
      memory.memory,
      (at, byte, bytes) => memory.fill(at, byte, bytes),
      context.machine.services.now,
    );
    for (let job = MAX_JOBS - 1; job >= 0; job--) this.freeJobs.push(job);
    for (let entry = MAX_ENTRIES; entry > 0; entry--) this.freeEntries.push(entry);
  }

  /**
   * Returns the crew for a grid that has run for this many milliseconds and steps; undefined where
   * it is too early to open it to members, or the device has one thread only. Each call starts one
   * member, which takes the owner the better part of a millisecond.
   */
  static for(context: KernelContext, milliseconds: number, steps: number): Crew | undefined {
    const eager = context.machine.services.crew?.eager === true;
    const crew = milliseconds >= OPEN_AFTER || eager ? Crew.of(context) : undefined;
    if (crew === undefined) return undefined;
    if (eager) crew.assemble();
    else if (milliseconds >= START_AFTER && steps >= START_STEPS) crew.startNext();
    return Atomics.load(crew.words, WORD.online) > 0 ? crew : undefined;
  }

  /**
   * Records that a grid of several blocks has run for this many milliseconds until `now` and has
   * ended. Its function had run before: the first time some of it is compilation.
   */
  static ran(context: KernelContext, milliseconds: number, now: number): void {
    const crew = milliseconds >= OPEN_AFTER ? Crew.of(context) : undefined;
    if (crew === undefined) return;
    if (now - crew.workedUntil > APART) crew.worked = 0;
    crew.workedUntil = now;
    crew.worked += milliseconds;
    // There are no more threads than the grid would take tenths of a millisecond on one.
    const { length } = crew.members;
    if (crew.worked >= START_AFTER && length * OPEN_AFTER < milliseconds * (length + 1))
      crew.startNext();
  }

  /** Undefined where the device has one thread only. */
  private static of(context: KernelContext): Crew | undefined {
    const options = context.machine.services.crew;
    if (options === undefined || options.workers < 2) return undefined;
    if (context.crew instanceof Crew) return context.crew;
    return (context.crew = new Crew(context, options));
  }

  /** Whether a grid that has run this long would be opened to running members. */
  static standsBy({ crew }: KernelContext, milliseconds: number): boolean {
    return (
      milliseconds >= OPEN_AFTER &&
      crew instanceof Crew &&
      Atomics.load(crew.words, WORD.online) > 0
    );
  }

  /** The number of members, without the owner. */
  get size(): number {
    return this.options.workers - 1;
  }

  /**
   * One processor is the owner's and one the JavaScript thread's: the end of a grid wakes that
   * thread, and it would have to wait for a member to stop looking.
   */
  private get lookers(): number {
    const { workers, processors = workers } = this.options;
    return Math.max(0, Math.min(this.size, processors - 2));
  }

  /** Starts one more member where there are not all of them. */
  private startNext(): void {
    const member = this.members.length;
    if (member === this.size) return;
    const { memory } = this.context.memory;
    const started = this.options.start({
      member,
      control: this.control,
      memory,
      lookers: this.lookers,
      timeOrigin: performance.timeOrigin,
    });
    for (const message of this.sent) started.post(message);
    this.members.push({ member: started, mailbox: new Mailbox(this.words, member) });
  }

  private assemble(): void {
    while (this.members.length < this.size) this.startNext();
    const until = performance.now() + EAGER_WAIT;
    for (;;) {
      const online = Atomics.load(this.words, WORD.online);
      if (online === this.size) return;
      if (performance.now() > until)
        throw new Error(`of ${this.size} threads that run blocks ${online} have started`);
      Atomics.wait(this.words, WORD.online, online, 100);
    }
  }

  // Jobs

  /**
   * Takes a job that is not visible yet, for at least this many entries; undefined where too many
   * are open.
   */
  takeJob(entries: number): number | undefined {
    for (let i = this.leaving.length - 1; i >= 0; i--) {
      const { job, entries } = this.leaving[i]!;
      if (Atomics.load(this.words, jobAt(job) + JOB.active) !== 0) continue;
      this.leaving.splice(i, 1);
      this.freeJobs.push(job);
      this.freeEntries.push(...entries);
    }
    if (this.freeEntries.length < entries) return undefined;
    const job = this.freeJobs.pop();
    // The count of active threads stays: a thread may read the job at any time.
    if (job !== undefined) this.words.fill(0, jobAt(job) + JOB.active + 1, jobAt(job) + JOB_WORDS);
    return job;
  }

  openJob(job: number): void {
    this.keepApart();
    Atomics.or(this.words, WORD.open, 1 << job);
    this.wakeMembers();
  }

  /**
   * Closes the job: every block of it has ended. A thread may not have noticed yet: the job and its
   * entries stay until then.
   */
  closeJob(job: number, entries: Iterable<number>): void {
    Atomics.and(this.words, WORD.open, ~(1 << job));
    this.leaving.push({ job, entries });
  }

  /** Applies where the members use every processor, and there are few. */
  private keepApart(): void {
    const { workers, processors = workers, keepApart } = this.options;
    const { words } = this;
    const online = Atomics.load(words, WORD.online);
    if (
      keepApart === undefined ||
      workers < processors ||
      processors > MOST_KEPT_APART ||
      online === 0
    )
      return;
    if (this.threads.length !== online)
      this.threads = Int32Array.from(
        { length: online },
        (_, member) => words[memberAt(member) + MEMBER.thread]!,
      );
    keepApart(this.threads);
  }

  wakeMembers(): void {
    Atomics.add(this.words, WORD.bell, 1);
    if (Atomics.load(this.words, WORD.sleepers) > 0) Atomics.notify(this.words, WORD.bell);
  }

  /** Returns an entry for a slot; 0 where there are too many. */
  takeEntry(slot: BlockSlot): number {
    const entry = this.freeEntries.pop() ?? 0;
    if (entry !== 0) {
      const at = entryAt(entry);
      this.words[at + ENTRY.address] = slot.address;
      this.words[at + ENTRY.yields] = slot.yields;
      this.words[at + ENTRY.busy] = 0;
      forget(this.words, at + ENTRY.watch);
    }
    return entry;
  }

  /** Returns the number that jobs use for a module; members are sent the module the first time. */
  moduleNumber(module: CodeModule): number {
    let known = this.modules.get(module);
    if (known === undefined) {
      known = this.nextModule++;
      this.modules.set(module, known);
      this.send({
        module: known,
        wasm: module.wasm,
        dataBase: module.dataAddress | 0,
        hostImports: module.hostImports,
        inLanes: module.inLanes,
        kernels: module.exportNames,
      });
    }
    return known;
  }

  forget(module: CodeModule): void {
    const known = this.modules.get(module);
    if (known === undefined) return;
    this.modules.delete(module);
    this.hosts.delete(known);
    this.sent.splice(
      this.sent.findIndex((message) => 'module' in message && message.module === known),
      1,
    );
    for (const { member } of this.members) member.post({ forget: known });
  }

  private send(message: MemberMessage): void {
    this.sent.push(message);
    for (const { member } of this.members) member.post(message);
  }

  // Work of the owner for members

  /**
   * Handles members' requests: their calls, and room for their output. It is called between two
   * blocks.
   */
  attend(): void {
    this.seen = Atomics.load(this.words, WORD.news);
    Atomics.store(this.words, WORD.top, this.context.memory.top);
    if (Atomics.load(this.words, WORD.calls) > 0) this.serve();
  }

  private serve(): void {
    for (const each of this.members) {
      each.mailbox.answer((name, module, args) => {
        // The member's earlier output comes first.
        this.readTexts(each.mailbox);
        return this.execute(name, module, args);
      });
      this.readTexts(each.mailbox);
    }
  }

  /** Passes on everything that members have printed. */
  readAllTexts(): void {
    for (const { mailbox } of this.members) this.readTexts(mailbox);
  }

  private readTexts(mailbox: Mailbox): void {
    mailbox.readTexts((text) => this.context.print(text));
  }

  private execute(name: string, module: number, args: readonly bigint[]): bigint {
    let host = this.hosts.get(module);
    if (host === undefined) {
      for (const [known, number] of this.modules) {
        if (number === module)
          host = hostFunctions('cuLaunchKernel', this.context, known.hostImports);
      }
      this.hosts.set(module, host!);
    }
    if (name === 'host_malloc')
      return (host!['host_malloc'] as (bytes: bigint) => bigint)(args[0]!);
    if (name === 'host_free') (host!['host_free'] as (address: bigint) => void)(args[0]!);
    else (host!['host_assert'] as (...args: number[]) => void)(...args.flatMap(halvesOf));
    return 0n;
  }

  /** Returns a member's message about a kernel that WebAssembly stopped. */
  reportOf(member: number): string {
    return this.members[member]?.mailbox.message ?? '';
  }

  /** Sleeps until a job ends or a member needs the owner, for at most this many milliseconds. */
  rest(milliseconds: number): void {
    const { words, seen, site } = this;
    const now = this.context.machine.services.now();
    if (this.endedBeforeRest !== site.ended) {
      this.endedBeforeRest = site.ended;
      this.restingSince = now;
    }
    do {
      for (let i = 0; i < LOOKS; i++) if (Atomics.load(words, WORD.news) !== seen) return;
    } while (
      this.context.machine.services.now() - this.restingSince <
      Math.min(LOOK_MS, milliseconds)
    );
    if (milliseconds > 0) Atomics.wait(words, WORD.news, seen, milliseconds);
  }

  /** Ends the threads, wherever they are. */
  end(): void {
    Atomics.store(this.words, WORD.stop, 1);
    ring(this.words, WORD.bell);
    for (const { member } of this.members.splice(0)) member.end();
  }
}
