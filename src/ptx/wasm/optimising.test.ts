import { describe, expect, it } from 'vitest';

import { kernelOfSize, manyBranches } from '../../../test/ptx/large-kernel.js';
import { compilePtx } from '../compile.js';
import { optimisingMs } from './optimising.js';

describe('how long an engine takes to optimise a module', () => {
  const of = (ptx: string): number => optimisingMs(compilePtx(ptx).wasm);

  it('is nothing to speak of for a small one', () => {
    expect(of(kernelOfSize(500))).toBe(0);
  });

  it('grows with the kernel', () => {
    const [small, large] = [of(kernelOfSize(4000)), of(kernelOfSize(20_000))];
    expect(small).toBeGreaterThan(50);
    expect(large).toBeGreaterThan(5 * small);
  });

  it('grows with the square of the branches', () => {
    expect(of(manyBranches(60))).toBeLessThan(1000);
    expect(of(manyBranches(160))).toBeGreaterThan(5000);
  });
});
