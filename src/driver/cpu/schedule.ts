/**
 * An order of work that a seed determines: which stream continues, in which order a grid's blocks
 * begin and take turns, how far each turn goes, and in which order the warps of a block run. Every
 * such order is one that a GPU may choose.
 */

export class Schedule {
  readonly seed: number;
  private state: number;

  constructor(seed: number) {
    this.seed = seed;
    this.state = seed | 0;
  }

  /**
   * Returns a number from 0 to below `count`, by mulberry32, whose adjacent seeds give numbers far
   * apart.
   */
  next(count: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * count);
  }

  /** Returns any 32-bit number but 0. */
  word(): number {
    return this.next(0xffffffff) + 1;
  }

  /**
   * Returns the schedule of a launch, which depends only on the seed and on the launch's own
   * number: other streams do not change it.
   */
  of(launch: number): Schedule {
    return new Schedule(Math.imul(this.seed, 0x9e3779b1) ^ Math.imul(launch, 0x85ebca6b));
  }

  /** Returns an order of the numbers below `count`. */
  order(count: number): (position: number) => number {
    const first = this.next(count);
    let stride = 1 + this.next(count);
    while (divisor(stride, count) !== 1) stride++;
    return (position) => (first + position * stride) % count;
  }
}

function divisor(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
