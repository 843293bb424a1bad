/**
 * The primary context of a device: its memory, its streams, and the fault that ends it. Resetting
 * the device ends it, too; retaining the device again makes a new one with memory of its own.
 */
import { CUlimit } from '../attributes.js';
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from '../flags.js';
import { CUresult } from '../../ground/result.js';
import { Checker } from './check/checker.js';
import type { CheckReport } from '../../ground/check-report.js';
import type { Crew } from './crew/crew.js';
import type { CpuDevice } from './device.js';
import { fail } from './failure.js';
import type { Capture } from './streams/capture.js';
import { FailedAssertions } from './kernels/assertions.js';
import { BlockSlots } from './kernels/block-slots.js';
import type { KernelHeap } from './kernels/host-functions.js';
import type { KernelContext } from './kernels/kernel-context.js';
import type { Machine } from './machine.js';
import type { DeviceMemory } from './memory/device-memory.js';
import type { MemoryPool } from './memory/pool.js';
import { AfterWork, AfterWorkOperation } from './streams/free-operation.js';
import { WaitOperation } from './streams/event.js';
import type { Operation } from './streams/operation.js';
import { Stream } from './streams/stream.js';

/**
 * Milliseconds without any operation ending after which memory counts as used up: a kernel may run
 * for ever.
 */
const PATIENCE = 1000;

export class CpuContext implements KernelContext {
  readonly handle: number;
  readonly device: CpuDevice;
  readonly machine: Machine;
  readonly memory: DeviceMemory;
  readonly slots: BlockSlots;
  /** The threads that run blocks besides this one, once a grid has run long enough to need them. */
  crew: Crew | undefined = undefined;
  /** The values of cuCtxGetLimit, by limit; others are unsupported. */
  readonly limits = new Map<number, number>([
    [CUlimit.CU_LIMIT_STACK_SIZE, 1024],
    [CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE, 2 ** 20],
    [CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE, 8 * 2 ** 20],
    [CUlimit.CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64],
    [CUlimit.CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0],
  ]);
  /** All streams that live or still have work. */
  readonly streams = new Set<Stream>();
  readonly captures = new Set<Capture>();
  readonly legacy: Stream;
  readonly perThread: Stream;
  /** The memory of `malloc` in kernels, once a module that uses it is loaded. */
  heap: KernelHeap | undefined = undefined;
  readonly failedAssertions: FailedAssertions = new FailedAssertions(this);
  launches = 0;
  /** The number of frees that wait for queued work. */
  private deferred = 0;
  destroyed = false;
  /** The first fault. Every later call returns it. */
  fault: { result: CUresult; detail: string; reports?: readonly CheckReport[] } | undefined =
    undefined;
  /** Checks all work, on a device that is checked. */
  readonly checker: Checker | undefined;

  constructor(handle: number, device: CpuDevice, machine: Machine, memory: DeviceMemory) {
    this.handle = handle;
    this.device = device;
    this.machine = machine;
    this.memory = memory;
    this.slots = new BlockSlots(memory);
    this.legacy = new Stream(CU_STREAM_LEGACY, this, 0, 0);
    this.perThread = new Stream(CU_STREAM_PER_THREAD, this, 0, 0);
    this.streams.add(this.legacy).add(this.perThread);
    const { check, seed } = machine.services;
    this.checker = check === undefined ? undefined : new Checker(this, check, seed);
    memory.watch = this.checker;
  }

  /**
   * Queues an operation outside any capture and returns its number in the stream. The legacy stream
   * waits for the queued work of the blocking streams, and they for its.
   */
  enqueue(stream: Stream, operation: Operation): number {
    const { legacy } = this;
    if (this.checker !== undefined) this.noteOrder(this.checker, stream);
    if (stream === legacy) {
      for (const other of this.streams) {
        if (
          other === legacy ||
          !other.blocking ||
          other.submitted === other.completed ||
          other.seenByLegacy === other.submitted
        )
          continue;
        other.seenByLegacy = other.submitted;
        this.push(legacy, WaitOperation.take(other, other.submitted));
      }
    } else if (
      legacy.submitted !== legacy.completed &&
      stream.blocking &&
      stream.legacySeen !== legacy.submitted
    ) {
      stream.legacySeen = legacy.submitted;
      this.push(stream, WaitOperation.take(legacy, legacy.submitted));
    }
    return this.push(stream, operation);
  }

  /**
   * Records the work that the next queued operation comes after, whether or not any of it is left
   * to wait for.
   */
  private noteOrder({ order }: Checker, stream: Stream): void {
    const { legacy } = this;
    const after =
      stream === legacy
        ? [...this.streams].filter((other) => other !== legacy && other.blocking)
        : stream.blocking
          ? [legacy]
          : [];
    order.queued(stream, stream.submitted + 1, after);
  }

  private push(stream: Stream, operation: Operation): number {
    const wasIdle = stream.idle;
    const sequence = stream.push(operation);
    if (wasIdle) this.machine.scheduler.wake(stream);
    return sequence;
  }

  /** Runs `action` when everything that is queued now in any stream of the driver has ended. */
  afterQueuedWork(action: () => void): void {
    const { streams } = this.machine.scheduler;
    if (streams.length === 0) {
      action();
      return;
    }
    this.deferred++;
    const work = new AfterWork(streams.length, () => {
      this.deferred--;
      action();
    });
    for (const stream of streams) stream.push(new AfterWorkOperation(work));
  }

  /** A kernel faulted: the context is lost, and all its queued work with it. */
  raise(result: CUresult, detail: string, reports?: readonly CheckReport[]): void {
    const { seed } = this.machine.services;
    if (seed !== undefined && reports === undefined) detail += ` (schedule: { seed: ${seed} })`;
    this.fault = { result, detail, ...(reports === undefined ? {} : { reports }) };
    // Text that was printed before the fault is not lost.
    this.crew?.readAllTexts();
    this.crew?.end();
    this.dropWork();
  }

  dropWork(): void {
    for (const stream of this.streams) stream.drop();
    this.machine.scheduler.sweep();
  }

  /** Passes on what a kernel printed. An exception of the callback does not fail the kernel. */
  print(text: string): void {
    try {
      this.machine.services.print(text);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  checkFault(call: string): void {
    if (this.fault !== undefined)
      fail(call, this.fault.result, this.fault.detail, this.fault.reports);
  }

  destroy(): void {
    this.destroyed = true;
    if (this.fault === undefined) this.checker?.leaks();
    this.crew?.end();
    this.dropWork();
    for (const capture of this.captures) capture.invalidate();
  }

  /**
   * Returns the result of `attempt`; where memory is short, it tries once more after `pool` has
   * returned its unused memory. It does nothing else for a stream-ordered allocation, which must
   * not wait.
   */
  obtainOrdered<T>(pool: MemoryPool, attempt: () => T | undefined): T | undefined {
    const got = attempt();
    if (got !== undefined) return got;
    this.slots.trim();
    pool.trim(this.memory, 0);
    return attempt();
  }

  /**
   * Returns the result of `attempt`; where memory is short, it tries once more after unused memory
   * has been returned, and then after every step of work for as long as frees are queued. A GPU's
   * driver waits in the same situation.
   */
  obtain<T>(attempt: () => T | undefined): T | undefined {
    let got = attempt();
    if (got !== undefined) return got;
    this.slots.trim();
    for (const pool of this.machine.pools.values())
      if (pool.device === this.device) pool.trim(this.memory, 0);
    got = attempt();
    const { scheduler } = this.machine;
    let { completions } = scheduler;
    let quietSince = scheduler.slice.now();
    while (got === undefined && this.frees() && scheduler.run(1000)) {
      got = attempt();
      if (scheduler.completions !== completions) {
        completions = scheduler.completions;
        quietSince = scheduler.slice.now();
      } else if (scheduler.slice.now() - quietSince > PATIENCE) {
        break;
      }
    }
    return got ?? attempt();
  }

  private frees(): boolean {
    if (this.deferred > 0) return true;
    for (const stream of this.streams) if (stream.pendingFrees.size > 0) return true;
    return false;
  }

  outOfMemory(call: string, bytes: number): never {
    const { memory } = this;
    fail(
      call,
      CUresult.CUDA_ERROR_OUT_OF_MEMORY,
      `${bytes} bytes were requested; of ${memory.capacity} bytes ${memory.freeBytes} are ` +
        `free, the largest range ${memory.largestFree()}`,
    );
  }
}
