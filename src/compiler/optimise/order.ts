/** Orders of blocks: reverse postorder, dominators, loops. */
import { successors } from '../ssa/function.js';
import type { Block, SsaFunction } from '../ssa/function.js';

export interface Order {
  /** Reachable blocks, each after its dominators. */
  readonly blocks: readonly Block[];
  /** The immediate dominator; the entry's is itself. */
  readonly dominator: ReadonlyMap<Block, Block>;
  readonly position: ReadonlyMap<Block, number>;
}

/** Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001). */
export function orderOf(f: SsaFunction): Order {
  const post: Block[] = [];
  const seen = new Set<Block>([f.entry]);
  // The stack is explicit, because kernels with unrolled loops have long chains of blocks.
  const stack: [Block, number][] = [[f.entry, 0]];
  while (stack.length > 0) {
    const top = stack[stack.length - 1]!;
    const next = successors(top[0])[top[1]++];
    if (next === undefined) {
      post.push(top[0]);
      stack.pop();
    } else if (!seen.has(next)) {
      seen.add(next);
      stack.push([next, 0]);
    }
  }
  const blocks = post.reverse();
  const position = new Map(blocks.map((block, index) => [block, index]));
  const dominator = new Map<Block, Block>([[f.entry, f.entry]]);
  const meet = (a: Block, b: Block): Block => {
    let [x, y] = [a, b];
    while (x !== y) {
      while (position.get(x)! > position.get(y)!) x = dominator.get(x)!;
      while (position.get(y)! > position.get(x)!) y = dominator.get(y)!;
    }
    return x;
  };
  for (let changed = true; changed;) {
    changed = false;
    for (const block of blocks) {
      if (block === f.entry) continue;
      let nearest: Block | undefined;
      for (const from of block.before) {
        if (!dominator.has(from)) continue;
        nearest = nearest === undefined ? from : meet(from, nearest);
      }
      if (nearest !== undefined && dominator.get(block) !== nearest) {
        dominator.set(block, nearest);
        changed = true;
      }
    }
  }
  return { blocks, dominator, position };
}

export function dominates(order: Order, above: Block, below: Block): boolean {
  const at = order.position.get(above)!;
  let block = below;
  while (order.position.get(block)! > at) block = order.dominator.get(block)!;
  return block === above;
}

export interface NaturalLoop {
  readonly head: Block;
  readonly ends: readonly Block[];
  readonly blocks: ReadonlySet<Block>;
}

/** Natural loops, inner ones before those around them. */
export function loopsOf(order: Order): readonly NaturalLoop[] {
  const loops: NaturalLoop[] = [];
  for (const head of order.blocks) {
    const ends = head.before.filter(
      (from) => order.position.has(from) && dominates(order, head, from),
    );
    if (ends.length === 0) continue;
    const blocks = new Set<Block>([head]);
    const open = [...ends];
    for (let block = open.pop(); block !== undefined; block = open.pop()) {
      if (blocks.has(block)) continue;
      blocks.add(block);
      open.push(...block.before.filter((from) => order.position.has(from)));
    }
    loops.push({ head, ends, blocks });
  }
  return loops.sort((a, b) => a.blocks.size - b.blocks.size);
}
