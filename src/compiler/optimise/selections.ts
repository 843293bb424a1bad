/** If-conversion: small branches that only choose between values become selections. */
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { pureOperations } from '../ssa/operations.js';
import { dropPhis } from './control-flow.js';

/** The limit of instructions that are computed speculatively. */
const MOST = 6;
const MOST_CHOICES = 3;

function costOf(block: Block): number {
  let total = 0;
  for (const value of block.values) {
    const facts = pureOperations[value.op];
    if (facts === undefined) return Infinity;
    total += facts.cost;
  }
  return total;
}

/** Whether a block only computes, and then jumps to one block. */
function isSide(side: Block, from: Block): boolean {
  return (
    side.before.length === 1 &&
    side.before[0] === from &&
    side.phis.length === 0 &&
    side.end?.kind === 'jump' &&
    costOf(side) <= MOST
  );
}

function convert(f: SsaFunction, block: Block): boolean {
  const { end } = block;
  if (end?.kind !== 'branch' || end.then === end.otherwise) return false;
  const { then, otherwise, test } = end;
  const [thenSide, otherSide] = [isSide(then, block), isSide(otherwise, block)];
  const after = (side: Block): Block => (side.end as { to: Block }).to;
  let join: Block;
  const sides: Block[] = [];
  if (thenSide && otherSide && after(then) === after(otherwise)) {
    join = after(then);
    sides.push(then, otherwise);
  } else if (thenSide && after(then) === otherwise) {
    join = otherwise;
    sides.push(then);
  } else if (otherSide && after(otherwise) === then) {
    join = then;
    sides.push(otherwise);
  } else return false;
  if (join === block) return false;
  const total = sides.reduce((sum, side) => sum + costOf(side), 0);
  const fromThen = join.before.indexOf(sides.includes(then) ? then : block);
  const fromOther = join.before.indexOf(sides.includes(otherwise) ? otherwise : block);
  const differing = join.phis.filter((phi) => phi.args[fromThen] !== phi.args[fromOther]);
  if (total > MOST || differing.length > MOST_CHOICES) return false;
  for (const side of sides) {
    for (const value of side.values) value.block = block;
    block.values.push(...side.values);
  }
  for (const phi of join.phis) {
    const [a, b] = [phi.args[fromThen]!, phi.args[fromOther]!];
    let chosen: Value = a;
    if (a !== b) {
      chosen = f.value('select', phi.type, [test, a, b]);
      chosen.block = block;
      chosen.span = phi.span;
      block.values.push(chosen);
    }
    phi.args[fromThen] = chosen;
    phi.args.splice(fromOther, 1);
  }
  join.before[fromThen] = block;
  join.before.splice(fromOther, 1);
  block.end = { kind: 'jump', to: join };
  f.blocks = f.blocks.filter((one) => !sides.includes(one));
  return true;
}

export function selectBranches(f: SsaFunction): void {
  let changed = false;
  // The order is from the end: inner branches before those around them.
  for (const block of [...f.blocks].reverse()) while (convert(f, block)) changed = true;
  if (changed) dropPhis(f);
}
