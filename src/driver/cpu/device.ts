/**
 * One embedded device: its properties, its interval of addresses, its primary context and its
 * memory pools.
 */
import { CUresult } from '../../ground/result.js';
import { CpuContext } from './context.js';
import { fail } from './failure.js';
import type { Machine } from './machine.js';
import { DeviceMemory } from './memory/device-memory.js';
import { MemoryPool } from './memory/pool.js';
import type { PoolDevice } from './memory/pool.js';

export const DEVICE_NAME = 'async-cuda CPU device';

interface DeviceLimits {
  readonly base: number;
  readonly memoryBytes: number;
  readonly multiprocessors: number;
  /** 90 for 9.0 */
  readonly computeCapability: number;
}

export class CpuDevice implements PoolDevice {
  readonly ordinal: number;
  readonly machine: Machine;
  /** The first of its addresses. */
  readonly base: number;
  readonly memoryBytes: number;
  readonly multiprocessors: number;
  readonly computeCapability: number;
  readonly defaultPool: MemoryPool;
  pool: MemoryPool;
  context: CpuContext | undefined = undefined;
  flags = 0;
  private retained = 0;

  constructor(
    machine: Machine,
    ordinal: number,
    { base, memoryBytes, multiprocessors, computeCapability }: DeviceLimits,
  ) {
    this.machine = machine;
    this.ordinal = ordinal;
    this.base = base;
    this.memoryBytes = memoryBytes;
    this.multiprocessors = multiprocessors;
    this.computeCapability = computeCapability;
    this.defaultPool = new MemoryPool(machine.newHandle(), this, 0, true);
    this.pool = this.defaultPool;
    machine.pools.set(this.defaultPool.handle, this.defaultPool);
  }

  /** The text 'async-cuda CPU ' and the ordinal: the same for the same device of every process. */
  get uuid(): Uint8Array {
    const uuid = new TextEncoder().encode('async-cuda CPU  ');
    uuid[15] = this.ordinal;
    return uuid;
  }

  get busId(): string {
    return `0000:${(0xc0 + this.ordinal).toString(16).toUpperCase().padStart(2, '0')}:00.0`;
  }

  retain(call: string): CpuContext {
    this.retained++;
    if (this.context === undefined) {
      let memory: DeviceMemory;
      try {
        memory = new DeviceMemory(
          this.base,
          this.memoryBytes,
          this.machine.services.askForLargePages,
        );
      } catch (cause) {
        this.retained--;
        return fail(
          call,
          CUresult.CUDA_ERROR_OUT_OF_MEMORY,
          `the machine cannot reserve ${this.memoryBytes} bytes for the device ` +
            `(${String(cause)}); give it less with memoryBytes`,
        );
      }
      this.context = new CpuContext(this.machine.newHandle(), this, this.machine, memory);
      this.machine.contexts.set(this.context.handle, this.context);
    }
    return this.context;
  }

  release(call: string): void {
    if (this.retained === 0)
      fail(call, CUresult.CUDA_ERROR_INVALID_CONTEXT, 'the primary context is not retained');
    if (--this.retained === 0) this.reset();
  }

  /** Ends the primary context with everything that belongs to it, even if it is still retained. */
  reset(): void {
    const { context, machine } = this;
    this.retained = 0;
    if (context === undefined) return;
    this.context = undefined;
    context.destroy();
    machine.forgetContext(context);
    for (const [handle, pool] of machine.pools) {
      if (pool.device !== this) continue;
      pool.forget();
      if (!pool.isDefault) machine.pools.delete(handle);
    }
    this.pool = this.defaultPool;
  }
}
