/**
 * What is read behind the last meeting of threads, and first needed behind quotients, is read
 * behind these. They hold dividends that may have to be divided one by one, for which a call takes
 * a dozen registers, and whatever was read before is held through it: layer norm of eight floats a
 * thread takes 46 registers with weights read before the quotients and 32 with weights read behind
 * them, which is four blocks of 512 threads on a multiprocessor instead of two. What is read before
 * threads meet stays: they wait for it together. Goes behind what makes quotients.
 */
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';

const meets = new Set(['barrier', 'barrierReduce', 'shuffle', 'vote']);

/** A read of what nobody writes, which may be done at any time. */
const movable = ({ op, memory }: Value): boolean =>
  (op === 'load' || op === 'vectorLoad') && memory!.readonly && memory!.cache === undefined;

/** It takes a register's place with one of its own: it goes where what it is made of goes. */
const follows = ({ op, args }: Value): boolean =>
  isPure(op) && args.filter(({ constant }) => constant === undefined).length === 1;

/** How often each value is used, in the whole function. */
function countUses(f: SsaFunction): Uint32Array {
  const uses = new Uint32Array(f.valueCount);
  const use = (value: Value): void => {
    uses[value.id]!++;
  };
  for (const { phis, values, end } of f.blocks) {
    for (const each of phis) each.args.forEach(use);
    for (const each of values) each.args.forEach(use);
    if (end?.kind === 'branch') use(end.test);
  }
  return uses;
}

/** Values of the block that go elsewhere, each with the number of the value that it goes behind. */
function placesIn({ values }: Block, uses: Uint32Array): Map<Value, number> {
  const places = new Map<Value, number>();
  /**
   * Where a value is first needed, of what goes elsewhere behind its new place, and how often that
   * needs it.
   */
  const needed = new Map<Value, number>();
  const neededElsewhere = new Map<Value, number>();
  const first = values.findIndex(({ op }) => meets.has(op));
  /** Ends of quotients up to the next meeting, the last one first. */
  let ends: number[] = [];
  let quotients: Value | undefined;
  for (let at = values.length - 1; at > first; at--) {
    const value = values[at]!;
    const from = needed.get(value) ?? Infinity;
    if (meets.has(value.op)) ends = [];
    const [whole] = value.args;
    if (value.op === 'part' && whole!.op === 'quotients' && whole !== quotients) {
      quotients = whole;
      ends.push(at);
    }
    let place: number | undefined;
    if (movable(value)) place = ends.find((end) => end < from);
    // An address that nothing else needs.
    else if (isPure(value.op) && from < Infinity && neededElsewhere.get(value) === uses[value.id])
      place = Math.floor(from);
    if (place !== undefined) places.set(value, place);
    const need = place !== undefined ? place + 0.5 : follows(value) ? from : at;
    for (const arg of value.args) {
      needed.set(arg, Math.min(needed.get(arg) ?? Infinity, need));
      if (place !== undefined) neededElsewhere.set(arg, (neededElsewhere.get(arg) ?? 0) + 1);
    }
  }
  values.forEach((value, at) => {
    const place = places.has(value)
      ? undefined
      : value.args.map((arg) => places.get(arg) ?? -1).reduce((a, b) => Math.max(a, b), -1);
    if (place !== undefined && place > at) places.set(value, place);
  });
  return places;
}

export function readBehindQuotients(f: SsaFunction): void {
  const uses = countUses(f);
  for (const block of f.blocks) {
    if (
      !block.values.some(({ op }) => op === 'quotients') ||
      !block.values.some(({ op }) => meets.has(op))
    )
      continue;
    const places = placesIn(block, uses);
    if (places.size === 0) continue;
    const behind = new Map<number, Value[]>();
    for (const value of block.values) {
      const place = places.get(value);
      if (place !== undefined) behind.set(place, [...(behind.get(place) ?? []), value]);
    }
    block.values = block.values.flatMap((value, at) => [
      ...(places.has(value) ? [] : [value]),
      ...(behind.get(at) ?? []),
    ]);
  }
}
