// Comparisons, choices and logic.

import { form } from '../form.js';
import type { Form } from '../form.js';

const INTEGERS = 'u16|u32|u64|s16|s32|s64';
const COMPARISONS = 'eq|ne|lt|le|gt|ge';
const UNSIGNED_COMPARISONS = `${COMPARISONS}|lo|ls|hi|hs`;
const FLOAT_COMPARISONS = `${COMPARISONS}|equ|neu|ltu|leu|gtu|geu|num|nan`;
const COMBINED = 'and|or|xor';
const PLAIN = 'b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64';

/** What may be compared: comparison, types. */
const COMPARED: readonly (readonly [string, string])[] = [
  ['eq|ne', 'b16|b32|b64'],
  [COMPARISONS, 's16|s32|s64'],
  [UNSIGNED_COMPARISONS, 'u16|u32|u64'],
  [`${FLOAT_COMPARISONS} [ftz]`, 'f32'],
  [FLOAT_COMPARISONS, 'f64'],
];

const set = (comparison: string, types: string, since = ''): Form[] => [
  form('set', `${comparison} ${types}`, 'T1 T T', since),
  form('set', `${comparison} ${COMBINED} ${types}`, 'T1 T T p', since),
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
    form('setp', `${comparison} ${types}`, 'p T T'),
    form('setp', `${comparison} ${types}`, 'p|p T T'),
    form('setp', `${COMBINED} ${comparison} ${types}`, 'p T T !p'),
    form('setp', `${COMBINED} ${comparison} ${types}`, 'p|p T T p'),
  ]),
  ...(
    [
      ['[ftz] f16', 'p', '4.2 sm_53'],
      ['bf16', 'p', '7.8 sm_90'],
      ['[ftz] f16x2', 'p|p', '4.2 sm_53'],
      ['bf16x2', 'p|p', '7.8 sm_90'],
    ] as const
  ).flatMap(([type, result, since]) => [
    form('setp', `${FLOAT_COMPARISONS} ${type}`, `${result} T T`, since),
    form('setp', `${FLOAT_COMPARISONS} ${COMBINED} ${type}`, `${result} T T p`, since),
  ]),
];

const CHOICE: readonly Form[] = [
  form('selp', PLAIN, 'T T T p'),
  form('slct', `${PLAIN} s32`, 'T1 T1 T1 T'),
  form('slct', `[ftz] ${PLAIN} f32`, 'T1 T1 T1 T'),
];

const LOGIC: readonly Form[] = [
  ...['and', 'or', 'xor'].map((name) => form(name, 'pred|b16|b32|b64', 'T T T')),
  form('not', 'pred|b16|b32|b64', 'T T'),
  form('cnot', 'b16|b32|b64', 'T T'),
  form('lop3', 'b32', 'T T T T 0x96', '4.3 sm_50'),
  form('lop3', 'and|or b32', 'T|p T T T 0x96 p', '8.2 sm_70'),
  form('shf', 'l|r clamp|wrap b32', 'T T T b32', '3.1 sm_32'),
  form('shl', 'b16|b32|b64', 'T T b32'),
  form('shr', `b16|b32|b64|${INTEGERS}`, 'T T b32'),
  form('prmt', 'b32 [f4e|b4e|rc8|ecl|ecr|rc16]', 'T T T T'),
];

export const COMPARISON_FORMS: readonly Form[] = [...SET, ...SETP, ...CHOICE, ...LOGIC];
