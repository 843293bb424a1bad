// Branches like `if (i < n)`, in which i steps from thread to thread and n is uniform: a test of
// the unit's first and last thread nearly always shows that all of them take the same side. Then no
// masks are made.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst } from '../analysis/program.js';
import { scalarType } from '../scalar-types.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import { opcodeNamed } from '../wasm/opcodes.js';
import type { LaneKernelEmitter } from './lane-kernel.js';

export interface Guard {
  /** The comparison that decides. */
  inst: Inst;
  /** The operand that steps, and its step. */
  stepping: Arg;
  stride: number;
  signed: boolean;
  operation: string;
}

/** Comparisons for order: the operation, and whether its name alone makes it unsigned. */
export const ORDERED: Record<string, { op: string; unsigned?: true }> = {
  lt: { op: 'lt' },
  le: { op: 'le' },
  gt: { op: 'gt' },
  ge: { op: 'ge' },
  lo: { op: 'lt', unsigned: true },
  ls: { op: 'le', unsigned: true },
  hi: { op: 'gt', unsigned: true },
  hs: { op: 'ge', unsigned: true },
};

/**
 * The comparison of the branch that ends a block, if it is of that kind and nothing else reads it.
 */
export function findGuard(e: LaneEmitter, block: Block, isLocal: boolean): Guard | undefined {
  const { ending, insts } = block;
  if (ending.kind !== 'branch' || !isLocal) return undefined;
  const { register } = ending.inst.predicate!;
  if (!e.isVarying(register)) return undefined;
  const touching = insts.filter(
    (inst) => inst.defs.includes(register) || inst.uses.includes(register),
  );
  const [inst] = touching;
  // It has to be the last instruction: its operands are read at the end of the block.
  return touching.length === 1 && inst && inst === insts.at(-1) ? comparisonOf(e, inst) : undefined;
}

/** The instruction as a comparison of a stepping value with a uniform one. */
export function comparisonOf(e: LaneEmitter, inst: Inst): Guard | undefined {
  if (inst.traits.meaning !== 'comparison' || inst.predicate) return undefined;
  // A result that is known at compile time needs no test.
  if (inst.defs.some((register) => e.isConstant(register))) return undefined;
  const [comparison, name, ...rest] = inst.modifiers;
  const [, left, right] = inst.args;
  const row = ORDERED[comparison ?? ''];
  if (
    !row ||
    rest.length ||
    inst.args.length !== 3 ||
    inst.args[0]!.kind !== 'register' ||
    !left ||
    !right
  )
    return undefined;
  if (name !== 's32' && name !== 'u32') return undefined;
  const [a, b] = [e.stride(left), e.stride(right)];
  const stepping = b === 0 ? left : a === 0 ? right : undefined;
  const stride = b === 0 ? a : b;
  if (!stepping || !stride || stepping.kind === 'not') return undefined;
  return { inst, stepping, stride, signed: name === 's32' && !row.unsigned, operation: row.op };
}

/**
 * Whether all threads of the unit compare alike, as two tests, each of which may show that they do
 * not: `differs` takes the value on the stack. The first thread's comparison is left in a local.
 * Stepping values that pass the end of their range within the unit do not count as alike.
 */
export function testAlike(
  e: LaneEmitter,
  { inst, stepping, stride, signed, operation }: Guard,
  outcome: number,
  differs: () => void,
): void {
  const { code } = e;
  const type = scalarType(signed ? 's32' : 'u32');
  const [, left, right] = inst.args;
  const isLeft = stepping === left;
  const bound = isLeft ? right! : left!;
  e.inst = inst;
  const first = e.temp('i32');
  e.push(stepping, type);
  code.set(first);
  // The bound is between the first and the last value, modulo 2^32. Strides are less than 2^26, and
  // units have 32 threads: values pass an end of their range at most once.
  const steps = Math.abs(stride) * (e.width - 1);
  if (stride > 0) {
    e.push(bound, type);
    code.get(first);
  } else {
    code.get(first);
    e.push(bound, type);
  }
  code.op('i32.sub');
  // A value that equals the bound is on the side of the greater ones, or of the less.
  const withGreater = (operation === 'lt' || operation === 'ge') === isLeft;
  if (withGreater === stride > 0) code.i32(1).op('i32.sub');
  code.i32(steps).op('i32.lt_u');
  differs();
  const [least, greatest] = signed ? [-(2 ** 31), 2 ** 31 - 1] : [0, -1];
  code.get(first);
  if (stride > 0) code.i32((greatest - steps) | 0).op(signed ? 'i32.gt_s' : 'i32.gt_u');
  else code.i32((least + steps) | 0).op(signed ? 'i32.lt_s' : 'i32.lt_u');
  differs();
  if (isLeft) code.get(first);
  e.push(bound, type);
  if (!isLeft) code.get(first);
  code.op(opcodeNamed(`i32.${operation}${signed ? '_s' : '_u'}`)).set(outcome);
}

/** A pass: branches of general code that a test of the first and the last thread decides. */
export function guardBranches({ general }: CodePlan, k: LaneKernelEmitter): void {
  for (const { block, ending } of general.blocks.values()) ending.guard = guardOf(k, block);
}

/** The comparison that decides the branch at a block's end, on which threads may differ. */
export function guardOf(k: LaneKernelEmitter, block: Block): Guard | undefined {
  const { index, ending } = block;
  return k.plan.parts(index) && 'inst' in ending
    ? findGuard(k, block, k.isBlockLocal(ending.inst.predicate!.register))
    : undefined;
}
