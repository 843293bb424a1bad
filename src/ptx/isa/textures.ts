// Rows of textures and surfaces. They have no forms: `rules/textures.ts` checks what they take.

import {
  fetch,
  gather,
  isType,
  query,
  surfaceLoad,
  surfaceReduce,
  surfaceStore,
} from '../rules/textures.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { NEVER_WAITS } from './traits.js';

const SAMPLED = {
  forms: [],
  operands: { writesFirst: true, takesNames: true, coordinates: true },
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  vector: NO_VECTOR_FORM,
} as const;
const QUERIED = { ...SAMPLED, operands: { writesFirst: true, takesNames: true } } as const;
const STORED = {
  ...SAMPLED,
  operands: { writesFirst: false, takesNames: true, coordinates: true },
} as const;

export const TEXTURES = {
  tex: { ...SAMPLED, scalar: fetch },
  tld4: { ...SAMPLED, scalar: gather },
  txq: { ...QUERIED, scalar: query('texture') },
  suq: { ...QUERIED, scalar: query('surface') },
  suld: { ...SAMPLED, scalar: surfaceLoad },
  sust: { ...STORED, scalar: surfaceStore },
  sured: { ...STORED, scalar: surfaceReduce },
  istypep: { ...QUERIED, scalar: isType },
} satisfies Rows;
