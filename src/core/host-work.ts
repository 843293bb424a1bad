/**
 * Work of the host on memory of the device, in stream order: for example a library that computes on
 * the processor's cores. It begins when all that its stream has queued before has ended, later work
 * of the stream waits for it, and its memory is tracked as a kernel's is. JavaScript only waits:
 * the work runs on another thread.
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
import { hostWorkBegins } from './queued-operation.js';
import type { Held } from './queued-operation.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

/** A copy that failed leaves page-locked memory undefined; the next copy makes it valid again. */
const STAGED = ACCESS_WRITE | ACCESS_WHOLE;

/**
 * Memory that the work uses: the device's, or page-locked memory that is copied from and to it.
 * Memory that an `out` writes whole becomes valid where an earlier failure left it undefined. Any
 * other undefined memory keeps the work from beginning.
 */
export interface HostUse {
  readonly buffer: DeviceBuffer | PinnedBuffer;
  readonly access: 'in' | 'out' | 'inout';
}

/** The argument of the work's callback. */
export interface HostTurn {
  /** The device's addresses of the memory, in the order of the uses. */
  readonly addresses: readonly number[];
  /**
   * Copies from byte `offset` of page-locked memory on to a whole buffer, after what the work has
   * done so far and before all later work. Where the copy fails the work fails, also if its promise
   * resolves.
   */
  copyOut(staging: PinnedBuffer, offset: number, target: DeviceBuffer): void;
  /** Copies a whole buffer to page-locked memory from byte `offset` on. */
  copyIn(source: DeviceBuffer, staging: PinnedBuffer, offset: number): void;
  /** Resolves when the copies so far have ended; rejects where one of them has failed. */
  copied(): Promise<void>;
  /**
   * Adds page-locked memory that was not known when the work was queued. No other work may use it
   * before this work has ended.
   */
  keep(staging: PinnedBuffer): void;
}

/**
 * Queues the work. `begin` is called when the stream has reached it; later work of the stream
 * starts once its promise has settled.
 *
 * Resolves when the work, and its copies past the hold, have ended. Where it fails, or does not
 * begin because of an earlier failure, the memory that it would have written is undefined.
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
  // There is always a fence: after it, it is known whether the stream could be created.
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
  // The operation around the work fails with it, and reports the failure to its waiter. Without an
  // operation the device reports it.
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
      // Work after the failure of an operation does not run, and fails with the operation.
      const failed =
        operation === undefined ? undefined : runtime.unclaimedFailureOf(operation.root);
      const why = failed ?? whyUndefined(stream, name, uses);
      if (why !== undefined) throw why;
      // Before the work: its copies into undefined memory would be refused.
      mend(stream, uses);
      const { values } = runtime.shared;
      hostWorkBegins(stream, work);
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
          // The memory holds nothing of an earlier failure that is still of use.
          putFailure(stream, staging.memory.handle, 0);
        },
      });
      if (copies.areUnderway) copied = copies.over();
    } catch (error) {
      // The work's own error is reported, not theirs.
      if (copies.areUnderway) copies.over().catch(ignore);
      if (runtime.lost === undefined) leaveUndefined(stream, uses, numberOf(error));
      throw error;
    } finally {
      runtime.release(transferSlot, held);
    }
    // The stream need not wait for them: a copy that fails leaves its target undefined itself.
    await copied?.catch((error: unknown) => {
      if (runtime.lost === undefined) numberOf(error);
      throw error;
    });
  };
  return run();
}

/** Copies of one piece of work past the hold, made before the hold is released. */
class CopiesPast {
  areUnderway = false;
  private readonly stream: Stream;
  private readonly name: string;
  /** The number of their operation; 0 before the first copy. */
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
      // They are an operation of their own: commands of the operation around the work may be under
      // way by now, and have failures of their own.
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
   * Resolves when the copies have ended.
   *
   * @throws CudaError where one has failed; the copies after it were not made
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

/**
 * The reason why work on the memory cannot begin; undefined where it can. It is called when the
 * stream has reached the work. @internal
 */
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

/** Copies a whole buffer to page-locked memory from byte `offset` on, in stream order. */
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
 * Does the same as {@link copyToStaging}, in the other direction. A whole buffer that an earlier
 * failure left undefined becomes valid.
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
 * Marks the memory that the work would have written with the failure of this number, past the
 * stream's hold. @internal
 */
export function leaveUndefined(stream: Stream, uses: readonly HostUse[], id: number): void {
  for (const { buffer, access } of uses)
    if (access !== 'in') putFailure(stream, buffer.memory.handle, id);
}

/**
 * Clears the failure of memory that the work writes whole, past the stream's hold. Returns whether
 * any memory had one. @internal
 */
export function mend(stream: Stream, uses: readonly HostUse[]): boolean {
  const { failure } = stream.runtime.shared;
  let mended = false;
  for (let i = 0; i < uses.length; i++) {
    const use = uses[i]!;
    const { handle } = use.buffer.memory;
    if (failure[handle]! <= 0 || !writesAll(use)) continue;
    putFailure(stream, handle, 0);
    mended = true;
  }
  return mended;
}

function putFailure({ runtime, slot }: Stream, handle: number, id: number): void {
  const { ring } = runtime;
  const body = ring.begin(OP.poison, FLAG_BYPASS, 6, 0, slot.index, 0);
  ring.memory[body] = handle;
  ring.memory[body + 1] = id;
  ring.commit();
}

function ignore(): void {
  // The work's own failure is reported.
}

const bases = new WeakMap<object, Promise<number>>();

/**
 * The number that makes an address of the process, which native code can use, of an address of a
 * CPU device. The memory belongs to the device until it is closed, and does not move. Undefined for
 * a GPU, and for a checked device, which has to see every access.
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
