/**
 * Collects the garbage of a benchmark, so that its collection does not happen in the next
 * measurement.
 */
export { gc as collectGarbage } from '../test/core/garbage.js';

/**
 * The engine returns the pages of its young generation with that, and maps them again one by one:
 * the first few of the small collections afterwards take up to a millisecond, those of a program
 * that has run for some time a third of that (measured). A benchmark of a steady state works for
 * this long before it measures.
 */
export const SETTLE_MS = 1500;
