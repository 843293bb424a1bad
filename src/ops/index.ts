/**
 * Lazy operations: device work as values that are composed, and run when they are awaited.
 *
 * @packageDocumentation
 */
export { DeviceOp, OpGraph, SharedOp } from './device-op.js';
export type { Given, OrOp } from './given.js';
export type { Decider, DecidingTensor } from './conditional.js';
export { allOf, empty, operation, keep, parallel, value, withContext, zip } from './make.js';
export type { GivenAll } from './make.js';
export type { OpContext } from './op-context.js';
export type { GraphScope, OpCaptureOptions } from './recorded-graph.js';
export { poolOf, setPool } from './pools.js';
export { Running } from './running.js';
export { Scheduled } from './scheduled.js';
export {
  LeastLoaded,
  NextIdle,
  RoundRobin,
  SingleStream,
  byPriority,
  getDefaultDevice,
  policyOf,
  setDefaultDevice,
  setPolicy,
} from './scheduling.js';
export type { AnyDevice, PriorityName, SchedulingPolicy } from './scheduling.js';
export { setDevelopmentMode } from './development.js';
