/**
 * Long texts of CUDA C++ are no error to the type checker. It is a file of its own, as the file
 * about their cost is.
 */
import { expect, test } from 'vitest';

import { readByTypes } from './read-types.test-support.js';

const k = (list: string): string => `extern "C" __global__ void k(${list}) {}`;

test.each([
  ['a table of 20,000 rows', `__constant__ int t[][2] = {${'{1, 2}, '.repeat(20_000)}};`],
  ['20,000 empty lines', '\n'.repeat(20_000)],
  ['3,000 macros', Array.from({ length: 3000 }, (_, i) => `#define M${i} ${i}\n`).join('')],
  ['2,000 aliases', Array.from({ length: 2000 }, (_, i) => `typedef float T${i};\n`).join('')],
  [
    '1,200 blocks in one body',
    `__device__ void f() {\n#if 1\n${'if (1) { g(); }\n'.repeat(1200)}#endif\n}`,
  ],
  [
    'a body of 2,000 strings',
    `__device__ void f() {\n${'  printf("\\"%d\\"", 1); // }\n'.repeat(2000)}}\n`,
  ],
])('%s are no error, and hide no kernel', { tags: 'thorough' }, (_, before) => {
  const { read, errors } = readByTypes([`${before}\n${k('float* y, int n')}\n`]);
  expect(errors).toEqual([]);
  expect(read[0]!.open ? (read[0]!.kernels['k'] ?? 'any') : read[0]!.kernels['k']).toEqual(
    read[0]!.open && read[0]!.kernels['k'] === undefined ? 'any' : ['inout f32', 'i32'],
  );
});
