import { describe, expect, it } from 'vitest';

import { meets, pair, quantile, summarise } from './statistics.js';

describe('quantile', () => {
  it('is a sample, by nearest rank', () => {
    const samples = [5, 1, 4, 2, 3];
    expect([0, 0.5, 0.9, 1].map((share) => quantile(samples, share))).toEqual([1, 3, 5, 5]);
  });

  it('refuses an empty list of samples', () => {
    expect(() => quantile([], 0.5)).toThrow('nothing was measured');
  });
});

describe('summarise', () => {
  const rounds = [{ samples: [1, 2, 9] }, { samples: [3, 4, 5] }, { samples: [6, 7, 8] }];

  it("takes the median of the rounds' medians", () => {
    expect(summarise(rounds, 'median')).toMatchObject({
      value: 4,
      min: 1,
      max: 9,
      rounds: [2, 4, 7],
      samples: 9,
    });
  });

  it('takes the longest of all rounds', () => {
    expect(summarise(rounds, 'longest').value).toBe(9);
  });

  it('refuses a round that took no time', () => {
    expect(() => summarise([{ samples: [0, 0, 1] }], 'median')).toThrow('nothing was measured');
  });
});

describe('pair', () => {
  const of = (values: number[], statistic: 'median' | 'longest' = 'median') =>
    summarise(
      values.map((value) => ({ samples: [value] })),
      statistic,
    );

  it('is the pair of rounds with the median ratio', () => {
    // The host was slow for two of five rounds, and for both.
    expect(pair(of([10, 33, 11, 31, 12]), of([10, 30, 10, 30, 10]), 'median')).toEqual({
      value: 33,
      peerValue: 30,
      ratio: 1.1,
    });
    expect(pair(of([1, 4]), of([1, 2]), 'median').ratio).toBe(1);
  });

  it('is the longest of each with `longest`', () => {
    expect(pair(of([1, 6], 'longest'), of([3, 1], 'longest'), 'longest')).toEqual({
      value: 6,
      peerValue: 3,
      ratio: 2,
    });
  });

  it('is the pair of medians where one lacks rounds', () => {
    expect(pair(of([1, 2, 3]), of([4]), 'median')).toEqual({ value: 2, peerValue: 4, ratio: 0.5 });
  });
});

describe('meets', () => {
  it('takes both directions, with the limit included', () => {
    expect(meets('<= 1.05', 1.05)).toBe(true);
    expect(meets('<= 1.05', 1.0501)).toBe(false);
    expect(meets('>= 0.99', 0.99)).toBe(true);
    expect(meets('>= 0.99', 0.98)).toBe(false);
  });
});
