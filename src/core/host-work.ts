/**
 * Work of the host on memory of the device, in stream order: a library that computes on the processor's cores, say. It begins
 * when all that its stream has queued before is over, what is queued behind waits for it, and its memory is tracked as a
 * kernel's is. JavaScript only waits: the work itself is another thread's.
 */
import { ACCESS_READ, ACCESS_SHIFT, ACCESS_WHOLE, ACCESS_WRITE, COPY_DEVICE_TO_HOST, COPY_HOST_TO_DEVICE, FLAG_BYPASS, OP } from '../runtime/commands.js';
import { CudaError } from '../runtime/errors.js';
import { HANDLE, WORD } from '../runtime/layout.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { DeviceBuffer } from './buffer.js';
import type { Device } from './device.js';
import { ACCESSES } from './native-library.js';
import type { PinnedBuffer } from './pinned.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

/** A copy that failed leaves page-locked memory undefined: the next one makes it good again. What comes from where is known by its source. */
const STAGED = ACCESS_WRITE | ACCESS_WHOLE;

/** Memory that the work uses: the device's, or page-locked memory that is copied from and to it. */
export interface HostUse {
  readonly buffer: DeviceBuffer | PinnedBuffer;
  readonly access: 'in' | 'out' | 'inout';
}

/** What the work is given when its turn has come. */
export interface HostTurn {
  /** The device's addresses of the memory, in the order of the uses. */
  readonly addresses: readonly number[];
  /** Copies from byte `offset` of page-locked memory on to all of a buffer, behind what the work has done by then and before all else. */
  copyOut(staging: PinnedBuffer, offset: number, target: DeviceBuffer): void;
  /** Copies all of a buffer to page-locked memory from byte `offset` on. */
  copyIn(source: DeviceBuffer, staging: PinnedBuffer, offset: number): void;
  /** Resolves when the copies so far are over, whether they succeeded or not. */
  copied(): Promise<void>;
  /**
   * The work uses page-locked memory that was not there when it was queued: it is kept until the work is over. Resolves when its
   * uses before are over; to be used by nothing else meanwhile.
   */
  keep(staging: PinnedBuffer): Promise<void>;
}

/**
 * Queues the work. `begin` is called when the stream has come to it; what is behind goes on once its promise has settled.
 *
 * Resolves when the work is over. Where it fails, or is not begun because of an earlier failure, what it would have written is
 * undefined for whoever uses it.
 */
export function queueHostWork(stream: Stream, name: string, uses: readonly HostUse[], begin: (turn: HostTurn) => Promise<void>): Promise<void> {
  stream.check();
  stream.checkNotCaptured(name, 'run it before the capture, or behind graph.launch()');
  const { runtime, transferSlot } = stream;
  for (const { buffer, access } of uses) stream.order(buffer.memory, ACCESSES[access]);
  // A fence in any case: behind it is known whether the stream could be made.
  const before = stream.mark === 0 ? runtime.wait(stream.slot, stream.fenceAt(0, true), stream.slot.index) : stream.passed(stream.mark);
  const held = runtime.nextHold(transferSlot);
  const memory = uses.map(({ buffer }) => buffer.memory.handle);
  const mark = stream.hold(transferSlot, held, { kind: 'call', operation: 0, name, memory });
  for (const { buffer, access } of uses) stream.used(buffer.memory, ACCESSES[access], mark);
  const run = async (): Promise<void> => {
    try {
      await before;
      const unmade = runtime.whyUnmade(stream.slot, name);
      if (unmade !== undefined) throw unmade;
      const { values } = runtime.shared;
      const addresses = uses.map(({ buffer, access }) => {
        const { handle } = buffer.memory;
        const failure = runtime.whyUndefined(handle, name);
        if (failure !== undefined && (access === 'in' || runtime.shared.status[handle] === HANDLE.failed)) throw failure;
        return values[handle]! + buffer.byteOffset;
      });
      await begin({
        addresses,
        copyOut: (staging, offset, target) => {
          copyPast(stream, target.byteLength, [target.memory, ACCESS_WRITE, target.byteOffset], [staging.memory, ACCESS_READ, staging.byteOffset + offset], COPY_HOST_TO_DEVICE);
        },
        copyIn: (source, staging, offset) => {
          copyPast(stream, source.byteLength, [staging.memory, STAGED, staging.byteOffset + offset], [source.memory, ACCESS_READ, source.byteOffset], COPY_DEVICE_TO_HOST);
        },
        copied: () => runtime.completion.wait(transferSlot, runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS), stream.slot.index),
        keep: (staging) => {
          const over = staging.memory.settled();
          staging.memory.keep(stream, mark);
          return over;
        },
      });
      mend(stream, uses);
    } catch (error) {
      if (runtime.lost === undefined) {
        const id = Atomics.add(runtime.shared.control, WORD.failures, 1) + 1;
        runtime.rememberFailure(id, error instanceof CudaError ? error : new CudaError('ERR_CUDA_INTERNAL', String(error), { cause: error }));
        leaveUndefined(stream, uses, id);
      }
      throw error;
    } finally {
      runtime.release(transferSlot, held);
    }
  };
  return run();
}

/** Copies all of a buffer to page-locked memory from byte `offset` on, in stream order. */
export function copyToStaging(stream: Stream, source: DeviceBuffer, staging: PinnedBuffer, offset: number): void {
  if (source.byteLength === 0) return;
  stream.order(source.memory, ACCESS_READ);
  stream.order(staging.memory, ACCESS_WRITE);
  const body = stream.begin(OP.copy, 13, stream.nextRoot());
  putCopy(stream, body, [staging.memory, STAGED, staging.byteOffset + offset], [source.memory, ACCESS_READ, source.byteOffset], source.byteLength, COPY_DEVICE_TO_HOST);
  const mark = stream.commit();
  stream.used(source.memory, ACCESS_READ, mark);
  stream.used(staging.memory, ACCESS_WRITE, mark);
}

/** Past the hold, and before it is released: both are uses of the work at hand. */
function copyPast(stream: Stream, bytes: number, to: End, from: End, kind: number): void {
  if (bytes === 0) return;
  const body = stream.beginBypass(OP.copy, 13, 0);
  putCopy(stream, body, to, from, bytes, kind);
  stream.runtime.ring.commit();
}

type End = readonly [resource: Resource, access: number, offset: number];

function putCopy(stream: Stream, body: number, to: End, from: End, bytes: number, kind: number): void {
  const { memory } = stream.runtime.ring;
  memory[body] = to[0].handle | (to[1] << ACCESS_SHIFT);
  putInt64(memory, body + 1, to[2]);
  memory[body + 3] = from[0].handle | (from[1] << ACCESS_SHIFT);
  putInt64(memory, body + 4, from[2]);
  putInt64(memory, body + 6, bytes);
  memory[body + 8] = kind;
}

/** What the work would have written carries the failure of this number. Past the stream's hold. @internal */
export function leaveUndefined(stream: Stream, uses: readonly HostUse[], id: number): void {
  for (const { buffer, access } of uses) if (access !== 'in') tellFailure(stream, buffer.memory.handle, id);
}

/** What the work writes all of is undefined no more. Past the stream's hold; returns whether anything was. @internal */
export function mend(stream: Stream, uses: readonly HostUse[]): boolean {
  const { failure } = stream.runtime.shared;
  let mended = false;
  for (const { buffer, access } of uses) {
    const { handle, bytes } = buffer.memory;
    if (access !== 'out' || failure[handle]! <= 0 || buffer.byteOffset !== 0 || buffer.byteLength !== bytes) continue;
    tellFailure(stream, handle, 0);
    mended = true;
  }
  return mended;
}

function tellFailure({ runtime, slot }: Stream, handle: number, id: number): void {
  const { ring } = runtime;
  const body = ring.begin(OP.poison, FLAG_BYPASS, 6, 0, slot.index, 0);
  ring.memory[body] = handle;
  ring.memory[body + 1] = id;
  ring.commit();
}

const bases = new WeakMap<object, Promise<number>>();

/**
 * What is added to an address of a CPU device to make one of the process, which native code can use. The memory is the
 * device's until it is closed, and does not move. Undefined of a GPU, and of a device that is checked, which has to see every
 * access.
 */
export function hostBase(device: Device, koffiPath: string | undefined): Promise<number> | undefined {
  if (device.kind !== 'cpu' || device.isChecked) return undefined;
  const { runtime } = device;
  let base = bases.get(runtime);
  if (base === undefined) {
    base = runtime.call('memoryBase', koffiPath, runtime.info.context);
    base.catch(() => bases.delete(runtime));
    bases.set(runtime, base);
  }
  return base;
}
