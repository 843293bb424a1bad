// What the vector back end needs of a kernel before it writes code: each register's spread, at
// which branches the threads of a unit diverge, where diverged threads wait for each other, and
// which results may not change the values of waiting threads.
//
// Blocks run in layout order. A thread that branches forward waits at its target until control
// comes there; one that branches back waits at the loop's header until the others reach the loop's
// end.

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

/**
 * Larger kernels stay with the scalar back end: the time of the analysis and the size of the code
 * would be out of proportion.
 */
const MOST_INSTRUCTIONS = 6000;
const MOST_BLOCKS = 800;

export interface LanePlan {
  spread(register: Register): Spread;
  /** The values of a varying register in each lane, if they are always the same. */
  constants(register: Register): readonly number[] | undefined;
  /** The value of a register that always has the same literal. */
  literal(register: Register): number | undefined;
  /** The spread of an instruction's result, before it is merged with other definitions. */
  result(inst: Inst): Spread;
  /** No thread of the group waits elsewhere while this block runs. */
  convergent(block: number): boolean;
  /** The block ends with a divergent branch. */
  parts(block: number): boolean;
  /** Threads may wait for control at this block. */
  waitsAt(block: number): boolean;
  /** A block that only leaves. */
  leaves(block: number): boolean;
  /** Threads that wait elsewhere while this block runs still need their value of the register. */
  keeps(block: number, register: Register): boolean;
  /** Blocks outside a loop at which threads may wait while others stay in it. */
  waitingOut(loop: Region): number[];
  /** Every loop comes to its end, or runs forever, whatever other threads do. */
  independent: boolean;
  /** All threads of a unit that have not exited are always suspended and resumed together. */
  together: boolean;
}

/** The plan for units of this many threads, or the reason why a kernel has no lanes. */
export function planLanes(
  blocks: readonly Block[],
  shape: Shape,
  liveness: Liveness,
  registers: readonly Register[],
  width: number,
): LanePlan | string {
  const reached = shape.order.map((index) => blocks[index]!);
  const instructions = reached.flatMap((block) => [...instructionsOf(block)]);
  const refusal = refuse(reached, instructions, shape, registers);
  if (refusal) return refusal;

  const spreads = new Spreads(reached, liveness, addressOnly(instructions, registers), width);
  const waits = new Waits(blocks, reached, shape, liveness);
  // What a block writes while threads wait elsewhere may differ from their values: it varies, which
  // may make more branches divergent.
  for (let changed = true; changed;) {
    changed = false;
    spreads.propagate();
    waits.find((register) => spreads.of(register));
    for (const block of reached) {
      if (waits.isConvergent(block.index)) continue;
      for (const { defs } of block.insts)
        for (const register of defs)
          if (waits.keeps(block.index, register)) changed = spreads.force(register) || changed;
    }
  }

  const literals = literalRegisters(reached, liveness);
  const spreadOf = (register: Register): Spread => spreads.of(register) ?? UNIFORM;
  const independent = new Map<Region, boolean>();
  const isIndependent = (loop: Region): boolean => {
    let known = independent.get(loop);
    if (known === undefined) independent.set(loop, (known = isIndependentLoop(blocks, loop)));
    return known;
  };
  return {
    spread: spreadOf,
    literal: (register) => literals.get(register.id),
    constants: (register) => {
      const { stride, pattern } = spreadOf(register);
      return stride === undefined && pattern && isKnown(pattern)
        ? pattern.offsets.map((value) => value | 0)
        : undefined;
    },
    result: (inst) => spreads.results.get(inst) ?? UNIFORM,
    convergent: (block) => waits.isConvergent(block),
    parts: (block) => waits.parts(block),
    waitsAt: (block) => waits.waitsAt(block),
    leaves: (block) => leaves(blocks[block]!),
    keeps: (block, register) => waits.keeps(block, register),
    waitingOut: (loop) => waits.waitingOut(loop),
    independent: [...shape.loopHeaders].every((header) => isIndependent(shape.regionOf(header))),
    together: reached.every((block) =>
      suspendsTogether(block, waits, shape, isIndependent, (register) => spreads.of(register)),
    ),
  };
}

/** Whether a block only leaves. */
const leaves = ({ insts, ending }: Block): boolean =>
  insts.length === 0 && (ending.kind === 'return' || ending.kind === 'exit');

/**
 * Whether every suspension at the block's end takes all threads of the unit that have not exited,
 * and none can be released alone.
 */
function suspendsTogether(
  block: Block,
  waits: Waits,
  shape: Shape,
  isIndependent: (loop: Region) => boolean,
  spreadOf: (register: Register) => Spread | undefined,
): boolean {
  const { ending } = block;
  const convergent = waits.isConvergent(block.index);
  if (
    !convergent &&
    successors(block).some(
      (to) => waits.goesBack(block.index, to) && !isIndependent(shape.regionOf(to)),
    )
  )
    return false;
  if (ending.kind !== 'cut') return true;
  // The mask of a warp operation is its last operand; a barrier's number and count are its first
  // and second.
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
}

/** The spread of each register, as far as it follows from the instructions. */
class Spreads {
  /** The spread of each instruction's result. */
  readonly results = new Map<Inst, Spread>();
  private readonly spreads: (Spread | undefined)[] = [];
  private readonly forced = new Set<number>();
  /**
   * Registers that step by one from a first thread of any number, at the start of each block;
   * elsewhere such a step is aligned.
   */
  private readonly loose: ReadonlyMap<number, Set<number>>;
  private readonly reached: readonly Block[];
  private readonly wraps: (register: Register) => boolean;
  private readonly width: number;

  constructor(
    reached: readonly Block[],
    liveness: Liveness,
    wraps: (register: Register) => boolean,
    width: number,
  ) {
    this.reached = reached;
    this.wraps = wraps;
    this.width = width;
    this.loose = new Map(reached.map(({ index }) => [index, new Set<number>()]));
    for (const register of liveness.liveIn(0)) this.spreads[register.id] = UNIFORM;
  }

  of({ id }: Register): Spread | undefined {
    return this.spreads[id];
  }

  /** Makes the register varying; returns whether its spread changed. */
  force({ id }: Register): boolean {
    if (this.forced.has(id)) return false;
    this.forced.add(id);
    const known = this.spreads[id];
    if (known?.stride === undefined && !known?.pattern && known?.low === undefined) return false;
    this.spreads[id] = VARYING;
    return true;
  }

  propagate(): void {
    for (let changed = true; changed;) {
      changed = false;
      for (const block of this.reached) changed = this.passThrough(block) || changed;
    }
  }

  private define({ id }: Register, spread: Spread): boolean {
    const known = this.spreads[id];
    const next = this.forced.has(id) ? VARYING : known ? meet(known, spread) : spread;
    if (known && sameSpread(known, next)) return false;
    this.spreads[id] = next;
    return true;
  }

  private passThrough(block: Block): boolean {
    const { spreads, wraps, width, results } = this;
    let changed = false;
    const here = new Set(this.loose.get(block.index));
    const of = (register: Register): Spread | undefined => {
      const spread = spreads[register.id];
      return spread?.stride === 1 ? { ...spread, aligned: !here.has(register.id) } : spread;
    };
    for (const inst of block.insts) {
      const spread = resultSpread(inst, of, wraps, width);
      if (!spread) continue;
      results.set(inst, spread);
      for (const register of inst.defs) {
        changed = this.define(register, spread) || changed;
        if (spread.stride === 1 && !spread.aligned) here.add(register.id);
        else if (spread.aligned && !inst.predicate) here.delete(register.id);
      }
    }
    for (const to of successors(block)) {
      const there = this.loose.get(to)!;
      const before = there.size;
      for (const id of here) there.add(id);
      changed ||= there.size > before;
    }
    // The results of a cut come from other threads.
    const { ending } = block;
    if (ending.kind !== 'cut') return changed;
    for (const register of ending.inst.defs) changed = this.define(register, VARYING) || changed;
    // Those that give way do their own part first.
    if (ending.cut === 'sleep')
      results.set(ending.inst, resultSpread(ending.inst, of, wraps, width) ?? VARYING);
    return changed;
  }
}

/** Positions in the layout, from the first to the last. */
type Range = [start: number, end: number];

/** Which branches diverge, and which blocks run while threads wait elsewhere. */
class Waits {
  private readonly blocks: readonly Block[];
  private readonly reached: readonly Block[];
  private readonly shape: Shape;
  private readonly liveness: Liveness;
  private readonly position: Int32Array;
  private readonly extents = new Map<Region, { start: number; end: number }>();
  private readonly liveSets = new Map<number, Set<number>>();
  /** By block. */
  private parting: Uint8Array;
  /** By position: threads may wait elsewhere. */
  private alone: Uint8Array;
  /** By block at which threads may wait: where control is while they do. */
  private intervals = new Map<number, Range[]>();

  constructor(
    blocks: readonly Block[],
    reached: readonly Block[],
    shape: Shape,
    liveness: Liveness,
  ) {
    this.blocks = blocks;
    this.reached = reached;
    this.shape = shape;
    this.liveness = liveness;
    this.position = new Int32Array(blocks.length).fill(-1);
    reached.forEach(({ index }, at) => {
      this.position[index] = at;
    });
    this.parting = new Uint8Array(blocks.length);
    this.alone = new Uint8Array(reached.length);
  }

  find(spreadOf: (register: Register) => Spread | undefined): void {
    this.parting = new Uint8Array(this.blocks.length);
    for (const { index, ending } of this.reached) {
      if (
        ending.kind === 'branch' &&
        ending.yes !== ending.no &&
        spreadOf(ending.inst.predicate!.register)?.stride === undefined
      )
        this.parting[index] = 1;
    }
    this.alone = new Uint8Array(this.reached.length);
    for (let grows = true; grows;) {
      grows = false;
      this.intervals = new Map();
      for (const block of this.reached)
        if (this.parts(block.index) || !this.isConvergent(block.index))
          grows = this.waitFor(block) || grows;
    }
  }

  /** Threads that diverge at a block wait for each other; returns whether that is new. */
  private waitFor(block: Block): boolean {
    let grows = false;
    for (const to of successors(block)) {
      if (leaves(this.blocks[to]!) || block.ending.kind === 'cut') continue;
      const range = this.rangeOf(block.index, to);
      if (!range) continue;
      const ranges = this.intervals.get(to);
      if (ranges) ranges.push(range);
      else this.intervals.set(to, [range]);
      for (let covered = range[0]; covered <= range[1]; covered++) {
        if (this.alone[covered]) continue;
        this.alone[covered] = 1;
        grows = true;
      }
    }
    return grows;
  }

  /**
   * Positions of the blocks that run while a thread that took an edge waits at its target;
   * undefined if it continues at once.
   */
  private rangeOf(from: number, to: number): Range | undefined {
    const { shape } = this;
    const [at, target] = [this.position[from]!, this.position[to]!];
    if (target <= at) return [at + 1, this.extent(shape.regionOf(to)).end];
    let left: Region | undefined;
    for (let region = shape.regionOf(from); region.header >= 0; region = region.parent!) {
      if (region.members.has(to)) break;
      left = region;
    }
    if (left) return [this.extent(left).start, target - 1];
    return target === at + 1 ? undefined : [at + 1, target - 1];
  }

  private extent(region: Region): { start: number; end: number } {
    let found = this.extents.get(region);
    if (!found) {
      found = { start: this.reached.length, end: 0 };
      for (const block of region.members) {
        found.start = Math.min(found.start, this.position[block]!);
        found.end = Math.max(found.end, this.position[block]!);
      }
      this.extents.set(region, found);
    }
    return found;
  }

  private liveSet(block: number): Set<number> {
    let found = this.liveSets.get(block);
    if (!found) {
      found = new Set(this.liveness.liveIn(block).map((register) => register.id));
      this.liveSets.set(block, found);
    }
    return found;
  }

  isConvergent(block: number): boolean {
    return this.alone[this.position[block]!] === 0;
  }

  parts(block: number): boolean {
    return this.parting[block] === 1;
  }

  waitsAt(block: number): boolean {
    return this.intervals.has(block);
  }

  goesBack(from: number, to: number): boolean {
    return this.position[to]! <= this.position[from]!;
  }

  keeps(block: number, register: Register): boolean {
    const at = this.position[block]!;
    if (this.alone[at] !== 1) return false;
    for (const [target, ranges] of this.intervals)
      if (
        ranges.some(([start, end]) => at >= start && at <= end) &&
        this.liveSet(target).has(register.id)
      )
        return true;
    return false;
  }

  waitingOut(loop: Region): number[] {
    const { start, end } = this.extent(loop);
    return [...this.intervals]
      .filter(
        ([target, ranges]) =>
          !loop.members.has(target) && ranges.some((range) => range[0] <= end && range[1] >= start),
      )
      .map(([target]) => target);
  }
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
