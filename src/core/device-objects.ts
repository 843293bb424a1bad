/** What was made from a device and is not closed: streams, allocations, pools, and all else. */
import { AdoptedMemory } from './adopted-memory.js';
import type { Allocation } from './memory.js';
import type { MemoryLedger } from './memory-ledger.js';
import type { MemoryPool } from './pool.js';
import { StreamCounts } from './stats.js';
import type { Stream } from './stream.js';

/** An object that closing the device closes. */
export interface Closable {
  close(): Promise<void>;
}

export class DeviceObjects {
  readonly streams: Set<Stream> = new Set();
  readonly allocations: Set<Allocation> = new Set();
  /** Modules, graphs, arrays, textures and the like. */
  readonly owned: Set<Closable> = new Set();
  /** Memory that is freed by calls that have not ended. */
  readonly frees: Set<Promise<void>> = new Set();
  readonly createdPools: Set<MemoryPool> = new Set();
  /** Counts of closed streams. */
  readonly streamCounts: StreamCounts = new StreamCounts();
  private readonly pools = new Map<Allocation, MemoryPool>();
  private readonly ledger: MemoryLedger;

  constructor(ledger: MemoryLedger) {
    this.ledger = ledger;
  }

  /** Closing the device closes `object`. */
  own(object: Closable): void {
    this.owned.add(object);
  }

  disown(object: Closable): void {
    this.owned.delete(object);
  }

  /** An allocation, from `pool` where the program named one. */
  allocated(memory: Allocation, pool?: MemoryPool): void {
    this.allocations.add(memory);
    this.ledger.take(memory);
    if (pool === undefined) return;
    pool.allocated();
    this.pools.set(memory, pool);
  }

  freed(allocation: Allocation): void {
    this.allocations.delete(allocation);
    // Adopted memory was never counted.
    if (allocation instanceof AdoptedMemory) return;
    this.ledger.give(allocation);
    const pool = this.pools.get(allocation);
    if (pool === undefined) return;
    this.pools.delete(allocation);
    pool.freed();
  }

  /** The memory is returned when the device is closed, if not before. */
  adopted(memory: AdoptedMemory): void {
    this.allocations.add(memory);
  }

  /** Closing the device waits for `end`. */
  freeing(end: Promise<void>): void {
    this.frees.add(end);
    end.catch(() => undefined).finally(() => this.frees.delete(end));
  }

  /** Counts the work of a stream that was closed. */
  removeStream(stream: Stream): void {
    this.streams.delete(stream);
    this.streamCounts.add(stream);
  }

  /** Streams whose work has been seen to end. */
  idleStreams(): Stream[] {
    return [...this.streams].filter(
      (stream) => stream.capturing === undefined && stream.hasPassed(stream.mark),
    );
  }

  /** Streams with frees whose end has not been seen. */
  freeingStreams(): Stream[] {
    return [...this.streams].filter(
      (stream) => stream.capturing === undefined && !stream.hasPassed(stream.lastFree),
    );
  }

  /** Driver handles of the pools that were made here. */
  poolHandles(): number[] {
    return [...this.createdPools].map(({ pool }) => pool);
  }

  /** Handles and labels of the allocations. */
  labels(): [number, string][] {
    return [...this.allocations].flatMap(({ handle, label }): [number, string][] =>
      label === undefined ? [] : [[handle, label]],
    );
  }
}
