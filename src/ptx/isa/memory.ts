// Rows of loads, stores and hints.

import * as lanes from '../lanes/memory.js';
import { createPolicy, load, nothing, store } from '../rules/memory.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { NEVER_WAITS, WRITES_FIRST, WRITES_NOTHING } from './traits.js';
import type { WaitTraits } from './traits.js';

const SPACES =
  '[const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster]';
const STORE_SPACES = '[global|local|param|param::func|shared|shared::cta|shared::cluster]';
/** Words of loads and stores, in every form. */
const ACCESS_SINCE: Readonly<Record<string, string>> = {
  weak: '6.0 sm_70',
  relaxed: '6.0 sm_70',
  acquire: '6.0 sm_70',
  release: '6.0 sm_70',
  cluster: '7.8 sm_90',
  'shared::cta': '7.8 sm_30',
  'shared::cluster': '7.8 sm_90',
  'param::entry': '8.3',
  'param::func': '8.3',
  b128: '8.3 sm_70',
  'L1::evict_normal': '7.4 sm_70',
  'L1::evict_unchanged': '7.4 sm_70',
  'L1::evict_first': '7.4 sm_70',
  'L1::evict_last': '7.4 sm_70',
  'L1::no_allocate': '7.4 sm_70',
  'L2::evict_normal': '8.8 sm_100',
  'L2::evict_first': '8.8 sm_100',
  'L2::evict_last': '8.8 sm_100',
  'L2::64B': '7.4 sm_75',
  'L2::128B': '7.4 sm_75',
  'L2::256B': '7.4 sm_80',
  'L2::cache_hint': '7.4 sm_80',
  mmio: '8.2 sm_70',
};
const TYPES = 'b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64';
const QUARTERS = 'v4 b8|b16|b32|u8|u16|u32|s8|s16|s32|f32';
const L1 = '[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate]';
const L2 = '[L2::evict_normal|L2::evict_first|L2::evict_last]';
const SIZES = '[L2::64B|L2::128B|L2::256B]';
const SCOPES = 'cta|cluster|gpu|sys';
const SHARED = '[shared|shared::cta|shared::cluster]';
const VOLATILE_SPACES = '[global|shared|shared::cta|shared::cluster]';

/** The scalar, vector and 128-bit forms of an access. */
const access = (places: string, operands: string, since = ''): Form[] => [
  form(`${places} ${TYPES}|b128`, operands, since),
  ...[`v2 ${TYPES}`, QUARTERS].map((vector) =>
    form(`${places} ${vector}`, operands.replace('T', '{T}'), since),
  ),
];
/** 256 bits at once exist in global memory only, with priorities or with a cache operator. */
const LARGE = ['v8 b32|u32|s32|f32', 'v4 b64|u64|s64|f64'];
const large = (order: string, operators: string, sizes: string, operands: string): Form[] =>
  LARGE.flatMap((vector) =>
    [`${order} ${L1} ${L2}`, ...(operators === '' ? [] : [`${order} ${operators}`])].flatMap(
      (places) => [
        form(`${places} ${sizes} ${vector}`, operands, '8.8 sm_100'),
        form(`${places} L2::cache_hint ${sizes} ${vector}`, `${operands} b64`, '8.8 sm_100'),
      ],
    ),
  );

const LOADS: readonly Form[] = [
  ...access(`[weak] ${SPACES} [ca|cg|cs|lu|cv]`, 'T [A]'),
  ...access(`[weak] [global] ca|cg|cs|lu|cv L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...access(`[weak] [global] ca|cg|cs|lu|cv ${SIZES.slice(1, -1)}`, 'T [g]'),
  ...access(`[weak] [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access(`[weak] [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...access(`volatile ${SHARED}`, 'T [A]'),
  ...access('volatile local', 'T [A]', '9.1'),
  ...access(`volatile [global] ${SIZES}`, 'T [g]'),
  ...access(`relaxed|acquire ${SCOPES} ${SHARED}`, 'T [A]'),
  ...access(`relaxed|acquire ${SCOPES} [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access(`relaxed|acquire ${SCOPES} [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  form(`mmio relaxed sys [global] ${TYPES}`, 'T [g]'),
  ...access(`global nc [ca|cg|cs|${L1.slice(1, -1)}] ${SIZES}`, 'T [g]'),
  ...access(`global nc [ca|cg|cs|${L1.slice(1, -1)}] L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...large('[weak] [global]', 'ca|cg|cs|lu|cv', SIZES, '{T} [g]'),
  ...large(`relaxed|acquire ${SCOPES} [global]`, '', SIZES, '{T} [g]'),
  ...large('global nc', 'ca|cg|cs', SIZES, '{T} [g]'),
  form(`volatile [global] ${SIZES} v8 b32|u32|s32|f32`, '{T} [g]', '8.8 sm_100'),
  form(`volatile [global] ${SIZES} v4 b64|u64|s64|f64`, '{T} [g]', '8.8 sm_100'),
].map((row) => row.withWords(ACCESS_SINCE));

const UNIFORM_LOADS: readonly Form[] = [
  form(`[global] ${TYPES}`, 'T [g]'),
  form(`[global] v2 ${TYPES}`, '{T} [g]'),
  form(`[global] ${QUARTERS}`, '{T} [g]'),
].map((row) => row.withWords(ACCESS_SINCE));

const STORES: readonly Form[] = [
  ...access(`[weak] ${STORE_SPACES} [wb|cg|cs|wt]`, '[A] T'),
  ...access('[weak] [global] wb|cg|cs|wt L2::cache_hint', '[g] T b64'),
  ...access(`[weak] [global] ${L1}`, '[g] T'),
  ...access(`[weak] [global] ${L1} L2::cache_hint`, '[g] T b64'),
  ...access(`volatile ${VOLATILE_SPACES}`, '[A] T'),
  ...access('volatile local', '[A] T', '9.1'),
  ...access(`relaxed|release ${SCOPES} ${SHARED}`, '[A] T'),
  ...access(`relaxed|release ${SCOPES} [global] ${L1}`, '[g] T'),
  ...access(`relaxed|release ${SCOPES} [global] ${L1} L2::cache_hint`, '[g] T b64'),
  form(`mmio relaxed sys [global] ${TYPES}`, '[g] T'),
  ...large('[weak] [global]', 'wb|cg|cs|wt', '', '[g] {T}'),
  ...large(`relaxed|release ${SCOPES} [global]`, '', '', '[g] {T}'),
  form('volatile [global] v8 b32|u32|s32|f32', '[g] {T}', '8.8 sm_100'),
  form('volatile [global] v4 b64|u64|s64|f64', '[g] {T}', '8.8 sm_100'),
  form(
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes b32|b64|u32|u64|s32|s64|f32|f64',
    '[s] T [s]',
    '8.1 sm_90',
  ),
  form(
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2|v4 b32|u32|s32|f32',
    '[s] {T} [s]',
    '8.1 sm_90',
  ),
  form(
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2 b64|u64|s64|f64',
    '[s] {T} [s]',
    '8.1 sm_90',
  ),
  form(
    'async release gpu|sys [global] ' +
      `${TYPES.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`,
    '[g] T',
    '8.7 sm_100',
  ),
  form(
    'async mmio release sys [global] ' +
      `${TYPES.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`,
    '[g] T',
    '8.7 sm_100',
  ),
  form('bulk [weak] [shared::cta]', '[s] b64 0', '8.6 sm_100'),
].map((row) => row.withWords(ACCESS_SINCE));

/** `volatile` accesses that other threads may observe. */
const VOLATILE: WaitTraits = {
  cut: () => undefined,
  givesWay: (modifiers) =>
    modifiers.includes('volatile') && !modifiers.includes('global') && !modifiers.includes('local'),
};

const HINT = {
  operands: WRITES_NOTHING,
  effect: 'repeatable',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  scalar: nothing,
  vector: NO_VECTOR_FORM,
} as const;

export const MEMORY = {
  ld: {
    forms: LOADS,
    operands: { ...WRITES_FIRST, widerElements: true, widerRegisters: true, parameter: 'reads' },
    effect: 'repeatable',
    waits: VOLATILE,
    meaning: 'load',
    scalar: load,
    vector: { unit: lanes.load },
  },
  ldu: {
    forms: UNIFORM_LOADS,
    operands: { ...WRITES_FIRST, widerElements: true, widerRegisters: true },
    effect: 'repeatable',
    waits: NEVER_WAITS,
    meaning: 'load',
    scalar: load,
    vector: { unit: lanes.load },
  },
  st: {
    forms: STORES,
    operands: { ...WRITES_NOTHING, widerElements: true, widerRegisters: true, parameter: 'writes' },
    effect: 'repeatable',
    waits: VOLATILE,
    meaning: 'opaque',
    scalar: store,
    vector: { unit: lanes.store },
  },
  prefetch: {
    ...HINT,
    forms: [
      form('[global|local] L1|L2', '[g]'),
      form('[global] L2::evict_last|L2::evict_normal', '[g]', '7.4 sm_80'),
      form('[const|param] tensormap', '[g]', '8.0 sm_90'),
    ],
  },
  prefetchu: { ...HINT, forms: [form('L1', '[g]')] },
  applypriority: { ...HINT, forms: [form('[global] L2::evict_normal', '[g] 128', '7.4 sm_80')] },
  discard: { ...HINT, forms: [form('[global] L2', '[g] 128', '7.4 sm_80')] },
  createpolicy: {
    forms: [
      form(
        'fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ' +
          '[L2::evict_first|L2::evict_unchanged] b64',
        'b64 f32?',
        '7.4 sm_80',
      ),
      form(
        'range [global] L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ' +
          '[L2::evict_first|L2::evict_unchanged] b64',
        'b64 [g] b32 b32',
        '7.4 sm_80',
      ),
      form('cvt L2 b64', 'b64 b64', '7.4 sm_80'),
    ],
    operands: WRITES_FIRST,
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: createPolicy,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
