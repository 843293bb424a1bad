// Each pass can be switched off, alone and with others, without a change of the results.

import { describe, expect, it } from 'vitest';
import * as fc from '../../../test/fast-check.js';
import { scaled, someOf } from '../../../test/random-runs.js';
import { PASSES } from './pass-table.js';
import type { Passes } from './pass-table.js';
import {
  SHAPES,
  differences,
  differing,
  kernel,
  program,
  run,
} from './random-programs.test-support.js';

const RUNS = 20;
const SWITCHES = PASSES.map(({ name }) => name).filter((name) => name !== 'linked versions');

const without = (names: readonly string[]): Passes =>
  Object.fromEntries(names.map((name) => [name, false]));

/** Programs and shapes, and the results of one of them with each pass switched off. */
function compare(made: fc.Arbitrary<object>, off: fc.Arbitrary<readonly string[]>): void {
  let inLanes = 0;
  fc.assert(
    fc.property(
      made,
      fc.constantFrom(...SHAPES),
      off,
      fc.constantFrom(1 << 22, 1 << 22, 40),
      (program, block, names, fuel) => {
        const source = kernel(program as Parameters<typeof kernel>[0]);
        const scalar = run(source, block, { simd: false });
        const lanes = run(source, block, { simd: true, passes: without(names) }, fuel);
        if (lanes.lanes > 1) inLanes++;
        expect(lanes.status).toBe(scalar.status);
        expect(differences(scalar.out, lanes.out)).toEqual([]);
        expect(lanes.fault).toEqual(scalar.fault);
      },
    ),
    { numRuns: scaled(RUNS) },
  );
  expect(inLanes).toBeGreaterThan(0);
}

describe('passes of the vector back end', () => {
  // The two tests below switch all of them off, and several at random.
  someOf(6, it)(SWITCHES)(
    "give single threads' results without '%s'",
    { tags: 'random' },
    (name) => {
      compare(program, fc.constant([name]));
    },
  );

  it("give single threads' results without several of them", { tags: 'random' }, () => {
    compare(fc.oneof(program, differing), fc.subarray([...SWITCHES]));
  });

  it("give single threads' results without any of them", { tags: 'random' }, () => {
    compare(program, fc.constant(SWITCHES));
  });
});
