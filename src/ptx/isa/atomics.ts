// Rows of atomics, and of reductions in memory.

import * as lanes from '../lanes/atomics.js';
import { atomic } from '../rules/atomics.js';
import { form } from './form.js';
import type { Form } from './form.js';
import type { Rows } from './instruction.js';
import { NEVER_WAITS, WRITES_FIRST, WRITES_NOTHING } from './traits.js';

const SCOPES = '[cta|cluster|gpu|sys]';
const SPACES = '[global|shared|shared::cta|shared::cluster]';
const ORDERED = `[relaxed|acquire|release|acq_rel] ${SCOPES}`;
const REDUCED = `[relaxed|release] ${SCOPES}`;
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

/** The operations of both, and the versions since which they exist. */
const OPERATIONS: readonly (readonly [operation: string, since?: string])[] = [
  ['and|or|xor b32|b64'],
  ['add u32|s32|u64|f32'],
  ['add f64', '5.0 sm_60'],
  ['add noftz f16x2', '6.2 sm_60'],
  ['add noftz f16', '6.3 sm_70'],
  ['add noftz bf16|bf16x2', '7.8 sm_90'],
  ['inc|dec u32'],
  ['min|max u32|s32|u64|s64'],
];
const VECTORS = [
  'add v2|v4 f32',
  'add|min|max noftz v2|v4|v8 f16|bf16',
  'add|min|max noftz v2|v4 f16x2|bf16x2',
];
const VECTORS_SINCE = '8.1 sm_90';

const ATOMIC: readonly Form[] = [
  ...OPERATIONS.flatMap(([operation, since]) => [
    form(`${ORDERED} ${SPACES} ${operation}`, 'T [A] T', since),
    form(`${ORDERED} [global] L2::cache_hint ${operation}`, 'T [g] T b64', since),
  ]),
  form(`${ORDERED} ${SPACES} exch b32|b64`, 'T [A] T'),
  form(`${ORDERED} ${SPACES} cas b32|b64`, 'T [A] T T'),
  form(`${ORDERED} ${SPACES} cas b16`, 'T [A] T T', '6.3 sm_70'),
  form(`${ORDERED} [global] L2::cache_hint exch b32|b64`, 'T [g] T b64'),
  form(`${ORDERED} [global] L2::cache_hint exch b128`, 'T [g] T b64', '8.3 sm_90'),
  form(`${ORDERED} ${SPACES} exch b128`, 'T [A] T', '8.3 sm_90'),
  form(`${ORDERED} ${SPACES} cas b128`, 'T [A] T T', '8.3 sm_90'),
  ...VECTORS.flatMap((operation) => [
    form(`${ORDERED} [global] ${operation}`, '{T} [g] {T}', VECTORS_SINCE),
    form(`${ORDERED} [global] L2::cache_hint ${operation}`, '{T} [g] {T} b64', VECTORS_SINCE),
  ]),
].map((row) => row.withWords(ATOMIC_SINCE));

const REDUCTION: readonly Form[] = [
  ...OPERATIONS.flatMap(([operation, since]) => [
    form(`${REDUCED} ${SPACES} ${operation}`, '[A] T', since),
    form(`${REDUCED} [global] L2::cache_hint ${operation}`, '[g] T b64', since),
  ]),
  ...VECTORS.flatMap((operation) => [
    form(`${REDUCED} [global] ${operation}`, '[g] {T}', VECTORS_SINCE),
    form(`${REDUCED} [global] L2::cache_hint ${operation}`, '[g] {T} b64', VECTORS_SINCE),
  ]),
  ...['inc|dec u32', 'min|max u32|s32', 'add u32|s32|u64', 'and|or|xor b32'].map((operation) =>
    form(
      `async relaxed cluster [shared::cluster] mbarrier::complete_tx::bytes ${operation}`,
      '[s] T [s]',
      '8.1 sm_90',
    ),
  ),
  form('async release gpu|sys [global] add u32|s32|u64', '[g] T', '8.7 sm_100'),
  form('async mmio release sys [global] add u32|s32|u64', '[g] T', '8.7 sm_100'),
].map((row) => row.withWords(ATOMIC_SINCE));

export const ATOMICS = {
  atom: {
    forms: ATOMIC,
    operands: { ...WRITES_FIRST, resultUnwanted: 'always' },
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: atomic(true),
    vector: { unit: lanes.atomic(true) },
  },
  red: {
    forms: REDUCTION,
    operands: WRITES_NOTHING,
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: atomic(false),
    vector: { unit: lanes.atomic(false) },
  },
} satisfies Rows;
