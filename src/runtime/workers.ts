/**
 * Starts the runtime's workers from the embedded scripts and speaks with them. Node reads twice
 * what it is told to evaluate, so that is a short one (`thread/boot.ts`), which compiles the other.
 *
 * The script is text, not a file beside this one: `new URL('./worker.js', import.meta.url)` broke
 * in every bundler tried. `execArgv` is emptied so that a loader of the host program does not run
 * in our workers.
 */
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { bootSource } from './boot-source.js';
import { openDiskCache } from './disk-cache.js';
import { onExit } from './exit.js';
import type { Ending } from './exit.js';
import type { FromThread, ProviderConfig, ThreadStart, ToThread, WorkerStart } from './messages.js';
import type { BootData } from './thread/boot.js';
import { threadSource, threadSourceDigest } from './thread-source.js';

export class ThreadWorker implements Ending {
  readonly config: ProviderConfig;
  /** Not zero while the thread loads libraries. */
  private readonly loading = new Int32Array(new SharedArrayBuffer(4));
  private readonly worker: Worker;
  private readonly port: MessagePort;
  private readonly onMessage: (message: FromThread) => void;
  private readonly over: Promise<void>;
  private ending = false;
  private references = 0;

  constructor(
    start: WorkerStart,
    onMessage: (message: FromThread) => void,
    onDeath: (reason: Error) => void,
  ) {
    const { port1, port2 } = new MessageChannel();
    this.onMessage = onMessage;
    this.config = start.config;
    this.port = port1;
    this.loading[0] = this.native ? 1 : 0;
    // The thread says nothing of a cache that it does not use.
    openDiskCache()?.look();
    this.worker = new Worker(bootSource, {
      eval: true,
      execArgv: [],
      env: process.env,
      stdout: false,
      stderr: false,
      workerData: {
        ...start,
        port: port2,
        loading: this.loading,
        source: threadSource,
        digest: threadSourceDigest,
      } satisfies BootData & ThreadStart,
      transferList: [port2],
      name: `async-cuda ${start.role}`,
    });
    // Its last words first: why it could not go on, for one.
    const died = (reason: Error): void => {
      this.drain();
      onDeath(reason);
    };
    this.worker.on('error', (reason: Error) => {
      if (!this.ending) died(reason);
    });
    const callOff = this.native ? onExit(this) : undefined;
    this.over = new Promise((resolve) => {
      this.worker.on('exit', (code) => {
        callOff?.();
        if (!this.ending) died(new Error(`the ${start.role} thread ended with code ${code}`));
        resolve();
      });
    });
    this.worker.unref();
    port1.on('message', (message: FromThread) => onMessage(message));
    port1.unref();
  }

  /** Whether the thread uses koffi. */
  private get native(): boolean {
    return this.config.provider === 'libcuda';
  }

  /**
   * Whether it has loaded its libraries, by `deadline` at the latest: for the end of the process.
   */
  hasStopped(deadline: number): boolean {
    Atomics.wait(this.loading, 0, 1, Math.max(0, deadline - performance.now()));
    return Atomics.load(this.loading, 0) === 0;
  }

  post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }

  /** Reads what has been posted, without waiting for the event loop. */
  drain(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.port) as { message: FromThread } | undefined;
      if (received === undefined) return;
      this.onMessage(received.message);
    }
  }

  /** While a reply is awaited the process stays alive. */
  ref(): void {
    if (this.references++ === 0) this.port.ref();
  }

  unref(): void {
    if (--this.references === 0) this.port.unref();
  }

  /**
   * Resolves when the thread has ended, which has been asked to stop. One that uses koffi does so
   * by itself: koffi ends the process ("FATAL ERROR: Error::ThrowAsJavaScriptException napi_throw")
   * where a thread is terminated that is loading a library, and none is ever ended inside of a
   * call. One of a CPU device may be inside a kernel without end.
   */
  async end(): Promise<void> {
    this.ending = true;
    this.port.close();
    // The caller waits for the thread, so the process does.
    this.worker.ref();
    await (this.native ? this.over : this.worker.terminate());
  }
}
