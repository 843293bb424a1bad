// The vector forms, by mnemonic.

import { ARITHMETIC } from './arithmetic.js';
import { ATOMICS } from './atomics.js';
import type { LaneRules } from './lane-emitter.js';
import { MEMORY } from './memory.js';
import { CALLED } from './vector-calls.js';

export const LANE_RULES: LaneRules = { group: new Map(ARITHMETIC), unit: new Map([...MEMORY, ...CALLED, ...ATOMICS]) };
