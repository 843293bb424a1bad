/**
 * Loads after the last convergent operation that are first needed after quotients move after
 * these. Quotients hold dividends that may have to be divided one by one, for which a call takes a
 * dozen registers, and every value that was loaded before is held through it: layer norm of eight
 * floats a thread takes 46 registers with weights loaded before the quotients and 32 with weights
 * loaded after them, which is four blocks of 512 threads on a multiprocessor instead of two. Loads
 * before a convergent operation stay: their latencies overlap. The pass runs after the one that
 * makes quotients.
 */
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';

const convergent = new Set(['barrier', 'barrierReduce', 'shuffle', 'vote']);

/** A load of memory that no thread writes, which may happen at any time. */
const movable = ({ op, memory }: Value): boolean =>
  (op === 'load' || op === 'vectorLoad') && memory!.readonly && memory!.cache === undefined;

/** Whether a value takes the register of one operand: it moves with that operand. */
const follows = ({ op, args }: Value): boolean =>
  isPure(op) && args.filter(({ constant }) => constant === undefined).length === 1;

/** The number of uses of each value, in the whole function. */
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

/** Values of the block that move, each with the number of the value that it moves after. */
function placesIn({ values }: Block, uses: Uint32Array): Map<Value, number> {
  const places = new Map<Value, number>();
  /** The first use of each value, after the moves, and the number of its uses that move. */
  const needed = new Map<Value, number>();
  const neededElsewhere = new Map<Value, number>();
  const first = values.findIndex(({ op }) => convergent.has(op));
  /** The ends of quotients up to the next convergent operation, the last one first. */
  let ends: number[] = [];
  let quotients: Value | undefined;
  for (let at = values.length - 1; at > first; at--) {
    const value = values[at]!;
    const from = needed.get(value) ?? Infinity;
    if (convergent.has(value.op)) ends = [];
    const [whole] = value.args;
    if (value.op === 'part' && whole!.op === 'quotients' && whole !== quotients) {
      quotients = whole;
      ends.push(at);
    }
    let place: number | undefined;
    if (movable(value)) place = ends.find((end) => end < from);
    // An address that only moved loads use.
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

export function loadAfterQuotients(f: SsaFunction): void {
  const uses = countUses(f);
  for (const block of f.blocks) {
    if (
      !block.values.some(({ op }) => op === 'quotients') ||
      !block.values.some(({ op }) => convergent.has(op))
    )
      continue;
    const places = placesIn(block, uses);
    if (places.size === 0) continue;
    const after = new Map<number, Value[]>();
    for (const value of block.values) {
      const place = places.get(value);
      if (place !== undefined) after.set(place, [...(after.get(place) ?? []), value]);
    }
    block.values = block.values.flatMap((value, at) => [
      ...(places.has(value) ? [] : [value]),
      ...(after.get(at) ?? []),
    ]);
  }
}
