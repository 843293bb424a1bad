/**
 * Threads that call a native library for the JavaScript thread: Workers made from text, each of
 * which handles one request at a time. Where all are busy one more is started, up to a limit. They
 * end after a time without requests, and keep the process alive only while an answer is awaited.
 */
import { clearTimeout, setTimeout } from 'node:timers';
import { Worker } from 'node:worker_threads';

import { koffiPath } from './koffi.js';

const IDLE_MS = 10_000;
/** How long the end of the process waits for a thread that is loading a library. */
const LOADING_MS = 3000;

/** The `workerData` that a thread is started with. */
export interface CrewStart {
  readonly koffiPath: string | undefined;
  /** One word, which is not 0 while the thread loads native code. */
  readonly loading: Int32Array;
}

/** A message to a thread. On `end` it closes its port, and ends by itself. */
export type ToCrew<R> = { readonly id: number; readonly request: R } | { readonly end: true };

/** A message from a thread: its answer, or a message before it. */
export type FromCrew<F> = { readonly id: number } & (
  { readonly answer: unknown } | { readonly refusal: F } | { readonly told: unknown }
);

/** How a crew's threads are started, and how its requests are scheduled. */
export interface CrewDescription<R, F> {
  /** The name of its threads in debuggers. */
  readonly name: string;
  /** The script that they run. */
  readonly source: string;
  /** Largest number of threads at once. */
  readonly most: number;
  /**
   * Requests for which this is true go first, on an additional thread where all are busy: they end
   * what the others wait for.
   */
  readonly isUrgent?: (request: R) => boolean;
  /**
   * The subject of a request: a number for which a thread keeps state, such as the handles of a
   * session's runs. Of the free threads the one that last had the subject is preferred. `answer` is
   * the result of the request, which may be such a number.
   */
  readonly subject?: (request: R, answer?: unknown) => number | undefined;
  /** Whether the request ends its subject. */
  readonly ends?: (request: R) => boolean;
  /** Makes the error of a refusal. */
  readonly refused: (refusal: F) => Error;
  /** Makes the error of the requests of a thread that died. */
  readonly died: (reason: unknown) => Error;
}

/** Options of a request. */
export interface AskOptions {
  /** Buffers to transfer. */
  readonly transfer?: readonly ArrayBuffer[];
  /**
   * Where it aborts, the answer is not waited for: a request that has not begun is dropped; one
   * that has begun continues, since a native call cannot be stopped, and other requests get another
   * thread.
   */
  readonly signal?: AbortSignal | undefined;
  /** Is called with each message that the thread sends before its answer. */
  readonly hear?: (told: unknown) => void;
  /**
   * Requests with the same line are handled by one thread, in their order, and are sent to it at
   * once: the thread need not wait for this one to receive the end of a request before the next.
   * They have no signal.
   */
  readonly line?: object;
}

interface Job<R> {
  readonly id: number;
  readonly request: R;
  readonly options: AskOptions;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Member<R> {
  readonly worker: Worker;
  /** The requests that were sent to it, in order. Only requests of a line are more than one. */
  readonly jobs: Job<R>[];
}

/** `R` is the type of requests, `F` that of refusals. */
export class ThreadCrew<R, F> {
  private readonly description: CrewDescription<R, F>;
  private readonly members: Member<R>[] = [];
  private readonly waiting: Job<R>[] = [];
  /** The thread that last had each subject. */
  private readonly last = new Map<number, Member<R>>();
  /** The words of all threads that have not ended. */
  private readonly loading = new Set<Int32Array>();
  private nextId = 1;
  private idle: NodeJS.Timeout | undefined = undefined;

  constructor(description: CrewDescription<R, F>) {
    this.description = description;
  }

  /**
   * Sends a request to the first thread that is free. Rejects with the signal's reason where it
   * aborts first.
   */
  ask(request: R, options: AskOptions = {}): Promise<unknown> {
    const { signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const giveUp = (): void => {
        this.giveUp(job);
        reject(signal!.reason as Error);
      };
      const settled =
        <V>(settle: (value: V) => void) =>
        (value: V): void => {
          signal?.removeEventListener('abort', giveUp);
          settle(value);
        };
      const job: Job<R> = {
        id: this.nextId++,
        request,
        options,
        resolve: settled(resolve),
        reject: settled(reject),
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      if (this.isUrgent(job)) this.waiting.unshift(job);
      else this.waiting.push(job);
      this.next();
    });
  }

  private isUrgent({ request }: Job<R>): boolean {
    return this.description.isUrgent?.(request) === true;
  }

  private giveUp(job: Job<R>): void {
    const at = this.waiting.indexOf(job);
    if (at !== -1) this.waiting.splice(at, 1);
    const member = this.members.find((each) => each.jobs[0] === job);
    if (member === undefined) return;
    member.jobs.shift();
    member.worker.unref();
    this.dismiss(member);
    this.next();
  }

  private next(): void {
    const job = this.waiting[0];
    if (job === undefined) return;
    clearTimeout(this.idle);
    let member = this.memberFor(job);
    if (
      member === undefined &&
      this.members.length < this.description.most + (this.isUrgent(job) ? 1 : 0)
    ) {
      try {
        member = this.start();
      } catch (error) {
        this.waiting.shift();
        job.reject(this.description.died(error));
      }
    }
    if (member === undefined) return;
    this.waiting.shift();
    try {
      member.worker.postMessage(
        { id: job.id, request: job.request } satisfies ToCrew<R>,
        job.options.transfer ?? [],
      );
    } catch (error) {
      // A buffer cannot be transferred.
      job.reject(error);
      return;
    }
    member.jobs.push(job);
    member.worker.ref();
  }

  private memberFor({ request, options: { line } }: Job<R>): Member<R> | undefined {
    const subject = this.description.subject?.(request);
    const near = subject === undefined ? undefined : this.last.get(subject);
    return (
      (line === undefined
        ? undefined
        : this.members.find(({ jobs }) => jobs[0]?.options.line === line)) ??
      (near?.jobs.length === 0 ? near : this.members.find(({ jobs }) => jobs.length === 0))
    );
  }

  private start(): Member<R> {
    const { source, name, died } = this.description;
    const loading = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(source, {
      eval: true,
      execArgv: [],
      env: process.env,
      name,
      workerData: { koffiPath: koffiPath(), loading } satisfies CrewStart,
    });
    const member: Member<R> = { worker, jobs: [] };
    worker.unref();
    worker.on('message', (message: FromCrew<F>) => {
      this.hear(member, message);
    });
    const ended = (reason: unknown): void => {
      this.loading.delete(loading);
      if (this.loading.size === 0) process.off('exit', this.atExit);
      this.remove(member);
      for (const { reject } of member.jobs.splice(0)) reject(died(reason));
      this.next();
    };
    worker.on('error', ended);
    worker.on('exit', (code) => {
      ended(new Error(`it ended with code ${code}`));
    });
    if (this.loading.size === 0) process.on('exit', this.atExit);
    this.loading.add(loading);
    this.members.push(member);
    return member;
  }

  private hear(member: Member<R>, message: FromCrew<F>): void {
    const { jobs } = member;
    const job = jobs[0];
    if (job?.id !== message.id) return;
    if ('told' in message) {
      job.options.hear?.(message.told);
      return;
    }
    jobs.shift();
    if (jobs.length === 0) member.worker.unref();
    if ('answer' in message) this.answered(member, job, message.answer);
    else job.reject(this.description.refused(message.refusal));
    this.next();
    if (this.members.every((each) => each.jobs.length === 0)) this.rest();
  }

  private answered(member: Member<R>, { request, resolve }: Job<R>, answer: unknown): void {
    const { subject, ends } = this.description;
    const at = subject?.(request, answer);
    if (at !== undefined) {
      if (ends?.(request) === true) this.last.delete(at);
      else this.last.set(at, member);
    }
    resolve(answer);
  }

  /** Ends the threads if no request comes for a while. */
  private rest(): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      for (const member of this.members.filter(({ jobs }) => jobs.length === 0))
        this.dismiss(member);
    }, IDLE_MS);
    this.idle.unref();
  }

  /** Ends a thread after its current request. */
  private dismiss(member: Member<R>): void {
    this.remove(member);
    member.worker.postMessage({ end: true } satisfies ToCrew<R>);
  }

  private remove(member: Member<R>): void {
    const at = this.members.indexOf(member);
    if (at === -1) return;
    this.members.splice(at, 1);
    for (const [subject, each] of this.last) if (each === member) this.last.delete(subject);
  }

  /**
   * koffi ends the process with an error where a thread is terminated while it loads a library: see
   * src/runtime/workers.ts.
   */
  private readonly atExit = (): void => {
    const deadline = performance.now() + LOADING_MS;
    for (const loading of this.loading) {
      for (
        let depth = Atomics.load(loading, 0);
        depth !== 0 && performance.now() < deadline;
        depth = Atomics.load(loading, 0)
      ) {
        Atomics.wait(loading, 0, depth, deadline - performance.now());
      }
    }
  };
}
