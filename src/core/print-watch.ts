/**
 * Waits for kernels that print, one wait at a time for each stream, so that their text is written
 * although they are not awaited, and before the process ends. On a GPU the driver writes the text
 * with the fence of the wait.
 */
import { setImmediate } from 'node:timers';

import { OP } from '../runtime/commands.js';
import type { Stream } from './stream.js';

export class PrintWatch {
  private readonly stream: Stream;
  private mark = 0;
  private watching = false;

  constructor(stream: Stream) {
    this.stream = stream;
  }

  /** A kernel that prints has been queued. */
  printed(): void {
    const { stream } = this;
    const { runtime } = stream;
    if (runtime.config.provider === 'libcuda') {
      runtime.ring.begin(OP.printed, 0, 4, 0, stream.slot.index, 0);
      runtime.ring.commit();
    }
    this.mark = stream.mark;
    if (this.watching) return;
    this.watching = true;
    // The wait begins in a later turn: a program that awaits the launch writes the fence itself,
    // and no time is spent on it here.
    setImmediate(() => void this.watch());
  }

  private async watch(): Promise<void> {
    const { stream } = this;
    try {
      // Closing a stream waits for its end.
      for (let seen = -1; seen < this.mark && !stream.isClosed;) {
        seen = this.mark;
        const passed = stream.passed(seen);
        stream.runtime.completion.bystanders.add(passed);
        await passed;
      }
    } catch {
      // The device is lost or closed. Waits of the program reject for it.
    } finally {
      this.watching = false;
    }
  }
}

/** A kernel that prints has just been queued on the stream. */
export function printed(stream: Stream): void {
  const { captureScope } = stream;
  if (captureScope !== undefined) {
    captureScope.prints = true;
    return;
  }
  stream.prints ??= new PrintWatch(stream);
  stream.prints.printed();
}
