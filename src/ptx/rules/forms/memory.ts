// Loads, stores, copies, atomics and hints: what reads or writes memory.

import { form } from '../form.js';
import type { Form } from '../form.js';

const SPACES =
  '[const|global|local|param|param::entry|param::func|shared|shared::cta|shared::cluster]';
const STORE_SPACES = '[global|local|param|param::func|shared|shared::cta|shared::cluster]';
/** Of loads and stores, whatever form they stand in. */
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
const MEMORY = 'b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64';
const QUARTERS = 'v4 b8|b16|b32|u8|u16|u32|s8|s16|s32|f32';
const L1 = '[L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate]';
const L2 = '[L2::evict_normal|L2::evict_first|L2::evict_last]';
const SIZES = '[L2::64B|L2::128B|L2::256B]';
const SCOPES = 'cta|cluster|gpu|sys';
const SHARED = '[shared|shared::cta|shared::cluster]';
const WATCHED = '[global|shared|shared::cta|shared::cluster]';

/** Scalar, vector and 128-bit forms of an access. */
const access = (name: string, places: string, operands: string, since = ''): Form[] => [
  form(name, `${places} ${MEMORY}|b128`, operands, since),
  ...[`v2 ${MEMORY}`, QUARTERS].map((vector) =>
    form(name, `${places} ${vector}`, operands.replace('T', '{T}'), since),
  ),
];
/** 256 bits at once, in global memory only; with priorities, or with a cache operator. */
const LARGE = ['v8 b32|u32|s32|f32', 'v4 b64|u64|s64|f64'];
const large = (
  name: string,
  order: string,
  operators: string,
  sizes: string,
  operands: string,
): Form[] =>
  LARGE.flatMap((vector) =>
    [`${order} ${L1} ${L2}`, ...(operators === '' ? [] : [`${order} ${operators}`])].flatMap(
      (places) => [
        form(name, `${places} ${sizes} ${vector}`, operands, '8.8 sm_100'),
        form(name, `${places} L2::cache_hint ${sizes} ${vector}`, `${operands} b64`, '8.8 sm_100'),
      ],
    ),
  );

const ACCESSES: readonly Form[] = [
  ...access('ld', `[weak] ${SPACES} [ca|cg|cs|lu|cv]`, 'T [A]'),
  ...access('ld', `[weak] [global] ca|cg|cs|lu|cv L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...access('ld', `[weak] [global] ca|cg|cs|lu|cv ${SIZES.slice(1, -1)}`, 'T [g]'),
  ...access('ld', `[weak] [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access('ld', `[weak] [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...access('ld', `volatile ${SHARED}`, 'T [A]'),
  ...access('ld', 'volatile local', 'T [A]', '9.1'),
  ...access('ld', `volatile [global] ${SIZES}`, 'T [g]'),
  ...access('ld', `relaxed|acquire ${SCOPES} ${SHARED}`, 'T [A]'),
  ...access('ld', `relaxed|acquire ${SCOPES} [global] ${L1} ${SIZES}`, 'T [g]'),
  ...access('ld', `relaxed|acquire ${SCOPES} [global] ${L1} L2::cache_hint ${SIZES}`, 'T [g] b64'),
  form('ld', `mmio relaxed sys [global] ${MEMORY}`, 'T [g]'),
  ...access('ld', `global nc [ca|cg|cs|${L1.slice(1, -1)}] ${SIZES}`, 'T [g]'),
  ...access('ld', `global nc [ca|cg|cs|${L1.slice(1, -1)}] L2::cache_hint ${SIZES}`, 'T [g] b64'),
  ...large('ld', '[weak] [global]', 'ca|cg|cs|lu|cv', SIZES, '{T} [g]'),
  ...large('ld', `relaxed|acquire ${SCOPES} [global]`, '', SIZES, '{T} [g]'),
  ...large('ld', 'global nc', 'ca|cg|cs', SIZES, '{T} [g]'),
  form('ld', `volatile [global] ${SIZES} v8 b32|u32|s32|f32`, '{T} [g]', '8.8 sm_100'),
  form('ld', `volatile [global] ${SIZES} v4 b64|u64|s64|f64`, '{T} [g]', '8.8 sm_100'),
  form('ldu', `[global] ${MEMORY}`, 'T [g]'),
  form('ldu', `[global] v2 ${MEMORY}`, '{T} [g]'),
  form('ldu', `[global] ${QUARTERS}`, '{T} [g]'),
  ...access('st', `[weak] ${STORE_SPACES} [wb|cg|cs|wt]`, '[A] T'),
  ...access('st', '[weak] [global] wb|cg|cs|wt L2::cache_hint', '[g] T b64'),
  ...access('st', `[weak] [global] ${L1}`, '[g] T'),
  ...access('st', `[weak] [global] ${L1} L2::cache_hint`, '[g] T b64'),
  ...access('st', `volatile ${WATCHED}`, '[A] T'),
  ...access('st', 'volatile local', '[A] T', '9.1'),
  ...access('st', `relaxed|release ${SCOPES} ${SHARED}`, '[A] T'),
  ...access('st', `relaxed|release ${SCOPES} [global] ${L1}`, '[g] T'),
  ...access('st', `relaxed|release ${SCOPES} [global] ${L1} L2::cache_hint`, '[g] T b64'),
  form('st', `mmio relaxed sys [global] ${MEMORY}`, '[g] T'),
  ...large('st', '[weak] [global]', 'wb|cg|cs|wt', '', '[g] {T}'),
  ...large('st', `relaxed|release ${SCOPES} [global]`, '', '', '[g] {T}'),
  form('st', 'volatile [global] v8 b32|u32|s32|f32', '[g] {T}', '8.8 sm_100'),
  form('st', 'volatile [global] v4 b64|u64|s64|f64', '[g] {T}', '8.8 sm_100'),
  form(
    'st',
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes b32|b64|u32|u64|s32|s64|f32|f64',
    '[s] T [s]',
    '8.1 sm_90',
  ),
  form(
    'st',
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2|v4 b32|u32|s32|f32',
    '[s] {T} [s]',
    '8.1 sm_90',
  ),
  form(
    'st',
    'async [weak] [shared::cluster] mbarrier::complete_tx::bytes v2 b64|u64|s64|f64',
    '[s] {T} [s]',
    '8.1 sm_90',
  ),
  form(
    'st',
    'async release gpu|sys [global] ' +
      `${MEMORY.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`,
    '[g] T',
    '8.7 sm_100',
  ),
  form(
    'st',
    'async mmio release sys [global] ' +
      `${MEMORY.replace('b8|', '').replace('u8|', '').replace('s8|', '')}`,
    '[g] T',
    '8.7 sm_100',
  ),
  form('st', 'bulk [weak] [shared::cta]', '[s] b64 0', '8.6 sm_100'),
].map((row) => row.withWords(ACCESS_SINCE));

const HINTS: readonly Form[] = [
  form('prefetch', '[global|local] L1|L2', '[g]'),
  form('prefetch', '[global] L2::evict_last|L2::evict_normal', '[g]', '7.4 sm_80'),
  form('prefetch', '[const|param] tensormap', '[g]', '8.0 sm_90'),
  form('prefetchu', 'L1', '[g]'),
  form('applypriority', '[global] L2::evict_normal', '[g] 128', '7.4 sm_80'),
  form('discard', '[global] L2', '[g] 128', '7.4 sm_80'),
  form(
    'createpolicy',
    'fractional L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ' +
      '[L2::evict_first|L2::evict_unchanged] b64',
    'b64 f32?',
    '7.4 sm_80',
  ),
  form(
    'createpolicy',
    'range [global] L2::evict_last|L2::evict_normal|L2::evict_first|L2::evict_unchanged ' +
      '[L2::evict_first|L2::evict_unchanged] b64',
    'b64 [g] b32 b32',
    '7.4 sm_80',
  ),
  form('createpolicy', 'cvt L2 b64', 'b64 b64', '7.4 sm_80'),
];

const COPY_SINCE = {
  'L2::64B': '7.4',
  'L2::128B': '7.4',
  'L2::256B': '7.4',
  'L2::cache_hint': '7.4',
};

const COPIES: readonly Form[] = [
  form(
    'cp',
    `async ca shared|shared::cta global ${SIZES}`,
    '[s] [g] 16 b32?',
    '7.0 sm_80',
  ).withWords(COPY_SINCE),
  form(
    'cp',
    `async cg shared|shared::cta global ${SIZES}`,
    '[s] [g] 16 b32?',
    '7.0 sm_80',
  ).withWords(COPY_SINCE),
  ...['b64', 'b32 b64'].map((operands) =>
    form(
      'cp',
      `async ca|cg shared|shared::cta global L2::cache_hint ${SIZES}`,
      `[s] [g] 16 ${operands}`,
      '7.0 sm_80',
    ).withWords(COPY_SINCE),
  ),
  form(
    'cp',
    `async ca|cg shared|shared::cta global ${SIZES}`,
    '[s] [g] 16 p',
    '7.5 sm_80',
  ).withWords(COPY_SINCE),
  form(
    'cp',
    `async ca|cg shared|shared::cta global L2::cache_hint ${SIZES}`,
    '[s] [g] 16 p b64',
    '7.5 sm_80',
  ).withWords(COPY_SINCE),
  form('cp', 'async commit_group', '', '7.0 sm_80'),
  form('cp', 'async wait_group', '0', '7.0 sm_80'),
  form('cp', 'async wait_all', '', '7.0 sm_80'),
  form(
    'cp',
    'async mbarrier arrive [noinc] [shared|shared::cta] b64',
    '[s]',
    '7.0 sm_80',
  ).withWords({ 'shared::cta': '7.8' }),
  form(
    'cp',
    'async bulk shared::cluster global mbarrier::complete_tx::bytes',
    '[s] [g] b32 [s]',
    '8.0 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cta global mbarrier::complete_tx::bytes',
    '[s] [g] b32 [s]',
    '8.6 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cluster global mbarrier::complete_tx::bytes L2::cache_hint',
    '[s] [g] b32 [s] b64',
    '8.0 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cta global mbarrier::complete_tx::bytes L2::cache_hint',
    '[s] [g] b32 [s] b64',
    '8.6 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster',
    '[s] [g] b32 [s] b16',
    '8.0 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster ' +
      'L2::cache_hint',
    '[s] [g] b32 [s] b16 b64',
    '8.0 sm_90',
  ),
  form(
    'cp',
    'async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes',
    '[s] [s] b32 [s]',
    '8.0 sm_90',
  ),
  form('cp', 'async bulk global shared::cta bulk_group', '[g] [s] b32', '8.0 sm_90'),
  form(
    'cp',
    'async bulk global shared::cta bulk_group L2::cache_hint',
    '[g] [s] b32 b64',
    '8.0 sm_90',
  ),
  form('cp', 'async bulk global shared::cta bulk_group cp_mask', '[g] [s] b32 b16', '8.6 sm_100'),
  form(
    'cp',
    'async bulk global shared::cta bulk_group L2::cache_hint cp_mask',
    '[g] [s] b32 b64 b16',
    '8.6 sm_100',
  ),
  form('cp', 'async bulk prefetch L2 global', '[g] b32', '8.0 sm_90'),
  form('cp', 'async bulk prefetch L2 global L2::cache_hint', '[g] b32 b64', '8.0 sm_90'),
  form('cp', 'async bulk commit_group', '', '8.0 sm_90'),
  form('cp', 'async bulk wait_group [read]', '0', '8.0 sm_90'),
  ...['add u32|s32|u64', 'min|max u32|s32', 'inc|dec u32', 'and|or|xor b32'].map((operation) =>
    form(
      'cp',
      `reduce async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes ${operation}`,
      '[s] [s] b32 [s]',
      '8.0 sm_90',
    ),
  ),
  ...[
    'and|or|xor b32|b64',
    'add u32|s32|u64|f32|f64',
    'inc|dec u32',
    'min|max u32|s32|u64|s64|f16|bf16',
    'add noftz f16|bf16',
  ].flatMap((operation) => [
    form(
      'cp',
      `reduce async bulk global shared::cta bulk_group ${operation}`,
      '[g] [s] b32',
      '8.0 sm_90',
    ),
    form(
      'cp',
      `reduce async bulk global shared::cta bulk_group L2::cache_hint ${operation}`,
      '[g] [s] b32 b64',
      '8.0 sm_90',
    ),
  ]),
];

const ORDER = '[relaxed|acquire|release|acq_rel]';
const ATOMIC_SINCE: Readonly<Record<string, string>> = {
  relaxed: '6.0 sm_70',
  acquire: '6.0 sm_70',
  release: '6.0 sm_70',
  acq_rel: '6.0 sm_70',
  cta: '5.0 sm_60',
  gpu: '5.0 sm_60',
  sys: '5.0 sm_60',
  cluster: '7.8 sm_90',
  'shared::cta': '7.8 sm_30',
  'shared::cluster': '7.8 sm_90',
  'L2::cache_hint': '7.4 sm_80',
};

const atomics = (operation: string, since = ''): Form[] => [
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} ${operation}`, 'T [A] T', since),
  form('atom', `${ORDER} [${SCOPES}] [global] L2::cache_hint ${operation}`, 'T [g] T b64', since),
  form('red', `[relaxed|release] [${SCOPES}] ${WATCHED} ${operation}`, '[A] T', since),
  form(
    'red',
    `[relaxed|release] [${SCOPES}] [global] L2::cache_hint ${operation}`,
    '[g] T b64',
    since,
  ),
];

const ATOMICS: readonly Form[] = [
  ...atomics('and|or|xor b32|b64'),
  ...atomics('add u32|s32|u64|f32'),
  ...atomics('add f64', '5.0 sm_60'),
  ...atomics('add noftz f16x2', '6.2 sm_60'),
  ...atomics('add noftz f16', '6.3 sm_70'),
  ...atomics('add noftz bf16|bf16x2', '7.8 sm_90'),
  ...atomics('inc|dec u32'),
  ...atomics('min|max u32|s32|u64|s64'),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} exch b32|b64`, 'T [A] T'),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} cas b32|b64`, 'T [A] T T'),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} cas b16`, 'T [A] T T', '6.3 sm_70'),
  form('atom', `${ORDER} [${SCOPES}] [global] L2::cache_hint exch b32|b64`, 'T [g] T b64'),
  form(
    'atom',
    `${ORDER} [${SCOPES}] [global] L2::cache_hint exch b128`,
    'T [g] T b64',
    '8.3 sm_90',
  ),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} exch b128`, 'T [A] T', '8.3 sm_90'),
  form('atom', `${ORDER} [${SCOPES}] ${WATCHED} cas b128`, 'T [A] T T', '8.3 sm_90'),
  ...[
    'add v2|v4 f32',
    'add|min|max noftz v2|v4|v8 f16|bf16',
    'add|min|max noftz v2|v4 f16x2|bf16x2',
  ].flatMap((operation) => [
    form('atom', `${ORDER} [${SCOPES}] [global] ${operation}`, '{T} [g] {T}', '8.1 sm_90'),
    form('red', `[relaxed|release] [${SCOPES}] [global] ${operation}`, '[g] {T}', '8.1 sm_90'),
    form(
      'atom',
      `${ORDER} [${SCOPES}] [global] L2::cache_hint ${operation}`,
      '{T} [g] {T} b64',
      '8.1 sm_90',
    ),
    form(
      'red',
      `[relaxed|release] [${SCOPES}] [global] L2::cache_hint ${operation}`,
      '[g] {T} b64',
      '8.1 sm_90',
    ),
  ]),
  ...['inc|dec u32', 'min|max u32|s32', 'add u32|s32|u64', 'and|or|xor b32'].map((operation) =>
    form(
      'red',
      `async relaxed cluster [shared::cluster] mbarrier::complete_tx::bytes ${operation}`,
      '[s] T [s]',
      '8.1 sm_90',
    ),
  ),
  form('red', 'async release gpu|sys [global] add u32|s32|u64', '[g] T', '8.7 sm_100'),
  form('red', 'async mmio release sys [global] add u32|s32|u64', '[g] T', '8.7 sm_100'),
].map((row) => row.withWords(ATOMIC_SINCE));

export const MEMORY_FORMS: readonly Form[] = [...ACCESSES, ...HINTS, ...COPIES, ...ATOMICS];
