/**
 * Memory of one allocation of its own, from no pool: freed by a call when its uses are over, not in
 * stream order.
 */
import type { MemoryKind } from './channels.js';
import type { CoreDevice } from './device.js';
import { Allocation } from './memory.js';

/** @internal */
export class PlainMemory extends Allocation {
  /** 0 where there are no bytes. */
  readonly address: number;
  private readonly over: Promise<void>;
  private began!: (end: Promise<void>) => void;

  constructor(
    device: CoreDevice,
    address: number,
    bytes: number,
    label: string | undefined,
    describe: () => string,
  ) {
    super(device, device.stream, device.runtime.handles.adopt(address), bytes, label, describe);
    this.address = address;
    this.over = new Promise((resolve) => (this.began = resolve));
  }

  override get kind(): MemoryKind {
    return 'plain';
  }

  override get pooled(): boolean {
    return false;
  }

  /** Frees the memory when its uses are over; a failure is nobody's. */
  override dispose(): void {
    if (this.disposed) return;
    super.dispose();
    this.over.catch((error: unknown) => this.device.unclaimed(error));
  }

  /**
   * As {@link dispose}; resolves when that is done, or put off by a stream that waits for a value.
   */
  async free(): Promise<void> {
    super.dispose();
    await this.over;
  }

  protected override end(): void {
    const end = this.giveBack();
    this.device.freeing(end);
    this.began(end);
  }

  private async giveBack(): Promise<void> {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    // Where this is called by a function that is being captured, its streams cannot be waited for
    // before it has returned.
    await Promise.resolve();
    await this.settled();
    runtime.handles.drop(this.handle);
    await this.release();
  }

  /** cuMemFree */
  protected async release(): Promise<void> {
    const { runtime, shared } = this.device;
    if (this.address === 0 || runtime.lost !== undefined) return;
    await shared.freeGate.free(() => runtime.call('freePlain', this.address));
  }
}
