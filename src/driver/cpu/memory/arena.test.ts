import * as fc from '../../../../test/fast-check.js';
import { expect, test } from 'vitest';
import { Arena, GRANULE } from './arena.js';
import type { Range } from './arena.js';
import { GranuleIndex } from './granule-index.js';

const SIZE = 2 ** 20;

/** Sizes of all magnitudes, so that small ranges fill the holes that large ones leave. */
const size = fc.oneof(
  fc.integer({ min: 1, max: 2000 }),
  fc.integer({ min: 1, max: 60_000 }),
  fc.integer({ min: 1, max: SIZE }),
);
const steps = fc.array(
  fc.oneof(
    fc.record({ take: size, ahead: fc.constantFrom(0, GRANULE, 36 * 1024) }),
    fc.record({ giveBack: fc.nat() }),
  ),
  { maxLength: 120 },
);

test(
  'ranges never overlap, are aligned, and all of the arena is one range again when all are ' +
    'given back',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(steps, (program) => {
        const arena = new Arena(65536, SIZE);
        const taken: Range[] = [];
        for (const step of program) {
          if ('take' in step) {
            const range = arena.take(step.take, step.ahead);
            if (range === undefined) {
              expect(arena.largestFree()).toBeLessThan(step.take);
              continue;
            }
            expect(range.address % GRANULE).toBe(0);
            expect(range.bytes).toBeGreaterThanOrEqual(step.take);
            expect(range.address).toBeGreaterThanOrEqual(65536);
            expect(range.address + range.bytes).toBeLessThanOrEqual(65536 + SIZE);
            for (const other of taken) {
              expect(
                range.address + range.bytes <= other.address ||
                  other.address + other.bytes <= range.address,
              ).toBe(true);
            }
            taken.push(range);
          } else if (taken.length > 0) {
            arena.giveBack(taken.splice(step.giveBack % taken.length, 1)[0]!);
          }
          expect(arena.freeBytes).toBe(SIZE - taken.reduce((sum, range) => sum + range.bytes, 0));
        }
        for (const range of taken) arena.giveBack(range);
        expect(arena.freeBytes).toBe(SIZE);
        expect(arena.largestFree()).toBe(SIZE);
        expect(arena.take(SIZE)?.address).toBe(65536);
      }),
      { numRuns: 300 },
    );
  },
);

test('a range is found whenever one is large enough', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 50_000 }), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 2, max: 5 }),
      (sizes, every) => {
        const arena = new Arena(0, SIZE);
        const taken = sizes
          .map((bytes) => arena.take(bytes))
          .filter((range) => range !== undefined);
        taken.forEach((range, index) => {
          if (index % every === 0) arena.giveBack(range);
        });
        const largest = arena.largestFree();
        if (largest > 0) expect(arena.take(largest)).toBeDefined();
      },
    ),
    { numRuns: 200 },
  );
});

test('bytes ahead of a range stay free, where that leaves no request unserved', () => {
  const arena = new Arena(0, SIZE);
  const range = arena.take(SIZE / 4, 1024)!;
  expect(range.address).toBe(1024);
  const above = arena.take(5000);
  arena.giveBack(range);
  // The same range is returned again: memory that was never touched costs more.
  expect(arena.take(SIZE / 4, 1024)!.address).toBe(1024);
  expect(above?.address).toBe(1024 + SIZE / 4);
  expect(arena.take(1000)?.address).toBe(0);
  const rest = arena.largestFree();
  expect(arena.take(rest, 1024)?.bytes).toBe(rest);
});

test('giving a range back twice is an error', () => {
  const arena = new Arena(0, SIZE);
  const range = arena.take(10)!;
  arena.giveBack(range);
  expect(() => arena.giveBack(range)).toThrow('given back twice');
});

test('all of an arena of 4 GiB can be allocated', () => {
  const bytes = 2 ** 32 - 65536;
  const arena = new Arena(65536, bytes);
  expect(arena.take(bytes)?.bytes).toBe(bytes);
  expect(arena.take(1)).toBeUndefined();
});

test('more than any memory has is refused, whatever its low bits are', () => {
  const arena = new Arena(65536, 2 ** 30);
  for (const bytes of [2 ** 32, 2 ** 32 + 256, 2 ** 40 + 256, 2 ** 48 + 256, 2 ** 52 + 4096])
    expect(arena.take(bytes)).toBeUndefined();
  expect(arena.freeBytes).toBe(2 ** 30);
});

test('the granule index finds the nearest member at or below', { tags: 'random' }, () => {
  const capacity = 40_000;
  fc.assert(
    fc.property(
      fc.array(fc.nat(capacity - 1), { maxLength: 60 }),
      fc.array(fc.nat(capacity - 1), { maxLength: 30 }),
      fc.array(fc.nat(capacity - 1), { minLength: 1 }),
      (adds, deletes, queries) => {
        const index = new GranuleIndex(capacity);
        const members = new Set(adds);
        for (const member of adds) index.add(member);
        for (const member of [...deletes, ...adds.slice(0, 5)]) {
          index.delete(member);
          members.delete(member);
        }
        for (const query of queries)
          expect(index.atOrBelow(query)).toBe(
            Math.max(-1, ...[...members].filter((member) => member <= query)),
          );
      },
    ),
  );
});
