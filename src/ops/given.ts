/** A value, or an operation that gives it. */
import type { DeviceOp } from './device-op.js';

/** What an operation gives, where a value or an operation may stand. */
export type Given<T> = T extends DeviceOp<infer V> ? V : T;

/** A value, or an operation that gives it. */
export type OrOp<T> = T | DeviceOp<T>;
