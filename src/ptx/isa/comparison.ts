// Rows of comparisons and selections.

import * as lanes from '../lanes/comparison.js';
import * as halfLanes from '../lanes/halves.js';
import * as compare from '../rules/compare.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { COMPUTES, WRITES_FIRST } from './traits.js';

const COMPARISONS = 'eq|ne|lt|le|gt|ge';
const UNSIGNED_COMPARISONS = `${COMPARISONS}|lo|ls|hi|hs`;
const FLOAT_COMPARISONS = `${COMPARISONS}|equ|neu|ltu|leu|gtu|geu|num|nan`;
const COMBINED = 'and|or|xor';
const PLAIN = 'b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64';

/** Comparisons, and the types that each takes. */
const COMPARED: readonly (readonly [string, string])[] = [
  ['eq|ne', 'b16|b32|b64'],
  [COMPARISONS, 's16|s32|s64'],
  [UNSIGNED_COMPARISONS, 'u16|u32|u64'],
  [`${FLOAT_COMPARISONS} [ftz]`, 'f32'],
  [FLOAT_COMPARISONS, 'f64'],
];

const set = (comparison: string, types: string, since = ''): Form[] => [
  form(`${comparison} ${types}`, 'T1 T T', since),
  form(`${comparison} ${COMBINED} ${types}`, 'T1 T T p', since),
];

const SET: readonly Form[] = [
  ...COMPARED.flatMap(([comparison, types]) => [
    ...set(comparison, `u32|s32|f32 ${types}`),
    ...set(comparison, `f16 ${types}`, '4.2 sm_53'),
    ...set(comparison.replace('[ftz]', ''), `bf16 ${types}`, '7.8 sm_90'),
  ]),
  ...set(`${FLOAT_COMPARISONS} [ftz]`, 'f16 f16', '4.2 sm_53'),
  ...set(`${FLOAT_COMPARISONS} [ftz]`, 'u16|s16|u32|s32 f16', '6.5 sm_53'),
  ...set(FLOAT_COMPARISONS, 'bf16 f16', '7.8 sm_90'),
  ...set(FLOAT_COMPARISONS, 'bf16|u16|s16|u32|s32 bf16', '7.8 sm_90'),
  ...set(`${FLOAT_COMPARISONS} [ftz]`, 'f16x2 f16x2', '4.2 sm_53'),
  ...set(`${FLOAT_COMPARISONS} [ftz]`, 'u32|s32 f16x2', '6.5 sm_53'),
  ...set(FLOAT_COMPARISONS, 'bf16x2|u32|s32 bf16x2', '7.8 sm_90'),
];

const SETP: readonly Form[] = [
  ...COMPARED.flatMap(([comparison, types]) => [
    form(`${comparison} ${types}`, 'p T T'),
    form(`${comparison} ${types}`, 'p|p T T'),
    form(`${COMBINED} ${comparison} ${types}`, 'p T T !p'),
    form(`${COMBINED} ${comparison} ${types}`, 'p|p T T p'),
  ]),
  ...(
    [
      ['[ftz] f16', 'p', '4.2 sm_53'],
      ['bf16', 'p', '7.8 sm_90'],
      ['[ftz] f16x2', 'p|p', '4.2 sm_53'],
      ['bf16x2', 'p|p', '7.8 sm_90'],
    ] as const
  ).flatMap(([type, result, since]) => [
    form(`${FLOAT_COMPARISONS} ${type}`, `${result} T T`, since),
    form(`${FLOAT_COMPARISONS} ${COMBINED} ${type}`, `${result} T T p`, since),
  ]),
];

export const COMPARISON = {
  setp: {
    ...COMPUTES,
    forms: SETP,
    operands: { ...WRITES_FIRST, resultUnwanted: 'always' },
    meaning: 'comparison',
    scalar: compare.setPredicate,
    vector: { group: [lanes.setPredicate, halfLanes.setPredicate] },
  },
  set: {
    ...COMPUTES,
    forms: SET,
    meaning: 'opaque',
    scalar: compare.set,
    vector: NO_VECTOR_FORM,
  },
  selp: {
    ...COMPUTES,
    forms: [form(PLAIN, 'T T T p')],
    meaning: 'opaque',
    scalar: compare.selectByPredicate,
    vector: { group: [lanes.selectByPredicate] },
  },
  slct: {
    ...COMPUTES,
    forms: [form(`${PLAIN} s32`, 'T1 T1 T1 T'), form(`[ftz] ${PLAIN} f32`, 'T1 T1 T1 T')],
    meaning: 'opaque',
    scalar: compare.selectBySign,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
