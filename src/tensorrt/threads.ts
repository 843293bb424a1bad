/**
 * TensorRT's threads, seen from the JavaScript thread: callers, which make its calls, one at a time
 * each, and a listener, which answers what TensorRT calls meanwhile. Builds have a caller of their
 * own, so that an engine can be loaded beside them. They keep the process alive only while
 * something is awaited, and are not ended before it.
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
import { hear } from './heard.js';
import type { Listener } from './thread/listener.js';
import type { Answer, Heard, Role, TensorRTThreadStart } from './thread/messages.js';
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
    this.worker.on('message', (message: Answer | Heard) => {
      if ('heard' in message) {
        hear(message);
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

  /** A call of TensorRT cannot be stopped: whether there is none by `deadline`. */
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

/** The thread that answers TensorRT. */
export function listener(): TensorRTThread<Listener> {
  return (listening ??= new TensorRTThread<Listener>('listener'));
}

let attentions = 0;

/** Where errors are taken down until {@link ignore}. */
export interface Attention {
  readonly id: number;
  /** Memory of a `LibraryLog`. */
  readonly said: SharedArrayBuffer;
}

/** Resolves when the listener knows of it: an error before that would not be taken down. */
export async function attend({ buffer: said } = new LibraryLog()): Promise<Attention> {
  const id = attentions++;
  await listener().call('attend', id, said);
  return { id, said };
}

export function ignore(id: number): void {
  void listener().call('ignore', id);
}

/** The thread that builds, or the one for all else, when the listener attends to it. */
export function caller(lane: 'build' | 'run'): Promise<Caller> {
  let ready = callers.get(lane);
  if (ready === undefined) {
    const thread = new TensorRTThread<Procedures>('caller');
    ready = attend(thread.said).then(() => thread);
    callers.set(lane, ready);
  }
  return ready;
}

/** Makes what follows on the thread work on the device. */
export async function onDevice(thread: Caller, device: CoreDevice | undefined): Promise<void> {
  if (device?.kind === 'cuda') await thread.call('useDevice', device.runtime.info.context);
}
