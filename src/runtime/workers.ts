/**
 * Starts the runtime's workers from the embedded scripts and speaks with them. Node reads twice what it is told to evaluate,
 * so that is a short one (`thread/boot.ts`), which compiles the other.
 *
 * The script is text, not a file beside this one: `new URL('./worker.js', import.meta.url)` broke in every bundler
 * tried. `execArgv` is emptied so that a loader of the host program does not run in our workers.
 */
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { bootSource } from './boot-source.js';
import type { FromThread, ToThread, WorkerStart } from './messages.js';
import type { BootData } from './thread/boot.js';
import { threadSource, threadSourceDigest } from './thread-source.js';

export class ThreadWorker {
  private readonly worker: Worker;
  private readonly port: MessagePort;
  private readonly onMessage: (message: FromThread) => void;
  private references = 0;

  constructor(start: WorkerStart, onMessage: (message: FromThread) => void, onDeath: (reason: Error) => void) {
    const { port1, port2 } = new MessageChannel();
    this.onMessage = onMessage;
    this.port = port1;
    this.worker = new Worker(bootSource, {
      eval: true,
      execArgv: [],
      env: process.env,
      stdout: false,
      stderr: false,
      workerData: { ...start, port: port2, source: threadSource, digest: threadSourceDigest } satisfies BootData & WorkerStart & { port: MessagePort },
      transferList: [port2],
      name: `async-cuda ${start.role}`,
    });
    // Its last words first: why it could not go on, for one.
    const died = (reason: Error): void => {
      this.drain();
      onDeath(reason);
    };
    this.worker.on('error', died);
    this.worker.on('exit', (code) => died(new Error(`the ${start.role} thread ended with code ${code}`)));
    this.worker.unref();
    port1.on('message', (message: FromThread) => onMessage(message));
    port1.unref();
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

  async terminate(): Promise<void> {
    this.worker.removeAllListeners();
    this.worker.on('error', () => undefined);
    this.port.close();
    await this.worker.terminate();
  }
}
