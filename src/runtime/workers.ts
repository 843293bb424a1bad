/**
 * Starts the runtime's workers from the embedded scripts, and exchanges messages with them. Node
 * parses the text that it evaluates twice, so that text is short (`thread/boot.ts`), and compiles
 * the other, which is more than a megabyte. V8 takes 8 ms to read that from a module, so it is a
 * module of its own, which is loaded while the first worker starts, and then posted.
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
import { threadSourceDigest } from './thread-source-digest.js';

let threadSource: string | undefined;

async function loadThreadSource(): Promise<string> {
  threadSource ??= (await import('./thread-source.js')).threadSource;
  return threadSource;
}

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
    // The thread does not warn about a cache that it does not use.
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
        digest: threadSourceDigest,
      } satisfies BootData & ThreadStart,
      transferList: [port2],
      name: `async-cuda ${start.role}`,
    });
    // Its last messages are read first, such as the reason of its end.
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
    if (threadSource !== undefined) this.run(threadSource);
    else
      loadThreadSource().then(
        (source) => this.run(source),
        (reason: unknown) => {
          if (!this.ending) died(reason as Error);
          void this.worker.terminate();
        },
      );
    port1.on('message', (message: FromThread) => onMessage(message));
    port1.unref();
  }

  /** Posts the script, which the worker waits for and runs. */
  private run(source: string): void {
    if (this.native) this.loading[0] = 1;
    this.worker.postMessage(source);
  }

  /** Whether the thread uses koffi. */
  private get native(): boolean {
    return this.config.provider === 'libcuda';
  }

  /**
   * Waits until it has loaded its libraries, until `deadline` at most, and returns whether it has.
   * It is called at the end of the process.
   */
  hasStopped(deadline: number): boolean {
    Atomics.wait(this.loading, 0, 1, Math.max(0, deadline - performance.now()));
    return Atomics.load(this.loading, 0) === 0;
  }

  post(message: ToThread, transfer: ArrayBuffer[] = []): void {
    this.port.postMessage(message, transfer);
  }

  /** Reads the posted messages, without waiting for the event loop. */
  drain(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.port) as { message: FromThread } | undefined;
      if (received === undefined) return;
      this.onMessage(received.message);
    }
  }

  /** Keeps the process alive while a reply is awaited. */
  ref(): void {
    if (this.references++ === 0) this.port.ref();
  }

  unref(): void {
    if (--this.references === 0) this.port.unref();
  }

  /**
   * Resolves when the thread has ended, which was requested to stop. A thread that uses koffi ends
   * by itself: koffi ends the process ("FATAL ERROR: Error::ThrowAsJavaScriptException napi_throw")
   * where a thread is terminated that is loading a library, and no thread is ever ended inside of a
   * call. A thread of a CPU device may be inside an endless kernel, so it is terminated.
   */
  async end(): Promise<void> {
    this.ending = true;
    this.port.close();
    // The caller waits for the thread, so the process does, too.
    this.worker.ref();
    await (this.native ? this.over : this.worker.terminate());
  }
}
