// cvt, moves, and addresses of one space or another.

import { form } from '../form.js';
import type { Form } from '../form.js';

const ROUNDED = 'rn|rz|rm|rp';
const TO_INTEGER = 'rni|rzi|rmi|rpi';
const NARROW = 'u8|u16|u32|u64|s8|s16|s32|s64';
const SMALL = 'e4m3x2|e5m2x2';
const TINY = 'e3m2x2|e2m3x2|e2m1x2';

/** Saturation only between integers of which one can hold what the other cannot. */
const saturating = NARROW.split('|').flatMap((to) => {
  const least = (type: string): number =>
    type.startsWith('s') ? -(2 ** (Number(type.slice(1)) - 1)) : 0;
  const most = (type: string): number =>
    2 ** (Number(type.slice(1)) - (type.startsWith('s') ? 1 : 0));
  const sources = NARROW.split('|').filter(
    (from) => least(from) < least(to) || most(from) > most(to),
  );
  return sources.length ? [form('cvt', `sat ${to} ${sources.join('|')}`, 'T1 T')] : [];
});

const PLAIN: readonly Form[] = [
  form('cvt', `${NARROW} ${NARROW}`, 'T1 T'),
  ...saturating,
  form('cvt', `${TO_INTEGER} [ftz] [sat] ${NARROW} f32`, 'T1 T'),
  form('cvt', `${TO_INTEGER} [sat] ${NARROW} f64|f16`, 'T1 T'),
  form('cvt', `${ROUNDED} [ftz] [sat] f32 ${NARROW}`, 'T1 T'),
  form('cvt', `${ROUNDED} [sat] f16|f64 ${NARROW}`, 'T1 T'),
  form('cvt', `[${TO_INTEGER}] [ftz] [sat] f32 f32`, 'T1 T'),
  form('cvt', `[${TO_INTEGER}] [sat] f64 f64`, 'T1 T'),
  form('cvt', `[${TO_INTEGER}] [sat] f16 f16`, 'T1 T'),
  form('cvt', '[ftz] [sat] f32 f16', 'T1 T'),
  form('cvt', '[sat] f64 f16', 'T1 T'),
  form('cvt', '[ftz] [sat] f64 f32', 'T1 T'),
  form('cvt', `${ROUNDED} [ftz] [sat] f16 f32`, 'T1 T'),
  form('cvt', `${ROUNDED} [ftz] [sat] f32 f64`, 'T1 T'),
  form('cvt', `${ROUNDED} [sat] f16 f64`, 'T1 T'),
];

const HALF: readonly Form[] = [
  form('cvt', `${TO_INTEGER} ${NARROW} bf16`, 'T1 T', '7.8 sm_90'),
  form('cvt', `${ROUNDED} bf16 ${NARROW}`, 'T1 T', '7.8 sm_90'),
  form('cvt', `[${TO_INTEGER}] bf16 bf16`, 'T1 T', '7.8 sm_90'),
  form('cvt', 'f32 bf16', 'T1 T', '7.1 sm_80'),
  form('cvt', 'ftz f32 bf16', 'T1 T', '7.8 sm_90'),
  form('cvt', 'f64 bf16', 'T1 T', '7.8 sm_90'),
  form('cvt', `${ROUNDED} bf16 f64|f16`, 'T1 T', '7.8 sm_90'),
  form('cvt', `${ROUNDED} f16 bf16`, 'T1 T', '7.8 sm_90'),
  form('cvt', 'rn|rz [relu] f16|bf16 f32', 'T1 T', '7.0 sm_80'),
  form('cvt', 'rm|rp bf16 f32', 'T1 T', '7.0 sm_80'),
  form('cvt', 'rn|rz satfinite f16 f32', 'T1 T', '8.1'),
  form('cvt', 'rn|rz [relu] satfinite f16|bf16 f32', 'T1 T', '8.1 sm_80'),
  form('cvt', 'rn|rz [relu] f16x2|bf16x2 f32', 'T1 T T', '7.0 sm_80'),
  form('cvt', 'rn|rz [relu] satfinite f16x2|bf16x2 f32', 'T1 T T', '8.1 sm_80'),
  form('cvt', 'rs [relu] [satfinite] f16x2|bf16x2 f32', 'T1 T T b32', '8.7 sm_100a'),
];

const SMALLER: readonly Form[] = [
  form('cvt', 'rna tf32 f32', 'b32 T', '7.0 sm_80'),
  form('cvt', 'rna satfinite tf32 f32', 'b32 T', '8.1 sm_89'),
  form('cvt', 'rn|rz [relu] tf32 f32', 'b32 T', '7.8 sm_90'),
  form('cvt', 'rn|rz satfinite [relu] tf32 f32', 'b32 T', '8.6 sm_100'),
  form('cvt', `rn satfinite [relu] ${SMALL} f32`, 'T1 T T', '8.1 sm_89 or 7.8 sm_90'),
  form('cvt', `rn satfinite [relu] ${SMALL} f16x2`, 'T1 T', '8.1 sm_89 or 7.8 sm_90'),
  form('cvt', `rn [relu] f16x2 ${SMALL}`, 'T1 T', '8.1 sm_89 or 7.8 sm_90'),
  form(
    'cvt',
    `rn satfinite [relu] ${TINY} f32`,
    'T1 T T',
    '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f',
  ),
  form('cvt', `rn [relu] f16x2 ${TINY}`, 'T1 T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form(
    'cvt',
    'rs satfinite [relu] e4m3x4|e5m2x4|e3m2x4|e2m3x4|e2m1x4 f32',
    'T1 {f32,f32,f32,f32} b32',
    '8.7 sm_100a',
  ),
  form(
    'cvt',
    'rz|rp [satfinite] ue8m0x2 f32',
    'T1 T T',
    '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f',
  ),
  form(
    'cvt',
    'rz|rp [satfinite] ue8m0x2 bf16x2',
    'T1 T',
    '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f',
  ),
  form('cvt', 'rn bf16x2 ue8m0x2', 'T1 T', '8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f'),
  form('cvt', 'pack sat u16|s16 s32', 'b32 T T', '6.5 sm_72'),
  form('cvt', 'pack sat u8|s8 s32 b32', 'b32 s32 s32 b32', '6.5 sm_72'),
  form('cvt', 'pack sat u4|s4|u2|s2 s32 b32', 'b32 s32 s32 b32', '6.5 sm_75'),
];

const SPACES = 'const|global|local|shared|shared::cta|shared::cluster|param|param::entry';
const SPACES_SINCE = {
  'shared::cta': '7.8 sm_30',
  'shared::cluster': '7.8 sm_90',
  param: '7.7 sm_70',
  'param::entry': '8.3 sm_70',
};

const MOVES: readonly Form[] = [
  form('mov', 'pred|b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64', 'T T'),
  form('mov', 'b128', 'T T', '8.3 sm_70'),
  ...['b64', 'b32'].map((address) =>
    form('isspacep', SPACES, `p ${address}`).withWords({ ...SPACES_SINCE, 'shared::cta': '7.8' }),
  ),
  form('cvta', `[to] ${SPACES} u32|u64`, 'T T').withWords(SPACES_SINCE),
  form('mapa', '[shared::cluster] u32|u64', 'T T b32', '7.8 sm_90'),
  form('getctarank', '[shared::cluster] u32|u64', 'b32 T', '7.8 sm_90'),
];

export const CONVERSION_FORMS: readonly Form[] = [...PLAIN, ...HALF, ...SMALLER, ...MOVES];
