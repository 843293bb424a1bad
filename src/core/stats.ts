/**
 * The numbers of a device: {@link Device.stats}.
 */
import { WORD } from '../runtime/layout.js';
import { CopyCounts } from './counts.js';
import type { CopyCount } from './counts.js';
import type { MemoryLedger } from './memory-ledger.js';
import type { MemoryPool } from './pool.js';
import type { Stream } from './stream.js';

/** What {@link Device.stats} gives: of this `Device` from its opening on, frozen. */
export interface DeviceStats {
  /** Kernels that were launched; not those that were recorded into graphs. */
  readonly launches: number;
  /** Graphs that were launched. */
  readonly graphLaunches: number;
  /**
   * Copies that were queued, by direction: `peer` is from another device. Those recorded into
   * graphs do not count.
   */
  readonly copies: {
    readonly hostToDevice: CopyCount;
    readonly deviceToHost: CopyCount;
    readonly deviceToDevice: CopyCount;
    readonly peer: CopyCount;
  };
  /**
   * Pieces of memory that were ever made: buffers, images, arrays, managed and page-locked memory.
   * Allocations that failed are none, as soon as that is known.
   */
  readonly allocations: number;
  /** Bytes. */
  readonly memory: {
    /**
     * Held by what is not closed, page-locked memory apart; as asked for, before any rounding. What
     * an allocation asked for that failed counts until that is known.
     */
    readonly inUse: number;
    /** The most that {@link inUse} has been. */
    readonly peak: number;
    /** Page-locked, by {@link Device.pinned}. */
    readonly pinned: number;
    /**
     * Held and used by the device's pools, its own and those of {@link Device.createPool}; of all
     * that are open on it. Undefined where the platform has no pools. cuMemPoolGetAttribute
     */
    readonly poolReserved: number | undefined;
    readonly poolUsed: number | undefined;
  };
  /** What is open. */
  readonly live: {
    /** {@link Device.stream} included. */
    readonly streams: number;
    /** Buffers, images, arrays and managed buffers; a view is none of its own. */
    readonly buffers: number;
    readonly pinnedBuffers: number;
    readonly modules: number;
    /** Kernels that were asked for, of open modules. */
    readonly kernels: number;
    readonly graphs: number;
  };
  /** What is on its way; of all that are open on the device. */
  readonly queue: {
    /** Fences that were not seen to be passed: about as many as there are waits. */
    readonly fences: number;
    /** Commands that did not fit into the ring and wait on the JavaScript side. */
    readonly spilled: number;
    /**
     * Streams that hold their commands back on the runtime thread: too much unfinished work, or a
     * transfer under way.
     */
    readonly parkedStreams: number;
  };
}

/** What the device itself knows. */
export interface Counted {
  readonly streams: readonly Stream[];
  /** Of streams that are closed. */
  readonly before: StreamCounts;
  readonly ledger: MemoryLedger;
  readonly live: Pick<DeviceStats['live'], 'modules' | 'kernels' | 'graphs'>;
  readonly pools: Promise<readonly MemoryPool[]>;
}

/** What streams have done. */
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

/** The numbers as of now, but for the pools', which are asked for. */
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
