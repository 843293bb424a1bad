/** Commands of the ring that create and destroy streams of the driver. */
import { OP } from '../runtime/commands.js';
import type { Stream } from './stream.js';

/** Queues the creation of a stream. cuStreamCreateWithPriority */
export function createDriverStream({ runtime, slot, flags, priority, title }: Stream): void {
  const { ring } = runtime;
  const root = runtime.ownRoot();
  runtime.name(root, `createStream (${title})`);
  const body = ring.begin(OP.streamCreate, 0, 7, root, -1, 0);
  ring.memory[body] = slot.index;
  ring.memory[body + 1] = flags;
  ring.memory[body + 2] = priority;
  ring.commit();
}

/**
 * Queues the destruction of a stream whose last fence has passed: until then the runtime thread may
 * call the driver about it. cuStreamDestroy
 */
export function destroyDriverStream({ runtime, slot }: Stream): void {
  const { ring } = runtime;
  const body = ring.begin(OP.streamDestroy, 0, 5, runtime.nextRoot(), slot.index, 0);
  ring.memory[body] = slot.index;
  ring.commit();
}
