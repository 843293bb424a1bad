// Forms of tensor copies, which are forms of cp, and the row of tensormap. Versions and targets
// are those of NVIDIA's assembler.

import { changeTensorMap } from '../rules/tensor-copy.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { WRITES_NOTHING } from './traits.js';

/** Blackwell, and its families. */
const FAMILY = '8.6 sm_100a or 8.8 sm_100f or 8.8 sm_101f or 9.0 sm_110f';
const BYTES = 'mbarrier::complete_tx::bytes';

/** The form, and the form with a cache policy. */
const hinted = (places: string, operands: string, since: string): Form[] => [
  form(places, operands, since),
  form(`${places} L2::cache_hint`, `${operands} b64`, since),
];

/** `[g,3]` is a tensor map and three coordinates. */
const at = (coordinates: number): string => `[g,${coordinates}]`;
const offsets = (count: number): string => `{${Array(count).fill('b16').join(',')}}`;

/** Loads to shared memory of the block, of the cluster, and of several blocks. */
function loads(
  places: string,
  coordinates: number,
  info: string,
  since: readonly [cta: string, cluster: string],
): Form[] {
  const operands = `[s] ${at(coordinates)} [s] ${info}`;
  return [
    ...hinted(`${places} shared::cta global ${BYTES}`, operands, since[0]),
    ...hinted(`${places} shared::cluster global ${BYTES}`, operands, since[1]),
    ...hinted(
      `${places} shared::cluster global ${BYTES} multicast::cluster`,
      `${operands} b16`,
      since[1],
    ),
  ];
}

const ANYWHERE = ['8.6 sm_90', '8.0 sm_90'] as const;
const RANKS = [1, 2, 3, 4, 5];
const IMAGES = [3, 4, 5];

export const TENSOR_COPIES: readonly Form[] = [
  ...RANKS.flatMap((rank) => loads(`async bulk tensor ${rank}d [tile]`, rank, '', ANYWHERE)),
  ...IMAGES.flatMap((rank) =>
    loads(`async bulk tensor ${rank}d im2col`, rank, offsets(rank - 2), ANYWHERE),
  ),
  ...loads('async bulk tensor 2d tile::gather4', 5, '', ['8.6 sm_100', FAMILY]),
  ...RANKS.flatMap((rank) =>
    hinted(
      `async bulk tensor ${rank}d global shared::cta bulk_group [tile]`,
      `${at(rank)} [s]`,
      '8.0 sm_90',
    ),
  ),
  ...IMAGES.flatMap((rank) =>
    hinted(
      `async bulk tensor ${rank}d global shared::cta bulk_group im2col_no_offs`,
      `${at(rank)} [s]`,
      '8.0 sm_90',
    ),
  ),
  ...hinted(
    'async bulk tensor 2d global shared::cta bulk_group tile::scatter4',
    `${at(5)} [s]`,
    FAMILY,
  ),
  ...RANKS.flatMap((rank) =>
    hinted(
      `reduce async bulk tensor ${rank}d global shared::cta bulk_group ` +
        'add|min|max|inc|dec|and|or|xor [tile]',
      `${at(rank)} [s]`,
      '8.0 sm_90',
    ),
  ),
  ...IMAGES.flatMap((rank) =>
    hinted(
      `reduce async bulk tensor ${rank}d global shared::cta bulk_group ` +
        'add|min|max|inc|dec|and|or|xor im2col_no_offs',
      `${at(rank)} [s]`,
      '8.0 sm_90',
    ),
  ),
  ...RANKS.flatMap((rank) =>
    hinted(`async bulk prefetch tensor ${rank}d L2 global [tile]`, at(rank), '8.0 sm_90'),
  ),
  ...IMAGES.flatMap((rank) =>
    hinted(
      `async bulk prefetch tensor ${rank}d L2 global im2col`,
      `${at(rank)} ${offsets(rank - 2)}`,
      '8.0 sm_90',
    ),
  ),
  ...hinted('async bulk prefetch tensor 2d L2 global tile::gather4', at(5), FAMILY),
];

const CHANGED =
  '8.3 sm_90a or 8.6 sm_100a or 8.6 sm_120a or 8.8 sm_100f or 8.8 sm_120f or 9.0 sm_110f';

export const TENSOR_MAPS = {
  tensormap: {
    forms: [
      form('replace tile global_address [global|shared::cta] b1024 b64', '[s] b64', CHANGED),
      form('replace tile rank [global|shared::cta] b1024 b32', '[s] b32', CHANGED),
      form(
        'replace tile box_dim|global_dim|element_stride [global|shared::cta] b1024 b32',
        '[s] 0 b32',
        CHANGED,
      ),
      form('replace tile global_stride [global|shared::cta] b1024 b64', '[s] 0 b64', CHANGED),
      form(
        'replace tile elemtype|interleave_layout|swizzle_mode|fill_mode [global|shared::cta] ' +
          'b1024 b32',
        '[s] 0',
        CHANGED,
      ),
      form(
        'replace tile swizzle_atomicity [global|shared::cta] b1024 b32',
        '[s] 0',
        '8.6 sm_100a or 8.6 sm_120a or 8.8 sm_100f or 8.8 sm_120f or 9.0 sm_110f',
      ),
      form(
        'cp_fenceproxy global shared::cta tensormap::generic release cta|cluster|gpu|sys sync ' +
          'aligned',
        '[g] [s] 128',
        '8.3 sm_90',
      ),
    ],
    operands: WRITES_NOTHING,
    effect: 'any',
    waits: {
      cut: () => undefined,
      meetsFirst: (modifiers) => modifiers[0] === 'cp_fenceproxy',
    },
    meaning: 'opaque',
    scalar: changeTensorMap,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
