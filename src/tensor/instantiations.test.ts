/** A budget for the type instantiations of shapes, which detects types that grow. */
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

import { typeCosts } from '../../test/type-budget.js';
import { someOf } from '../../test/random-runs.js';

/**
 * Compiles a program that uses the library's types, with all declarations checked. Returns the
 * number of type instantiations that the compiler made, and its errors.
 */
const instantiations = typeCosts(
  fileURLToPath(new URL('./', import.meta.url)),
  "import type * as t from './shape-types.js';",
  { types: [], lib: ['lib.es5.d.ts'] },
);

const nothing = instantiations('');

someOf(
  2,
  test,
)([
  [
    'a reshape whose extents cancel',
    't.Reshaped<[32, 128, 768], readonly [32, 128, 12, 64]>',
    '[32, 128, 12, 64]',
    2000,
  ],
  ['a reshape that divides', 't.Reshaped<[32, 128, 768], readonly [64, -1]>', '[64, 49152]', 9500],
  ['a product of extents', 't.Numel<[32, 128, 768]>', '3145728', 3700],
  [
    'a permutation',
    't.Permuted<[32, 128, 12, 64], readonly [0, 2, 1, 3]>',
    '[32, 12, 128, 64]',
    500,
  ],
  ['a broadcast', 't.Broadcast<[32, 128, 768], readonly [768]>', '[32, 128, 768]', 200],
  ['a slice', 't.Sliced<[32, 128, 768], readonly [0, readonly [16, -16]]>', '[96, 768]', 1800],
  ['a grid', 't.Tiled<[1024, 768], readonly [128, 100]>', '[8, 8]', 6000],
])('%s', (_, type, result, budget) => {
  const { count, errors } = instantiations(
    `declare const found: ${type};\nexport const checked: ${result} = found;`,
  );
  expect(errors).toEqual([]);
  expect(count - nothing.count).toBeLessThan(budget);
  // A count of zero would mean that the type was not checked.
  expect(count - nothing.count).toBeGreaterThan(10);
});

test('a program with errors costs no more, and has its errors', () => {
  const { count, errors } = instantiations(
    'declare const found: t.Reshaped<[32, 128, 768], readonly [7, -1]>;\nexport const ' +
      'checked: number[] = found;',
  );
  expect(errors.join('\n')).toContain(
    '[32, 128, 768] cannot be reshaped to [7, -1]: 3145728 elements are no multiple of the ' +
      'other extents',
  );
  expect(count - nothing.count).toBeLessThan(9500);
});
