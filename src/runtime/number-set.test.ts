import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { NumberSet } from './number-set.js';

describe('NumberSet', () => {
  test(
    'holds what a Set holds, however it is added to and deleted from',
    { tags: 'random' },
    () => {
      // The numbers are few, so that they collide, and some are beyond 32 bits.
      const value = fc.oneof(
        fc.nat(40),
        fc.integer({ min: 2 ** 32 - 3, max: 2 ** 32 + 3 }),
        fc.constantFrom(-1, 2 ** 40),
      );
      const step = fc.record({ adds: fc.boolean(), value });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
          const ours = new NumberSet();
          const theirs = new Set<number>();
          for (const { adds, value } of steps) {
            if (adds) {
              ours.add(value);
              theirs.add(value);
            } else expect(ours.delete(value)).toBe(theirs.delete(value));
            expect(ours.size).toBe(theirs.size);
            expect(ours.has(value)).toBe(theirs.has(value));
          }
          for (const { value } of steps) expect(ours.has(value)).toBe(theirs.has(value));
        }),
      );
    },
  );

  test('finds each of 10,000, which are deleted in another order', () => {
    const set = new NumberSet();
    for (let i = 0; i < 10_000; i++) set.add(i * 3);
    for (let i = 0; i < 30_000; i++) expect(set.has(i)).toBe(i % 3 === 0);
    for (let i = 0; i < 10_000; i++) expect(set.delete(((i * 7919) % 10_000) * 3)).toBe(true);
    expect(set.size).toBe(0);
  });
});
