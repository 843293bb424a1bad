/**
 * Vectorisation: adjacent elements are loaded and stored at once, up to 16 bytes, where the address
 * is known to be a multiple of their size. The launch guarantees the alignment of tensors, arrays
 * of shared memory begin at multiples of 16 bytes, and the operations of an index show whether it
 * is a multiple. More than four narrow elements are accessed as words of 32 bits, of which each is
 * a part. The pass runs last, because the other passes do not handle its operations.
 */
import { resolve } from '../ssa/function.js';
import type { Block, MemoryAccess, SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';

/** The alignment of tensors' addresses in bytes, by the number of the parameter. */
export type Alignment = Readonly<Record<number, number>>;

const MOST = 1024;
const bytesOf: Readonly<Record<MemoryAccess['form'], number>> = {
  s8: 1,
  u8: 1,
  s16: 2,
  u16: 2,
  b16: 2,
  b32: 4,
  b64: 8,
  f32: 4,
  f64: 8,
};

function arrayAlignment(f: SsaFunction, symbol: Value): number {
  for (const array of f.arrays.values()) if (array.symbol === symbol.detail) return array.align;
  return 1;
}

/** The largest power of two that is known to divide the value. */
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
      return parameter.op === 'parameter'
        ? (alignment[f.abi[Number(parameter.detail)]!.param] ?? 1)
        : 1;
    }
    case 'add':
    case 'sub':
      return Math.min(of(0), of(1));
    case 'mul':
    case 'wide':
      return Math.min(MOST, of(0) * of(1));
    case 'extend':
    case 'truncate':
      return of(0);
    case 'symbol':
      return arrayAlignment(f, value);
    case 'shl': {
      const by = resolve(value.args[1]!).constant;
      return typeof by === 'number' ? Math.min(MOST, of(0) * 2 ** Math.min(by, 10)) : 1;
    }
    case 'and':
      return Math.max(of(0), of(1));
    default:
      return 1;
  }
}

/** Accesses of one base, in their order. */
interface Group {
  readonly base: Value;
  readonly members: Value[];
}

/** Loads move to the first of their run, and so before these stores. */
interface LoadGroup extends Group {
  readonly passed: Value[];
}

/** The tensor's parameter that the address is computed from. */
function parameterOf(start: Value, depth = 8): Value | undefined {
  const value = resolve(start);
  if (value.op === 'global') return resolve(value.args[0]!);
  if (value.op !== 'add' || depth === 0) return undefined;
  return parameterOf(value.args[0]!, depth - 1) ?? parameterOf(value.args[1]!, depth - 1);
}

/**
 * Whether two accesses, one of them a store, may overlap. Tensors of a launch do not overlap where
 * one is written.
 */
function mayOverlap(a: Value, b: Value): boolean {
  const [one, other] = [a.memory!, b.memory!];
  if (one.space !== other.space || one.readonly || other.readonly) return false;
  const [base, otherBase] = [resolve(a.args[0]!), resolve(b.args[0]!)];
  if (base === otherBase)
    return (
      one.offset < other.offset + bytesOf[other.form] &&
      other.offset < one.offset + bytesOf[one.form]
    );
  const [tensor, otherTensor] = [parameterOf(base), parameterOf(otherBase)];
  return tensor === undefined || otherTensor === undefined || tensor === otherTensor;
}

/** Runs of adjacent elements that one instruction accesses, each at a multiple of its size. */
function runsOf(f: SsaFunction, group: Group, alignment: Alignment): Value[][] {
  if (group.members.length < 2) return [];
  const sorted = [...group.members].sort((a, b) => a.memory!.offset - b.memory!.offset);
  const bytes = bytesOf[sorted[0]!.memory!.form];
  const base = dividedBy(f, group.base, alignment);
  const runs: Value[][] = [];
  for (let at = 0; at < sorted.length - 1;) {
    const { offset } = sorted[at]!.memory!;
    const fits = (count: number): boolean =>
      count * bytes <= 16 &&
      at + count <= sorted.length &&
      base % (count * bytes) === 0 &&
      offset % (count * bytes) === 0 &&
      sorted
        .slice(at, at + count)
        .every((member, index) => member.memory!.offset === offset + index * bytes);
    const count = [16, 8, 4, 2].find(fits) ?? 1;
    if (count > 1) runs.push(sorted.slice(at, at + count));
    at += count;
  }
  return runs;
}

/**
 * Whether a run has more than four elements, the limit of a vector instruction, and is accessed as
 * words.
 */
const inWords = (run: readonly Value[]): boolean => run.length > 4;

/**
 * Selectors of prmt, by the place of an element in its word: a byte or two, with zeros above, or
 * with the sign; 8 repeats the sign bit eight times.
 */
const FROM_WORD: Partial<Record<MemoryAccess['form'], readonly string[]>> = {
  u8: ['0x4440', '0x4441', '0x4442', '0x4443'],
  s8: ['0x8880', '0x9991', '0xaaa2', '0xbbb3'],
  u16: ['0x4410', '0x4432'],
  s16: ['0x9910', '0xbb32'],
};
/** The lower bytes, or halves, of two values, side by side. */
const LOW_BYTES = '0x0040';
const LOW_HALVES = '0x5410';

/** Makes the load a part of a word. */
function takeFrom(f: SsaFunction, load: Value, word: Value, place: number): void {
  const { form } = load.memory!;
  load.memory = undefined;
  load.op = form === 'b16' ? (place === 0 ? 'lowHalf' : 'highHalf') : 'permute';
  load.args = form === 'b16' ? [word] : [word, f.constant('b32', 0)];
  if (form !== 'b16') load.detail = FROM_WORD[form]![place]!;
}

/**
 * Gives the word of these elements, the first in its lowest bits; new operations are added to
 * `made`.
 */
function wordOf(
  f: SsaFunction,
  form: MemoryAccess['form'],
  elements: readonly Value[],
  made: Value[],
): Value {
  const make = (op: string, args: Value[], detail = ''): Value => {
    const value = f.value(op, 'b32', args, detail);
    made.push(value);
    return value;
  };
  if (form === 'b16') return make('halves', [...elements]);
  if (elements.length === 2) return make('permute', [...elements], LOW_HALVES);
  return make(
    'permute',
    [
      make('permute', elements.slice(0, 2), LOW_BYTES),
      make('permute', elements.slice(2), LOW_BYTES),
    ],
    LOW_HALVES,
  );
}

/** Groups elements by word. */
function byWord(run: readonly Value[], bytes: number): Value[][] {
  const each = 4 / bytes;
  return Array.from({ length: run.length / each }, (_, at) =>
    run.slice(at * each, (at + 1) * each),
  );
}

function joinBlock(f: SsaFunction, block: Block, alignment: Alignment): void {
  const loads = new Map<string, LoadGroup>();
  const stores = new Map<string, Group>();
  const before = new Map<Value, Value[]>();
  const instead = new Map<Value, Value[]>();
  const closeLoads = (which: (group: LoadGroup) => boolean): void => {
    for (const [key, group] of loads) {
      if (!which(group)) continue;
      loads.delete(key);
      for (const run of runsOf(f, group, alignment)) {
        const access = run[0]!.memory!;
        const vector = f.value('vectorLoad', 'none', [group.base]);
        vector.memory = access;
        vector.span = run[0]!.span;
        const first = group.members.find((member) => run.includes(member))!;
        before.set(first, [vector]);
        if (inWords(run)) {
          vector.memory = { ...access, form: 'b32' };
          vector.parts = byWord(run, bytesOf[access.form]).map((elements) => {
            const word = f.value('part', 'b32', [vector]);
            elements.forEach((element, place) => {
              takeFrom(f, element, word, place);
            });
            return word;
          });
          before.get(first)!.push(...vector.parts);
          continue;
        }
        vector.parts = run;
        for (const part of run) {
          part.op = 'part';
          part.args = [vector];
          part.memory = undefined;
        }
      }
    }
  };
  /**
   * Closes groups of stores. Stores move to the last of their run, but not past an access of
   * `before`, if that is given.
   */
  const closeStores = (before?: Value): void => {
    for (const [key, group] of stores) {
      if (before !== undefined && !group.members.some((member) => mayOverlap(member, before)))
        continue;
      stores.delete(key);
      for (const run of runsOf(f, group, alignment)) {
        const access = run[0]!.memory!;
        const made: Value[] = [];
        const elements = run.map((member) => resolve(member.args[1]!));
        const written = inWords(run)
          ? byWord(elements, bytesOf[access.form]).map((part) => wordOf(f, access.form, part, made))
          : elements;
        const vector = f.value('vectorStore', 'none', [group.base, ...written]);
        vector.memory = inWords(run) ? { ...access, form: 'b32' } : access;
        vector.span = run[0]!.span;
        const last = group.members.filter((member) => run.includes(member)).at(-1)!;
        for (const member of run) instead.set(member, member === last ? [...made, vector] : []);
      }
    }
  };
  const keyOf = ({ space, form, readonly, cache }: MemoryAccess, base: Value): string =>
    `${space} ${base.id} ${form} ${readonly} ${cache ?? ''}`;
  const enterLoad = (value: Value): void => {
    const base = resolve(value.args[0]!);
    const key = keyOf(value.memory!, base);
    if (loads.get(key)?.passed.some((store) => mayOverlap(store, value)) === true)
      closeLoads((group) => group === loads.get(key));
    const group = loads.get(key);
    // Stores that are still open may move past this place.
    if (group === undefined)
      loads.set(key, {
        base,
        members: [value],
        passed: [...stores.values()].flatMap(({ members }) => members),
      });
    else if (!group.members.some((member) => member.memory!.offset === value.memory!.offset))
      group.members.push(value);
  };
  const enterStore = (value: Value): void => {
    const base = resolve(value.args[0]!);
    const key = keyOf(value.memory!, base);
    for (const group of loads.values()) group.passed.push(value);
    const group = stores.get(key);
    if (group === undefined) stores.set(key, { base, members: [value] });
    else group.members.push(value);
  };
  for (const value of block.values) {
    const access = value.memory;
    if (isPure(value.op)) continue;
    if ((value.op === 'load' || value.op === 'store') && access!.cache !== 'volatile') {
      if (access!.space === 'local') continue;
      closeStores(value);
      if (value.op === 'load') enterLoad(value);
      else enterStore(value);
    } else {
      // A load does not move before the check of its address.
      closeLoads(({ members }) => value.op === 'assert' || !members[0]!.memory!.readonly);
      closeStores();
    }
  }
  closeLoads(() => true);
  closeStores();
  if (before.size === 0 && instead.size === 0) return;
  const values: Value[] = [];
  const put = (...added: readonly Value[]): void => {
    for (const value of added) {
      value.block = block;
      values.push(value);
    }
  };
  for (const value of block.values)
    put(...(before.get(value) ?? []), ...(instead.get(value) ?? [value]));
  block.values = values;
}

export function joinAccesses(f: SsaFunction, alignment: Alignment): void {
  for (const block of f.blocks) joinBlock(f, block, alignment);
}
