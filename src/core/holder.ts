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
