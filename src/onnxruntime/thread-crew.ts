/**
 * The threads of ONNX Runtime, seen from the JavaScript thread. Each does one thing at a time; one more is started where all
 * are busy, up to a limit, and they end when nothing came for a while. They keep the process alive only while something is awaited.
 */
import { clearTimeout, setTimeout } from 'node:timers';
import { Worker } from 'node:worker_threads';

import { CudaError } from '../core/index.js';
import { koffiPath } from '../native/koffi.js';
import { errorOf } from './failure.js';
import { optOut } from './telemetry.js';
import { onnxThreadSource } from './thread-source.js';
import type { Answers, FromThread, Request, ThreadStart, ToThread } from './thread/messages.js';

/** Runs that are under way at once: more would only take the cores from each other. */
const MOST_THREADS = 8;
const IDLE_MS = 10_000;
/** The end of the process waits this long for a thread that is loading a library. */
const LOADING_MS = 3000;

/** What must not wait for others: it ends what they are doing. One more thread is for that. */
const URGENT: ReadonlySet<Request['kind']> = new Set<Request['kind']>(['cancel', 'terminate']);

interface Job {
  readonly id: number;
  readonly request: Request;
  readonly resolve: (answer: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onLoading: ((loading: { path: string; options: number }) => void) | undefined;
  readonly transfer: readonly ArrayBuffer[];
}

interface Member {
  readonly worker: Worker;
  readonly loading: Int32Array;
  job: Job | undefined;
}

let nextId = 1;
const members: Member[] = [];
const waiting: Job[] = [];
let idle: NodeJS.Timeout | undefined;

/** Asks a thread, the first that is free. Rejects with the error that its refusal is shown as. */
export function ask<R extends Request>(request: R, onLoading?: Job['onLoading'], transfer: readonly ArrayBuffer[] = []): Promise<Answers[R['kind']]> {
  return new Promise<Answers[R['kind']]>((resolve, reject) => {
    const job: Job = { id: nextId++, request, resolve, reject, onLoading, transfer };
    if (URGENT.has(request.kind)) waiting.unshift(job);
    else waiting.push(job);
    next();
  });
}

function next(): void {
  const job = waiting[0];
  if (job === undefined) return;
  clearTimeout(idle);
  let member = members.find((each) => each.job === undefined);
  if (member === undefined && members.length < MOST_THREADS + (URGENT.has(job.request.kind) ? 1 : 0)) {
    try {
      member = start();
    } catch (error) {
      waiting.shift();
      job.reject(died(error));
    }
  }
  if (member === undefined) return;
  waiting.shift();
  member.job = job;
  member.worker.ref();
  member.worker.postMessage({ id: job.id, request: job.request } satisfies ToThread, job.transfer);
}

function start(): Member {
  optOut();
  const loading = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(onnxThreadSource, {
    eval: true, execArgv: [], env: process.env, name: 'async-cuda onnxruntime', workerData: { koffiPath: koffiPath(), loading } satisfies ThreadStart,
  });
  const member: Member = { worker, loading, job: undefined };
  worker.unref();
  worker.on('message', (message: FromThread) => { hear(member, message); });
  const ended = (reason: unknown): void => {
    const at = members.indexOf(member);
    if (at !== -1) members.splice(at, 1);
    if (members.length === 0) process.off('exit', atExit);
    member.job?.reject(died(reason));
    member.job = undefined;
    next();
  };
  worker.on('error', ended);
  worker.on('exit', (code) => { ended(new Error(`it ended with code ${code}`)); });
  if (members.length === 0) process.on('exit', atExit);
  members.push(member);
  return member;
}

function hear(member: Member, message: FromThread): void {
  const { job } = member;
  if (job?.id !== message.id) return;
  if ('loading' in message) {
    job.onLoading?.(message.loading);
    return;
  }
  member.job = undefined;
  member.worker.unref();
  if ('answer' in message) job.resolve(message.answer as never);
  else job.reject(errorOf(message.refusal));
  next();
  if (members.every((each) => each.job === undefined)) rest();
}

/** Ends the threads if nothing comes for a while. */
function rest(): void {
  clearTimeout(idle);
  idle = setTimeout(() => {
    for (const member of members.filter((each) => each.job === undefined)) {
      members.splice(members.indexOf(member), 1);
      member.worker.postMessage({ end: true } satisfies ToThread);
    }
    if (members.length === 0) process.off('exit', atExit);
  }, IDLE_MS);
  idle.unref();
}

/** koffi ends the process in an error where a thread is terminated that is loading a library: see src/runtime/workers.ts. */
function atExit(): void {
  const deadline = performance.now() + LOADING_MS;
  for (const { loading } of members) Atomics.wait(loading, 0, 1, Math.max(0, deadline - performance.now()));
}

function died(reason: unknown): CudaError {
  return new CudaError('ERR_CUDA_INTERNAL', `a thread of ONNX Runtime died: ${reason instanceof Error ? reason.message : String(reason)}`, { cause: reason });
}
