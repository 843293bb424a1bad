/** The numbers of a device: `CoreDevice.stats`. */
import { WORD } from '../runtime/layout.js';
import { CopyCounts } from './counts.js';
import type { CopyCount } from './counts.js';
import type { MemoryLedger } from './memory-ledger.js';
import type { MemoryPool } from './pool.js';
import type { Stream } from './stream.js';

/** The result of `CoreDevice.stats`: numbers of this `Device` since it was opened, frozen. */
export interface DeviceStats {
  /** Kernels that were launched, without those that were recorded into graphs. */
  readonly launches: number;
  /** Graphs that were launched. */
  readonly graphLaunches: number;
  /**
   * Copies that were queued, by direction; `peer` is from another device. Copies that were recorded
   * into graphs do not count.
   */
  readonly copies: {
    readonly hostToDevice: CopyCount;
    readonly deviceToHost: CopyCount;
    readonly deviceToDevice: CopyCount;
    readonly peer: CopyCount;
  };
  /**
   * Pieces of memory that were ever allocated: buffers, images, arrays, managed and page-locked
   * memory. A failed allocation does not count once the failure is known.
   */
  readonly allocations: number;
  /** Numbers of bytes. */
  readonly memory: {
    /**
     * Bytes of memory that is not closed, page-locked memory apart, as requested, before rounding.
     * A failed allocation counts until the failure is known.
     */
    readonly inUse: number;
    /** The peak of `inUse`. */
    readonly peak: number;
    /** Page-locked memory of `CoreDevice.pinned`. */
    readonly pinned: number;
    /**
     * Bytes that the device's pools hold and use: its own pool and those of
     * `CoreDevice.createPool`, of all Devices that are open on it. Undefined where the platform
     * has no pools. cuMemPoolGetAttribute
     */
    readonly poolReserved: number | undefined;
    readonly poolUsed: number | undefined;
  };
  /** Numbers of open objects. */
  readonly live: {
    /** Streams, `CoreDevice.stream` included. */
    readonly streams: number;
    /** Buffers, images, arrays and managed buffers, without views. */
    readonly buffers: number;
    readonly pinnedBuffers: number;
    readonly modules: number;
    /** Kernels of open modules for which `module.kernel()` was called. */
    readonly kernels: number;
    readonly graphs: number;
  };
  /** The queue of all Devices that are open on the device. */
  readonly queue: {
    /** Fences whose end was not seen: about as many as there are waits. */
    readonly fences: number;
    /** Commands that did not fit into the ring, and wait on the JavaScript side. */
    readonly spilled: number;
    /**
     * Streams whose commands the runtime thread holds back, because of too much unfinished work or
     * a transfer.
     */
    readonly parkedStreams: number;
  };
}

/** The inputs of {@link statsOf} from the device. */
export interface Counted {
  readonly streams: readonly Stream[];
  /** The counts of closed streams. */
  readonly before: StreamCounts;
  readonly ledger: MemoryLedger;
  readonly live: Pick<DeviceStats['live'], 'modules' | 'kernels' | 'graphs'>;
  readonly pools: Promise<readonly MemoryPool[]>;
}

/** Counts of the work of streams. */
export class StreamCounts {
  launches = 0;
  graphLaunches = 0;
  readonly copies = new CopyCounts();

  add(stream: Stream): void {
    this.launches += stream.launches;
    this.graphLaunches += stream.graphLaunches;
    this.copies.merge(stream.copies);
  }

  merge(other: StreamCounts): void {
    this.launches += other.launches;
    this.graphLaunches += other.graphLaunches;
    this.copies.merge(other.copies);
  }
}

/** The numbers at the moment of the call, except the pools', which the driver gives. */
export async function statsOf({
  streams,
  before,
  ledger,
  live,
  pools,
}: Counted): Promise<DeviceStats> {
  const counts = new StreamCounts();
  counts.merge(before);
  for (const stream of streams) counts.add(stream);
  const { runtime } = streams[0]!;
  const { launches, graphLaunches } = counts;
  const copies: DeviceStats['copies'] = {
    hostToDevice: Object.freeze({ ...counts.copies.hostToDevice }),
    deviceToHost: Object.freeze({ ...counts.copies.deviceToHost }),
    deviceToDevice: Object.freeze({ ...counts.copies.deviceToDevice }),
    peer: Object.freeze({ ...counts.copies.peer }),
  };
  const { bytes: inUse, peakBytes: peak, made: allocations } = ledger.numbers();
  const memory = { inUse, peak, pinned: ledger.pinnedBytes };
  const { held: buffers, pinnedHeld: pinnedBuffers } = ledger;
  const queue = {
    fences: streams.reduce((sum, stream) => sum + stream.fencesOutstanding, 0),
    spilled: runtime.ring.waiting,
    parkedStreams: Atomics.load(runtime.shared.control, WORD.parked),
  };
  const numbers = { launches, graphLaunches, copies: Object.freeze(copies), allocations };
  const open = { streams: streams.length, buffers, pinnedBuffers, ...live };
  const pooled = await Promise.all((await pools).map((pool) => pool.statistics()));
  const sum = (of: 'reserved' | 'used'): number | undefined =>
    pooled.length === 0 ? undefined : pooled.reduce((total, each) => total + each[of], 0);
  return Object.freeze({
    ...numbers,
    memory: Object.freeze({ ...memory, poolReserved: sum('reserved'), poolUsed: sum('used') }),
    live: Object.freeze(open),
    queue: Object.freeze(queue),
  });
}
