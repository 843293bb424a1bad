// What the lane back end must know of a kernel before it writes code: each register's spread, which
// branches part the threads of a unit, where parted threads wait for each other, and which results
// must leave waiting threads alone.
//
// Blocks run in the order of the layout. A thread that branches ahead waits at its target until
// control comes by; one that branches back waits at the loop's header until the others have come to
// the loop's end.

import type { Block } from '../analysis/blocks.js';
import { successors } from '../analysis/blocks.js';
import { instructionsOf } from '../analysis/liveness.js';
import type { Liveness } from '../analysis/liveness.js';
import type { Inst, Register } from '../analysis/program.js';
import type { Region, Shape } from '../analysis/regions.js';
import { isMatrixOperation } from '../emit/matrix-arrivals.js';
import {
  UNIFORM,
  VARYING,
  addressOnly,
  argSpread,
  meet,
  resultSpread,
  sameSpread,
} from './spread.js';
import { isIndependentLoop } from './independent-loops.js';
import { isKnown } from './pattern.js';
import type { Spread } from './spread.js';

/** Larger kernels stay with the scalar back end: analysis and code would grow out of proportion. */
const MOST_INSTRUCTIONS = 6000;
const MOST_BLOCKS = 800;

export interface LanePlan {
  spread(register: Register): Spread;
  /** What a varying register holds in each lane, where that is always the same. */
  constants(register: Register): readonly number[] | undefined;
  /** The value of a register that holds the same literal all the time. */
  literal(register: Register): number | undefined;
  /** Spread of what an instruction writes, before it is merged with other definitions. */
  result(inst: Inst): Spread;
  /** No thread of the group waits elsewhere while this block runs. */
  convergent(block: number): boolean;
  /** The block ends with a branch that threads take differently. */
  parts(block: number): boolean;
  /** Threads may wait for control at this block. */
  waitsAt(block: number): boolean;
  /** A block that does nothing but leave. */
  leaves(block: number): boolean;
  /** Threads that wait elsewhere while this block runs still need their value of the register. */
  keeps(block: number, register: Register): boolean;
  /** Blocks outside a loop at which threads may wait while others go round in it. */
  waitingOut(loop: Region): number[];
  /** Every loop comes to its end, or goes round for ever, whatever other threads do. */
  independent: boolean;
  /** All threads of a unit that are still there are suspended and resumed together, always. */
  together: boolean;
}

/** Why a kernel has no lanes, or its plan for units of so many threads. */
export function planLanes(
  blocks: readonly Block[],
  shape: Shape,
  liveness: Liveness,
  registers: readonly Register[],
  width: number,
): LanePlan | string {
  const order = shape.order;
  const reached = order.map((index) => blocks[index]!);
  const instructions = reached.flatMap((block) => [...instructionsOf(block)]);
  const refusal = refuse(reached, instructions, shape, registers);
  if (refusal) return refusal;

  const position = new Int32Array(blocks.length).fill(-1);
  order.forEach((block, index) => {
    position[block] = index;
  });
  const extents = new Map<Region, { start: number; end: number }>();
  const extent = (region: Region): { start: number; end: number } => {
    let found = extents.get(region);
    if (!found) {
      found = { start: order.length, end: 0 };
      for (const block of region.members) {
        found.start = Math.min(found.start, position[block]!);
        found.end = Math.max(found.end, position[block]!);
      }
      extents.set(region, found);
    }
    return found;
  };
  const leaves = (block: number): boolean => {
    const { insts, ending } = blocks[block]!;
    return insts.length === 0 && (ending.kind === 'return' || ending.kind === 'exit');
  };

  const wraps = addressOnly(instructions, registers);
  const spreads: (Spread | undefined)[] = [];
  const forced = new Set<number>();
  const spreadOf = (register: Register): Spread | undefined => spreads[register.id];
  const define = (register: Register, spread: Spread): boolean => {
    const known = spreads[register.id];
    const next = forced.has(register.id) ? VARYING : known ? meet(known, spread) : spread;
    if (known && sameSpread(known, next)) return false;
    spreads[register.id] = next;
    return true;
  };
  /**
   * Registers that step by one from a first thread of any number, where each block begins;
   * elsewhere such a step is aligned.
   */
  const loose = new Map(order.map((index) => [index, new Set<number>()]));
  const results = new Map<Inst, Spread>();
  const propagate = (): void => {
    for (let changed = true; changed;) {
      changed = false;
      for (const block of reached) {
        const here = new Set(loose.get(block.index));
        const of = (register: Register): Spread | undefined => {
          const spread = spreads[register.id];
          return spread?.stride === 1 ? { ...spread, aligned: !here.has(register.id) } : spread;
        };
        for (const inst of block.insts) {
          const spread = resultSpread(inst, of, wraps, width);
          if (!spread) continue;
          results.set(inst, spread);
          for (const register of inst.defs) {
            changed = define(register, spread) || changed;
            if (spread.stride === 1 && !spread.aligned) here.add(register.id);
            else if (spread.aligned && !inst.predicate) here.delete(register.id);
          }
        }
        for (const to of successors(block)) {
          const there = loose.get(to)!;
          const before = there.size;
          for (const id of here) there.add(id);
          changed ||= there.size > before;
        }
        // What a cut writes comes from other threads.
        const { ending } = block;
        if (ending.kind !== 'cut') continue;
        for (const register of ending.inst.defs) changed = define(register, VARYING) || changed;
        // Those that give way do their own part first.
        if (ending.cut === 'sleep')
          results.set(ending.inst, resultSpread(ending.inst, of, wraps, width) ?? VARYING);
      }
    }
  };
  for (const register of liveness.liveIn(0)) spreads[register.id] = UNIFORM;

  let parting = new Uint8Array(blocks.length);
  let alone = new Uint8Array(order.length);
  let intervals = new Map<number, [start: number, end: number][]>();
  const liveSets = new Map<number, Set<number>>();
  const liveSet = (block: number): Set<number> => {
    let found = liveSets.get(block);
    if (!found)
      liveSets.set(block, (found = new Set(liveness.liveIn(block).map((register) => register.id))));
    return found;
  };
  const keeps = (block: number, register: Register): boolean => {
    const at = position[block]!;
    if (alone[at] !== 1) return false;
    for (const [target, ranges] of intervals) {
      if (
        ranges.some(([start, end]) => at >= start && at <= end) &&
        liveSet(target).has(register.id)
      )
        return true;
    }
    return false;
  };
  const independent = new Map<Region, boolean>();
  const isIndependent = (loop: Region): boolean => {
    let known = independent.get(loop);
    if (known === undefined) independent.set(loop, (known = isIndependentLoop(blocks, loop)));
    return known;
  };
  /**
   * Every suspension takes all threads of the group that are still there, and none can be released
   * alone.
   */
  const together = (): boolean =>
    reached.every((block) => {
      const { ending } = block;
      const convergent = alone[position[block.index]!] === 0;
      if (
        !convergent &&
        successors(block).some(
          (to) => position[to]! <= position[block.index]! && !isIndependent(shape.regionOf(to)),
        )
      )
        return false;
      if (ending.kind !== 'cut') return true;
      // The mask of a warp operation is its last operand; a barrier's number and count are its
      // first and second.
      const { args, mnemonic, modifiers } = ending.inst;
      const deciding =
        ending.cut === 'barrier'
          ? modifiers.includes('red')
            ? args.slice(1, -1)
            : args
          : ending.cut === 'warp' && mnemonic !== 'activemask'
            ? args.slice(-1)
            : [];
      return convergent && deciding.every((arg) => argSpread(arg, spreadOf)?.stride === 0);
    });

  for (let changed = true; changed;) {
    changed = false;
    propagate();
    parting = new Uint8Array(blocks.length);
    for (const { index, ending } of reached) {
      if (
        ending.kind === 'branch' &&
        ending.yes !== ending.no &&
        spreads[ending.inst.predicate!.register.id]?.stride === undefined
      )
        parting[index] = 1;
    }
    alone = new Uint8Array(order.length);
    for (let grows = true; grows;) {
      grows = false;
      intervals = new Map();
      for (const block of reached) {
        const at = position[block.index]!;
        if (!parting[block.index] && !alone[at]) continue;
        for (const to of successors(block)) {
          if (leaves(to) || block.ending.kind === 'cut') continue;
          const range = waitRange(block.index, to, at, position[to]!, shape, extent);
          if (!range) continue;
          const ranges = intervals.get(to);
          if (ranges) ranges.push(range);
          else intervals.set(to, [range]);
          for (let covered = range[0]; covered <= range[1]; covered++) {
            if (alone[covered]) continue;
            alone[covered] = 1;
            grows = true;
          }
        }
      }
    }
    const force = (register: Register): void => {
      if (forced.has(register.id)) return;
      forced.add(register.id);
      const known = spreads[register.id];
      if (known?.stride === undefined && !known?.pattern && known?.low === undefined) return;
      spreads[register.id] = VARYING;
      changed = true;
    };
    for (const block of reached) {
      if (alone[position[block.index]!] === 0) continue;
      for (const inst of block.insts)
        for (const register of inst.defs)
          if (!forced.has(register.id) && keeps(block.index, register)) force(register);
    }
  }

  const literals = literalRegisters(reached, liveness);
  return {
    spread: (register) => spreads[register.id] ?? UNIFORM,
    literal: (register) => literals.get(register.id),
    constants: (register) => {
      const { stride, pattern } = spreads[register.id] ?? UNIFORM;
      return stride === undefined && pattern && isKnown(pattern)
        ? pattern.offsets.map((value) => value | 0)
        : undefined;
    },
    result: (inst) => results.get(inst) ?? UNIFORM,
    convergent: (block) => alone[position[block]!] === 0,
    parts: (block) => parting[block] === 1,
    waitsAt: (block) => intervals.has(block),
    leaves,
    keeps,
    waitingOut: (loop) => {
      const { start, end } = extent(loop);
      return [...intervals]
        .filter(
          ([target, ranges]) =>
            !loop.members.has(target) &&
            ranges.some((range) => range[0] <= end && range[1] >= start),
        )
        .map(([target]) => target);
    },
    independent: [...shape.loopHeaders].every((header) => isIndependent(shape.regionOf(header))),
    together: together(),
  };
}

/** Registers of 32 bits with one definition, which moves a literal. */
function literalRegisters(blocks: readonly Block[], liveness: Liveness): Map<number, number> {
  const found = new Map<number, number>();
  const defined = new Set(liveness.liveIn(0).map((register) => register.id));
  for (const block of blocks) {
    for (const inst of instructionsOf(block)) {
      for (const { id, type } of inst.defs) {
        const source = inst.args[1];
        if (
          defined.has(id) ||
          inst.mnemonic !== 'mov' ||
          inst.predicate ||
          source?.kind !== 'integer' ||
          type.bits !== 32
        )
          found.delete(id);
        else found.set(id, Number(BigInt.asUintN(32, source.value)));
        defined.add(id);
      }
    }
  }
  return found;
}

/**
 * Positions of the blocks that run while a thread that took an edge waits at its target; none when
 * it goes on at once.
 */
function waitRange(
  from: number,
  to: number,
  at: number,
  target: number,
  shape: Shape,
  extent: (region: Region) => { start: number; end: number },
): [number, number] | undefined {
  if (target <= at) return [at + 1, extent(shape.regionOf(to)).end];
  let left: Region | undefined;
  for (let region = shape.regionOf(from); region.header >= 0; region = region.parent!) {
    if (region.members.has(to)) break;
    left = region;
  }
  if (left) return [extent(left).start, target - 1];
  return target === at + 1 ? undefined : [at + 1, target - 1];
}

function refuse(
  blocks: readonly Block[],
  instructions: readonly Inst[],
  shape: Shape,
  registers: readonly Register[],
): string | undefined {
  if (instructions.length > MOST_INSTRUCTIONS || blocks.length > MOST_BLOCKS)
    return 'the kernel is large';
  if (shape.irregular.size) return 'its control flow is irreducible';
  if (blocks.some((block) => block.ending.kind === 'switch')) return 'it branches through a table';
  if (instructions.some((inst) => inst.mnemonic === 'call')) return 'it calls functions';
  if (instructions.some((inst) => inst.carry)) return 'it has carry chains';
  if (instructions.some((inst) => isMatrixOperation(inst.mnemonic)))
    return 'it multiplies matrices';
  if (registers.some((register) => register.type.bits > 64)) return 'it has 128-bit registers';
  return undefined;
}
