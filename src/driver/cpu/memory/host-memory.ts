/**
 * Host memory of the driver: SharedArrayBuffers, whole or in part, registered with it or allocated
 * by it. JavaScript has no addresses, so each buffer gets an interval of 2^33 synthetic ones (more
 * than one where it is longer) from 2^40 on, far above any device address. Such an address serves
 * copies and stream memory operations, not kernels: their memory is the device's.
 */
import type { ByteSpace } from './byte-space.js';

export const HOST_BASE = 2 ** 40;
const HOST_STRIDE = 2 ** 33;

function intervals(buffer: SharedArrayBuffer): number {
  return Math.max(1, Math.ceil(buffer.byteLength / HOST_STRIDE));
}

export interface HostRange {
  readonly address: number;
  readonly bytes: number;
  readonly origin: 'registered' | 'allocated';
}

export class HostBuffer implements ByteSpace {
  readonly kind = 'host';
  readonly origin: number;
  readonly buffer: SharedArrayBuffer;
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  /** The ranges in address order; they never overlap. */
  readonly ranges: HostRange[] = [];

  constructor(origin: number, buffer: SharedArrayBuffer) {
    this.origin = origin;
    this.buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.words = new Int32Array(buffer, 0, Math.floor(buffer.byteLength / 4));
  }

  fill(at: number, byte: number, bytes: number): void {
    this.bytes.fill(byte, at, at + bytes);
  }

  move(to: number, from: number, bytes: number): void {
    this.bytes.copyWithin(to, from, from + bytes);
  }

  /** Returns the range that contains all of [address, address + bytes). */
  holding(address: number, bytes: number): HostRange | undefined {
    return this.ranges.find(
      (range) => address >= range.address && address + bytes <= range.address + range.bytes,
    );
  }
}

export class HostMemory {
  /** A buffer keeps its addresses as long as it exists, since it may be registered again. */
  private readonly known = new WeakMap<SharedArrayBuffer, HostBuffer>();
  /** Buffers with at least one range, by interval. Only these are kept from being collected. */
  private readonly active = new Map<number, HostBuffer>();
  private nextInterval = 0;

  bufferOf(buffer: SharedArrayBuffer): HostBuffer {
    let known = this.known.get(buffer);
    if (known === undefined) {
      known = new HostBuffer(HOST_BASE + this.nextInterval * HOST_STRIDE, buffer);
      this.nextInterval += intervals(buffer);
      this.known.set(buffer, known);
    }
    return known;
  }

  /** Adds a range; undefined where part of it was added before. */
  add(
    buffer: SharedArrayBuffer,
    byteOffset: number,
    bytes: number,
    origin: HostRange['origin'],
  ): HostRange | undefined {
    const host = this.bufferOf(buffer);
    const address = host.origin + byteOffset;
    if (
      host.ranges.some(
        (range) => address < range.address + range.bytes && range.address < address + bytes,
      )
    )
      return undefined;
    const range: HostRange = { address, bytes, origin };
    host.ranges.push(range);
    host.ranges.sort((a, b) => a.address - b.address);
    for (let i = 0; i < intervals(buffer); i++)
      this.active.set(this.interval(host.origin) + i, host);
    return range;
  }

  /** Removes the range that begins at `address`; false where there is none of that origin. */
  remove(address: number, origin: HostRange['origin']): boolean {
    const host = this.hostOf(address);
    const index =
      host?.ranges.findIndex((range) => range.address === address && range.origin === origin) ?? -1;
    if (host === undefined || index < 0) return false;
    host.ranges.splice(index, 1);
    if (host.ranges.length === 0)
      for (let i = 0; i < intervals(host.buffer); i++)
        this.active.delete(this.interval(host.origin) + i);
    return true;
  }

  hostOf(address: number): HostBuffer | undefined {
    return this.active.get(this.interval(address));
  }

  private interval(address: number): number {
    return Math.floor((address - HOST_BASE) / HOST_STRIDE);
  }
}
