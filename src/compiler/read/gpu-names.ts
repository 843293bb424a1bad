/** The members of a body's second parameter: a row for each path of gpu.ts, with its meaning. */
import type { ApproximateName, SpecialName, ValueType } from '../tree.js';
import { atomicFunctions } from './atomics.js';
import { blockReduction, warpReduction } from './reductions.js';
import { arrayFunctions, arrayLike, dynamicArrayFunctions } from './arrays.js';
import {
  arity,
  floatType,
  emitOnce,
  integer,
  known,
  maskOf,
  number,
  single,
  statement,
  type Call,
} from './calls.js';
import { asNarrowFloat, castFunctions, fromBits, toBits } from './casts.js';
import { textFunction } from './math-table.js';
import { instructionFunctions, wordProduct } from './instructions.js';
import { matrixFunctions } from './matrices.js';
import { binary, constant, unary } from './nodes.js';
import type { Pass } from './pass.js';
import { isInteger } from './types.js';
import { inType, nothing, typed, type Value } from './values.js';
import type { AnyNode } from 'acorn';
import { commonType, literal, truth } from './operands.js';

type Row = (pass: Pass, node: AnyNode) => Value;
const call = (run: (call: Call) => Value): { readonly call: (call: Call) => Value } => ({
  call: run,
});
type Entry = Row | { readonly call: (call: Call) => Value };

const special =
  (name: SpecialName): Row =>
  (pass, node) =>
    typed({
      op: 'special',
      name,
      type: name.startsWith('globalId') ? pass.source.indexType : 'i32',
      span: pass.span(node),
    });

const indices = ['threadIdx', 'blockIdx', 'blockDim', 'gridDim', 'globalId', 'globalSize'] as const;

/** One instruction of the device on f32. */
const approximate = (name: ApproximateName, count: number): Entry =>
  call((at) => {
    arity(at, count);
    return typed({
      op: 'approximate',
      name,
      type: 'f32',
      operands: at.args.map((_, index) => single(at, index)),
      span: at.pass.span(at.node),
    });
  });

/** The f32 nearest to the factor between powers and logarithms of 2 and those of e. */
const log2e = Math.LOG2E;
const ln2 = Math.LN2;

const shuffle = (mode: 'idx' | 'up' | 'down' | 'bfly'): Entry =>
  call((at) => {
    arity(at, 2, 3);
    const value = number(at, 0);
    const type = commonType(value);
    return emitOnce(
      at,
      {
        op: 'shuffle',
        mode,
        type,
        value: inType(value, type),
        lane: integer(at, 1, 'i32'),
        width: 32,
        mask: maskOf(at, 2),
        span: at.pass.span(at.node),
      },
      'shuffled',
    );
  });

const vote = (mode: 'any' | 'all' | 'ballot'): Entry =>
  call((at) => {
    arity(at, 1, 2);
    return emitOnce(
      at,
      {
        op: 'vote',
        mode,
        type: mode === 'ballot' ? 'u32' : 'bool',
        predicate: truth(number(at, 0)),
        mask: maskOf(at, 1),
        span: at.pass.span(at.node),
      },
      'vote',
    );
  });

const barrierReduce = (mode: 'and' | 'or' | 'count'): Entry =>
  call((at) => {
    arity(at, 1);
    return emitOnce(
      at,
      {
        op: 'barrierReduce',
        mode,
        type: mode === 'count' ? 'i32' : 'bool',
        predicate: truth(number(at, 0)),
        span: at.pass.span(at.node),
      },
      'voted',
    );
  });

const fence = (scope: 'block' | 'device' | 'system'): Entry =>
  call((at) => {
    arity(at, 0);
    return statement(at, (span) => ({ kind: 'fence', scope, span }));
  });

/** Bit counts: the result is an i32 for every operand. */
const countBits = (operator: 'popc' | 'clz'): Entry =>
  call((at) => {
    arity(at, 1);
    const type = commonType(number(at, 0));
    return typed(
      unary(operator, integer(at, 0, isInteger(type) ? type : 'i32'), at.pass.span(at.node), 'i32'),
    );
  });

const timer = (name: 'clock' | 'globaltimer', type: ValueType): Entry =>
  call((at) => {
    arity(at, 0);
    return emitOnce(at, { op: 'special', name, type, span: at.pass.span(at.node) }, name);
  });

const rows: Readonly<Record<string, Entry>> = {
  ...Object.fromEntries(
    indices.flatMap((of) =>
      (['x', 'y', 'z'] as const).map((axis) => [`${of}.${axis}`, special(`${of}.${axis}`)]),
    ),
  ),
  lane: special('lane'),
  warpIdx: special('warp'),
  warpSize: (pass, node) => literal(32, pass.span(node)),

  ...Object.fromEntries(
    Object.entries(arrayFunctions('shared')).map(([name, run]) => [`shared.${name}`, call(run)]),
  ),
  ...Object.fromEntries(
    Object.entries(arrayFunctions('local')).map(([name, run]) => [`local.${name}`, call(run)]),
  ),
  ...Object.fromEntries(
    Object.entries(dynamicArrayFunctions).map(([name, run]) => [
      `dynamicShared.${name}`,
      call(run),
    ]),
  ),

  'warp.shuffle': shuffle('idx'),
  'warp.shuffleDown': shuffle('down'),
  'warp.shuffleUp': shuffle('up'),
  'warp.shuffleXor': shuffle('bfly'),
  'warp.sum': call(warpReduction('sum')),
  'warp.max': call(warpReduction('max')),
  'warp.min': call(warpReduction('min')),
  'warp.any': vote('any'),
  'warp.all': vote('all'),
  'warp.ballot': vote('ballot'),
  'warp.match': call((at) => {
    arity(at, 1, 2);
    const value = number(at, 0);
    return emitOnce(
      at,
      {
        op: 'match',
        type: 'u32',
        value: inType(value, commonType(value)),
        mask: maskOf(at, 1),
        span: at.pass.span(at.node),
      },
      'matching',
    );
  }),
  'warp.activeMask': call((at) => {
    arity(at, 0);
    return emitOnce(at, { op: 'activemask', type: 'u32', span: at.pass.span(at.node) }, 'active');
  }),
  'warp.sync': call((at) => {
    arity(at, 0, 1);
    return statement(at, (span) => ({ kind: 'barrier', of: 'warp', mask: maskOf(at, 0), span }));
  }),

  ...Object.fromEntries(Object.entries(matrixFunctions).map(([name, run]) => [name, call(run)])),

  'block.sync': call((at) => {
    arity(at, 0);
    return statement(at, (span) => ({ kind: 'barrier', of: 'block', span }));
  }),
  'block.count': barrierReduce('count'),
  'block.any': barrierReduce('or'),
  'block.all': barrierReduce('and'),
  'block.sum': call(blockReduction('sum')),
  'block.max': call(blockReduction('max')),
  'block.min': call(blockReduction('min')),

  'grid.sync': call((at) => {
    arity(at, 0);
    at.pass.cooperative = true;
    return statement(at, (span) => ({ kind: 'barrier', of: 'grid', span }));
  }),

  'fence.block': fence('block'),
  'fence.device': fence('device'),
  'fence.system': fence('system'),

  'fast.div': approximate('div', 2),
  'fast.rcp': approximate('rcp', 1),
  'fast.sqrt': approximate('sqrt', 1),
  'fast.rsqrt': approximate('rsqrt', 1),
  'fast.exp2': approximate('ex2', 1),
  'fast.log2': approximate('lg2', 1),
  'fast.sin': approximate('sin', 1),
  'fast.cos': approximate('cos', 1),
  'fast.tanh': approximate('tanh', 1),
  'fast.exp': call((at) => {
    arity(at, 1);
    const span = at.pass.span(at.node);
    return typed({
      op: 'approximate',
      name: 'ex2',
      type: 'f32',
      operands: [binary('mul', single(at, 0), constant(log2e, 'f32', span), span)],
      span,
    });
  }),
  'fast.log': call((at) => {
    arity(at, 1);
    const span = at.pass.span(at.node);
    return typed(
      binary(
        'mul',
        { op: 'approximate', name: 'lg2', type: 'f32', operands: [single(at, 0)], span },
        constant(ln2, 'f32', span),
        span,
      ),
    );
  }),

  ...Object.fromEntries(
    Object.entries(instructionFunctions).map(([name, run]) => [name, call(run)]),
  ),
  'cluster.rank': special('clusterRank'),

  ...Object.fromEntries(Object.entries(castFunctions).map(([name, run]) => [name, call(run)])),
  bits: call(toBits),
  fromBits: call(fromBits),

  fma: call((at) => {
    arity(at, 3);
    const values = [number(at, 0), number(at, 1), number(at, 2)] as const;
    const type = floatType(...values);
    return typed({
      op: 'fma',
      type,
      a: inType(values[0], type),
      b: inType(values[1], type),
      c: inType(values[2], type),
      span: at.pass.span(at.node),
    });
  }),
  rsqrt: call((at) => {
    arity(at, 1);
    const span = at.pass.span(at.node);
    const type = floatType(number(at, 0));
    return typed(
      binary(
        'div',
        constant(1, type, span),
        unary('sqrt', inType(number(at, 0), type), span),
        span,
      ),
    );
  }),
  rint: call((at) => {
    arity(at, 1);
    return typed(
      unary('rint', inType(number(at, 0), floatType(number(at, 0))), at.pass.span(at.node)),
    );
  }),
  erf: call(textFunction('erf', 1)),
  mulhi: call((at) => {
    arity(at, 2);
    const type = commonType(number(at, 0), number(at, 1));
    return typed(
      binary('mulhi', integer(at, 0, type), integer(at, 1, type), at.pass.span(at.node)),
    );
  }),
  popcount: countBits('popc'),
  clz: countBits('clz'),
  reverseBits: call((at) => {
    arity(at, 1);
    return typed(unary('brev', integer(at, 0, commonType(number(at, 0))), at.pass.span(at.node)));
  }),
  copysign: call((at) => {
    arity(at, 2);
    const type = floatType(number(at, 0), number(at, 1));
    return typed(
      binary(
        'copysign',
        inType(number(at, 0), type),
        inType(number(at, 1), type),
        at.pass.span(at.node),
      ),
    );
  }),
  clamp: call((at) => {
    arity(at, 3);
    const values = [number(at, 0), number(at, 1), number(at, 2)] as const;
    const type = commonType(...values);
    const span = at.pass.span(at.node);
    return typed(
      binary(
        'min',
        binary('max', inType(values[0], type), inType(values[1], type), span),
        inType(values[2], type),
        span,
      ),
    );
  }),

  ...Object.fromEntries(Object.entries(atomicFunctions).map(([name, run]) => [name, call(run)])),

  unroll: call((at) => {
    arity(at, 0, 1);
    const turns = at.args.length === 0 ? 0 : known(at, 0);
    if (turns < 0 || (at.args.length === 1 && turns < 1))
      at.pass.fail(
        at.node,
        `gpu.unroll takes a number of turns from 1, and got ${turns}`,
        'Write gpu.unroll(4), or gpu.unroll() for all of them.',
      );
    at.pass.frame.unroll = { turns, node: at.node };
    return nothing;
  }),
  clock: timer('clock', 'i64'),
  globalTimer: timer('globaltimer', 'u64'),
  trap: call((at) => {
    arity(at, 0);
    return statement(at, (span) => ({ kind: 'trap', span }));
  }),
};

/** Names for kernels that the compiler itself writes. */
const ownRows: Readonly<
  Record<string, { readonly run: (call: Call) => Value; readonly typesOnly: boolean }>
> = {
  localLike$: { run: arrayLike('local'), typesOnly: true },
  sharedLike$: { run: arrayLike('shared'), typesOnly: true },
  narrowly$: { run: asNarrowFloat, typesOnly: false },
  mmaWords$: { run: wordProduct, typesOnly: false },
};

const namespaces = new Set(
  Object.keys(rows).flatMap((path) =>
    path.includes('.') ? [path.slice(0, path.indexOf('.'))] : [],
  ),
);

/** Gives the value of gpu.PATH, or undefined where there is no such name. */
export function gpuName(pass: Pass, node: AnyNode, path: string): Value | undefined {
  if (namespaces.has(path)) return { kind: 'namespace', path };
  if (Object.hasOwn(ownRows, path))
    return {
      kind: 'function',
      name: `gpu.${path}`,
      call: ownRows[path]!.run,
      typesOnly: ownRows[path]!.typesOnly,
    };
  if (!Object.hasOwn(rows, path)) return undefined;
  const row = rows[path]!;
  return typeof row === 'function'
    ? row(pass, node)
    : { kind: 'function', name: `gpu.${path}`, call: row.call };
}

/** Names within `gpu.PATH`, for messages; all of gpu for ''. */
export function gpuNamesIn(path: string): string[] {
  const before = path === '' ? '' : `${path}.`;
  return [
    ...new Set(
      Object.keys(rows)
        .filter((row) => row.startsWith(before))
        .map((row) => row.slice(before.length).replace(/\..*/, '')),
    ),
  ];
}
