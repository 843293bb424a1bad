/** Commands of the ring that create, record, wait for and destroy events of the driver. */
import { OP } from '../runtime/commands.js';
import { HANDLE } from '../runtime/layout.js';
import type { Runtime } from '../runtime/runtime.js';
import type { Stream } from './stream.js';

/** Queues the creation of an event; returns its handle. cuEventCreate */
export function createEvent(runtime: Runtime, flags: number): number {
  const handle = runtime.handles.take();
  const body = runtime.ring.begin(OP.eventCreate, 0, 6, runtime.ownRoot(), -1, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.memory[body + 1] = flags;
  runtime.ring.commit();
  return handle;
}

/** Records an event on a stream. The record is not counted as an operation. cuEventRecord */
export function recordEvent(stream: Stream, handle: number): void {
  const { runtime, slot } = stream;
  const body = runtime.ring.begin(OP.record, 0, 5, 0, slot.index, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.commit();
}

/** Makes later work of a stream wait for an event. cuStreamWaitEvent */
export function waitForEvent(stream: Stream, handle: number): void {
  const body = stream.begin(OP.wait, 6, 0);
  const { memory } = stream.runtime.ring;
  memory[body] = handle;
  memory[body + 1] = 0;
  stream.commit();
}

/**
 * Queues the destruction of an event, at once or after what the stream in a slot has queued.
 * cuEventDestroy
 */
export function destroyEvent(runtime: Runtime, handle: number, slot = -1): void {
  const body = runtime.ring.begin(OP.eventDestroy, 0, 5, 0, slot, 0);
  runtime.ring.memory[body] = handle;
  runtime.ring.commit();
  runtime.handles.give(handle);
}

/**
 * Ends the announcement of an event: its next record will be another one. An event whose creation
 * failed keeps that state.
 */
export function endAnnouncement(runtime: Runtime, event: number): void {
  const { status } = runtime.shared;
  if (Atomics.load(status, event) !== HANDLE.failed) Atomics.store(status, event, HANDLE.live);
}
