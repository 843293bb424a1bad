/**
 * Allocates ranges of one address interval: two-level segregated free lists (Masmano's TLSF) with
 * immediate coalescing. Taking and returning cost a constant number of steps, and the bookkeeping
 * is JavaScript objects, so that no byte of device memory is touched before its owner touches it.
 */

/**
 * Every range begins at a multiple of this, and its size is one: the alignment that cuMemAlloc
 * guarantees.
 */
export const GRANULE = 256;

const SUBDIVISIONS = 8;
const SUBDIVISION_BITS = 3;

/** A range, taken or free. Adjacent ranges are linked so that a free one can join them. */
export interface Range {
  address: number;
  bytes: number;
  free: boolean;
  lower: Range | undefined;
  upper: Range | undefined;
  previousFree: Range | undefined;
  nextFree: Range | undefined;
}

export class Arena {
  private readonly heads: (Range | undefined)[] = new Array<Range | undefined>(
    32 * SUBDIVISIONS,
  ).fill(undefined);
  /**
   * One bit for each power of two that has a free range, and one for each eighth of each of these.
   */
  private powers = 0;
  private readonly eighths = new Uint8Array(32);
  private freeTotal = 0;

  constructor(address: number, bytes: number) {
    const whole = Math.floor(bytes / GRANULE) * GRANULE;
    if (whole > 0) {
      this.insert({
        address,
        bytes: whole,
        free: true,
        lower: undefined,
        upper: undefined,
        previousFree: undefined,
        nextFree: undefined,
      });
    }
  }

  get freeBytes(): number {
    return this.freeTotal;
  }

  /**
   * Returns a range of at least `bytes` bytes, or undefined where none is free. Where there is
   * plenty, `ahead` bytes before it stay free.
   */
  take(bytes: number, ahead = 0): Range | undefined {
    const needed = Math.max(1, Math.ceil(bytes / GRANULE)) * GRANULE;
    // Lists are numbered in 32 bits, which hold no more than the whole of the memory.
    if (needed > this.freeTotal) return undefined;
    let found = this.findRoomy(needed / GRANULE) ?? this.findExact(needed);
    if (found === undefined) return undefined;
    this.remove(found);
    if (ahead > 0 && found.bytes >= needed + ahead) {
      const skipped = found;
      found = this.split(skipped, ahead);
      this.insert(skipped);
    }
    if (found.bytes > needed) this.insert(this.split(found, needed));
    found.free = false;
    return found;
  }

  /** Cuts a range after this many bytes and returns the rest. Neither is in a list. */
  private split(range: Range, bytes: number): Range {
    const rest: Range = {
      address: range.address + bytes,
      bytes: range.bytes - bytes,
      free: true,
      lower: range,
      upper: range.upper,
      previousFree: undefined,
      nextFree: undefined,
    };
    if (range.upper !== undefined) range.upper.lower = rest;
    range.upper = rest;
    range.bytes = bytes;
    return rest;
  }

  giveBack(range: Range): void {
    if (range.free) throw new Error(`range at ${range.address} was given back twice`);
    let merged = range;
    const { lower, upper } = range;
    if (upper?.free === true) {
      this.remove(upper);
      this.join(merged, upper);
    }
    if (lower?.free === true) {
      this.remove(lower);
      this.join(lower, merged);
      merged = lower;
    }
    this.insert(merged);
  }

  /** The largest range that `take` could return now. */
  largestFree(): number {
    if (this.powers === 0) return 0;
    const power = 31 - Math.clz32(this.powers);
    const eighth = 31 - Math.clz32(this.eighths[power]!);
    let largest = 0;
    for (
      let range = this.heads[power * SUBDIVISIONS + eighth];
      range !== undefined;
      range = range.nextFree
    ) {
      if (range.bytes > largest) largest = range.bytes;
    }
    return largest;
  }

  private join(lower: Range, upper: Range): void {
    lower.bytes += upper.bytes;
    lower.upper = upper.upper;
    if (upper.upper !== undefined) upper.upper.lower = lower;
  }

  /** The list of ranges from this many granules up to the next list's. */
  private listOf(granules: number): number {
    const power = 31 - Math.clz32(granules);
    const eighth =
      power < SUBDIVISION_BITS
        ? (granules << (SUBDIVISION_BITS - power)) & (SUBDIVISIONS - 1)
        : (granules >>> (power - SUBDIVISION_BITS)) & (SUBDIVISIONS - 1);
    return power * SUBDIVISIONS + eighth;
  }

  /** The first range of the smallest list all of whose ranges are large enough. */
  private findRoomy(granules: number): Range | undefined {
    const power = 31 - Math.clz32(granules);
    const step = power <= SUBDIVISION_BITS ? 1 : 2 ** (power - SUBDIVISION_BITS);
    const list = this.listOf(Math.ceil(granules / step) * step);
    const from = list >>> SUBDIVISION_BITS;
    const inPower = this.eighths[from]! & (0xff << (list & (SUBDIVISIONS - 1)));
    if (inPower !== 0) return this.heads[from * SUBDIVISIONS + 31 - Math.clz32(inPower & -inPower)];
    const above = from >= 31 ? 0 : this.powers & (-2 << from);
    if (above === 0) return undefined;
    const next = 31 - Math.clz32(above & -above);
    const eighths = this.eighths[next]!;
    return this.heads[next * SUBDIVISIONS + 31 - Math.clz32(eighths & -eighths)];
  }

  /**
   * Finds a range where memory is nearly used up: one of the list below may fit although not all of
   * that list do.
   */
  private findExact(bytes: number): Range | undefined {
    let best: Range | undefined;
    for (
      let range = this.heads[this.listOf(bytes / GRANULE)];
      range !== undefined;
      range = range.nextFree
    ) {
      if (range.bytes >= bytes && (best === undefined || range.bytes < best.bytes)) best = range;
    }
    return best;
  }

  private insert(range: Range): void {
    const list = this.listOf(range.bytes / GRANULE);
    const head = this.heads[list];
    range.free = true;
    range.previousFree = undefined;
    range.nextFree = head;
    if (head !== undefined) head.previousFree = range;
    this.heads[list] = range;
    this.powers |= 1 << (list >>> SUBDIVISION_BITS);
    this.eighths[list >>> SUBDIVISION_BITS]! |= 1 << (list & (SUBDIVISIONS - 1));
    this.freeTotal += range.bytes;
  }

  private remove(range: Range): void {
    const list = this.listOf(range.bytes / GRANULE);
    if (range.nextFree !== undefined) range.nextFree.previousFree = range.previousFree;
    if (range.previousFree !== undefined) {
      range.previousFree.nextFree = range.nextFree;
    } else {
      this.heads[list] = range.nextFree;
      if (range.nextFree === undefined) {
        const power = list >>> SUBDIVISION_BITS;
        if ((this.eighths[power]! &= ~(1 << (list & (SUBDIVISIONS - 1)))) === 0)
          this.powers &= ~(1 << power);
      }
    }
    range.previousFree = undefined;
    range.nextFree = undefined;
    this.freeTotal -= range.bytes;
  }
}
