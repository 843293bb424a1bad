/**
 * The state that all calls of one embedded driver share: its devices, its handles, the current
 * context and the scheduler. The lookups here are the checks that every call begins with, in the
 * driver's order: initialised, a current context, a context without a fault, a live handle of the
 * right kind.
 */
import { CU_STREAM_LEGACY, CU_STREAM_PER_THREAD } from '../flags.js';
import { CUresult } from '../../ground/result.js';
import type { CpuContext } from './context.js';
import type { CpuDevice } from './device.js';
import { fail, hex, invalidHandle, invalidValue } from './failure.js';
import type { Graph, GraphExec, GraphNode } from './streams/graph.js';
import type { CpuModule } from './kernels/module.js';
import type { KernelMachine } from './kernels/kernel-context.js';
import type { KernelFunction } from './kernels/kernel-function.js';
import type { CpuKernel, CpuLibrary } from './kernels/library.js';
import type { CpuArray } from './memory/array.js';
import type { ByteSpace } from './memory/byte-space.js';
import type { Allocation } from './memory/device-memory.js';
import { HOST_BASE, HostMemory } from './memory/host-memory.js';
import { PEER_BASE } from './memory/peer-memory.js';
import type { PeerMemory } from './memory/peer-memory.js';
import type { MemoryPool } from './memory/pool.js';
import { Schedule } from './schedule.js';
import type { MachineServices } from './services.js';
import type { CpuEvent } from './streams/event.js';
import { Scheduler } from './streams/scheduler.js';
import type { Stream } from './streams/stream.js';

/** The kinds of address that a call accepts. */
export type Residence = 'device' | 'host' | 'any';

export class Machine implements KernelMachine {
  readonly services: MachineServices;
  readonly devices: CpuDevice[] = [];
  readonly schedule: Schedule | undefined;
  readonly scheduler: Scheduler;
  readonly host = new HostMemory();
  readonly streams = new Map<number, Stream>();
  readonly events = new Map<number, CpuEvent>();
  readonly contexts = new Map<number, CpuContext>();
  /** Devices of other threads, by the handle of their context here. */
  readonly peers = new Map<number, PeerMemory>();
  readonly modules = new Map<number, CpuModule>();
  readonly functions = new Map<number, KernelFunction>();
  readonly libraries = new Map<number, CpuLibrary>();
  readonly kernels = new Map<number, CpuKernel>();
  readonly arrays = new Map<number, CpuArray>();
  /** Texture and surface objects, by their descriptors' addresses. */
  readonly textures = new Map<number, { context: CpuContext; allocation: Allocation }>();
  readonly pools = new Map<number, MemoryPool>();
  readonly graphs = new Map<number, Graph>();
  readonly graphNodes = new Map<number, GraphNode>();
  readonly graphExecs = new Map<number, GraphExec>();
  initialised = false;
  current: CpuContext | undefined = undefined;
  /** No handle is ever reused, and none is one of the driver's special ones. */
  private nextHandle = 0x1000;

  constructor(services: MachineServices) {
    this.services = services;
    this.schedule = services.seed === undefined ? undefined : new Schedule(services.seed);
    this.scheduler = new Scheduler(services.now, this.schedule);
  }

  newHandle(): number {
    return this.nextHandle++;
  }

  checkInitialised(call: string): void {
    if (!this.initialised) fail(call, CUresult.CUDA_ERROR_NOT_INITIALIZED, 'cuInit was not called');
  }

  device(call: string, ordinal: number): CpuDevice {
    this.checkInitialised(call);
    return (
      this.devices[ordinal] ??
      fail(call, CUresult.CUDA_ERROR_INVALID_DEVICE, `there is no device ${ordinal}`)
    );
  }

  /** Returns the current context, in a state to work. */
  context(call: string): CpuContext {
    const context = this.current;
    if (context !== undefined && context.fault === undefined && !context.destroyed) return context;
    return this.unfit(call);
  }

  private unfit(call: string): never {
    this.checkInitialised(call);
    const context = this.current;
    if (context === undefined)
      fail(call, CUresult.CUDA_ERROR_INVALID_CONTEXT, 'no context is current');
    if (context.destroyed)
      fail(
        call,
        CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED,
        'the current context was reset or released',
      );
    return fail(call, context.fault!.result, context.fault!.detail, context.fault!.reports);
  }

  stream(call: string, handle: number): Stream {
    const context = this.context(call);
    const stream = this.streams.get(handle);
    if (stream !== undefined) {
      stream.context.checkFault(call);
      return stream;
    }
    if (handle === 0 || handle === CU_STREAM_LEGACY) return context.legacy;
    if (handle === CU_STREAM_PER_THREAD) return context.perThread;
    return invalidHandle(call, 'stream', handle);
  }

  /** Returns a live object by its handle, from the table of its kind. */
  find<T>(call: string, kind: string, table: ReadonlyMap<number, T>, handle: number): T {
    this.context(call);
    return table.get(handle) ?? invalidHandle(call, kind, handle);
  }

  /**
   * Returns the memory that contains all of [address, address + bytes), which must be in one live
   * allocation or one registered range of host memory. The bytes begin at `address - origin` in it.
   */
  space(
    call: string,
    name: string,
    address: number,
    bytes: number,
    residence: Residence,
  ): ByteSpace {
    if (address >= PEER_BASE) {
      for (const peer of this.peers.values()) {
        if (peer.holds(address, bytes)) return peer;
      }
      invalidValue(
        call,
        `${name}: ${bytes} bytes at ${hex(address)} are in the memory of no adopted device`,
      );
    }
    if (address >= HOST_BASE) {
      const host = this.host.hostOf(address);
      if (residence === 'device') invalidValue(call, `${name} ${hex(address)} is a host address`);
      if (host?.holding(address, bytes) === undefined) {
        invalidValue(
          call,
          `${name}: ${bytes} bytes at ${hex(address)} are not inside one registered host range`,
        );
      }
      return host;
    }
    for (const device of this.devices) {
      const memory = device.context?.memory;
      const allocation = memory?.around(address);
      if (allocation === undefined) continue;
      if (address + bytes > allocation.address + allocation.bytes) {
        invalidValue(
          call,
          `${name}: ${bytes} bytes at ${hex(address)} end ` +
            `${address + bytes - allocation.address - allocation.bytes}` +
            ` bytes past the allocation at ${hex(allocation.address)} of ${allocation.bytes} bytes`,
        );
      }
      if (residence === 'host' && allocation.kind !== 'managed')
        invalidValue(call, `${name} ${hex(address)} is a device address`);
      return memory!;
    }
    return invalidValue(call, `${name} ${hex(address)} is in no live allocation`);
  }

  /** Removes every handle that belonged to a context. */
  forgetContext(context: CpuContext): void {
    const tables: Map<number, { context: object | undefined }>[] = [
      this.streams,
      this.events,
      this.modules,
      this.functions,
      this.graphs,
      this.graphExecs,
      this.arrays,
      this.textures,
    ];
    for (const table of tables) {
      for (const [handle, object] of table) if (object.context === context) table.delete(handle);
    }
    for (const [handle, node] of this.graphNodes)
      if (!this.graphs.has(node.graph.handle)) this.graphNodes.delete(handle);
    this.contexts.delete(context.handle);
  }

  /**
   * Works until `ready`. Where all work waits for another thread to write a word, it sleeps a
   * millisecond at a time, if this thread may sleep.
   */
  waitUntil(ready: () => boolean): void {
    while (!ready()) {
      if (!this.scheduler.run(1000) && !ready()) rest();
    }
  }
}

const bed = new Int32Array(new SharedArrayBuffer(4));

function rest(): void {
  try {
    Atomics.wait(bed, 0, 0, 1);
  } catch {
    // A browser's main thread may not sleep: it checks again at once.
  }
}
