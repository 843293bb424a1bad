/**
 * Phis as copies at the ends of the predecessors. All copies of one edge are parallel, so they are
 * ordered such that none overwrites a value that another still reads. A critical edge gets a block
 * of its own where its copies would be visible on another edge.
 */
import type { Block, SsaFunction, Value } from '../ssa/function.js';
import { successors } from '../ssa/function.js';
import type { Roots } from './shared-registers.js';

export interface Copy {
  readonly to: Value;
  readonly from: Value;
}

/** Blocks at whose beginning each phi is live. */
function livePhis(f: SsaFunction): Map<Value, Set<Block>> {
  const live = new Map<Value, Set<Block>>();
  const mark = (phi: Value, block: Block): void => {
    let set = live.get(phi);
    if (set === undefined) live.set(phi, (set = new Set()));
    const open = [block];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (at === phi.block || set.has(at)) continue;
      set.add(at);
      open.push(...at.before);
    }
  };
  for (const block of f.blocks) {
    for (const value of block.values)
      for (const arg of value.args) if (arg.op === 'phi') mark(arg, block);
    if (block.end?.kind === 'branch' && block.end.test.op === 'phi') mark(block.end.test, block);
    for (const phi of block.phis)
      phi.args.forEach((arg, at) => {
        if (arg.op === 'phi') mark(arg, block.before[at]!);
      });
  }
  return live;
}

function copiesOf(from: Block, to: Block, roots: Roots): Copy[] {
  const at = to.before.indexOf(from);
  const root = (value: Value): Value => roots.get(value) ?? value;
  return to.phis
    .map((phi) => ({ to: root(phi), from: root(phi.args[at]!) }))
    .filter((copy) => copy.from !== copy.to && copy.from.op !== 'undefined');
}

/**
 * Gives the copies at each block's end, before its jump. It makes blocks for edges that need one.
 */
export function placeCopies(f: SsaFunction, roots: Roots): ReadonlyMap<Block, readonly Copy[]> {
  const live = livePhis(f);
  const copies = new Map<Block, readonly Copy[]>();
  const position = new Map(f.blocks.map((block, index) => [block, index]));
  for (const block of [...f.blocks]) {
    const ways = successors(block);
    if (ways.length === 1) {
      const all = copiesOf(block, ways[0]!, roots);
      if (all.length > 0) copies.set(block, all);
      continue;
    }
    const wanting = ways.filter((to) => copiesOf(block, to, roots).length > 0);
    // The back edge comes first: a jump that is saved there is saved in each iteration.
    wanting.sort((a, b) => position.get(a)! - position.get(b)!);
    const { end } = block;
    if (end?.kind !== 'branch') continue;
    let inline = false;
    for (const to of wanting) {
      const all = copiesOf(block, to, roots);
      const other = to === end.then ? end.otherwise : end.then;
      const read = new Set(other.phis.map((phi) => phi.args[other.before.indexOf(block)]!));
      const seen = all.some(
        (copy) =>
          copy.to === end.test ||
          read.has(copy.to) ||
          live.get(copy.to)?.has(other) === true ||
          // Another value in its register may be live on the other edge.
          roots.has(copy.to),
      );
      if (!inline && !seen) {
        inline = true;
        copies.set(block, all);
        continue;
      }
      const between = f.block(block.depth);
      between.before = [block];
      between.end = { kind: 'jump', to };
      to.before[to.before.indexOf(block)] = between;
      const now = block.end as typeof end;
      block.end = {
        ...now,
        then: now.then === to ? between : now.then,
        otherwise: now.otherwise === to ? between : now.otherwise,
      };
      f.blocks.splice(f.blocks.indexOf(block) + 1, 0, between);
      copies.set(between, all);
    }
  }
  return copies;
}

/** The copies in sequence; `spare` gives a value that holds another for a while. */
export function inOrder(copies: readonly Copy[], spare: (like: Value) => Value): Copy[] {
  const ordered: Copy[] = [];
  let open = [...copies];
  while (open.length > 0) {
    const free = open.filter(
      (copy) => !open.some((other) => other !== copy && other.from === copy.to),
    );
    if (free.length > 0) {
      ordered.push(...free);
      open = open.filter((copy) => !free.includes(copy));
      continue;
    }
    // Only cycles are left: one value is saved.
    const first = open[0]!;
    const saved = spare(first.to);
    ordered.push({ to: saved, from: first.to });
    open = open.map((copy) => (copy.from === first.to ? { to: copy.to, from: saved } : copy));
  }
  return ordered;
}
