/**
 * The compiler's thread, seen from the JavaScript thread: started when it is first needed, given one request at a time,
 * ended when nothing came for a while. It keeps the process alive only while something is awaited.
 */
import { clearTimeout, setTimeout } from 'node:timers';
import { Worker } from 'node:worker_threads';

import { CudaError } from '../core/index.js';
import { koffiPath } from '../native/koffi.js';
import { compilerThreadSource } from './thread-source.js';
import type { CompileRequest, Compiled, CompilerThreadStart, LinkRequest, Linked, Refusal, Reply, Request } from './thread/messages.js';

/** A library of a hundred megabytes stays loaded in the process; starting the thread again takes some 30 ms. */
const IDLE_MS = 10_000;

interface Job {
  readonly id: number;
  readonly request: Request;
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: unknown) => void;
  /** Called when it is settled or given up. */
  readonly stopListening: () => void;
}

let worker: Worker | undefined;
let idle: NodeJS.Timeout | undefined;
let nextId = 1;
const waiting: Job[] = [];
let running: Job | undefined;
/** Whose result is awaited: of a job that was given up nobody waits for the end. */
const awaited = new Set<Job>();

/** Rejects with the signal's reason where it aborts first: what has begun is still finished, what has not is dropped. */
export async function compileOnThread(request: CompileRequest, signal: AbortSignal | undefined): Promise<Compiled | Refusal> {
  const reply = await post(request, signal);
  return 'compiled' in reply ? reply.compiled : refusalOf(reply);
}

/** {@link compileOnThread}, for the linker. */
export async function linkOnThread(request: LinkRequest, signal: AbortSignal | undefined): Promise<Linked | Refusal> {
  const reply = await post(request, signal);
  return 'linked' in reply ? reply.linked : refusalOf(reply);
}

function refusalOf(reply: Reply): Refusal {
  if ('refusal' in reply) return reply.refusal;
  throw new CudaError('ERR_CUDA_INTERNAL', "the compiler's thread answered another question");
}

function post(request: Request, signal: AbortSignal | undefined): Promise<Reply> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const giveUp = (): void => {
      const at = waiting.indexOf(job);
      if (at !== -1) waiting.splice(at, 1);
      settle(job);
      if (job === running) abandon();
      reject(signal!.reason as Error);
    };
    const job: Job = { id: nextId++, request, resolve, reject, stopListening: () => signal?.removeEventListener('abort', giveUp) };
    signal?.addEventListener('abort', giveUp, { once: true });
    waiting.push(job);
    awaited.add(job);
    next();
  });
}

function next(): void {
  if (running !== undefined || waiting.length === 0) return;
  clearTimeout(idle);
  try {
    worker ??= start();
  } catch (error) {
    died(error);
    return;
  }
  worker.ref();
  running = waiting.shift()!;
  worker.postMessage({ id: running.id, request: running.request });
}

/** What nobody waits for any more goes on by itself, since a native call cannot be stopped; others get another thread. */
function abandon(): void {
  const left = worker!;
  worker = undefined;
  running = undefined;
  left.unref();
  left.once('message', () => void left.terminate());
  next();
}

/** It is over for who asked. The process may end, unless another is awaited. */
function settle(job: Job): void {
  job.stopListening();
  awaited.delete(job);
  if (awaited.size === 0) worker?.unref();
}

function start(): Worker {
  const started = new Worker(compilerThreadSource, {
    eval: true, execArgv: [], env: process.env, name: 'async-cuda compiler', workerData: { koffiPath: koffiPath() } satisfies CompilerThreadStart,
  });
  started.unref();
  started.on('message', (reply: Reply) => {
    const job = running;
    if (worker !== started || job?.id !== reply.id) return;
    running = undefined;
    settle(job);
    job.resolve(reply);
    next();
    if (running === undefined) rest(started);
  });
  const ended = (reason: unknown): void => {
    if (worker === started) died(reason);
  };
  started.on('error', ended);
  started.on('exit', (code) => ended(new Error(`it ended with code ${code}`)));
  return started;
}

/** Ends the thread if nothing comes for a while. */
function rest(started: Worker): void {
  clearTimeout(idle);
  idle = setTimeout(() => {
    if (running !== undefined || worker !== started) return;
    worker = undefined;
    void started.terminate();
  }, IDLE_MS);
  idle.unref();
}

/** What was being done failed with the thread; what waits begins on another. */
function died(reason: unknown): void {
  worker = undefined;
  const job = running ?? waiting.shift();
  running = undefined;
  if (job !== undefined) {
    settle(job);
    job.reject(new CudaError('ERR_CUDA_INTERNAL', `the compiler's thread died: ${reason instanceof Error ? reason.message : String(reason)}`, { cause: reason }));
  }
  next();
}
