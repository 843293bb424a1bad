// Special registers: the values that they have in this compiler.

import { specialBits } from '../analysis/special-registers.js';
import { CTX, EXPLICIT_CLUSTER } from '../context.js';
import type { Emitter } from '../emit/emitter.js';
import type { ScalarType } from '../scalar-types.js';

/** Leaves an i32. */
type Read = (e: Emitter) => void;

const field =
  (offset: number): Read =>
  (e) => {
    e.code.get(e.contextWord(offset));
  };
/** The number of a cluster's blocks along an axis. */
const clusterSize =
  (axis: number): Read =>
  (e) => {
    e.code
      .get(e.contextWord(CTX.cluster))
      .i32(8 * axis)
      .op('i32.shr_u')
      .i32(255)
      .op('i32.and')
      .i32(1)
      .op('i32.add');
  };
/** The quotient, or the remainder, of the division of a word by that number. */
const inCluster =
  (offset: number, axis: number, operation: 'div_u' | 'rem_u'): Read =>
  (e) => {
    e.code.get(e.contextWord(offset));
    clusterSize(axis)(e);
    e.code.op(`i32.${operation}`);
  };
const constant =
  (value: number): Read =>
  (e) => {
    e.code.i32(value);
  };
const lane: Read = (e) => {
  e.code.get(e.thread).i32(31).op('i32.and');
};
const laneMask =
  (shift: number, operations: readonly string[]): Read =>
  (e) => {
    e.code.i32(shift);
    lane(e);
    e.code.op('i32.shl');
    for (const operation of operations) {
      if (operation === 'not') e.code.i32(-1).op('i32.xor');
      else if (operation === 'decrement') e.code.i32(1).op('i32.sub');
    }
  };

const AXES = ['x', 'y', 'z'] as const;
const perAxis = (name: string, read: (axis: 0 | 1 | 2) => Read): [string, Read][] =>
  AXES.map((axis, index): [string, Read] => [`${name}.${axis}`, read(index as 0 | 1 | 2)]);

const READS = new Map<string, Read>([
  ...perAxis('tid', (axis) => (e) => {
    e.pushThreadIndex(axis);
  }),
  ...perAxis('ntid', (axis) => field(CTX.blockDim + 4 * axis)),
  ...perAxis('ctaid', (axis) => field(CTX.ctaid + 4 * axis)),
  ...perAxis('nctaid', (axis) => field(CTX.gridDim + 4 * axis)),
  ...perAxis('clusterid', (axis) => inCluster(CTX.ctaid + 4 * axis, axis, 'div_u')),
  ...perAxis('nclusterid', (axis) => inCluster(CTX.gridDim + 4 * axis, axis, 'div_u')),
  ...perAxis('cluster_ctaid', (axis) => inCluster(CTX.ctaid + 4 * axis, axis, 'rem_u')),
  ...perAxis('cluster_nctaid', clusterSize),
  ...[
    'tid',
    'ntid',
    'ctaid',
    'nctaid',
    'clusterid',
    'nclusterid',
    'cluster_ctaid',
    'cluster_nctaid',
  ].map((name): [string, Read] => [`${name}.w`, constant(0)]),
  ['cluster_ctarank', field(CTX.clusterRank)],
  [
    'cluster_nctarank',
    (e) => {
      e.code.get(e.ctx);
      e.call('cluster_blocks');
    },
  ],
  [
    'is_explicit_cluster',
    (e) => {
      e.code
        .get(e.contextWord(CTX.cluster))
        .i32(EXPLICIT_CLUSTER)
        .op('i32.and')
        .i32(0)
        .op('i32.ne');
    },
  ],
  ['current_graph_exec', constant(0)],
  // There are no performance monitors, so they count nothing.
  ...Array.from({ length: 8 }, (_, index) => [`pm${index}`, `pm${index}_64`])
    .flat()
    .map((name): [string, Read] => [name, constant(0)]),
  ['laneid', lane],
  [
    'warpid',
    (e) => {
      e.code.get(e.thread).i32(5).op('i32.shr_u');
    },
  ],
  ['nwarpid', constant(32)],
  ['smid', constant(0)],
  ['nsmid', constant(1)],
  ['gridid', field(CTX.gridId)],
  ['lanemask_eq', laneMask(1, [])],
  ['lanemask_le', laneMask(2, ['decrement'])],
  ['lanemask_lt', laneMask(1, ['decrement'])],
  ['lanemask_ge', laneMask(-1, [])],
  ['lanemask_gt', laneMask(-2, [])],
  ['total_smem_size', field(CTX.sharedBytes)],
  ['aggr_smem_size', field(CTX.sharedBytes)],
  [
    'dynamic_smem_size',
    (e) => {
      e.code.get(e.contextField('sharedBytes'));
      e.pushDynamicStart();
      e.code.op('i32.sub');
    },
  ],
  // The address of the grid's barrier for cooperative launches: high half in envreg1, low half in
  // envreg2.
  ['envreg1', constant(0)],
  ['envreg2', field(CTX.workspace)],
  ...Array.from({ length: 32 }, (_, index) => index)
    .filter((index) => index !== 1 && index !== 2)
    .map((index): [string, Read] => [`envreg${index}`, constant(0)]),
]);

const CLOCKS: Record<string, { shift: number }> = {
  clock: { shift: 0 },
  clock_hi: { shift: 32 },
  clock64: { shift: 0 },
  globaltimer: { shift: 0 },
  globaltimer_lo: { shift: 0 },
  globaltimer_hi: { shift: 32 },
};

/**
 * Registers that may also be read as 16 bits, and as 32 if they have 64: earlier versions of PTX
 * had them so.
 */
const NARROWER = /^(n?tid|n?ctaid)\.|^gridid$/;

/** Only cvt reads less than the whole register; no instruction reads more. */
function checkWidth(e: Emitter, name: string, type: ScalarType): void {
  const bits = specialBits(name);
  const predicate = bits === 1;
  if (predicate !== (type.kind === 'predicate'))
    throw e.semantic(`'%${name}' is ${predicate ? 'a' : 'no'} predicate`);
  if (predicate) return;
  if (type.bits > bits || (type.bits < bits && e.inst.mnemonic !== 'cvt' && !NARROWER.test(name)))
    throw e.semantic(`'%${name}' has ${bits} bits`);
}

/** Pushes a special register as a value of `type`. */
export function pushSpecialRegister(e: Emitter, name: string, type: ScalarType): void {
  const { code } = e;
  const { mnemonic, traits } = e.inst;
  if (!traits.operands.readsSpecial || e.has('pack'))
    throw e.semantic(`'${mnemonic}' takes no special register; move '%${name}' to another first`);
  if (type.kind === 'float' || (traits.meaning === 'convert' && e.types()[0]!.kind === 'float'))
    throw e.semantic(`'%${name}' is not a float`);
  checkWidth(e, name, type);
  const clock = Object.hasOwn(CLOCKS, name) ? CLOCKS[name] : undefined;
  if (clock) {
    code.get(e.ctx);
    e.call('read_clock');
    if (clock.shift) code.i64(clock.shift).op('i64.shr_u');
    if (type.wasm === 'i32') code.op('i32.wrap_i64');
    return;
  }
  const read = READS.get(name);
  if (!read) throw e.unsupported(`special register '%${name}' is`);
  read(e);
  if (type.wasm === 'i64') code.op('i64.extend_i32_u');
  else if (type.bits === 16) e.narrow(type);
}
