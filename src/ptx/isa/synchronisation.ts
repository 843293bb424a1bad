// Rows of barriers and fences.

import { arrive, fence } from '../rules/control.js';
import { barrier } from '../rules/mbarrier.js';
import { form, forms } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { NEVER_WAITS, WRITES_NOTHING } from './traits.js';

const SCOPES = 'cta|cluster|gpu|sys';
const CLUSTER = { cluster: '7.8 sm_90' };
const REDUCED = ['b32', 'b32 b32'];

const BAR: readonly Form[] = [
  form('[cta] sync', 'b32 b32?'),
  form('[cta] arrive', 'b32 64'),
  ...REDUCED.flatMap((counts) => [
    form('[cta] red popc u32', `u32 ${counts} p`),
    form('[cta] red and|or pred', `p ${counts} p`),
  ]),
].map((row) => row.withWords({ cta: '7.8' }));

const BARRIER: readonly Form[] = [
  form('[cta] sync [aligned]', 'b32 b32?', '6.0 sm_30'),
  form('[cta] arrive [aligned]', 'b32 64', '6.0 sm_30'),
  ...REDUCED.flatMap((counts) => [
    form('[cta] red popc [aligned] u32', `u32 ${counts} p`, '6.0 sm_30'),
    form('[cta] red and|or [aligned] pred', `p ${counts} p`, '6.0 sm_30'),
  ]),
].map((row) => row.withWords({ cta: '7.8' }));

const CLUSTER_BARRIER: readonly Form[] = [
  form('cluster arrive [release|relaxed] [aligned]', '', '7.8 sm_90'),
  form('cluster wait [acquire] [aligned]', '', '7.8 sm_90'),
].map((row) => row.withWords({ release: '8.0', relaxed: '8.0', acquire: '8.0' }));

const MBARRIER_SINCE = {
  'shared::cta': '7.8',
  'shared::cluster': '8.0 sm_90',
  cluster: '8.0 sm_90',
  release: '8.0',
  acquire: '8.0',
};

const TRANSACTION_COUNTS: readonly Form[] = forms(
  'expect_tx|complete_tx {relaxed cta|cluster} [shared|shared::cta|shared::cluster] b64',
  '[s] b32',
  '8.0 sm_90',
);

const MBARRIERS: readonly Form[] = [
  form('init [shared|shared::cta] b64', '[s] b32', '7.0 sm_80'),
  form('inval [shared|shared::cta] b64', '[s]', '7.0 sm_80'),
  ...['arrive', 'arrive_drop'].flatMap((name) => [
    ...forms(
      `${name} {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s]',
      '7.0 sm_80',
    ),
    ...forms(
      `${name} {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '7.8 sm_90',
    ),
    ...forms(
      `${name} {release|relaxed cta|cluster} shared::cluster b64`,
      '_ [s] b32?',
      '8.0 sm_90',
    ),
    ...forms(
      `${name} expect_tx {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '8.0 sm_90',
    ),
    ...forms(
      `${name} expect_tx {release|relaxed cta|cluster} shared::cluster b64`,
      '_ [s] b32',
      '8.0 sm_90',
    ),
    ...forms(
      `${name} noComplete {release cta} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '7.0 sm_80',
    ),
  ]),
  ...forms(
    'test_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b64',
    '7.0 sm_80',
  ),
  ...forms(
    'test_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b32',
    '7.1 sm_80',
  ),
  ...forms(
    'try_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b64 b32?',
    '7.8 sm_90',
  ),
  ...forms(
    'try_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b32 b32?',
    '7.8 sm_90',
  ),
  form('pending_count b64', 'b32 b64', '7.0 sm_80'),
].map((row) => row.withWords({ relaxed: '8.6 sm_90', ...MBARRIER_SINCE }));

const THREAD_BARRIER = {
  operands: {
    writesFirst: (modifiers: readonly string[]) => modifiers.includes('red'),
    registersForNumbers: true,
  },
  effect: 'any',
  waits: {
    cut: (modifiers: readonly string[]) =>
      modifiers.includes('warp') ? 'warp' : modifiers.includes('arrive') ? undefined : 'barrier',
  },
  meaning: 'opaque',
  scalar: arrive,
  vector: NO_VECTOR_FORM,
} as const;

const FENCE = {
  operands: WRITES_NOTHING,
  effect: 'repeatable',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  scalar: fence,
  vector: NO_VECTOR_FORM,
} as const;

const WITHOUT_RESULT = new Set(['init', 'inval', 'expect_tx', 'complete_tx']);

export const SYNCHRONISATION = {
  bar: { ...THREAD_BARRIER, forms: [...BAR, form('warp sync', 'b32', '6.0 sm_30')] },
  barrier: { ...THREAD_BARRIER, forms: [...BARRIER, ...CLUSTER_BARRIER] },
  membar: {
    ...FENCE,
    forms: [
      form('cta|gl|sys'),
      form('proxy alias', '', '7.5 sm_70'),
      form('proxy async', '', '8.0 sm_90'),
    ],
  },
  fence: {
    ...FENCE,
    forms: [
      form(`[sc|acq_rel] ${SCOPES}`, '', '6.0 sm_70').withWords(CLUSTER),
      form(`acquire|release ${SCOPES}`, '', '8.6 sm_90'),
      form('acquire sync_restrict::shared::cluster cluster', '', '8.6 sm_90'),
      form('release sync_restrict::shared::cta cluster', '', '8.6 sm_90'),
      form('mbarrier_init release cluster', '', '8.0 sm_90'),
      form('proxy alias', '', '7.5 sm_70'),
      form('proxy async [global|shared::cta|shared::cluster]', '', '8.0 sm_90'),
      form('proxy async::generic acquire sync_restrict::shared::cluster cluster', '', '8.6 sm_90'),
      form('proxy async::generic release sync_restrict::shared::cta cluster', '', '8.6 sm_90'),
      form(`proxy tensormap::generic release ${SCOPES}`, '', '8.3 sm_90'),
      form(`proxy tensormap::generic acquire ${SCOPES}`, '[g] 128', '8.3 sm_90'),
    ],
  },
  mbarrier: {
    forms: [...TRANSACTION_COUNTS, ...MBARRIERS],
    operands: {
      writesFirst: (modifiers) => !WITHOUT_RESULT.has(modifiers[0] ?? ''),
      resultUnwanted: 'b64',
    },
    effect: 'any',
    // A wait gives way, so that the threads that have yet to arrive can run.
    waits: {
      cut: (modifiers) =>
        modifiers[0] === 'test_wait' || modifiers[0] === 'try_wait' ? 'sleep' : undefined,
    },
    meaning: 'opaque',
    scalar: barrier,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
