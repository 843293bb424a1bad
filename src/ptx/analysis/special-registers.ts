// Names of the special registers that code may read. rules/special.ts gives their values.

const NAMES = new Set<string>([
  ...[
    'tid',
    'ntid',
    'ctaid',
    'nctaid',
    'clusterid',
    'nclusterid',
    'cluster_ctaid',
    'cluster_nctaid',
  ].flatMap((name) => ['x', 'y', 'z', 'w'].map((part) => `${name}.${part}`)),
  'cluster_ctarank',
  'cluster_nctarank',
  'is_explicit_cluster',
  'laneid',
  'warpid',
  'nwarpid',
  'smid',
  'nsmid',
  'gridid',
  'lanemask_eq',
  'lanemask_le',
  'lanemask_lt',
  'lanemask_ge',
  'lanemask_gt',
  'clock',
  'clock_hi',
  'clock64',
  'globaltimer',
  'globaltimer_lo',
  'globaltimer_hi',
  'dynamic_smem_size',
  'total_smem_size',
  'aggr_smem_size',
  'current_graph_exec',
  ...Array.from({ length: 8 }, (_, index) => [`pm${index}`, `pm${index}_64`]).flat(),
  ...Array.from({ length: 32 }, (_, index) => `envreg${index}`),
]);

/**
 * The system's part of shared memory, through which cooperative groups of several warps
 * synchronise; special registers contain its addresses. In kernels that read one of them it is a
 * variable.
 */
export const RESERVED_SHARED = {
  name: '%reserved_smem',
  bytes: 1024,
  addresses: new Map([
    ['%reserved_smem_offset_begin', 0],
    ['%reserved_smem_offset_0', 0],
    ['%reserved_smem_offset_1', 512],
    ['%reserved_smem_offset_end', 1024],
  ]),
  size: '%reserved_smem_offset_cap',
} as const;

const WIDE = new Set([
  'clock64',
  'globaltimer',
  'gridid',
  'current_graph_exec',
  ...Array.from({ length: 8 }, (_, index) => `pm${index}_64`),
]);

/** The bits of a special register, by its name without the percent sign; 1 for a predicate. */
export const specialBits = (name: string): 1 | 32 | 64 =>
  name === 'is_explicit_cluster' ? 1 : WIDE.has(name) ? 64 : 32;

export const isSpecialRegister = (name: string): boolean =>
  name.startsWith('%') && NAMES.has(name.slice(1));
