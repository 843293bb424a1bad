// Runs of instructions whose accesses can be checked together: those through the same base register
// at constant offsets are one range. If all ranges are valid and no thread is switched off, the run
// has no checks in between; otherwise the same instructions run with one check each.

import type { Block } from '../analysis/blocks.js';
import type { Arg, Inst, Register } from '../analysis/program.js';
import type { CodePlan } from './code-plan.js';
import type { LaneEmitter } from './lane-emitter.js';
import type { LaneKernelEmitter } from './lane-kernel.js';
import { access, testPlace } from './places.js';
import type { Access } from './places.js';

/** Fewer accesses than this are not worth a second copy of their instructions. */
const LEAST_ACCESSES = 3;

export interface Range {
  base: Register;
  shared: boolean;
  wide: boolean;
  log2: number;
  start: number;
  end: number;
  accesses: { inst: Inst; offset: number }[];
}

export interface UncheckedRun {
  /** The index of the run's first instruction; the run ends with the block. */
  from: number;
  ranges: Range[];
  stores: boolean;
}

/** An access and its place in the block. */
export interface FoundAccess {
  index: number;
  inst: Inst;
  found: Access;
}

export function findUncheckedRun(e: LaneEmitter, block: Block): UncheckedRun | undefined {
  const accesses: FoundAccess[] = [];
  const definedAt = new Map<number, number>();
  block.insts.forEach((inst, index) => {
    const found = accessOf(e, inst);
    if (found) accesses.push({ index, inst, found });
    for (const { id } of inst.defs) definedAt.set(id, index);
  });
  if (accesses.length < LEAST_ACCESSES) return undefined;
  // The run may start where the bases of most accesses have their last value.
  const ready = accesses.map(({ found }) => (definedAt.get(found.address.base!.id) ?? -1) + 1);
  let best = { from: 0, count: 0 };
  for (const from of new Set(ready)) {
    const count = accesses.filter(({ index }, at) => index >= from && ready[at]! <= from).length;
    if (count > best.count) best = { from, count };
  }
  if (best.count < LEAST_ACCESSES) return undefined;
  return {
    from: best.from,
    ...rangesOf(
      e,
      accesses.filter(({ index }, at) => index >= best.from && ready[at]! <= best.from),
    ),
  };
}

/** The ranges of accesses through registers that do not change between them. */
export function rangesOf(
  e: LaneEmitter,
  accesses: readonly FoundAccess[],
): Pick<UncheckedRun, 'ranges' | 'stores'> {
  const ranges = new Map<string, Range>();
  let stores = false;
  for (const { inst, found } of accesses) {
    const { address, log2, shared, size, stride, wide } = found;
    const base = address.base!;
    const key = `${base.id} ${shared} ${log2}`;
    const last = address.offset + (e.width - 1) * stride!;
    const start = Math.min(address.offset, last);
    const end = Math.max(address.offset, last) + size;
    const range = ranges.get(key);
    if (!range) {
      ranges.set(key, {
        base,
        shared,
        wide,
        log2,
        start,
        end,
        accesses: [{ inst, offset: address.offset }],
      });
    } else {
      if ((start - range.start) % 2 ** log2) continue;
      range.start = Math.min(range.start, start);
      range.end = Math.max(range.end, end);
      range.accesses.push({ inst, offset: address.offset });
    }
    if (inst.mnemonic === 'st') stores = true;
  }
  return { ranges: [...ranges.values()], stores };
}

/** Plain accesses whose addresses are equal, or step evenly by whole elements. */
export function accessOf(e: LaneEmitter, inst: Inst): Access | undefined {
  if (inst.mnemonic !== 'ld' && inst.mnemonic !== 'st') return undefined;
  const stores = inst.mnemonic === 'st';
  if (inst.predicate) return undefined;
  const value: Arg | undefined = inst.args[stores ? 1 : 0];
  e.inst = inst;
  const found = access(e, inst.args[stores ? 0 : 1], value);
  if (!found || !value) return undefined;
  if (found.stride === undefined || found.stride % found.size !== 0) return undefined;
  if (found.stride !== 0) return found;
  return !stores && value.kind === 'register' && found.type.bits >= 32 ? found : undefined;
}

/** Pushes the address of a range's first byte. */
export function pushStart(e: LaneEmitter, { base, start, wide }: Range): void {
  const { code } = e;
  code.get(e.registerLocal(base));
  if (start && wide) code.i64(start).op('i64.add');
  else if (start) code.i32(start).op('i32.add');
}

/**
 * Calls `test` with whether the range that begins at the address on the stack is valid, on the
 * stack.
 */
export function testRange(
  e: LaneEmitter,
  { shared, log2, wide, start, end }: Range,
  test: () => void,
): void {
  testPlace(e, shared, log2, wide, (end - start) >> log2);
  test();
}

/**
 * Calls `test` with whether the range is valid, on the stack. Returns locals of its whole address,
 * and of its place.
 */
export function checkRange(
  e: LaneEmitter,
  range: Range,
  test: () => void,
): { whole: number; local: number } {
  const { code } = e;
  const whole = e.newLocal(range.wide ? 'i64' : 'i32');
  const local = range.wide ? e.newLocal('i32') : whole;
  pushStart(e, range);
  code.tee(whole);
  testRange(e, range, test);
  if (range.wide) code.get(whole).op('i32.wrap_i64').set(local);
  return { whole, local };
}

/**
 * Calls `test` with each of the run's conditions on the stack, one after the other, and leaves the
 * ranges' places in locals.
 */
export function checkRun(
  e: LaneEmitter,
  run: Pick<UncheckedRun, 'ranges' | 'stores'>,
  test: () => void,
): Map<Inst, { local: number; offset: number }> {
  const places = new Map<Inst, { local: number; offset: number }>();
  for (const range of run.ranges) {
    const { local } = checkRange(e, range, test);
    for (const { inst, offset } of range.accesses)
      places.set(inst, { local, offset: offset - range.start });
  }
  if (run.stores && !e.wholeUnit) {
    e.pushAllExecute();
    test();
  }
  return places;
}

/** A pass: runs of general code whose accesses are checked together. */
export function checkRunsTogether({ general }: CodePlan, k: LaneKernelEmitter): void {
  for (const code of general.blocks.values()) {
    const run = findUncheckedRun(k, code.block);
    if (run) code.run = { ...run, twice: true };
  }
}
