/**
 * A set of small integers that finds the nearest member at or below a number in five steps: a tree
 * of bitmaps, with 32 children per word. The device memory stores the beginning of every live
 * allocation in it, so that an address inside an allocation finds it; a sorted array would move the
 * rest for every allocation.
 */
export class GranuleIndex {
  private readonly levels: Uint32Array[] = [];

  /** Members are in [0, capacity). */
  constructor(capacity: number) {
    let bits = Math.max(capacity, 1);
    do {
      bits = Math.ceil(bits / 32);
      this.levels.push(new Uint32Array(bits));
    } while (bits > 1);
  }

  add(member: number): void {
    let at = member;
    for (const level of this.levels) {
      level[at >>> 5]! |= 1 << (at & 31);
      at >>>= 5;
    }
  }

  delete(member: number): void {
    let at = member;
    for (const level of this.levels) {
      const word = (level[at >>> 5]! &= ~(1 << (at & 31)));
      if (word !== 0) return;
      at >>>= 5;
    }
  }

  /** Returns the greatest member that is not greater than `limit`, or -1. */
  atOrBelow(limit: number): number {
    let at = limit;
    for (let height = 0; height < this.levels.length; height++) {
      const word = at >>> 5;
      const below = this.levels[height]![word]! & ((2 << (at & 31)) - 1);
      if (below !== 0) {
        at = word * 32 + 31 - Math.clz32(below);
        while (height-- > 0) at = at * 32 + 31 - Math.clz32(this.levels[height]![at]!);
        return at;
      }
      if (word === 0) return -1;
      at = word - 1;
    }
    return -1;
  }
}
