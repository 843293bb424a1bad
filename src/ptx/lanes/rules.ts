// The vector forms, by mnemonic.

import { ARITHMETIC } from './arithmetic.js';
import { ATOMICS } from './atomics.js';
import { BIT_OPERATIONS } from './bit-operations.js';
import { CALLED_HALVES, HALVES } from './halves.js';
import type { LaneRule, LaneRules } from './lane-emitter.js';
import { MEMORY } from './memory.js';
import { NARROW } from './narrow.js';
import { CALLED } from './vector-calls.js';

/** Of several rules of a mnemonic the first that takes the form. */
function byMnemonic(rows: readonly (readonly [string, LaneRule])[]): Map<string, LaneRule> {
  const rules = new Map<string, LaneRule>();
  for (const [mnemonic, rule] of rows) {
    const first = rules.get(mnemonic);
    rules.set(mnemonic, first ? (e) => first(e) || rule(e) : rule);
  }
  return rules;
}

export const LANE_RULES: LaneRules = {
  group: byMnemonic([...ARITHMETIC, ...NARROW, ...HALVES, ...BIT_OPERATIONS]),
  unit: byMnemonic([...MEMORY, ...CALLED, ...ATOMICS]),
  halves: byMnemonic(CALLED_HALVES),
};
