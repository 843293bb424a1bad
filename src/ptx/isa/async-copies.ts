// The row of asynchronous copies; tensor-copies.ts has the forms of those that have a tensor map.

import { copy } from '../rules/async-copy.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { TENSOR_COPIES } from './tensor-copies.js';
import { NEVER_WAITS, WRITES_NOTHING } from './traits.js';

const SIZES = '[L2::64B|L2::128B|L2::256B]';
const COPY_SINCE = {
  'L2::64B': '7.4',
  'L2::128B': '7.4',
  'L2::256B': '7.4',
  'L2::cache_hint': '7.4',
};

const COPIES: readonly Form[] = [
  form(`async ca shared|shared::cta global ${SIZES}`, '[s] [g] 16 b32?', '7.0 sm_80').withWords(
    COPY_SINCE,
  ),
  form(`async cg shared|shared::cta global ${SIZES}`, '[s] [g] 16 b32?', '7.0 sm_80').withWords(
    COPY_SINCE,
  ),
  ...['b64', 'b32 b64'].map((operands) =>
    form(
      `async ca|cg shared|shared::cta global L2::cache_hint ${SIZES}`,
      `[s] [g] 16 ${operands}`,
      '7.0 sm_80',
    ).withWords(COPY_SINCE),
  ),
  form(`async ca|cg shared|shared::cta global ${SIZES}`, '[s] [g] 16 p', '7.5 sm_80').withWords(
    COPY_SINCE,
  ),
  form(
    `async ca|cg shared|shared::cta global L2::cache_hint ${SIZES}`,
    '[s] [g] 16 p b64',
    '7.5 sm_80',
  ).withWords(COPY_SINCE),
  form('async commit_group', '', '7.0 sm_80'),
  form('async wait_group', '0', '7.0 sm_80'),
  form('async wait_all', '', '7.0 sm_80'),
  form('async mbarrier arrive [noinc] [shared|shared::cta] b64', '[s]', '7.0 sm_80').withWords({
    'shared::cta': '7.8',
  }),
  form(
    'async bulk shared::cluster global mbarrier::complete_tx::bytes',
    '[s] [g] b32 [s]',
    '8.0 sm_90',
  ),
  form(
    'async bulk shared::cta global mbarrier::complete_tx::bytes',
    '[s] [g] b32 [s]',
    '8.6 sm_90',
  ),
  form(
    'async bulk shared::cluster global mbarrier::complete_tx::bytes L2::cache_hint',
    '[s] [g] b32 [s] b64',
    '8.0 sm_90',
  ),
  form(
    'async bulk shared::cta global mbarrier::complete_tx::bytes L2::cache_hint',
    '[s] [g] b32 [s] b64',
    '8.6 sm_90',
  ),
  form(
    'async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster',
    '[s] [g] b32 [s] b16',
    '8.0 sm_90',
  ),
  form(
    'async bulk shared::cluster global mbarrier::complete_tx::bytes multicast::cluster ' +
      'L2::cache_hint',
    '[s] [g] b32 [s] b16 b64',
    '8.0 sm_90',
  ),
  form(
    'async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes',
    '[s] [s] b32 [s]',
    '8.0 sm_90',
  ),
  form('async bulk global shared::cta bulk_group', '[g] [s] b32', '8.0 sm_90'),
  form('async bulk global shared::cta bulk_group L2::cache_hint', '[g] [s] b32 b64', '8.0 sm_90'),
  form('async bulk global shared::cta bulk_group cp_mask', '[g] [s] b32 b16', '8.6 sm_100'),
  form(
    'async bulk global shared::cta bulk_group L2::cache_hint cp_mask',
    '[g] [s] b32 b64 b16',
    '8.6 sm_100',
  ),
  form('async bulk prefetch L2 global', '[g] b32', '8.0 sm_90'),
  form('async bulk prefetch L2 global L2::cache_hint', '[g] b32 b64', '8.0 sm_90'),
  form('async bulk commit_group', '', '8.0 sm_90'),
  form('async bulk wait_group [read]', '0', '8.0 sm_90'),
  ...['add u32|s32|u64', 'min|max u32|s32', 'inc|dec u32', 'and|or|xor b32'].map((operation) =>
    form(
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
      `reduce async bulk global shared::cta bulk_group ${operation}`,
      '[g] [s] b32',
      '8.0 sm_90',
    ),
    form(
      `reduce async bulk global shared::cta bulk_group L2::cache_hint ${operation}`,
      '[g] [s] b32 b64',
      '8.0 sm_90',
    ),
  ]),
];

export const ASYNC_COPIES = {
  cp: {
    forms: [...COPIES, ...TENSOR_COPIES],
    operands: { ...WRITES_NOTHING, coordinates: true },
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: copy,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
