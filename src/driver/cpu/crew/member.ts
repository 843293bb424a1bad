/**
 * A member of the crew: the code of its thread. It looks for blocks in the open jobs and sleeps
 * when there are none. It keeps nothing that a grid needs, so that it may be ended anywhere.
 */
import { alignedRun, vectorProbe } from '../kernels/aligned-run.js';
import { bulkMoves } from '../memory/bulk-moves.js';
import { HELD, WORD, jobAt, JOB } from './control.js';
import type { MemberMessage, MemberStart } from './control.js';
import { Mailbox } from './mailbox.js';
import { PAUSE, Worksite } from './worksite.js';
import type { RunBlock } from '../kernels/run-block.js';
import type { Stay } from './worksite.js';

/**
 * How long a member looks for work before it sleeps: a program that awaits one grid after the other
 * has launched the next one by then. Waking a member takes 50 µs and more, and costs the waking
 * thread 15.
 */
const SPIN_MS = 0.2;
const SPIN_LOOKS = 50;
/** Blocks of one job before a member looks at the others. */
const BLOCKS_PER_STAY = 64;

/** Works until it is stopped. `receive` returns the next message that has come, without waiting. */
export function serveCrew(start: MemberStart, receive: () => MemberMessage | undefined): void {
  const words = new Int32Array(start.control);
  const later = performance.timeOrigin - start.timeOrigin;
  const now = (): number => performance.now() + later;
  const moves = bulkMoves(start.memory);
  const site = new Worksite(
    words,
    start.member,
    start.memory,
    (at, byte, bytes) => moves.fill(at, byte, bytes),
    now,
  );
  const modules = new Map<number, RunBlock[]>();
  let blocks = 0;
  const stay: Stay = {
    leave: (job) =>
      Atomics.load(words, WORD.open) !== 1 << job || Atomics.load(words, WORD.stop) !== 0,
    over: () => ++blocks >= BLOCKS_PER_STAY,
  };

  function hear(): void {
    for (let message = receive(); message !== undefined; message = receive()) {
      if ('forget' in message) modules.delete(message.forget);
      else modules.set(message.module, instantiate(start, words, message, now));
    }
  }

  function kernel(module: number, index: number): RunBlock {
    // The module was sent before the job was opened.
    if (!modules.has(module)) hear();
    return modules.get(module)![index]!;
  }

  /** Works on the job if it is open. Returns whether there was work. */
  function visit(job: number): boolean {
    const at = jobAt(job);
    Atomics.add(words, at + JOB.active, 1);
    let worked = false;
    // The word is read after the count is increased: the thread that closes a job reads the count
    // after that.
    if ((Atomics.load(words, WORD.open) & (1 << job)) !== 0 && site.hasWork(job)) {
      blocks = 0;
      const { ended } = site;
      const run = kernel(words[at + JOB.module]!, words[at + JOB.kernel]!);
      const outcome = site.work(
        job,
        words[at + JOB.held] === HELD.cluster ? site.clusterRun(run) : run,
        stay,
        (message) => new Mailbox(words, start.member).write(message),
      );
      worked = outcome !== PAUSE.idle || site.ended !== ended;
    }
    Atomics.sub(words, at + JOB.active, 1);
    return worked;
  }

  function someWork(): boolean {
    for (let open = Atomics.load(words, WORD.open); open !== 0; open &= open - 1) {
      if (site.hasWork(31 - Math.clz32(open & -open))) return true;
    }
    return false;
  }

  ringIn(words);
  let first = 0;
  let last = now();
  /** Whether it is counted among the members that look for work. */
  let looks = false;
  const mayLook = (): boolean => {
    if (!looks && Atomics.add(words, WORD.looking, 1) < start.lookers) looks = true;
    else if (!looks) Atomics.sub(words, WORD.looking, 1);
    return looks && now() - last < SPIN_MS;
  };
  const looksNoMore = (): void => {
    if (looks) Atomics.sub(words, WORD.looking, 1);
    looks = false;
  };
  while (Atomics.load(words, WORD.stop) === 0) {
    let worked = false;
    const open = Atomics.load(words, WORD.open);
    // It begins with another job each time, so that none is favoured.
    for (let i = 0, left = open; left !== 0; i++) {
      const job = (first + i) & 31;
      if ((left & (1 << job)) === 0) continue;
      left &= ~(1 << job);
      if (visit(job)) worked = true;
    }
    first = (first + 1) & 31;
    if (worked) {
      looksNoMore();
      last = now();
    } else if (mayLook())
      for (let i = 0; i < SPIN_LOOKS && Atomics.load(words, WORD.open) === open; i++);
    else {
      looksNoMore();
      // Messages are read now, and not when there is work again: a module that an open grid needs
      // is read when it is missing.
      hear();
      const bell = Atomics.load(words, WORD.bell);
      Atomics.add(words, WORD.sleepers, 1);
      // The jobs are read after the count is increased: a thread that opens a job reads the count
      // after that.
      if (!someWork() && Atomics.load(words, WORD.stop) === 0) Atomics.wait(words, WORD.bell, bell);
      Atomics.sub(words, WORD.sleepers, 1);
      last = now();
    }
  }
}

function ringIn(words: Int32Array): void {
  Atomics.add(words, WORD.online, 1);
  Atomics.notify(words, WORD.online);
}

function instantiate(
  start: MemberStart,
  words: Int32Array,
  message: Exclude<MemberMessage, { forget: number }>,
  now: () => number,
): RunBlock[] {
  const mailbox = new Mailbox(words, start.member);
  const { exports } = new WebAssembly.Instance(message.wasm, {
    env: {
      memory: start.memory,
      dataBase: new WebAssembly.Global({ value: 'i32', mutable: false }, message.dataBase),
      ...(message.inLanes ? { probe: vectorProbe() } : {}),
      ...mailbox.hostFunctions(start.memory, message.module, message.hostImports),
    },
  });
  const runs = message.kernels.map((name) => exports[name] as RunBlock);
  return message.inLanes ? runs.map((run) => alignedRun(run, now)) : runs;
}
