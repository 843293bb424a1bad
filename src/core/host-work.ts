/**
 * Work of the host on memory of the device, in stream order: a library that computes on the
 * processor's cores, say. It begins when all that its stream has queued before is over, what is
 * queued behind waits for it, and its memory is tracked as a kernel's is. JavaScript only waits:
 * the work itself is another thread's.
 */
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_HOST,
  COPY_HOST_TO_DEVICE,
  FLAG_BYPASS,
  OP,
} from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import { HANDLE, WORD } from '../runtime/layout.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import { ACCESSES } from './native-library.js';
import type { PinnedBuffer } from './pinned.js';
import type { Held } from './queued-operation.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

/**
 * A copy that failed leaves page-locked memory undefined: the next one makes it good again. What
 * comes from where is known by its source.
 */
const STAGED = ACCESS_WRITE | ACCESS_WHOLE;

/**
 * Memory that the work uses: the device's, or page-locked memory that is copied from and to it.
 * What `out` writes all of is good again where an earlier failure left it undefined; everything
 * else that is undefined keeps the work from beginning.
 */
export interface HostUse {
  readonly buffer: DeviceBuffer | PinnedBuffer;
  readonly access: 'in' | 'out' | 'inout';
}

/** What the work is given when its turn has come. */
export interface HostTurn {
  /** The device's addresses of the memory, in the order of the uses. */
  readonly addresses: readonly number[];
  /**
   * Copies from byte `offset` of page-locked memory on to all of a buffer, behind what the work has
   * done by then and before all else. Where it fails the work has failed, also if its promise
   * resolves.
   */
  copyOut(staging: PinnedBuffer, offset: number, target: DeviceBuffer): void;
  /** Copies all of a buffer to page-locked memory from byte `offset` on. */
  copyIn(source: DeviceBuffer, staging: PinnedBuffer, offset: number): void;
  /** Resolves when the copies so far are over; rejects where one of them has failed. */
  copied(): Promise<void>;
  /**
   * The work uses page-locked memory that was not there when it was queued, and that nothing else
   * uses by now or before the work is over.
   */
  keep(staging: PinnedBuffer): void;
}

/**
 * Queues the work. `begin` is called when the stream has come to it; what is behind goes on once
 * its promise has settled.
 *
 * Resolves when the work is over, and the copies past the hold too. Where it fails, or is not begun
 * because of an earlier failure, what it would have written is undefined for whoever uses it.
 */
export function queueHostWork(
  stream: Stream,
  name: string,
  uses: readonly HostUse[],
  begin: (turn: HostTurn) => Promise<void>,
): Promise<void> {
  stream.check();
  stream.checkNotCaptured(name, 'run it before the capture, or after graph.launch()');
  const { runtime, transferSlot } = stream;
  for (const { buffer, access } of uses) stream.order(buffer.memory, ACCESSES[access]);
  // A fence in any case: behind it is known whether the stream could be made.
  const before =
    stream.mark === 0
      ? runtime.wait(stream.slot, stream.fenceAt(0, true), stream.slot.index)
      : stream.passed(stream.mark);
  const held = runtime.nextHold(transferSlot);
  const memory = uses.map(({ buffer }) => buffer.memory.handle);
  const work: Held = { kind: 'call', operation: 0, name, memory };
  const mark = stream.hold(transferSlot, held, work);
  for (const { buffer, access } of uses) stream.used(buffer.memory, ACCESSES[access], mark);
  const copies = new CopiesPast(stream, name);
  // The operation that it is part of fails with it: whoever awaits that is told of this, not of
  // what follows from it, and else the device is.
  const operation = runtime.held;
  const numberOf = (reason: unknown): number => {
    const error =
      reason instanceof CudaError
        ? reason
        : new CudaError('ERR_CUDA_INTERNAL', String(reason), { cause: reason });
    if (operation !== undefined) return runtime.fail(operation.root, error);
    const id = Atomics.add(runtime.shared.control, WORD.failures, 1) + 1;
    runtime.rememberFailure(id, error);
    return id;
  };
  const run = async (): Promise<void> => {
    let copied: Promise<void> | undefined;
    try {
      await before;
      const unmade = runtime.whyUnmade(stream.slot, name);
      if (unmade !== undefined) throw unmade;
      // What comes behind the failure of an operation is not carried out, and fails with it.
      const failed =
        operation === undefined ? undefined : runtime.unclaimedFailureOf(operation.root);
      const why = failed ?? whyUndefined(stream, name, uses);
      if (why !== undefined) throw why;
      // Not behind the work: its copies would be refused.
      mend(stream, uses);
      const { values } = runtime.shared;
      stream.begins(work);
      await begin({
        addresses: uses.map(({ buffer }) => values[buffer.memory.handle]! + buffer.byteOffset),
        copyOut: (staging, offset, target) => {
          copies.put(
            target.byteLength,
            [target.memory, ACCESS_WRITE, target.byteOffset],
            [staging.memory, ACCESS_READ, staging.byteOffset + offset],
            COPY_HOST_TO_DEVICE,
          );
        },
        copyIn: (source, staging, offset) => {
          copies.put(
            source.byteLength,
            [staging.memory, STAGED, staging.byteOffset + offset],
            [source.memory, ACCESS_READ, source.byteOffset],
            COPY_DEVICE_TO_HOST,
          );
        },
        copied: () => copies.over(),
        keep: (staging) => {
          staging.memory.keep(stream, mark);
          // What an earlier failure has left there is nobody's.
          tellFailure(stream, staging.memory.handle, 0);
        },
      });
      if (copies.areUnderway) copied = copies.over();
    } catch (error) {
      // Whatever becomes of them, this is told.
      if (copies.areUnderway) copies.over().catch(ignore);
      if (runtime.lost === undefined) leaveUndefined(stream, uses, numberOf(error));
      throw error;
    } finally {
      runtime.release(transferSlot, held);
    }
    // The stream need not wait for it: what a copy that failed would have written is undefined by
    // itself.
    await copied?.catch((error: unknown) => {
      if (runtime.lost === undefined) numberOf(error);
      throw error;
    });
  };
  return run();
}

/**
 * Copies of one piece of work past the hold, and before it is released: their ends are uses of the
 * work at hand.
 */
class CopiesPast {
  areUnderway = false;
  private readonly stream: Stream;
  private readonly name: string;
  /** The number of the operation that they are: 0 before the first. */
  private root = 0;

  constructor(stream: Stream, name: string) {
    this.stream = stream;
    this.name = name;
  }

  put(bytes: number, to: End, from: End, kind: number): void {
    if (bytes === 0) return;
    const { stream } = this;
    const { runtime } = stream;
    if (this.root === 0) {
      // Of no other operation: the rest of that may be under way by now, and has failures of its
      // own.
      this.root = runtime.ownRoot();
      runtime.name(this.root, this.name);
    }
    runtime.expect(this.root);
    this.areUnderway = true;
    const body = stream.beginBypass(OP.copy, 13, this.root);
    putCopy(stream, body, to, from, bytes, kind);
    runtime.ring.commit();
  }

  /**
   * Resolves when they are over. @throws CudaError where one has failed; those behind it were not
   * made then
   */
  async over(): Promise<void> {
    const { stream, root } = this;
    const { runtime, transferSlot } = stream;
    this.areUnderway = false;
    await runtime.completion.wait(
      transferSlot,
      runtime.fence(transferSlot, stream.slot.index, FLAG_BYPASS),
      stream.slot.index,
    );
    const failure = root === 0 ? undefined : runtime.failureOf(root);
    if (failure !== undefined) throw failure;
  }
}

/** Why work on the memory cannot begin; undefined where it can. Asked in its turn. @internal */
export function whyUndefined(
  { runtime }: Stream,
  name: string,
  uses: readonly HostUse[],
): CudaError | undefined {
  const { status, failure } = runtime.shared;
  for (let i = 0; i < uses.length; i++) {
    const use = uses[i]!;
    const { handle } = use.buffer.memory;
    if (failure[handle] !== 0 && (status[handle] === HANDLE.failed || !writesAll(use))) {
      const why = runtime.whyUndefined(handle, name);
      if (why !== undefined) return why;
    }
  }
  return undefined;
}

function writesAll({ buffer, access }: HostUse): boolean {
  return access === 'out' && (buffer.wholeAccess() & ACCESS_WHOLE) !== 0;
}

/** Copies all of a buffer to page-locked memory from byte `offset` on, in stream order. */
export function copyToStaging(
  stream: Stream,
  source: DeviceBuffer,
  staging: PinnedBuffer,
  offset: number,
): void {
  if (source.byteLength === 0) return;
  stream.order(source.memory, ACCESS_READ);
  stream.order(staging.memory, ACCESS_WRITE);
  const body = stream.begin(OP.copy, 13, stream.nextRoot());
  putCopy(
    stream,
    body,
    [staging.memory, STAGED, staging.byteOffset + offset],
    [source.memory, ACCESS_READ, source.byteOffset],
    source.byteLength,
    COPY_DEVICE_TO_HOST,
  );
  const mark = stream.commit();
  stream.used(source.memory, ACCESS_READ, mark);
  stream.used(staging.memory, ACCESS_WRITE, mark);
}

/**
 * As {@link copyToStaging}, the other way; an earlier failure that left all of the buffer undefined
 * is forgiven.
 */
export function copyFromStaging(
  stream: Stream,
  staging: PinnedBuffer,
  offset: number,
  target: DeviceBuffer,
): void {
  if (target.byteLength === 0) return;
  stream.order(staging.memory, ACCESS_READ);
  stream.order(target.memory, ACCESS_WRITE);
  const body = stream.begin(OP.copy, 13, stream.nextRoot());
  putCopy(
    stream,
    body,
    [target.memory, target.wholeAccess(), target.byteOffset],
    [staging.memory, ACCESS_READ, staging.byteOffset + offset],
    target.byteLength,
    COPY_HOST_TO_DEVICE,
  );
  const mark = stream.commit();
  stream.used(staging.memory, ACCESS_READ, mark);
  stream.used(target.memory, ACCESS_WRITE, mark);
}

type End = readonly [resource: Resource, access: number, offset: number];

function putCopy(
  stream: Stream,
  body: number,
  to: End,
  from: End,
  bytes: number,
  kind: number,
): void {
  const { memory } = stream.runtime.ring;
  memory[body] = to[0].handle | (to[1] << ACCESS_SHIFT);
  putInt64(memory, body + 1, to[2]);
  memory[body + 3] = from[0].handle | (from[1] << ACCESS_SHIFT);
  putInt64(memory, body + 4, from[2]);
  putInt64(memory, body + 6, bytes);
  memory[body + 8] = kind;
}

/**
 * What the work would have written carries the failure of this number. Past the stream's hold.
 * @internal
 */
export function leaveUndefined(stream: Stream, uses: readonly HostUse[], id: number): void {
  for (const { buffer, access } of uses)
    if (access !== 'in') tellFailure(stream, buffer.memory.handle, id);
}

/**
 * What the work writes all of is undefined no more. Past the stream's hold; returns whether
 * anything was. @internal
 */
export function mend(stream: Stream, uses: readonly HostUse[]): boolean {
  const { failure } = stream.runtime.shared;
  let mended = false;
  for (let i = 0; i < uses.length; i++) {
    const use = uses[i]!;
    const { handle } = use.buffer.memory;
    if (failure[handle]! <= 0 || !writesAll(use)) continue;
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

function ignore(): void {
  // The work's own failure is told.
}

const bases = new WeakMap<object, Promise<number>>();

/**
 * What is added to an address of a CPU device to make one of the process, which native code can
 * use. The memory is the device's until it is closed, and does not move. Undefined of a GPU, and of
 * a device that is checked, which has to see every access.
 */
export function hostBase(
  device: CoreDevice,
  koffiPath: string | undefined,
): Promise<number> | undefined {
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
