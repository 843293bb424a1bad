/**
 * A seeded generator (PCG-like, 64 bits of state in two 32-bit halves): the same seed gives the
 * same inputs everywhere.
 */
export class Random {
  private state: bigint;

  constructor(seed: number) {
    this.state = BigInt.asUintN(64, BigInt(seed) * 0x9e3779b97f4a7c15n + 0x632be59bd9b4e019n);
    for (let warmUp = 0; warmUp < 4; warmUp++) this.bits();
  }

  /** 32 random bits. */
  bits(): number {
    this.state = BigInt.asUintN(64, this.state * 6364136223846793005n + 1442695040888963407n);
    const word = Number(this.state >> 32n);
    return (word ^ (word >>> 15)) >>> 0;
  }

  /** An integer from 0 to limit - 1. */
  below(limit: number): number {
    return Math.floor((this.bits() / 4294967296) * limit);
  }

  chance(of: number): boolean {
    return this.below(of) === 0;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }
}
