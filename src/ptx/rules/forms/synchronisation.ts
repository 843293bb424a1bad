// Flow, barriers, fences, and what the threads of a warp do together.

import { form, forms } from '../form.js';
import type { Form } from '../form.js';

const SCOPES = 'cta|cluster|gpu|sys';
const CLUSTER = { cluster: '7.8 sm_90' };

const CONTROL: readonly Form[] = [
  form('bra', '[uni]', 'label'),
  form('brx', 'idx [uni]', 'b32 labels', '6.0 sm_30'),
  form('call', '[uni]', 'function'),
  form('ret', '[uni]'),
  form('exit', ''),
  form('nanosleep', 'u32', 'u32', '6.3 sm_70'),
  form('trap', ''),
  form('brkpt', ''),
  form('pmevent', '', '3'),
  form('pmevent', 'mask', '3'),
  form(
    'setmaxnreg',
    'inc|dec sync aligned u32',
    '64',
    '8.0 sm_90a or 8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f',
  ),
  form('stacksave', 'u32|u64', 'T', '7.3 sm_52'),
  form('stackrestore', 'u32|u64', 'T', '7.3 sm_52'),
  form('alloca', 'u32|u64', 'T T 16?', '7.3 sm_52'),
];

const BARRIERS: readonly Form[] = [
  form('bar', '[cta] sync', 'b32 b32?'),
  form('bar', '[cta] arrive', 'b32 64'),
  ...['b32', 'b32 b32'].flatMap((counts) => [
    form('bar', '[cta] red popc u32', `u32 ${counts} p`),
    form('bar', '[cta] red and|or pred', `p ${counts} p`),
  ]),
  form('barrier', '[cta] sync [aligned]', 'b32 b32?', '6.0 sm_30'),
  form('barrier', '[cta] arrive [aligned]', 'b32 64', '6.0 sm_30'),
  ...['b32', 'b32 b32'].flatMap((counts) => [
    form('barrier', '[cta] red popc [aligned] u32', `u32 ${counts} p`, '6.0 sm_30'),
    form('barrier', '[cta] red and|or [aligned] pred', `p ${counts} p`, '6.0 sm_30'),
  ]),
].map((row) => row.withWords({ cta: '7.8' }));

const SYNCHRONISATION: readonly Form[] = [
  form('bar', 'warp sync', 'b32', '6.0 sm_30'),
  ...[
    form('barrier', 'cluster arrive [release|relaxed] [aligned]', '', '7.8 sm_90'),
    form('barrier', 'cluster wait [acquire] [aligned]', '', '7.8 sm_90'),
  ].map((row) => row.withWords({ release: '8.0', relaxed: '8.0', acquire: '8.0' })),
  form('membar', 'cta|gl|sys'),
  form('membar', 'proxy alias', '', '7.5 sm_70'),
  form('membar', 'proxy async', '', '8.0 sm_90'),
  form('fence', `[sc|acq_rel] ${SCOPES}`, '', '6.0 sm_70').withWords(CLUSTER),
  form('fence', `acquire|release ${SCOPES}`, '', '8.6 sm_90'),
  form('fence', 'acquire sync_restrict::shared::cluster cluster', '', '8.6 sm_90'),
  form('fence', 'release sync_restrict::shared::cta cluster', '', '8.6 sm_90'),
  form('fence', 'mbarrier_init release cluster', '', '8.0 sm_90'),
  form('fence', 'proxy alias', '', '7.5 sm_70'),
  form('fence', 'proxy async [global|shared::cta|shared::cluster]', '', '8.0 sm_90'),
  form(
    'fence',
    'proxy async::generic acquire sync_restrict::shared::cluster cluster',
    '',
    '8.6 sm_90',
  ),
  form('fence', 'proxy async::generic release sync_restrict::shared::cta cluster', '', '8.6 sm_90'),
  form('fence', `proxy tensormap::generic release ${SCOPES}`, '', '8.3 sm_90'),
  form('fence', `proxy tensormap::generic acquire ${SCOPES}`, '[g] 128', '8.3 sm_90'),
  form('griddepcontrol', 'launch_dependents|wait', '', '7.8 sm_90'),
];

const WARP: readonly Form[] = [
  form('vote', 'sync all|any|uni pred', 'p p b32', '6.0'),
  form('vote', 'sync ballot b32', 'T p b32', '6.0'),
  form('vote', 'all|any|uni pred', 'p p', 'before sm_70'),
  form('vote', 'ballot b32', 'T p', 'before sm_70'),
  form('match', 'any sync b32|b64', 'b32 T b32', '6.0 sm_70'),
  form('match', 'all sync b32|b64', 'b32|p T b32', '6.0 sm_70'),
  form('activemask', 'b32', 'b32', '6.2'),
  form('redux', 'sync add|min|max u32|s32', 'T T b32', '7.0 sm_80'),
  form('redux', 'sync and|or|xor b32', 'T T b32', '7.0 sm_80'),
  form('redux', 'sync min|max [abs] [NaN] f32', 'T T b32', '8.6 sm_100f'),
  form('elect', 'sync', 'b32|p b32', '8.0 sm_90'),
  form('shfl', 'sync up|down|bfly|idx b32', 'T|p T T T b32', '6.0'),
  form('shfl', 'up|down|bfly|idx b32', 'T|p T T T', 'before sm_70'),
];

const MBARRIER_SINCE = {
  'shared::cta': '7.8',
  'shared::cluster': '8.0 sm_90',
  cluster: '8.0 sm_90',
  release: '8.0',
  acquire: '8.0',
};

const TRANSACTIONS: readonly Form[] = forms(
  'mbarrier',
  'expect_tx|complete_tx {relaxed cta|cluster} [shared|shared::cta|shared::cluster] b64',
  '[s] b32',
  '8.0 sm_90',
);

const MBARRIERS: readonly Form[] = [
  form('mbarrier', 'init [shared|shared::cta] b64', '[s] b32', '7.0 sm_80'),
  form('mbarrier', 'inval [shared|shared::cta] b64', '[s]', '7.0 sm_80'),
  ...['arrive', 'arrive_drop'].flatMap((name) => [
    ...forms(
      'mbarrier',
      `${name} {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s]',
      '7.0 sm_80',
    ),
    ...forms(
      'mbarrier',
      `${name} {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '7.8 sm_90',
    ),
    ...forms(
      'mbarrier',
      `${name} {release|relaxed cta|cluster} shared::cluster b64`,
      '_ [s] b32?',
      '8.0 sm_90',
    ),
    ...forms(
      'mbarrier',
      `${name} expect_tx {release|relaxed cta|cluster} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '8.0 sm_90',
    ),
    ...forms(
      'mbarrier',
      `${name} expect_tx {release|relaxed cta|cluster} shared::cluster b64`,
      '_ [s] b32',
      '8.0 sm_90',
    ),
    ...forms(
      'mbarrier',
      `${name} noComplete {release cta} [shared|shared::cta] b64`,
      'b64 [s] b32',
      '7.0 sm_80',
    ),
  ]),
  ...forms(
    'mbarrier',
    'test_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b64',
    '7.0 sm_80',
  ),
  ...forms(
    'mbarrier',
    'test_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b32',
    '7.1 sm_80',
  ),
  ...forms(
    'mbarrier',
    'try_wait {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b64 b32?',
    '7.8 sm_90',
  ),
  ...forms(
    'mbarrier',
    'try_wait parity {acquire|relaxed cta|cluster} [shared|shared::cta] b64',
    'p [s] b32 b32?',
    '7.8 sm_90',
  ),
  form('mbarrier', 'pending_count b64', 'b32 b64', '7.0 sm_80'),
].map((row) => row.withWords({ relaxed: '8.6 sm_90', ...MBARRIER_SINCE }));

export const SYNCHRONISATION_FORMS: readonly Form[] = [
  ...CONTROL,
  ...BARRIERS,
  ...SYNCHRONISATION,
  ...WARP,
  ...TRANSACTIONS,
  ...MBARRIERS,
];
