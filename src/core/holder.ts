/**
 * What values of the library that hold device memory have in common, by symbols: a class of the
 * user's that happens to have a property `memory` holds none. The symbols are registered, so that
 * two copies of the package agree on them.
 */
import type { DeviceBuffer } from './buffer.js';
import type { Allocation } from './memory.js';

/** The memory of a tensor or a buffer. */
export const MEMORY: unique symbol = Symbol.for('async-cuda.memory') as never;
/** Whether closing it closes the memory. A view does not. */
export const OWNS: unique symbol = Symbol.for('async-cuda.owns') as never;
/** Makes a view an owner of the memory, alone or with others: {@link Allocation.shares}. */
export const OWN: unique symbol = Symbol.for('async-cuda.own') as never;
/** The buffer that the memory was allocated as. */
export const OWNER: unique symbol = Symbol.for('async-cuda.owner') as never;
/**
 * What a value consists of that holds memory by its parts: a partition, a frame of several planes.
 */
export const PARTS: unique symbol = Symbol.for('async-cuda.parts') as never;

/** A tensor, or a buffer. */
export interface MemoryHolder {
  readonly [MEMORY]: Allocation;
  readonly [OWNS]: boolean;
  readonly [OWNER]: DeviceBuffer;
  readonly isClosed: boolean;
  /** Returns whether it was none before. */
  [OWN](): boolean;
}

/** What to write instead of a value that is used by a later step than the one that received it. */
export const AFTER_ITS_STEP =
  'The step that received it has ended, and did not give it on. Use it within that callback ' +
  '(op.andThen((x) => f(x).andThen((y) => g(x, y)))),' +
  ' return it with the result (zip(x, f(x))), or take it out of the run with keep(x): class ' +
  'instances, functions and getters hold nothing.';
