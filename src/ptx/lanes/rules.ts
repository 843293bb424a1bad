// The vector forms, by mnemonic.

import { ARITHMETIC } from './arithmetic.js';
import type { LaneRules } from './lane-emitter.js';
import { MEMORY } from './memory.js';

export const LANE_RULES: LaneRules = new Map([...ARITHMETIC, ...MEMORY]);
