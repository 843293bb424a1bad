// Dead-local clearing. Units of a kernel take turns in one function, and no turn reads the values
// of another. Engines cannot derive that: for them any entry may come after any, and a merge under
// a mask reads what was there before. Clearing the locals keeps engines from carrying their values
// along.

import { Code } from '../wasm/code.js';
import { carriedLocals } from '../wasm/live-locals.js';

export interface Places {
  /**
   * Offsets in the code at which units begin, which are also the beginnings of loops. In ascending
   * order, as the others.
   */
  units: readonly number[];
  /**
   * Offsets at which general code begins, which control seldom reaches. No local of an instruction
   * has a value there.
   */
  general: readonly number[];
  /** Locals that instructions take and release. */
  ofInstructions: readonly number[];
  /** The most vectors that are cleared where a unit begins; `emission/clearing.ts` chooses it. */
  most: number;
  localCount: number;
  isVector: (local: number) => boolean;
}

/**
 * The code in which those vectors are cleared that no unit leaves for the next one: where general
 * code begins if that is enough, else where a unit does.
 */
export function withDeadCleared(
  code: Uint8Array,
  { units, general, ofInstructions, most, localCount, isVector }: Places,
): Uint8Array {
  const carried = (bytes: Uint8Array, loops: readonly number[]): number[][] =>
    (carriedLocals(bytes, localCount, loops) ?? loops.map(() => [])).map((locals) =>
      locals.filter(isVector),
    );
  const few = (locals: number[]): number[] => (locals.length > most ? [] : locals);
  const all = carried(code, units);
  const found = new Set(all.flat());
  const cold = general.length > 0 ? ofInstructions.filter((local) => found.has(local)) : [];
  if (!cold.length) return withCleared(code, units, all.map(few));
  const next = withCleared(
    code,
    general,
    general.map(() => cold),
  );
  const bytes = (next.length - code.length) / general.length;
  const starts = units.map(
    (start) => start + bytes * general.filter((place) => place < start).length,
  );
  return withCleared(next, starts, carried(next, starts).map(few));
}

/** The code with vectors cleared at each of the places. */
function withCleared(
  code: Uint8Array,
  places: readonly number[],
  vectors: readonly number[][],
): Uint8Array {
  const all = new Code();
  let from = 0;
  places.forEach((place, index) => {
    all.append(code.subarray(from, place));
    from = place;
    for (const local of vectors[index]!) all.v128([0, 0, 0, 0]).set(local);
  });
  return all.append(code.subarray(from)).finish();
}
