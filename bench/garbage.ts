/**
 * Collects what a benchmark has left behind, so that its collection does not fall into what is
 * measured next.
 */
export { gc as collectGarbage } from '../test/core/garbage.js';

/**
 * The engine gives the pages of its young generation back with that, and takes them again one by
 * one: the first few of the small collections afterwards take up to a millisecond, those of a
 * program that has run for some time a third of that (measured). A benchmark of a steady state
 * works for so long before it measures.
 */
export const SETTLE_MS = 1500;
