/**
 * Cheap values that several branches compute move to the block above them all: for example the
 * addresses of guarded accesses in a row, which differ in a constant alone.
 */
import { resolve } from '../ssa/function.js';
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { pureOperations } from '../ssa/operations.js';
import { orderOf } from './order.js';
import { keyOf } from './values.js';

export function liftCommon(f: SsaFunction): void {
  const order = orderOf(f);
  const first = new Map<string, Value>();
  const lifted = new Map<Block, Value[]>();
  const nearest = (a: Block, b: Block): Block => {
    let [x, y] = [a, b];
    while (x !== y) {
      while (order.position.get(x)! > order.position.get(y)!) x = order.dominator.get(x)!;
      while (order.position.get(y)! > order.position.get(x)!) y = order.dominator.get(y)!;
    }
    return x;
  };
  for (const block of order.blocks) {
    for (const value of block.values) {
      for (let at = 0; at < value.args.length; at++) value.args[at] = resolve(value.args[at]!);
      // A select may have been a branch that avoids a computation; all others here are one
      // instruction.
      if (value.op === 'compare' || value.op === 'select' || pureOperations[value.op]?.cost !== 1)
        continue;
      const key = keyOf(value);
      const known = first.get(key);
      if (known === undefined) {
        first.set(key, value);
        continue;
      }
      const above = nearest(known.block!, block);
      if (above.depth > block.depth || above.depth > known.block!.depth) {
        first.set(key, value);
        continue;
      }
      value.replacement = known;
      if (above === known.block) continue;
      known.block = above;
      const list = lifted.get(above);
      if (list) list.push(known);
      else lifted.set(above, [known]);
    }
  }
  const moved = new Set([...lifted.values()].flat());
  if (moved.size === 0) {
    for (const block of f.blocks)
      block.values = block.values.filter((value) => value.replacement === undefined);
    return;
  }
  const original = new Map(f.blocks.map((block) => [block, block.values]));
  for (const block of f.blocks) {
    const values = original
      .get(block)!
      .filter(
        (value) => value.replacement === undefined && (!moved.has(value) || value.block === block),
      );
    // A value may be lifted again from a block that it was lifted to: it is in the last.
    const here = (lifted.get(block) ?? []).filter(
      (value) => value.block === block && !values.includes(value),
    );
    block.values = [...values, ...inOrderOfUse([...new Set(here)])];
  }
}

/** Orders operands before their uses. */
function inOrderOfUse(values: readonly Value[]): Value[] {
  const open = new Set(values);
  const ordered: Value[] = [];
  const put = (value: Value): void => {
    if (!open.delete(value)) return;
    for (const arg of value.args) put(resolve(arg));
    ordered.push(value);
  };
  for (const value of values) put(value);
  return ordered;
}
