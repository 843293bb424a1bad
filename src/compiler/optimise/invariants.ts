/** Loop-invariant code motion: values that are the same in each iteration move before the loop. */
import { resolve } from '../ssa/function.js';
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { isPure } from '../ssa/operations.js';
import { dominates, loopsOf, orderOf } from './order.js';
import type { NaturalLoop } from './order.js';

/** The preheader of the loop; it is made where there is none. */
function blockBefore(f: SsaFunction, loop: NaturalLoop): Block | undefined {
  const { head } = loop;
  const outside = head.before.filter((from) => !loop.blocks.has(from));
  if (outside.length !== 1) return undefined;
  const from = outside[0]!;
  if (from.end?.kind === 'jump') return from;
  const before = f.block(from.depth);
  f.blocks.splice(f.blocks.indexOf(head), 0, before);
  before.before = [from];
  before.end = { kind: 'jump', to: head };
  const { end } = from;
  if (end?.kind === 'branch')
    from.end = {
      ...end,
      then: end.then === head ? before : end.then,
      otherwise: end.otherwise === head ? before : end.otherwise,
    };
  head.before[head.before.indexOf(from)] = before;
  return before;
}

export function hoistInvariants(f: SsaFunction): void {
  let order = orderOf(f);
  const loops = loopsOf(order);
  for (const loop of loops) {
    const leaving = [...loop.blocks].filter(
      (block) =>
        block.end?.kind === 'return' ||
        (block.end?.kind === 'branch' &&
          (!loop.blocks.has(block.end.then) || !loop.blocks.has(block.end.otherwise))),
    );
    const isOutside = (arg: Value): boolean => {
      const value = resolve(arg);
      return value.block === undefined || !loop.blocks.has(value.block);
    };
    // A load does not move before the check of its address.
    const checked = [...loop.blocks].some((block) =>
      block.values.some((value) => value.op === 'assert'),
    );
    let before: Block | undefined;
    for (const block of order.blocks) {
      if (!loop.blocks.has(block)) continue;
      // A block that every iteration reaches before the loop can be left: its loads happen in any
      // case.
      const always =
        loop.ends.every((end) => dominates(order, block, end)) &&
        leaving.every((out) => dominates(order, block, out));
      const kept: Value[] = [];
      for (const value of block.values) {
        const may =
          isPure(value.op) || (always && !checked && value.op === 'load' && value.memory!.readonly);
        if (!may || !value.args.every(isOutside)) {
          kept.push(value);
          continue;
        }
        before ??= blockBefore(f, loop);
        if (before === undefined) {
          kept.push(value);
          continue;
        }
        value.block = before;
        before.values.push(value);
      }
      block.values = kept;
    }
    // Inner loops come first: the loop around one has to contain the new block.
    if (before !== undefined && !order.position.has(before)) {
      for (const other of loops)
        if (other !== loop && other.blocks.has(loop.head)) (other.blocks as Set<Block>).add(before);
      order = orderOf(f);
    }
  }
}
