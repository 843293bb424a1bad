/** Memory pools: the source of stream-ordered allocations. */
import { CudaDisposedError } from '../ground/errors.js';
import { checkBoolean, checkInteger, checkOptions, invalid } from '../ground/arguments.js';
import type { CoreDevice } from './device.js';
import type { Stream } from './stream.js';
import { CudaError } from '../ground/errors.js';
import { grantPeers } from './peer-access.js';

/** Options of {@link CoreDevice.createPool}. */
export interface PoolOptions {
  /** The most bytes that the pool may hold. Default 0: only the device's memory limits it. */
  maxBytes?: number;
  /**
   * Bytes that the pool keeps, instead of returning them to the driver, when a stream synchronises.
   * Default: Infinity.
   */
  releaseThreshold?: number;
}

/** Numbers of bytes. cuMemPoolGetAttribute */
export interface PoolStatistics {
  /** Bytes that the pool holds, used or not. */
  reserved: number;
  /** The most that the pool held. */
  reservedHigh: number;
  /** Bytes in use by allocations. */
  used: number;
  /** The most that was in use. */
  usedHigh: number;
}

/** CUmemPool_attribute */
const RELEASE_THRESHOLD = 4;
const RESERVED = 5;
const RESERVED_HIGH = 6;
const USED = 7;
const USED_HIGH = 8;
/** The attributes of {@link MemoryPool.reuse}: CUmemPool_attribute. */
const REUSE = {
  followEventDependencies: 1,
  allowOpportunistic: 2,
  allowInternalDependencies: 3,
} as const;

/** The ways in which another stream may get memory that a stream has freed. All are on at first. */
export interface PoolReuse {
  /**
   * Reuse where the other stream waits for an event after the free.
   * CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES
   */
  followEventDependencies?: boolean;
  /** Reuse where the free happens to have ended. CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC */
  allowOpportunistic?: boolean;
  /**
   * Reuse by making the other stream wait for the free.
   * CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
   */
  allowInternalDependencies?: boolean;
}

/** Checks a number of bytes, or Infinity, and returns it in the driver's form. */
export function checkedThreshold(argument: string, bytes: unknown): number {
  if (bytes === Infinity) return Number.MAX_SAFE_INTEGER;
  checkInteger(argument, bytes, 0, Number.MAX_SAFE_INTEGER, 'bytes');
  return bytes;
}

/**
 * A pool of device memory. `device.pool()` is the device's own; {@link CoreDevice.createPool} makes
 * others.
 *
 * @example
 * ```ts
 * await using pool = await device.createPool();
 * using x = device.alloc(f32, 1024, { pool });
 * await x.allocated();
 * console.log((await pool.statistics()).used >= 4096); // true
 * ```
 */
export class MemoryPool implements AsyncDisposable {
  readonly device: CoreDevice;
  /** @internal */
  readonly handle: number;
  /** The driver's handle. @internal */
  readonly pool: number;
  private readonly ownedByDevice: boolean;
  private closed = false;
  private ending: Promise<void> | undefined = undefined;
  private allocations = 0;
  /** Streams that were open when the last allocation was freed. */
  private streams: readonly Stream[] | undefined = undefined;
  private ended: (() => void) | undefined = undefined;

  /** @internal */
  constructor(device: CoreDevice, pool: number, ownedByDevice: boolean) {
    this.device = device;
    this.pool = pool;
    this.ownedByDevice = ownedByDevice;
    this.handle = device.runtime.handles.adopt(pool);
  }

  /** Numbers of the pool's memory. cuMemPoolGetAttribute */
  async statistics(): Promise<PoolStatistics> {
    this.check();
    const { runtime } = this.device;
    const [reserved, reservedHigh, used, usedHigh] = await Promise.all(
      [RESERVED, RESERVED_HIGH, USED, USED_HIGH].map((attribute) =>
        runtime.call('poolAttribute', this.pool, attribute),
      ),
    );
    return { reserved: reserved!, reservedHigh: reservedHigh!, used: used!, usedHigh: usedHigh! };
  }

  /**
   * Sets {@link PoolStatistics.reservedHigh} and {@link PoolStatistics.usedHigh} to what is held
   * and used now. cuMemPoolSetAttribute
   */
  async resetHigh(): Promise<void> {
    this.check();
    const { runtime } = this.device;
    await Promise.all(
      [RESERVED_HIGH, USED_HIGH].map((attribute) =>
        runtime.call('setPoolAttribute', this.pool, attribute, 0),
      ),
    );
  }

  /** Returns unused memory to the driver until `keepBytes` remain. cuMemPoolTrimTo */
  async trim(keepBytes = 0): Promise<void> {
    this.check();
    checkInteger('keepBytes', keepBytes, 0, Number.MAX_SAFE_INTEGER, 'bytes');
    await this.device.runtime.call('trimPool', this.pool, keepBytes, handlesOf(this.device));
  }

  /**
   * The bytes that {@link setReleaseThreshold} has set; Infinity for all.
   * CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
   */
  async releaseThreshold(): Promise<number> {
    this.check();
    const bytes = await this.device.runtime.call('poolAttribute', this.pool, RELEASE_THRESHOLD);
    return bytes >= Number.MAX_SAFE_INTEGER ? Infinity : bytes;
  }

  /**
   * Sets the bytes that the pool keeps when a stream synchronises, Infinity for all. The device's
   * own pool keeps as many when the device is idle, where it otherwise keeps none.
   * CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
   */
  async setReleaseThreshold(bytes: number): Promise<void> {
    this.check();
    await this.device.runtime.call(
      'setPoolAttribute',
      this.pool,
      RELEASE_THRESHOLD,
      checkedThreshold('bytes', bytes),
    );
  }

  /** The ways of reuse that are on. cuMemPoolGetAttribute */
  async reuse(): Promise<Required<PoolReuse>> {
    this.check();
    const { runtime } = this.device;
    const values = await Promise.all(
      Object.values(REUSE).map((attribute) => runtime.call('poolAttribute', this.pool, attribute)),
    );
    return Object.fromEntries(
      Object.keys(REUSE).map((name, i) => [name, values[i] !== 0]),
    ) as unknown as Required<PoolReuse>;
  }

  /**
   * Switches ways of reuse on or off; those that are not named do not change. cuMemPoolSetAttribute
   */
  async setReuse(switches: PoolReuse): Promise<void> {
    this.check();
    if (switches === undefined)
      throw invalid('switches', `an object with ${Object.keys(REUSE).join(', ')}`, switches);
    checkOptions('switches', switches, Object.keys(REUSE));
    for (const [name, on] of Object.entries(switches)) checkBoolean(`switches.${name}`, on);
    const { runtime } = this.device;
    const named = Object.entries(switches).filter(([, on]) => on !== undefined);
    await Promise.all(
      named.map(([name, on]) =>
        runtime.call(
          'setPoolAttribute',
          this.pool,
          REUSE[name as keyof PoolReuse],
          on === true ? 1 : 0,
        ),
      ),
    );
  }

  /** Destroys the pool once its buffers are freed. The device's own pool stays. cuMemPoolDestroy */
  async close(): Promise<void> {
    if (this.ownedByDevice) return;
    this.closed = true;
    this.ending ??= this.end();
    await this.ending;
  }

  private async end(): Promise<void> {
    const { runtime } = this.device;
    if (runtime.lost !== undefined) return;
    if (this.allocations > 0) await new Promise<void>((resolve) => (this.ended = resolve));
    // These are the streams that were open then: the device may be closing, and its streams be
    // closed by now.
    const streams = this.streams ?? [...this.device.objects.streams];
    await Promise.all(streams.map((stream) => stream.passed(stream.mark)));
    runtime.handles.drop(this.handle);
    // The pool is removed only now, because a device that is closed meanwhile waits for this, too.
    this.device.objects.createdPools.delete(this);
    await runtime.call('destroyPool', this.pool);
  }

  /** Calls {@link close}, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Whether {@link close} was called. */
  get isClosed(): boolean {
    return this.closed;
  }

  toString(): string {
    return (
      'MemoryPool of ' +
      `${this.device.name}${this.ownedByDevice ? ', its own' : ''}${this.closed ? ', closed' : ''}`
    );
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString();
  }

  /** @internal */
  check(): void {
    if (this.closed)
      throw new CudaDisposedError(
        'pool: used after it was closed. Make another with await device.createPool().',
      );
    this.device.check();
  }

  /** @internal */
  allocated(): void {
    this.allocations++;
    this.streams = undefined;
  }

  /** @internal */
  freed(): void {
    if (--this.allocations > 0) return;
    this.streams = [...this.device.objects.streams];
    this.ended?.();
  }
}

/** Makes a pool: {@link CoreDevice.createPool}. @internal */
export async function createPool(device: CoreDevice, options: PoolOptions): Promise<MemoryPool> {
  checkOptions('options', options, ['maxBytes', 'releaseThreshold']);
  const { maxBytes = 0, releaseThreshold = Infinity } = options;
  if (!device.shared.pools)
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `${device.name} has no memory pools here; allocate without one`,
    );
  checkInteger('options.maxBytes', maxBytes, 0, Number.MAX_SAFE_INTEGER, 'bytes');
  const threshold = checkedThreshold('options.releaseThreshold', releaseThreshold);
  const handle = await device.runtime.call(
    'createPool',
    device.runtime.info.device,
    maxBytes,
    threshold,
  );
  const pool = new MemoryPool(device, handle, false);
  device.objects.createdPools.add(pool);
  await grantPeers(device.shared, handle);
  return pool;
}

/** Driver handles of the streams whose work has been seen to end. */
function handlesOf({ objects, runtime }: CoreDevice): number[] {
  return objects
    .idleStreams()
    .map(({ slot }) => runtime.shared.streams[slot.index]!)
    .filter((handle) => handle !== 0);
}
