/** Computes the few numbers of a row from samples, and compares them with a bar. */
import type { Bar, Round, Statistic } from './benchmark.js';

/** The summary of all rounds of one contender. */
export interface Summary {
  readonly value: number;
  readonly min: number;
  readonly p90: number;
  /** Largest sample of all rounds. */
  readonly max: number;
  readonly samples: number;
  /** Each round's own value. */
  readonly rounds: readonly number[];
}

/** The value that `share` of the samples do not exceed (nearest rank). */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = Float64Array.from(samples).sort();
  return ofSorted(sorted, share);
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

function ofSorted(sorted: Float64Array, share: number): number {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  if (value === undefined) throw new Error('no samples: nothing was measured');
  return value;
}

const SHARES: Readonly<Record<Statistic, number>> = { median: 0.5, p99: 0.99, longest: 1 };

export function summarise(rounds: readonly Round[], statistic: Statistic): Summary {
  const sorted = rounds.map(({ samples }) => Float64Array.from(samples).sort());
  for (const samples of sorted) {
    if (!samples.every((sample) => Number.isFinite(sample) && sample >= 0))
      throw new Error('a sample is not a positive number');
  }
  const values = sorted.map((samples) => ofSorted(samples, SHARES[statistic]));
  if (values.some((value) => value === 0))
    throw new Error('a round took no time: nothing was measured');
  return {
    value: quantile(values, statistic === 'longest' ? 1 : 0.5),
    min: Math.min(...sorted.map((samples) => ofSorted(samples, 0))),
    p90: median(sorted.map((samples) => ofSorted(samples, 0.9))),
    max: Math.max(...sorted.map((samples) => ofSorted(samples, 1))),
    samples: sorted.reduce((sum, samples) => sum + samples.length, 0),
    rounds: values,
  };
}

/**
 * Ours and a peer's, of two whose rounds took turns. Of all pairs of rounds the one with the median
 * ratio: a host that is slow for a while is slow for both halves of a pair, and moves the median of
 * each alone further than that of their ratio. For `longest` the longest of each.
 */
export function pair(
  ours: Summary,
  theirs: Summary,
  statistic: Statistic,
): { value: number; peerValue: number; ratio: number } {
  const whole = { value: ours.value, peerValue: theirs.value, ratio: ours.value / theirs.value };
  if (statistic === 'longest' || ours.rounds.length !== theirs.rounds.length) return whole;
  const pairs = ours.rounds.map((value, i) => ({
    value,
    peerValue: theirs.rounds[i]!,
    ratio: value / theirs.rounds[i]!,
  }));
  pairs.sort((a, b) => a.ratio - b.ratio);
  return pairs[Math.ceil(pairs.length / 2) - 1] ?? whole;
}

/** Whether `value` is on the right side of the bar. */
export function meets(bar: Bar, value: number): boolean {
  const [relation, limit] = bar.split(' ') as ['<=' | '>=', string];
  return relation === '<=' ? value <= Number(limit) : value >= Number(limit);
}
