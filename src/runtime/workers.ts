/**
 * Starts the runtime's workers from the embedded script and speaks with them.
 *
 * The script is text, not a file beside this one: `new URL('./worker.js', import.meta.url)` broke in every bundler
 * tried. `execArgv` is emptied so that a loader of the host program does not run in our workers.
 */
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import type { FromThread, ToThread, WorkerStart } from './messages.js';
import { threadSource } from './thread-source.js';

/** Node reads twice what it is told to evaluate; what the text compiles itself is read once, in half the time. */
const BOOT = `
const { workerData } = require('node:worker_threads');
const { source } = workerData;
delete workerData.source;
require('node:vm').compileFunction(source, ['require'], { filename: 'async-cuda/thread.js' })(require);
`;

export class ThreadWorker {
  private readonly worker: Worker;
  private readonly port: MessagePort;
  private readonly onMessage: (message: FromThread) => void;
  private references = 0;

  constructor(start: WorkerStart, onMessage: (message: FromThread) => void, onDeath: (reason: Error) => void) {
    const { port1, port2 } = new MessageChannel();
    this.onMessage = onMessage;
    this.port = port1;
    this.worker = new Worker(BOOT, {
      eval: true,
      execArgv: [],
      env: process.env,
      stdout: false,
      stderr: false,
      workerData: { ...start, port: port2, source: threadSource },
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
