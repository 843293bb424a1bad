/** Batchers: they collect requests of many callers into batches. */
export { Batcher, ItemFailure } from './batcher.js';
export type {
  BatchRequestOptions,
  BatcherOptions,
  BatcherStatistics,
  RunBatch,
} from './batcher.js';
export { EngineBatcher } from './engine-batcher.js';
