/**
 * Memory of a separate allocation, from no pool. It is freed by a call when its uses have ended,
 * not in stream order.
 */
import type { MemoryKind } from './channels.js';
import type { CoreDevice } from './device.js';
import { Allocation } from './memory.js';
import { checkDType, checkLabel, checkOptions } from '../ground/arguments.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { DeviceBuffer } from './buffer.js';
import { checkLength } from './allocation-length.js';
import type { PlainAllocOptions } from './stream-ordered-allocation.js';

/** @internal */
export class PlainMemory extends Allocation {
  /** The address; 0 where there are no bytes. */
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

  /** Frees the memory when its uses have ended. The device reports a failure. */
  override dispose(): void {
    if (this.disposed) return;
    super.dispose();
    this.over.catch((error: unknown) => this.device.unclaimed(error));
  }

  /**
   * Does the same as {@link dispose}. Resolves when the memory is freed, or the free is put off by
   * a stream that waits for a value.
   */
  async free(): Promise<void> {
    super.dispose();
    await this.over;
  }

  protected override end(): void {
    const end = this.giveBack();
    this.device.objects.freeing(end);
    this.began(end);
  }

  private async giveBack(): Promise<void> {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    // A function that is being captured may call this. The capture's streams cannot be waited for
    // until it returns.
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

/** Makes memory that comes from no pool: {@link CoreDevice.allocPlain}. @internal */
export async function createPlain<D extends DTypeName>(
  device: CoreDevice,
  dtype: DType<D>,
  length: number,
  options: PlainAllocOptions,
): Promise<DeviceBuffer<D>> {
  checkDType(dtype);
  checkLength('device.allocPlain', dtype, length);
  checkOptions('options', options, ['label']);
  const { label } = options;
  checkLabel('options.label', label);
  const bytes = length * dtype.bytes;
  const named = (): string =>
    `allocPlain ${dtype.name}[${length}]${label === undefined ? '' : ` '${label}'`}`;
  const root = device.runtime.nextRoot();
  if (device.isChecked) device.origins.record({ root, handle: 0 }, named());
  const address =
    bytes === 0
      ? 0
      : await device.allocateByCall(() =>
          device.runtime.call('allocPlain', device.runtime.info.device, bytes, root),
        );
  const memory = new PlainMemory(device, address, bytes, label, named);
  memory.root = root;
  device.objects.allocated(memory);
  return new DeviceBuffer(memory, dtype, 0, length, undefined);
}
