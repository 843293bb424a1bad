import { describe, expect, it } from 'vitest';

import { LONG_SHAPES, kernelOfSize, manyBranches } from '../../../test/ptx/large-kernel.js';
import type { LongShape } from '../../../test/ptx/large-kernel.js';
import { compilePtx } from '../compile.js';
import { optimisingTime } from './optimising.js';
import { someOf } from '../../../test/random-runs.js';

describe('how long an engine takes to optimise a module', () => {
  const of = (ptx: string): number => optimisingTime(compilePtx(ptx).wasm).ms;

  it('is zero for a small one', () => {
    expect(of(kernelOfSize(500))).toBe(0);
  });

  it('grows with the kernel', () => {
    const [small, large] = [of(kernelOfSize(4000)), of(kernelOfSize(20_000))];
    expect(small).toBeGreaterThan(50);
    expect(large).toBeGreaterThan(5 * small);
  });

  it('grows with the square of the branches', { tags: 'thorough' }, () => {
    expect(of(manyBranches(60))).toBeLessThan(1000);
    expect(of(manyBranches(160))).toBeGreaterThan(5000);
  });

  // Milliseconds of Node 20's processor time, with --no-liftoff --no-wasm-lazy-compilation.
  someOf(
    2,
    it,
  )<[LongShape, number, number]>([
    ['loops, each in the next', 150, 245],
    ['loops, each in the next', 200, 684],
    ['loops, each in the next', 300, 3339],
    ['loops, each in the next', 400, 12_000],
    ['loops that overlap', 150, 612],
    ['loops that overlap', 200, 1955],
    ['loops that overlap', 300, 7800],
    ['loops in a row', 300, 175],
    ['loops in a row', 1000, 791],
    ['loops in a row', 2000, 3419],
    ['branches to one label', 1000, 991],
  ])('%s, %i: %i ms, within a factor of two', (shape, size, measured) => {
    const estimated = of(LONG_SHAPES[shape](size));
    expect(estimated).toBeGreaterThan(measured / 2);
    expect(estimated).toBeLessThan(measured * 2);
  });

  it('is not long for 10,000 instructions without branches', () => {
    expect(of(LONG_SHAPES['no branches'](10_000))).toBeLessThan(300);
  });
});
