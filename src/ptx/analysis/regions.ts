// The structure of a function's control flow: natural loops as nested regions, with the contents of
// a region in an order in which branches only go forward. What does not fit (a jump into the middle
// of a loop, a resumed thread) enters through a region's dispatch.

import { successors } from './blocks.js';
import type { Block } from './blocks.js';

export interface Region {
  /** The loop's header; -1 for the whole function. */
  header: number;
  parent: Region | undefined;
  /** Blocks of this region and of the regions within it. */
  members: ReadonlySet<number>;
  items: (number | Region)[];
  /** Set if a jump goes through this region's dispatch, which is then a loop. */
  dispatchLoop: boolean;
}

export interface Shape {
  root: Region;
  /** Reachable blocks in layout order. */
  order: number[];
  /**
   * Blocks at which a thread may be resumed, or which are targets of jumps through a dispatch, in
   * the order of entry numbers.
   */
  loopHeaders: Set<number>;
  /** Edges that go through a dispatch, as from * blocks + to. */
  irregular: Set<number>;
  irregularTargets: Set<number>;
  regionOf(block: number): Region;
  hasLoops: boolean;
}

export const firstBlock = (item: number | Region): number =>
  typeof item === 'number' ? item : item.header;

export function analyseShape(blocks: readonly Block[], first = 0): Shape {
  const graph = new FlowGraph(blocks, first);
  const { order, position } = graph;
  const root: Region = {
    header: -1,
    parent: undefined,
    members: new Set(order),
    items: [],
    dispatchLoop: false,
  };
  const { loops, irregular, irregularTargets, hasLoops } = naturalLoops(graph);
  const regionOf = nestLoops(loops, root, order);
  const layout = layOut(root, position);
  markIrregular(graph.next, layout, regionOf, irregular, irregularTargets);
  return {
    root,
    order: layout,
    loopHeaders: new Set(loops.keys()),
    irregular,
    irregularTargets,
    regionOf,
    hasLoops,
  };
}

/** The reachable blocks in reverse postorder, with their dominators. */
class FlowGraph {
  readonly next: readonly (readonly number[])[];
  readonly order: readonly number[];
  /** The position of each block in the order. */
  readonly position: Int32Array;
  readonly predecessors: readonly (readonly number[])[];
  /** For each position, that of the immediate dominator. */
  private readonly idom: Int32Array;

  constructor(blocks: readonly Block[], first: number) {
    this.next = blocks.map(successors);
    this.order = this.reversePostorder(first);
    const position = new Int32Array(blocks.length).fill(-1);
    this.order.forEach((block, index) => {
      position[block] = index;
    });
    this.position = position;
    const predecessors: number[][] = blocks.map(() => []);
    for (const block of this.order)
      for (const to of this.next[block]!) predecessors[to]!.push(block);
    this.predecessors = predecessors;
    this.idom = this.dominators();
  }

  dominates(a: number, b: number): boolean {
    const target = this.position[a]!;
    let at = this.position[b]!;
    while (at > target) at = this.idom[at]!;
    return at === target;
  }

  /** It is not recursive: kernels can be thousands of blocks deep. */
  private reversePostorder(first: number): number[] {
    const { next } = this;
    const postorder: number[] = [];
    const visited = new Uint8Array(next.length);
    const stack: [number, number][] = [[first, 0]];
    visited[first] = 1;
    while (stack.length) {
      const frame = stack.at(-1)!;
      const to = next[frame[0]]![frame[1]++];
      if (to === undefined) {
        postorder.push(frame[0]);
        stack.pop();
      } else if (!visited[to]) {
        visited[to] = 1;
        stack.push([to, 0]);
      }
    }
    return postorder.reverse();
  }

  /** The algorithm of Cooper, Harvey and Kennedy. */
  private dominators(): Int32Array {
    const { order, position, predecessors } = this;
    const idom = new Int32Array(order.length).fill(-1);
    idom[0] = 0;
    for (let changed = true; changed;) {
      changed = false;
      for (let at = 1; at < order.length; at++) {
        let best = -1;
        for (const from of predecessors[order[at]!]!) {
          let p = position[from]!;
          if (idom[p] === -1) continue;
          if (best === -1) {
            best = p;
            continue;
          }
          while (p !== best) {
            while (p > best) p = idom[p]!;
            while (best > p) best = idom[best]!;
          }
        }
        if (idom[at] !== best) {
          idom[at] = best;
          changed = true;
        }
      }
    }
    return idom;
  }
}

/** Loops that are entered only at their headers, and other edges that go backwards. */
interface Loops {
  /** For each header, the blocks of its loop. */
  readonly loops: ReadonlyMap<number, ReadonlySet<number>>;
  readonly irregular: Set<number>;
  readonly irregularTargets: Set<number>;
  readonly hasLoops: boolean;
}

function naturalLoops(graph: FlowGraph): Loops {
  const { order, next, position, predecessors } = graph;
  const loops = new Map<number, Set<number>>();
  const irregularTargets = new Set<number>();
  const irregular = new Set<number>();
  let hasLoops = false;
  for (const from of order) {
    for (const to of next[from]!) {
      if (position[to]! > position[from]!) continue;
      hasLoops = true;
      if (!graph.dominates(to, from)) {
        irregularTargets.add(to);
        irregular.add(from * next.length + to);
        continue;
      }
      const members = loops.get(to) ?? new Set([to]);
      loops.set(to, members);
      const queue = [from];
      for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
        if (members.has(at)) continue;
        members.add(at);
        queue.push(...predecessors[at]!);
      }
    }
  }
  return { loops, irregular, irregularTargets, hasLoops };
}

/** Makes a region of each loop, nests them, and returns the innermost region of each block. */
function nestLoops(
  loops: Loops['loops'],
  root: Region,
  order: readonly number[],
): Shape['regionOf'] {
  const regions = [...loops].map(([header, members]): Region => ({
    header,
    parent: undefined,
    members,
    items: [],
    dispatchLoop: false,
  }));
  regions.sort((a, b) => a.members.size - b.members.size);
  const innermost = new Map<number, Region>();
  regions.forEach((region, index) => {
    region.parent =
      regions.slice(index + 1).find((outer) => outer.members.has(region.header)) ?? root;
    for (const block of region.members) if (!innermost.has(block)) innermost.set(block, region);
  });
  const regionOf = (block: number): Region => innermost.get(block) ?? root;
  for (const region of regions) region.parent!.items.push(region);
  for (const block of order) regionOf(block).items.push(block);
  return regionOf;
}

/** Sorts the contents of each region, and returns all blocks in that order. */
function layOut(root: Region, position: Int32Array): number[] {
  const layout: number[] = [];
  const visit = (region: Region): void => {
    region.items.sort((a, b) => position[firstBlock(a)]! - position[firstBlock(b)]!);
    for (const item of region.items) {
      if (typeof item === 'number') layout.push(item);
      else visit(item);
    }
  };
  visit(root);
  return layout;
}

/**
 * Marks irreducible code: an edge that enters a loop elsewhere than at its header, or that goes
 * backwards in the layout to a block that is not the header of a loop around it.
 */
function markIrregular(
  next: readonly (readonly number[])[],
  layout: readonly number[],
  regionOf: Shape['regionOf'],
  irregular: Set<number>,
  irregularTargets: Set<number>,
): void {
  const count = next.length;
  const place = new Int32Array(count).fill(-1);
  layout.forEach((block, index) => {
    place[block] = index;
  });
  for (const from of layout) {
    for (const to of next[from]!) {
      const inside = regionOf(to);
      const region = enclosing(inside, from);
      const entersMiddle = inside !== region && !(firstBlock(childToward(region, inside)) === to);
      const backwards = place[to]! <= place[from]!;
      const backEdge = backwards && inside.header === to && inside.members.has(from);
      if (backEdge || (!backwards && !entersMiddle)) continue;
      irregular.add(from * count + to);
      irregularTargets.add(to);
      region.dispatchLoop = true;
    }
  }
  for (const edge of irregular) {
    const from = Math.floor(edge / count);
    const to = edge % count;
    enclosing(regionOf(to), from).dispatchLoop = true;
  }
}

/** The innermost region around `region` that also contains `block`. */
function enclosing(region: Region, block: number): Region {
  let at = region;
  while (!at.members.has(block)) at = at.parent!;
  return at;
}

/** The item of `outer` that contains `inner`. */
function childToward(outer: Region, inner: Region): Region {
  let at = inner;
  while (at.parent !== outer) at = at.parent!;
  return at;
}

/** The loops of a region, outer ones before inner ones. */
export function loopsIn(region: Region): Region[] {
  const { header, items } = region;
  return [
    ...(header >= 0 ? [region] : []),
    ...items.flatMap((item) => (typeof item === 'number' ? [] : loopsIn(item))),
  ];
}
