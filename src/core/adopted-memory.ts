/**
 * Device memory that another library owns, used in place. Its owner keeps the memory until it is
 * returned, which happens once, when all work here that uses it has ended.
 */
import { ACCESS_WRITE } from '../runtime/commands.js';
import { CudaArgumentError } from '../ground/errors.js';
import { invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import type { CaptureScope } from './capture.js';
import type { CoreDevice } from './device.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { Allocation } from './memory.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

/** Options of {@link adoptMemory}. */
export interface AdoptOptions {
  /**
   * Called once, when the buffer is closed and all work that uses it has ended: the memory is the
   * owner's again.
   */
  readonly release: () => void;
  /** Whether the memory must not be written. */
  readonly readOnly?: boolean;
  /** The label that errors show. */
  readonly label?: string | undefined;
  /** An allocation of this library that is the same memory. The uses of both are ordered. */
  readonly alias?: Allocation | undefined;
}

export class AdoptedMemory extends Allocation {
  private readonly readOnly: boolean;
  private readonly alias: Allocation | undefined;
  private readonly giveBack: () => void;

  constructor(
    device: CoreDevice,
    address: number,
    bytes: number,
    describe: () => string,
    { release, readOnly = false, label, alias }: AdoptOptions,
  ) {
    super(
      device,
      device.stream,
      device.runtime.handles.adopt(address),
      bytes,
      label,
      describe,
      true,
    );
    this.giveBack = release;
    this.readOnly = readOnly;
    this.alias = alias;
  }

  override get identity(): Resource {
    return this.alias?.identity ?? this;
  }

  override get isAdopted(): boolean {
    return true;
  }

  override get isReadOnly(): boolean {
    return this.readOnly;
  }

  override orderEnd(stream: Stream): void {
    if (this.alias === undefined) super.orderEnd(stream);
    else this.alias.orderEnd(stream);
  }

  override order(stream: Stream, access: number): void {
    this.checkAccess(access);
    if (this.alias === undefined) super.order(stream, access);
    else this.alias.order(stream, access);
  }

  override used(stream: Stream, access: number, mark: number): void {
    if (this.alias === undefined) super.used(stream, access, mark);
    else this.alias.used(stream, access, mark);
  }

  override settled(): Promise<void> {
    return this.alias === undefined ? super.settled() : this.alias.settled();
  }

  override checkScope(scope: CaptureScope, access: number): void {
    this.checkAccess(access);
    this.alias?.checkScope(scope, access);
  }

  protected override end(): void {
    const end = this.return();
    this.device.objects.freeing(end);
    end.catch((error: unknown) => {
      this.device.unclaimed(error);
    });
  }

  private async return(): Promise<void> {
    const { runtime } = this.device;
    // A function that is being captured may call this. The capture's streams cannot be waited for
    // until it returns.
    await Promise.resolve();
    try {
      await this.settled();
      if (runtime.lost === undefined) runtime.handles.drop(this.handle);
    } finally {
      // The memory is returned where the device is lost, too: its owner must be told that it is no
      // longer in use.
      this.giveBack();
    }
  }

  private checkAccess(access: number): void {
    if (!this.readOnly || (access & ACCESS_WRITE) === 0) return;
    throw new CudaArgumentError(
      'buffer',
      `${this.toString()} must not be written: its owner allows reads only. Copy it first, or ` +
        'declare the parameter as input(dtype) where the kernel only reads it.',
    );
  }
}

/**
 * A buffer of `length` elements at an address of memory on this device that another library owns.
 *
 * Rejects with CudaArgumentError where the driver has no such memory, or has it on another device.
 * Then nothing was adopted, and `release` is not called. cuPointerGetAttribute
 */
export async function adoptMemory<D extends DTypeName>(
  device: CoreDevice,
  dtype: DType<D>,
  length: number,
  address: bigint,
  options: AdoptOptions,
): Promise<DeviceBuffer<D>> {
  const bytes = length * dtype.bytes;
  if (bytes > 0) await checkPlace(device, address, bytes);
  device.check();
  const { label } = options;
  const memory = new AdoptedMemory(
    device,
    bytes === 0 ? 0 : Number(address),
    bytes,
    () => `adopted ${dtype.name}[${length}]${label === undefined ? '' : ` '${label}'`}`,
    options,
  );
  device.objects.adopted(memory);
  return new DeviceBuffer(memory, dtype, 0, length, undefined);
}

async function checkPlace(device: CoreDevice, address: bigint, bytes: number): Promise<void> {
  if (address > BigInt(Number.MAX_SAFE_INTEGER))
    throw invalid('address', 'an address below 2^53', address);
  const place = await device.runtime.call('pointerPlace', Number(address));
  const hex = `0x${address.toString(16)}`;
  if (place === undefined)
    throw invalid('address', `an address of the driver of ${device.name}`, hex);
  if (!place.device) throw invalid('address', 'memory of the device', `${hex}, memory of the host`);
  // Each CPU device has a driver of its own, in which its ordinal is 0.
  if (device.kind === 'cuda' && !place.managed && place.ordinal !== device.ordinal) {
    throw invalid(
      'address',
      `memory of cuda:${device.ordinal}`,
      `${hex}, memory of cuda:${place.ordinal}`,
      'Copy it on its own device, or open that one.',
    );
  }
  if (Number(address) + bytes > place.end)
    throw invalid(
      'address',
      `${bytes} bytes of one allocation`,
      `${hex}, of which ${place.end - Number(address)} bytes are left`,
    );
}
