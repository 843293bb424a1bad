/**
 * The cost of reading CUDA C++ in the type checker. It is a file of its own: the checker keeps
 * gigabytes of types of such texts. All of it is thorough: to read the program takes seconds.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';

import { typeCosts } from '../../test/type-budget.js';
import type { TypeCost } from '../../test/type-budget.js';
import { longSource, manyComments } from './long-source.test-support.js';
import { readAtRunTime } from './read-at-run-time.test-support.js';
import { literal, readByTypes } from './read-types.test-support.js';

const costs = typeCosts(
  fileURLToPath(new URL('./', import.meta.url)),
  "import type { DescriptionsOf } from './description-types.js';\ntype Forced<T> = { [K in " +
    'keyof T]: T[K] };',
  { types: [], lib: ['lib.es2022.d.ts'] },
);

/** A text of kernels only, of eight lines each. */
const kernelsAlone = Array.from(
  { length: 125 },
  (_, i) => `extern "C" __global__ void scale${i}(float* y, const float* x, float a${i}, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a${i} * x[i] + y[i];
  }
}

// The next one.
`,
).join('');

describe('the cost to the type checker', { tags: 'thorough' }, () => {
  let nothing: TypeCost;
  beforeAll(() => {
    nothing = costs(
      "export declare const read: Forced<DescriptionsOf<''>>; export const all: keyof typeof " +
        'read = null as never; export type Each = (typeof read)[typeof all];',
    );
  }, 60_000);

  test.each([
    ['5,000 lines', longSource(5000).text, longSource(5000).kernels],
    ['1,000 lines of kernels', kernelsAlone, 125],
    ['3,000 comments', manyComments(3000), 1],
  ])(
    '%s cost at most 20,000 instantiations per 1,000 lines',
    (_, text, kernels) => {
      const lines = text.split('\n').length - 1;
      const { count, errors } = costs(
        `export declare const read: Forced<DescriptionsOf<${literal(text)}>>; export const ` +
          'all: keyof typeof read = null as never; export type Each = (typeof read)[typeof all];',
      );
      expect(errors).toEqual([]);
      expect(count - nothing.count).toBeLessThan(20 * lines);
      expect(count - nothing.count).toBeGreaterThan(lines);
      const { read } = readByTypes([text]);
      expect(Object.keys(read[0]!.kernels)).toHaveLength(kernels);
      expect(read[0]).toEqual(readAtRunTime(text));
    },
    120_000,
  );

  test('a text that is no literal leaves every name', () => {
    const { errors } = costs(
      "const a: DescriptionsOf<string>['anything'] = undefined; const b: " +
        "DescriptionsOf<`extern ${number}`>['anything'] = undefined; const c: " +
        "DescriptionsOf<never>['anything'] = undefined; export { a, b, c };",
    );
    expect(errors).toEqual([]);
  });
});
