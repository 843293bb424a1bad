/**
 * The common properties of values that hold device memory, under symbols: a class of the program
 * that happens to have a property `memory` is not taken for one. The symbols are registered, so
 * that two copies of the package use the same ones.
 */
import type { DeviceBuffer } from './buffer.js';
import type { Allocation } from './memory.js';

/** The memory of a tensor or a buffer. */
export const MEMORY: unique symbol = Symbol.for('async-cuda.memory') as never;
/** Whether closing the value closes the memory. Closing a view does not. */
export const OWNS: unique symbol = Symbol.for('async-cuda.owns') as never;
/** Makes a view an owner of the memory, alone or with others: {@link Allocation.shares}. */
export const OWN: unique symbol = Symbol.for('async-cuda.own') as never;
/** The buffer as which the memory was allocated. */
export const OWNER: unique symbol = Symbol.for('async-cuda.owner') as never;
/** The parts of a value that holds memory by its parts: a partition, a frame of several planes. */
export const PARTS: unique symbol = Symbol.for('async-cuda.parts') as never;

/** A tensor or a buffer. */
export interface MemoryHolder {
  readonly [MEMORY]: Allocation;
  readonly [OWNS]: boolean;
  readonly [OWNER]: DeviceBuffer;
  readonly isClosed: boolean;
  /** Makes a view an owner. Returns whether it was not one before. */
  [OWN](): boolean;
}

/** The advice for a value that is used by a later step than the one that received it. */
export const AFTER_ITS_STEP =
  'The step that received it has ended, and its value does not hold it. Use it within that ' +
  'callback (op.andThen((x) => f(x).andThen((y) => g(x, y)))),' +
  ' return it with the result (zip(x, f(x))), or take it out of the run with keep(x): class ' +
  'instances, functions and getters hold nothing.';
