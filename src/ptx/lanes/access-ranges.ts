// Accesses that can be checked together: those through the same base register at constant offsets
// are one range. If it is valid, none of them needs a check of its own.

import type { Arg, Inst, Register } from '../analysis/program.js';
import type { LaneEmitter } from './lane-emitter.js';
import { access, testPlace } from './places.js';
import type { Access } from './places.js';

export interface Range {
  base: Register;
  shared: boolean;
  wide: boolean;
  log2: number;
  start: number;
  end: number;
  accesses: { inst: Inst; offset: number }[];
}

export interface FoundAccess {
  inst: Inst;
  found: Access;
}

/** The ranges of accesses through registers that do not change between them. */
export function rangesOf(e: LaneEmitter, accesses: readonly FoundAccess[]): Range[] {
  const ranges = new Map<string, Range>();
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
  }
  return [...ranges.values()];
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

/**
 * Calls `test` with whether each of the ranges is valid on the stack, one after the other, and
 * leaves their places in locals.
 */
export function checkRanges(
  e: LaneEmitter,
  ranges: readonly Range[],
  test: () => void,
): Map<Inst, { local: number; offset: number }> {
  const { code } = e;
  const places = new Map<Inst, { local: number; offset: number }>();
  for (const { base, shared, wide, log2, start, end, accesses } of ranges) {
    const whole = e.newLocal(wide ? 'i64' : 'i32');
    const local = wide ? e.newLocal('i32') : whole;
    code.get(e.registerLocal(base));
    if (start && wide) code.i64(start).op('i64.add');
    else if (start) code.i32(start).op('i32.add');
    code.tee(whole);
    testPlace(e, shared, log2, wide, (end - start) >> log2);
    test();
    if (wide) code.get(whole).op('i32.wrap_i64').set(local);
    for (const { inst, offset } of accesses) places.set(inst, { local, offset: offset - start });
  }
  return places;
}
