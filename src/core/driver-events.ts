/** Events of the driver, as commands of the ring make, record and destroy them. */
import { OP } from '../runtime/commands.js';
import { HANDLE } from '../runtime/layout.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Stream } from './stream.js';

/** Queues the making of an event; returns its handle. cuEventCreate */
export function createEvent(runtime: Runtime, flags: number): number {
  const handle = runtime.handles.take();
  const body = runtime.ring.begin(OP.eventCreate, 0, 6, runtime.ownRoot(), -1, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.memory[body + 1] = flags;
  runtime.ring.commit();
  return handle;
}

/** Records an event on a stream beside all counting: no operation of its own. cuEventRecord */
export function recordEvent(stream: Stream, handle: number): void {
  const { runtime, slot } = stream;
  const body = runtime.ring.begin(OP.record, 0, 5, 0, slot.index, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.commit();
}

/**
 * Queues the end of an event, at once or behind what the stream in a slot has queued.
 * cuEventDestroy
 */
export function destroyEvent(runtime: Runtime, handle: number, slot = -1): void {
  const body = runtime.ring.begin(OP.eventDestroy, 0, 5, 0, slot, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.commit();
  runtime.handles.give(handle);
}

/**
 * The event is not announced any more: its next record will be another. One that could not be made
 * stays what it is.
 */
export function takenBack(runtime: Runtime, event: number): void {
  const { status } = runtime.shared;
  if (Atomics.load(status, event) !== HANDLE.failed) Atomics.store(status, event, HANDLE.live);
}
