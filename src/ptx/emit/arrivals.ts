// What a thread writes to its mailbox before it waits, and reads from it when it continues. The
// other half is in runtime/warp.ts and runtime/scheduler.ts.

import { WARP_OPERATIONS } from '../analysis/cuts.js';
import type { Arg, Inst } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { ScalarType } from '../scalar-types.js';
import { CLUSTER_BARRIER, MAIL } from './frame-layout.js';
import type { MailEmitter } from './mail-emitter.js';
import { emitMatrixArrival, emitMatrixResult, isMatrixOperation } from './matrix-arrivals.js';
import { emitGroupArrival } from './warp-group-arrivals.js';

const B32 = scalarType('b32');
const PRED = scalarType('pred');
const F32 = scalarType('f32');

/** The offset in the mailbox, and the code that pushes the value stored there. */
type Field = [offset: number, push: () => void, store?: 'i64.store'];

function store(emitter: MailEmitter, fields: readonly Field[]): void {
  for (const [offset, push, instruction] of fields) {
    emitter.pushMailbox();
    push();
    emitter.code.memory(instruction ?? 'i32.store', offset);
  }
}

const constant = (e: MailEmitter, value: number) => (): void => {
  e.code.i32(value);
};

const operand =
  (e: MailEmitter, arg: Arg, type = B32) =>
  (): void => {
    e.push(arg, type);
  };

/** What an arriving thread writes about the operation: its code and the threads that take part. */
const operation = (e: MailEmitter, name: string, mask: Arg | undefined, block = 0): Field[] => {
  const found = WARP_OPERATIONS[name];
  if (found === undefined) throw e.unsupported();
  return [
    [MAIL.operation, constant(e, found | (block << 8))],
    [MAIL.mask, mask ? operand(e, mask) : constant(e, -1)],
  ];
};

/** A value of 32 bits or a predicate, zero-extended. */
const extended = (e: MailEmitter, arg: Arg, type: ScalarType): Field => [
  MAIL.value,
  () => {
    e.push(arg, type);
    if (type.wasm === 'i32') e.code.op('i64.extend_i32_u');
  },
  'i64.store',
];

type Arrival = (e: MailEmitter, block: number) => readonly Field[];

const shuffle: Arrival = (e) => {
  const mode = e.oneOf('up', 'down', 'bfly', 'idx');
  if (!mode) throw e.semantic("'shfl' needs .up, .down, .bfly or .idx");
  const sync = e.has('sync');
  e.argCount(sync ? 5 : 4);
  return [
    ...operation(e, `shfl.${mode}`, sync ? e.arg(4) : undefined),
    extended(e, e.arg(1), B32),
    [MAIL.lane, operand(e, e.arg(2))],
    [MAIL.clamp, operand(e, e.arg(3))],
  ];
};

const vote: Arrival = (e) => {
  const mode = e.oneOf('all', 'any', 'uni', 'ballot');
  if (!mode) throw e.semantic("'vote' needs .all, .any, .uni or .ballot");
  const sync = e.has('sync');
  e.argCount(sync ? 3 : 2);
  return [
    ...operation(e, `vote.${mode}`, sync ? e.arg(2) : undefined),
    extended(e, e.arg(1), PRED),
  ];
};

const match: Arrival = (e) => {
  const mode = e.oneOf('any', 'all');
  if (!mode) throw e.semantic("'match' needs .any or .all");
  const type = e.type();
  e.argCount(3);
  return [...operation(e, `match.${mode}`, e.arg(2)), extended(e, e.arg(1), type)];
};

const reduction: Arrival = (e) => {
  const mode = e.oneOf('add', 'min', 'max', 'and', 'or', 'xor');
  const type = e.type();
  if (!mode) throw e.semantic("'redux' needs an operation");
  e.argCount(3);
  if (type.kind === 'float') {
    const push = (): void => {
      pushOrdered(e, e.arg(1), mode === 'min');
      e.code.op('i64.extend_i32_u');
    };
    return [...operation(e, `redux.${mode}.s32`, e.arg(2)), [MAIL.value, push, 'i64.store']];
  }
  const ordered = mode === 'min' || mode === 'max';
  return [
    ...operation(e, ordered ? `redux.${mode}.${type.name}` : `redux.${mode}`, e.arg(2)),
    extended(e, e.arg(1), type),
  ];
};

const ARRIVALS: Readonly<Record<string, Arrival>> = {
  shfl: shuffle,
  vote,
  match,
  redux: reduction,
  // Threads at the same instruction are together: the block distinguishes instructions.
  activemask: (e, block) => operation(e, 'activemask', undefined, block),
  elect: (e) => operation(e, 'elect', e.arg(1)),
};

const warpBarrier: Arrival = (e) => {
  if (!e.has('warp')) throw e.unsupported();
  e.argCount(1);
  return operation(e, 'bar.warp', e.arg(0));
};

export function emitWarpArrival(e: MailEmitter, inst: Inst, block: number): void {
  const { mnemonic } = inst;
  if (mnemonic === 'wgmma') emitGroupArrival(e, inst);
  else if (isMatrixOperation(mnemonic)) emitMatrixArrival(e, inst);
  else store(e, (ARRIVALS[mnemonic] ?? warpBarrier)(e, block));
}

/**
 * Floats are reduced as integers of the same order. NaN is the largest or the smallest of them: the
 * operation never selects it, or always with .NaN.
 */
function pushOrdered(e: MailEmitter, arg: Arg, least: boolean): void {
  const { code } = e;
  const bits = e.temp('i32');
  e.push(arg, F32);
  if (e.has('abs')) code.op('f32.abs');
  code.op('i32.reinterpret_f32').set(bits);
  code.i32(least !== e.has('NaN') ? 0x7fffffff : 0x80000000);
  code.get(bits).get(bits).i32(31).op('i32.shr_s').i32(1).op('i32.shr_u').op('i32.xor');
  code.get(bits).i32(0x7fffffff).op('i32.and').i32(0x7f800000).op('i32.gt_u').op('select');
}

/** The float of an ordered integer; both extremes mean NaN. */
function popOrdered(e: MailEmitter, arg: Arg): void {
  const { code } = e;
  const key = e.temp('i32');
  code.set(key).i32(0x7fffffff);
  code.get(key).get(key).i32(31).op('i32.shr_s').i32(1).op('i32.shr_u').op('i32.xor');
  code
    .get(key)
    .i32(0x7fffffff)
    .op('i32.eq')
    .get(key)
    .i32(0x80000000)
    .op('i32.eq')
    .op('i32.or')
    .op('select');
  e.pop(arg, B32);
}

/** The result is in the low half of the mailbox's result, and its predicate in bit 32. */
export function emitWarpResult(e: MailEmitter, inst: Inst): void {
  const { code } = e;
  if (isMatrixOperation(inst.mnemonic)) {
    emitMatrixResult(e, inst);
    return;
  }
  const target = inst.args[0]!;
  const low = (): void => {
    e.pushMailbox();
    code.memory('i32.load', MAIL.result);
  };
  const high = (): void => {
    e.pushMailbox();
    code.memory('i32.load', MAIL.result + 4);
  };
  const single = (arg: Arg): void => {
    const predicate = arg.kind === 'register' && arg.register.type.kind === 'predicate';
    low();
    if (inst.mnemonic === 'redux' && e.type().kind === 'float') popOrdered(e, arg);
    else e.pop(arg, predicate ? PRED : B32);
  };
  if (target.kind !== 'pair') {
    single(target);
    return;
  }
  if (target.first.kind !== 'sink') single(target.first);
  if (target.second.kind !== 'sink') {
    high();
    e.pop(target.second, PRED);
  }
}

/** How a barrier combines the predicates of its threads. */
export const BARRIER_REDUCTION = { none: 0, popc: 1, and: 2, or: 3 } as const;

/**
 * Writes the barrier's number, the expected threads (0: all) and the predicate, for threads that
 * wait and for those that only arrive.
 */
export function emitBarrierArrival(e: MailEmitter, inst: Inst): void {
  const { code } = e;
  const { modifiers } = inst;
  if (modifiers.includes('cluster')) {
    store(e, [
      [
        MAIL.operation,
        () => {
          code.i32(BARRIER_REDUCTION.none);
        },
      ],
      [
        MAIL.mask,
        () => {
          code.i32(CLUSTER_BARRIER);
        },
      ],
      [
        MAIL.lane,
        () => {
          code.i32(0);
        },
      ],
    ]);
    return;
  }
  const args = [...inst.args];
  let reduction: keyof typeof BARRIER_REDUCTION = 'none';
  let predicate: Arg | undefined;
  if (modifiers.includes('red')) {
    reduction = e.oneOf('popc', 'and', 'or') ?? 'none';
    args.shift();
    predicate = args.pop();
    if (!predicate) throw e.semantic("'bar.red' needs a predicate");
  }
  if (args.length < 1 || args.length > 2)
    throw e.semantic(`'${inst.mnemonic}' takes a barrier and perhaps a count`);
  store(e, [
    [
      MAIL.operation,
      () => {
        code.i32(BARRIER_REDUCTION[reduction]);
      },
    ],
    [
      MAIL.mask,
      () => {
        e.push(args[0]!, B32);
        code.i32(15).op('i32.and');
      },
    ],
    [
      MAIL.lane,
      () => {
        if (args[1]) e.push(args[1], B32);
        else code.i32(0);
      },
    ],
    ...(predicate
      ? [
          [
            MAIL.value,
            () => {
              e.push(predicate, PRED);
              code.op('i64.extend_i32_u');
            },
            'i64.store',
          ] satisfies Field,
        ]
      : []),
  ]);
}

export const waitsForCluster = (inst: Inst): boolean =>
  inst.mnemonic === 'barrier' &&
  inst.modifiers.includes('cluster') &&
  inst.modifiers.includes('wait');

/** `bar.sync 0` for the whole block: the thread's state is enough, and it needs no mailbox. */
export function isPlainBarrier(inst: Inst): boolean {
  const [barrier] = inst.args;
  return (
    !inst.modifiers.includes('red') &&
    !inst.modifiers.includes('cluster') &&
    inst.args.length === 1 &&
    barrier?.kind === 'integer' &&
    barrier.value === 0n
  );
}
