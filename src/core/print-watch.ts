/**
 * Sees to it that what kernels print on a stream comes out though nobody awaits them, and before
 * the process ends: waits for the stream, one wait at a time. On a GPU the text comes out with the
 * fence that the wait writes.
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
    // Not now: whoever awaits the launch writes the fence, and no time is lost here looking for its
    // end.
    setImmediate(() => void this.watch());
  }

  private async watch(): Promise<void> {
    const { stream } = this;
    try {
      // A closed stream waits for its own end.
      for (let seen = -1; seen < this.mark && !stream.isClosed;) {
        seen = this.mark;
        const passed = stream.passed(seen);
        stream.runtime.completion.bystanders.add(passed);
        await passed;
      }
    } catch {
      // The device is lost or closed, and whoever awaits something learns of it.
    } finally {
      this.watching = false;
    }
  }
}
