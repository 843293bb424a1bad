/**
 * The connected regions of a map whose values exceed a threshold: one run of pixels at a time, not
 * one pixel.
 */

/** Pixels of one row that belong together, from `start` to below `end`. */
export interface Run {
  readonly y: number;
  readonly start: number;
  readonly end: number;
}

export interface Region {
  /** Row by row from the top, each row from the left. */
  readonly runs: readonly Run[];
  /** Pixels. */
  readonly area: number;
  /** The sum of their values. */
  readonly sum: number;
}

/**
 * Regions of pixels with values above `threshold` that touch along an edge or at a corner, in the
 * order of their first pixels. The map comes some rows of `width` at a time: a large one takes
 * milliseconds.
 */
export class RegionSearch {
  private readonly width: number;
  private readonly threshold: number;
  private readonly runs: Run[] = [];
  private readonly sums: number[] = [];
  /** The parent of each run; a run that is its own parent represents its region. */
  private readonly parents: number[] = [];
  private rows = 0;
  /** The first run of the last row. */
  private above = 0;

  constructor(width: number, threshold: number) {
    this.width = width;
    this.threshold = threshold;
  }

  /** The next rows, from the top. */
  add(values: Uint8Array): void {
    const { width, threshold, runs, sums, parents } = this;
    for (let row = 0; row < values.length; row += width) {
      const y = this.rows++;
      const first = runs.length;
      let { above } = this;
      for (let x = 0; x < width; x++) {
        if (!(values[row + x]! > threshold)) continue;
        const start = x;
        let sum = 0;
        while (x < width && values[row + x]! > threshold) sum += values[row + x++]!;
        const run = runs.length;
        runs.push({ y, start, end: x });
        sums.push(sum);
        parents.push(run);
        // Runs of the row above that end to the left of this one's corner touch none of the later
        // ones either.
        while (above < first && runs[above]!.end < start) above++;
        for (let other = above; other < first && runs[other]!.start <= x; other++) {
          const [a, b] = [this.root(other), this.root(run)];
          parents[Math.max(a, b)] = Math.min(a, b);
        }
      }
      this.above = first;
    }
  }

  /** The regions of the rows so far. */
  regions(): Region[] {
    const regions = new Map<number, { runs: Run[]; area: number; sum: number }>();
    for (const [i, run] of this.runs.entries()) {
      const of = this.root(i);
      let region = regions.get(of);
      if (region === undefined) regions.set(of, (region = { runs: [], area: 0, sum: 0 }));
      region.runs.push(run);
      region.area += run.end - run.start;
      region.sum += this.sums[i]!;
    }
    return [...regions.values()];
  }

  private root(run: number): number {
    const { parents } = this;
    let at = run;
    while (parents[at] !== at) at = parents[at] = parents[parents[at]!]!;
    return at;
  }
}
