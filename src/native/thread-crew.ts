/**
 * Threads that call a native library for the JavaScript thread: Workers made from text, each of which does one thing at a time.
 * One more is started where all are busy, up to a limit, and they end when nothing came for a while. They keep the process alive
 * only while something is awaited.
 */
import { clearTimeout, setTimeout } from 'node:timers';
import { Worker } from 'node:worker_threads';

import { koffiPath } from './koffi.js';

const IDLE_MS = 10_000;
/** The end of the process waits this long for a thread that is loading a library. */
const LOADING_MS = 3000;

/** What a thread is started with, as its `workerData`. */
export interface CrewStart {
  readonly koffiPath: string | undefined;
  /** One word, which the thread makes 1 while it loads native code. */
  readonly loading: Int32Array;
}

/** What a thread is told. At the end it closes its port, and ends by itself. */
export type ToCrew<R> = { readonly id: number; readonly request: R } | { readonly end: true };

/** What it answers. */
export type FromCrew<F> = { readonly id: number; readonly answer: unknown } | { readonly id: number; readonly refusal: F };

export interface CrewDescription<F> {
  /** Of its threads, as debuggers show it. */
  readonly name: string;
  /** The script that they run. */
  readonly source: string;
  /** Threads at once. */
  readonly most: number;
  /** The error that a refusal is shown as. */
  readonly refused: (refusal: F) => Error;
  /** The error of what a thread was at when it died. */
  readonly died: (reason: unknown) => Error;
}

interface Job<R> {
  readonly id: number;
  readonly request: R;
  readonly transfer: readonly ArrayBuffer[];
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface Member<R> {
  readonly worker: Worker;
  readonly loading: Int32Array;
  job: Job<R> | undefined;
}

/** `R`: what can be asked for. `F`: what a thread answers where it cannot do it. */
export class ThreadCrew<R, F> {
  private readonly description: CrewDescription<F>;
  private readonly members: Member<R>[] = [];
  private readonly waiting: Job<R>[] = [];
  private nextId = 1;
  private idle: NodeJS.Timeout | undefined;

  constructor(description: CrewDescription<F>) {
    this.description = description;
  }

  /** Asks a thread, the first that is free. Buffers in `transfer` are handed over. */
  ask(request: R, transfer: readonly ArrayBuffer[] = []): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ id: this.nextId++, request, transfer, resolve, reject });
      this.next();
    });
  }

  private next(): void {
    if (this.waiting.length === 0) return;
    clearTimeout(this.idle);
    let member = this.members.find((each) => each.job === undefined);
    if (member === undefined && this.members.length < this.description.most) {
      try {
        member = this.start();
      } catch (error) {
        this.waiting.shift()!.reject(this.description.died(error));
      }
    }
    if (member === undefined) return;
    const job = this.waiting.shift()!;
    try {
      member.worker.postMessage({ id: job.id, request: job.request } satisfies ToCrew<R>, job.transfer);
    } catch (error) {
      // A buffer that cannot be handed over.
      job.reject(error);
      return;
    }
    member.job = job;
    member.worker.ref();
  }

  private start(): Member<R> {
    const { source, name, died } = this.description;
    const loading = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(source, { eval: true, execArgv: [], env: process.env, name, workerData: { koffiPath: koffiPath(), loading } satisfies CrewStart });
    const member: Member<R> = { worker, loading, job: undefined };
    worker.unref();
    worker.on('message', (message: FromCrew<F>) => { this.hear(member, message); });
    const ended = (reason: unknown): void => {
      this.remove(member);
      member.job?.reject(died(reason));
      member.job = undefined;
      this.next();
    };
    worker.on('error', ended);
    worker.on('exit', (code) => { ended(new Error(`it ended with code ${code}`)); });
    if (this.members.length === 0) process.on('exit', this.atExit);
    this.members.push(member);
    return member;
  }

  private hear(member: Member<R>, message: FromCrew<F>): void {
    const { job } = member;
    if (job?.id !== message.id) return;
    member.job = undefined;
    member.worker.unref();
    if ('answer' in message) job.resolve(message.answer);
    else job.reject(this.description.refused(message.refusal));
    this.next();
    if (this.members.every((each) => each.job === undefined)) this.rest();
  }

  /** Ends the threads if nothing comes for a while. */
  private rest(): void {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      for (const member of this.members.filter((each) => each.job === undefined)) {
        this.remove(member);
        member.worker.postMessage({ end: true } satisfies ToCrew<R>);
      }
    }, IDLE_MS);
    this.idle.unref();
  }

  private remove(member: Member<R>): void {
    const at = this.members.indexOf(member);
    if (at === -1) return;
    this.members.splice(at, 1);
    if (this.members.length === 0) process.off('exit', this.atExit);
  }

  /** koffi ends the process in an error where a thread is terminated that is loading a library: see src/runtime/workers.ts. */
  private readonly atExit = (): void => {
    const deadline = performance.now() + LOADING_MS;
    for (const { loading } of this.members) Atomics.wait(loading, 0, 1, Math.max(0, deadline - performance.now()));
  };
}
