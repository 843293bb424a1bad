/**
 * A context as kernels, and what runs and checks them, use it. `../context.ts` implements it.
 */
import type { CheckReport } from '../../../ground/check-report.js';
import type { CUresult } from '../../../ground/result.js';
import type { Allocation } from '../memory/device-memory.js';
import type { Schedule } from '../schedule.js';
import type { MachineServices } from '../services.js';
import type { Scheduler } from '../streams/scheduler.js';
import type { Stream } from '../streams/stream.js';
import type { StreamChecker, StreamContext, StreamMachine } from '../streams/stream-context.js';
import type { FailedAssertions } from './assertions.js';
import type { BlockSlots, SlotLayout } from './block-slots.js';
import type { KernelHeap } from './host-functions.js';
import type { CodeModule } from './kernel-code.js';
import type { KernelFunction } from './kernel-function.js';
import type { LaunchWatch, WatchedLaunch } from './launch-watch.js';
import type { CpuKernel, CpuLibrary } from './library.js';
import type { CpuModule } from './module.js';

export interface KernelContext extends StreamContext {
  readonly device: StreamContext['device'] & { readonly multiprocessors: number };
  readonly machine: KernelMachine;
  readonly slots: BlockSlots;
  /** The threads that run blocks besides this one; `../crew/crew.ts` makes them. */
  crew: KernelCrew | undefined;
  /** The values of cuCtxGetLimit, by limit. */
  readonly limits: ReadonlyMap<number, number>;
  /** The memory of `malloc` in kernels, once a module that uses it is loaded. */
  heap: KernelHeap | undefined;
  readonly failedAssertions: FailedAssertions;
  /** The number of launches so far. */
  launches: number;
  readonly destroyed: boolean;
  readonly checker: KernelChecker | undefined;
  /** Passes on what a kernel printed. */
  print(text: string): void;
  /** A kernel faulted: the context is lost, and all its queued work with it. */
  raise(result: CUresult, detail: string, reports?: readonly CheckReport[]): void;
}

/** The driver's state that kernels use. */
export interface KernelMachine extends StreamMachine {
  readonly services: MachineServices;
  readonly schedule: Schedule | undefined;
  readonly scheduler: Scheduler;
  readonly modules: Map<number, CpuModule>;
  readonly functions: Map<number, KernelFunction>;
  readonly libraries: Map<number, CpuLibrary>;
  readonly kernels: Map<number, CpuKernel>;
}

/** The threads that run blocks, as modules use them. */
export interface KernelCrew {
  /** The module is unloaded. */
  forget(module: CodeModule): void;
}

/** The checker as kernels call it. */
export interface KernelChecker extends StreamChecker {
  /** Returns what code that was compiled with `check` imports. */
  imports(): Record<string, (...args: number[]) => unknown>;
  /** Begins to watch a launch; undefined for code that was compiled without `check`. */
  beginLaunch(operation: WatchedLaunch, stream: Stream | undefined): LaunchWatch | undefined;
  /**
   * A block begins at the address of its context: nothing in its shared memory and frames has been
   * written.
   */
  beginBlock(launch: LaunchWatch, address: number, layout: SlotLayout): void;
  /** These words are the barrier of a cooperative launch's blocks; they are initialised. */
  workspace(address: number, bytes: number): void;
  /** The block whose context is at this address has ended. */
  endBlock(address: number): void;
  /** Whether the launch has to end now: it read memory that was never written, and goes on. */
  isOverdue(launch: LaunchWatch, now: number): boolean;
  endLaunch(launch: LaunchWatch): void;
  /** Returns reports of the fault, where it is one that the checker describes. */
  describeFault(
    launch: LaunchWatch,
    ctx: number,
    kind: number,
    thread: number,
    line: number,
    exact: bigint,
  ): readonly CheckReport[];
  /** Returns reports of a grid whose blocks all wait; `waiting` are their contexts. */
  describeStall(
    launch: LaunchWatch,
    waiting: readonly number[],
    unstarted: number,
    milliseconds: number,
  ): readonly CheckReport[];
  /** Returns the findings of a launch that fails. */
  fail(launch: LaunchWatch): readonly CheckReport[];
  /** `malloc` of a kernel returned this block. */
  heapTaken(address: number, bytes: number): void;
  /** Whether `free` of a kernel may free this block; where it may not, that is reported. */
  heapFreed(address: number): boolean;
  /** A module's variables are in this allocation. */
  placed(allocation: Allocation, module: CpuModule): void;
}
