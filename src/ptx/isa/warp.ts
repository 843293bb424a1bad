// Rows of operations of the threads of a warp. Their codes are in `analysis/cuts.ts`.

import { form } from './form.js';
import { IN_STRUCTURE } from './instruction.js';
import type { Rows } from './instruction.js';
import { OF_A_WARP, WRITES_FIRST } from './traits.js';

const OPERATION = {
  ...IN_STRUCTURE,
  operands: WRITES_FIRST,
  effect: 'any',
  waits: OF_A_WARP,
  meaning: 'opaque',
} as const;

export const WARP = {
  vote: {
    ...OPERATION,
    forms: [
      form('sync all|any|uni pred', 'p p b32', '6.0'),
      form('sync ballot b32', 'T p b32', '6.0'),
      form('all|any|uni pred', 'p p', 'before sm_70'),
      form('ballot b32', 'T p', 'before sm_70'),
    ],
    operands: { ...WRITES_FIRST, firstWanted: true, warpResult: true, refusesOffsets: true },
  },
  match: {
    ...OPERATION,
    forms: [
      form('any sync b32|b64', 'b32 T b32', '6.0 sm_70'),
      form('all sync b32|b64', 'b32|p T b32', '6.0 sm_70'),
    ],
  },
  activemask: { ...OPERATION, forms: [form('b32', 'b32', '6.2')] },
  redux: {
    ...OPERATION,
    forms: [
      form('sync add|min|max u32|s32', 'T T b32', '7.0 sm_80'),
      form('sync and|or|xor b32', 'T T b32', '7.0 sm_80'),
      form('sync min|max [abs] [NaN] f32', 'T T b32', '8.6 sm_100f'),
    ],
    operands: { ...WRITES_FIRST, warpResult: true },
  },
  elect: {
    ...OPERATION,
    forms: [form('sync', 'b32|p b32', '8.0 sm_90')],
    operands: { ...WRITES_FIRST, twoResults: true },
  },
  shfl: {
    ...OPERATION,
    forms: [
      form('sync up|down|bfly|idx b32', 'T|p T T T b32', '6.0'),
      form('up|down|bfly|idx b32', 'T|p T T T', 'before sm_70'),
    ],
    operands: { ...WRITES_FIRST, firstWanted: true, warpResult: true },
  },
} satisfies Rows;
