/** Types of values, and of operations that produce them. */
import type { DeviceOp } from './device-op.js';

/** The value of an operation, where a value or an operation may be passed. */
export type Given<T> = T extends DeviceOp<infer V> ? V : T;

/** A value, or an operation that produces it. */
export type OrOp<T> = T | DeviceOp<T>;
