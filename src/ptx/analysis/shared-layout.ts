// Places a kernel's .shared variables.

import { alignUp } from './data-layout.js';
import type { LoweredFunction, SharedVariable } from './program.js';

/** Variables with their offsets in shared memory, and the bytes up to their end. */
export interface SharedLayout {
  readonly offsets: ReadonlyMap<SharedVariable, number>;
  readonly bytes: number;
}

const EMPTY: SharedLayout = { offsets: new Map(), bytes: 0 };

/** Places the variables of some functions that have no place yet after those that have one. */
export function placeShared(
  functions: Iterable<LoweredFunction>,
  gap: number,
  placed: SharedLayout = EMPTY,
): SharedLayout {
  const offsets = new Map(placed.offsets);
  let { bytes } = placed;
  for (const { shared } of functions) {
    for (const variable of shared) {
      if (variable.dynamic || offsets.has(variable)) continue;
      bytes = alignUp(bytes, variable.align);
      offsets.set(variable, bytes);
      bytes += variable.size + gap;
    }
  }
  return { offsets, bytes };
}

/** The offset at which the dynamic variables of some functions begin. */
export interface DynamicShared {
  readonly used: boolean;
  readonly align: number;
}

export function dynamicShared(functions: readonly LoweredFunction[]): DynamicShared {
  const variables = functions.flatMap(({ shared }) => [...shared].filter(({ dynamic }) => dynamic));
  return {
    used: variables.length > 0,
    align: Math.max(16, ...variables.map(({ align }) => align)),
  };
}
