/**
 * TensorRT's threads, from the JavaScript thread's side: callers, which make its calls, one at a
 * time each, and a listener, which answers the calls that TensorRT makes meanwhile. Builds have a
 * caller of their own, so that an engine can be loaded during a build. The threads keep the process
 * alive only during a pending call, and do not end before it.
 */
import { Worker } from 'node:worker_threads';

import { CudaError } from '../core/index.js';
import type { CoreDevice } from '../core/index.js';
import { onExit } from '../core/thread-ending.js';
import type { Ending } from '../core/thread-ending.js';
import { koffiPath } from '../native/koffi.js';
import { LibraryLog } from '../native/library-log.js';
import { tensorRTThreadSource } from './thread-source.js';
import { refusedError } from './errors.js';
import { notify } from './notifications.js';
import type { Listener } from './thread/listener.js';
import type { Answer, Notification, Role, TensorRTThreadStart } from './thread/messages.js';
import type { Procedures } from './thread/procedures.js';

type Methods<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];
type Arguments<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never;
type Given<T, K extends keyof T> = T[K] extends (...args: never[]) => infer R ? R : never;

interface Job {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

class TensorRTThread<T> implements Ending {
  readonly config: Ending['config'];
  readonly said = new LibraryLog();
  private readonly busy = new Int32Array(new SharedArrayBuffer(4));
  private readonly worker: Worker;
  private readonly jobs = new Map<number, Job>();
  private next = 1;

  constructor(role: Role) {
    const path = koffiPath();
    this.config = { provider: 'libcuda', koffiPath: path } as Ending['config'];
    this.worker = new Worker(tensorRTThreadSource, {
      eval: true,
      execArgv: [],
      env: process.env,
      name: `async-cuda TensorRT ${role}`,
      workerData: {
        role,
        koffiPath: path,
        said: this.said.buffer,
        busy: this.busy.buffer,
      } satisfies TensorRTThreadStart,
    });
    this.worker.unref();
    const callOff = onExit(this);
    this.worker.on('message', (message: Answer | Notification) => {
      if ('kind' in message) {
        notify(message);
        return;
      }
      const job = this.jobs.get(message.id)!;
      this.jobs.delete(message.id);
      if (this.jobs.size === 0) this.worker.unref();
      if ('refusal' in message) job.reject(refusedError(message.refusal));
      else job.resolve(message.value);
    });
    const ended = (reason: unknown): void => {
      callOff();
      for (const job of this.jobs.values())
        job.reject(
          new CudaError('ERR_CUDA_INTERNAL', `TensorRT's thread ended: ${String(reason)}`, {
            cause: reason,
          }),
        );
      this.jobs.clear();
    };
    this.worker.on('error', ended);
    this.worker.on('exit', (code) => {
      ended(new Error(`exit code ${code}`));
    });
  }

  /** Returns whether no call is under way by `deadline`: a call of TensorRT cannot be stopped. */
  hasStopped(deadline: number): boolean {
    Atomics.wait(this.busy, 0, 1, Math.max(0, deadline - performance.now()));
    return Atomics.load(this.busy, 0) === 0;
  }

  call<K extends Methods<T> & string>(
    name: K,
    ...args: Arguments<T, K>
  ): Promise<Awaited<Given<T, K>>> {
    return new Promise((resolve, reject) => {
      const id = this.next++;
      if (this.jobs.size === 0) this.worker.ref();
      this.jobs.set(id, { resolve: resolve as Job['resolve'], reject });
      this.worker.postMessage({ id, name, args });
    });
  }
}

export type Caller = TensorRTThread<Procedures>;

let listening: TensorRTThread<Listener> | undefined;
const callers = new Map<'build' | 'run', Promise<Caller>>();

/** Returns the thread that answers TensorRT. */
export function listener(): TensorRTThread<Listener> {
  return (listening ??= new TensorRTThread<Listener>('listener'));
}

let collections = 0;

/** Memory in which errors are collected until {@link stopCollecting}. */
export interface ErrorCollection {
  readonly id: number;
  /** The memory of a `LibraryLog`. */
  readonly said: SharedArrayBuffer;
}

/**
 * Starts collecting errors. Resolves when the listener has begun: an error before that would not be
 * collected.
 */
export async function collectErrors({ buffer: said } = new LibraryLog()): Promise<ErrorCollection> {
  const id = collections++;
  await listener().call('collect', id, said);
  return { id, said };
}

export function stopCollecting(id: number): void {
  void listener().call('stopCollecting', id);
}

/**
 * Returns the thread that builds, or the one for all other calls, once the listener collects its
 * errors.
 */
export function caller(lane: 'build' | 'run'): Promise<Caller> {
  let ready = callers.get(lane);
  if (ready === undefined) {
    const thread = new TensorRTThread<Procedures>('caller');
    ready = collectErrors(thread.said).then(() => thread);
    callers.set(lane, ready);
  }
  return ready;
}

/** Makes the device current for later calls on the thread. */
export async function onDevice(thread: Caller, device: CoreDevice | undefined): Promise<void> {
  if (device?.kind === 'cuda') await thread.call('useDevice', device.runtime.info.context);
}
