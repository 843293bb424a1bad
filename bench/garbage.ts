/** Collects what a benchmark has left behind, so that its collection does not fall into what is measured next. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

/**
 * The engine gives the pages of its young generation back with that, and takes them again one by one: the first few of the
 * small collections afterwards take up to a millisecond, those of a program that has run for some time a third of that
 * (measured). A benchmark of a steady state works for so long before it measures.
 */
export const SETTLE_MS = 1500;

export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
