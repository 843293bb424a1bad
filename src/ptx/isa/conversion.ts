// Rows of conversions, moves, and address conversions between spaces.

import * as lanes from '../lanes/conversion.js';
import * as narrowLanes from '../lanes/narrow.js';
import { blockRank, mapAddress } from '../rules/cluster.js';
import { copy, move } from '../rules/control.js';
import { convert, convertAddress } from '../rules/convert.js';
import { isSpace } from '../rules/memory.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { COMPUTES, NEVER_WAITS, WRITES_FIRST } from './traits.js';

const ROUNDED = 'rn|rz|rm|rp';
const TO_INTEGER = 'rni|rzi|rmi|rpi';
const NARROW = 'u8|u16|u32|u64|s8|s16|s32|s64';
const SMALL = 'e4m3x2|e5m2x2';
const TINY = 'e3m2x2|e2m3x2|e2m1x2';

/**
 * Saturation is only allowed between integers if one of them can hold values that the other cannot.
 */
const saturating = NARROW.split('|').flatMap((to) => {
  const least = (type: string): number =>
    type.startsWith('s') ? -(2 ** (Number(type.slice(1)) - 1)) : 0;
  const most = (type: string): number =>
    2 ** (Number(type.slice(1)) - (type.startsWith('s') ? 1 : 0));
  const sources = NARROW.split('|').filter(
    (from) => least(from) < least(to) || most(from) > most(to),
  );
  return sources.length ? [form(`sat ${to} ${sources.join('|')}`, 'T1 T')] : [];
});

const PLAIN: readonly Form[] = [
  form(`${NARROW} ${NARROW}`, 'T1 T'),
  ...saturating,
  form(`${TO_INTEGER} [ftz] [sat] ${NARROW} f32`, 'T1 T'),
  form(`${TO_INTEGER} [sat] ${NARROW} f64|f16`, 'T1 T'),
  form(`${ROUNDED} [ftz] [sat] f32 ${NARROW}`, 'T1 T'),
  form(`${ROUNDED} [sat] f16|f64 ${NARROW}`, 'T1 T'),
  form(`[${TO_INTEGER}] [ftz] [sat] f32 f32`, 'T1 T'),
  form(`[${TO_INTEGER}] [sat] f64 f64`, 'T1 T'),
  form(`[${TO_INTEGER}] [sat] f16 f16`, 'T1 T'),
  form('[ftz] [sat] f32 f16', 'T1 T'),
  form('[sat] f64 f16', 'T1 T'),
  form('[ftz] [sat] f64 f32', 'T1 T'),
  form(`${ROUNDED} [ftz] [sat] f16 f32`, 'T1 T'),
  form(`${ROUNDED} [ftz] [sat] f32 f64`, 'T1 T'),
  form(`${ROUNDED} [sat] f16 f64`, 'T1 T'),
];

const HALF: readonly Form[] = [
  form(`${TO_INTEGER} ${NARROW} bf16`, 'T1 T', '7.8 sm_90'),
  form(`${ROUNDED} bf16 ${NARROW}`, 'T1 T', '7.8 sm_90'),
  form(`[${TO_INTEGER}] bf16 bf16`, 'T1 T', '7.8 sm_90'),
  form('f32 bf16', 'T1 T', '7.1 sm_80'),
  form('ftz f32 bf16', 'T1 T', '7.8 sm_90'),
  form('f64 bf16', 'T1 T', '7.8 sm_90'),
  form(`${ROUNDED} bf16 f64|f16`, 'T1 T', '7.8 sm_90'),
  form(`${ROUNDED} f16 bf16`, 'T1 T', '7.8 sm_90'),
  form('rn|rz [relu] f16|bf16 f32', 'T1 T', '7.0 sm_80'),
  form('rm|rp bf16 f32', 'T1 T', '7.0 sm_80'),
  form('rn|rz satfinite f16 f32', 'T1 T', '8.1'),
  form('rn|rz [relu] satfinite f16|bf16 f32', 'T1 T', '8.1 sm_80'),
  form('rn|rz [relu] f16x2|bf16x2 f32', 'T1 T T', '7.0 sm_80'),
  form('rn|rz [relu] satfinite f16x2|bf16x2 f32', 'T1 T T', '8.1 sm_80'),
  form('rs [relu] [satfinite] f16x2|bf16x2 f32', 'T1 T T b32', '8.7 sm_100a'),
];

const SMALLER: readonly Form[] = [
  form('rna tf32 f32', 'b32 T', '7.0 sm_80'),
  form('rna satfinite tf32 f32', 'b32 T', '8.1 sm_89'),
  form('rn|rz [relu] tf32 f32', 'b32 T', '7.8 sm_90'),
  form('rn|rz satfinite [relu] tf32 f32', 'b32 T', '8.6 sm_100'),
  form(`rn satfinite [relu] ${SMALL} f32`, 'T1 T T', '8.1 sm_89 or 7.8 sm_90'),
  form(`rn satfinite [relu] ${SMALL} f16x2`, 'T1 T', '8.1 sm_89 or 7.8 sm_90'),
  form(`rn [relu] f16x2 ${SMALL}`, 'T1 T', '8.1 sm_89 or 7.8 sm_90'),
  form(`rn satfinite [relu] ${TINY} f32`, 'T1 T T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form(`rn [relu] f16x2 ${TINY}`, 'T1 T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form(
    'rs satfinite [relu] e4m3x4|e5m2x4|e3m2x4|e2m3x4|e2m1x4 f32',
    'T1 {f32,f32,f32,f32} b32',
    '8.7 sm_100a',
  ),
  form('rz|rp [satfinite] ue8m0x2 f32', 'T1 T T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form('rz|rp [satfinite] ue8m0x2 bf16x2', 'T1 T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form('rn bf16x2 ue8m0x2', 'T1 T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form('pack sat u16|s16 s32', 'b32 T T', '6.5 sm_72'),
  form('pack sat u8|s8 s32 b32', 'b32 s32 s32 b32', '6.5 sm_72'),
  form('pack sat u4|s4|u2|s2 s32 b32', 'b32 s32 s32 b32', '6.5 sm_75'),
];

const SPACES = 'const|global|local|shared|shared::cta|shared::cluster|param|param::entry';
const SPACES_SINCE = {
  'shared::cta': '7.8 sm_30',
  'shared::cluster': '7.8 sm_90',
  param: '7.7 sm_70',
  'param::entry': '8.3 sm_70',
};

export const CONVERSION = {
  cvt: {
    ...COMPUTES,
    forms: [...PLAIN, ...HALF, ...SMALLER],
    operands: { ...WRITES_FIRST, readsSpecial: true, widerRegisters: true },
    meaning: 'convert',
    scalar: convert,
    vector: { group: [lanes.convert, narrowLanes.convert] },
  },
  mov: {
    ...COMPUTES,
    forms: [
      form('pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64', 'T T'),
      form('b128', 'T T', '8.3 sm_70'),
    ],
    operands: { ...WRITES_FIRST, readsSpecial: true, packsVectors: true, takesNames: true },
    meaning: 'move',
    scalar: move,
    vector: { group: [lanes.move, narrowLanes.move] },
  },
  // An instruction of the compiler: it copies one register to another, whatever their types.
  copy: {
    ...COMPUTES,
    forms: [],
    operands: {
      ...WRITES_FIRST,
      resultUnwanted: 'always',
      packsVectors: true,
      takesNames: true,
    },
    meaning: 'move',
    scalar: copy,
    vector: NO_VECTOR_FORM,
  },
  isspacep: {
    ...COMPUTES,
    forms: ['b64', 'b32'].map((address) =>
      form(SPACES, `p ${address}`).withWords({ ...SPACES_SINCE, 'shared::cta': '7.8' }),
    ),
    operands: { ...WRITES_FIRST, refusesNames: true, takesOffsets: true },
    meaning: 'opaque',
    scalar: isSpace,
    vector: NO_VECTOR_FORM,
  },
  cvta: {
    ...COMPUTES,
    forms: [form(`[to] ${SPACES} u32|u64`, 'T T').withWords(SPACES_SINCE)],
    operands: { ...WRITES_FIRST, takesNames: true },
    meaning: 'convert address',
    scalar: convertAddress,
    vector: { group: [lanes.move] },
  },
  mapa: {
    forms: [form('[shared::cluster] u32|u64', 'T T b32', '7.8 sm_90')],
    operands: { ...WRITES_FIRST, takesNames: true },
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: mapAddress,
    vector: NO_VECTOR_FORM,
  },
  getctarank: {
    forms: [form('[shared::cluster] u32|u64', 'b32 T', '7.8 sm_90')],
    operands: { ...WRITES_FIRST, takesNames: true },
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: blockRank,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
