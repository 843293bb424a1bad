/**
 * Neighbouring elements are read and written at once, where the address is known to be a multiple of their size: that the tensor begins at one is the
 * launch's promise, that the index is one shows in how it is computed. Goes last, since what it makes is no longer understood by the others.
 */
import { resolve } from '../ssa/function.js';
import type { Block, MemoryAccess, SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';

/** Bytes that a tensor's address is a multiple of, by the number of its parameter. */
export type Alignment = Readonly<Record<number, number>>;

const MOST = 1024;
const bytesOf: Readonly<Record<MemoryAccess['form'], number>> = { s8: 1, u8: 1, s16: 2, u16: 2, b16: 2, b32: 4, b64: 8, f32: 4, f64: 8 };

/** The largest power of two that divides the value, as far as it shows. */
function dividedBy(f: SsaFunction, start: Value, alignment: Alignment, depth = 8): number {
  const value = resolve(start);
  if (value.constant !== undefined) {
    const low = BigInt.asUintN(32, BigInt(value.constant));
    return low === 0n ? MOST : Math.min(MOST, Number(low & -low));
  }
  if (depth === 0) return 1;
  const of = (at: number): number => dividedBy(f, value.args[at]!, alignment, depth - 1);
  switch (value.op) {
    case 'global': {
      const parameter = resolve(value.args[0]!);
      return parameter.op === 'parameter' ? (alignment[f.abi[Number(parameter.detail)]!.param] ?? 1) : 1;
    }
    case 'add': case 'sub': return Math.min(of(0), of(1));
    case 'mul': case 'wide': return Math.min(MOST, of(0) * of(1));
    case 'extend': case 'truncate': return of(0);
    case 'shl': {
      const by = resolve(value.args[1]!).constant;
      return typeof by === 'number' ? Math.min(MOST, of(0) * 2 ** Math.min(by, 10)) : 1;
    }
    case 'and': return Math.max(of(0), of(1));
    default: return 1;
  }
}

/** Accesses of one base, in the order in which they stand. */
interface Group {
  readonly base: Value;
  readonly members: Value[];
}

/** Runs of neighbours that one instruction can take, each at a multiple of its size. */
function runsOf(f: SsaFunction, group: Group, alignment: Alignment): Value[][] {
  if (group.members.length < 2) return [];
  const sorted = [...group.members].sort((a, b) => a.memory!.offset - b.memory!.offset);
  const bytes = bytesOf[sorted[0]!.memory!.form];
  const base = dividedBy(f, group.base, alignment);
  const runs: Value[][] = [];
  for (let at = 0; at < sorted.length - 1;) {
    const { offset } = sorted[at]!.memory!;
    const fits = (count: number): boolean =>
      count * bytes <= 16 && at + count <= sorted.length && base % (count * bytes) === 0 && offset % (count * bytes) === 0 &&
      sorted.slice(at, at + count).every((member, index) => member.memory!.offset === offset + index * bytes);
    const count = fits(4) ? 4 : fits(2) ? 2 : 1;
    if (count > 1) runs.push(sorted.slice(at, at + count));
    at += count;
  }
  return runs;
}

function joinBlock(f: SsaFunction, block: Block, alignment: Alignment): void {
  const loads = new Map<string, Group>();
  const stores = new Map<string, Group>();
  const before = new Map<Value, Value>();
  const instead = new Map<Value, Value | undefined>();
  const closeLoads = (all: boolean): void => {
    for (const [key, group] of loads) {
      if (!all && group.members[0]!.memory!.readonly) continue;
      loads.delete(key);
      for (const run of runsOf(f, group, alignment)) {
        const vector = f.value('vectorLoad', 'none', [group.base]);
        vector.memory = run[0]!.memory;
        vector.parts = run;
        vector.span = run[0]!.span;
        const first = group.members.find((member) => run.includes(member))!;
        before.set(first, vector);
        for (const part of run) {
          part.op = 'part';
          part.args = [vector];
          part.memory = undefined;
        }
      }
    }
  };
  const closeStores = (): void => {
    for (const group of stores.values()) {
      for (const run of runsOf(f, group, alignment)) {
        const vector = f.value('vectorStore', 'none', [group.base, ...run.map((member) => resolve(member.args[1]!))]);
        vector.memory = run[0]!.memory;
        vector.span = run[0]!.span;
        const last = group.members.filter((member) => run.includes(member)).at(-1)!;
        for (const member of run) instead.set(member, member === last ? vector : undefined);
      }
    }
    stores.clear();
  };
  const enter = (groups: Map<string, Group>, value: Value): void => {
    const base = resolve(value.args[0]!);
    const { form, readonly, cache, offset } = value.memory!;
    const key = `${base.id} ${form} ${readonly} ${cache ?? ''}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { base, members: [value] });
    else if (!group.members.some((member) => member.memory!.offset === offset)) group.members.push(value);
  };
  for (const value of block.values) {
    const access = value.memory;
    if (isPure(value.op)) continue;
    if (value.op === 'load' && access!.cache !== 'volatile') {
      if (access!.space !== 'global') continue;
      if (!access!.readonly) closeStores();
      enter(loads, value);
    } else if (value.op === 'store' && access!.cache !== 'volatile') {
      if (access!.space !== 'global') continue;
      closeLoads(false);
      const base = resolve(value.args[0]!);
      // Other addresses may be the same memory, and so may another form or the same place again.
      const [open] = stores.values();
      if (open !== undefined && (open.base !== base || open.members[0]!.memory!.form !== access!.form || open.members.some((member) => member.memory!.offset === access!.offset))) closeStores();
      enter(stores, value);
    } else {
      // Nothing is read before the check that it is there.
      closeLoads(value.op === 'assert');
      closeStores();
    }
  }
  closeLoads(true);
  closeStores();
  if (before.size === 0 && instead.size === 0) return;
  const values: Value[] = [];
  for (const value of block.values) {
    const vector = before.get(value);
    if (vector !== undefined) {
      vector.block = block;
      values.push(vector);
    }
    if (!instead.has(value)) values.push(value);
    else if (instead.get(value) !== undefined) values.push(instead.get(value)!);
  }
  block.values = values;
}

export function joinAccesses(f: SsaFunction, alignment: Alignment): void {
  for (const block of f.blocks) joinBlock(f, block, alignment);
}
