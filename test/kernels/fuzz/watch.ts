/**
 * Ends this process, and prints the current text, where a call that cannot be interrupted does not
 * return.
 */
import { Worker } from 'node:worker_threads';

const MOST_CHARACTERS = 1 << 16;

/** A thread that checks whether texts follow each other. */
export class Watch {
  private readonly shared = new SharedArrayBuffer(8 + MOST_CHARACTERS * 2);
  private readonly header = new Int32Array(this.shared, 0, 2);
  private readonly characters = new Uint16Array(this.shared, 8);
  private readonly thread: Worker;

  constructor(longestMs: number) {
    this.thread = new Worker(
      `
      const { workerData: { shared, longestMs } } = require('node:worker_threads');
      const header = new Int32Array(shared, 0, 2);
      const characters = new Uint16Array(shared, 8);
      let last = -1;
      setInterval(() => {
        const now = Atomics.load(header, 0);
        if (now === last && header[1] > 0) {
          const text = Buffer.from(characters.buffer, 8, header[1] * 2).toString('utf16le');
          const within = 'no end of compiling within ' + longestMs / 1000 + ' s:\\n';
          require('node:fs').writeSync(2, within + text + '\\n');
          process.kill(process.pid, 'SIGKILL');
        }
        last = now;
      }, longestMs);
    `,
      { eval: true, workerData: { shared: this.shared, longestMs } },
    );
    this.thread.unref();
  }

  /** Records the text that is compiled now. */
  begin(text: string): void {
    const { length } = text.slice(0, MOST_CHARACTERS);
    for (let at = 0; at < length; at++) this.characters[at] = text.charCodeAt(at);
    this.header[1] = length;
    Atomics.add(this.header, 0, 1);
  }

  async end(): Promise<void> {
    this.header[1] = 0;
    await this.thread.terminate();
  }
}
