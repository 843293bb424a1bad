/**
 * A budget for the type instantiations of typed kernels, which detects types that grow. All of it
 * is thorough: to read the program takes seconds.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';

import { typeCosts } from '../../test/type-budget.js';
import type { TypeCost } from '../../test/type-budget.js';

const PREAMBLE =
  'import { deviceFunction, elementKernel, f32, inout, input, kernel, output, struct, ' +
  "tileKernel } from '../index.js';\nimport type { Gpu, Tensor } from '../index.js';";

const instantiations = typeCosts(fileURLToPath(new URL('./', import.meta.url)), PREAMBLE, {
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  types: ['node'],
  typeRoots: [fileURLToPath(new URL('../../node_modules/@types', import.meta.url))],
  lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
});

const SAXPY = `const saxpy = kernel('saxpy', { y: inout(f32), a: f32, x: input(f32) }, (
  { y, a, x }, gpu,
) => {
  const i = gpu.globalId.x;
  if (i < y.length) y[i] = a * x[i]! + y[i]!;
});`;

describe('the cost to the type checker', { tags: 'thorough' }, () => {
  let nothing: TypeCost;
  beforeAll(() => {
    nothing = instantiations(
      'void [deviceFunction, f32, inout, input, kernel, output, struct]; void elementKernel; ' +
        'void tileKernel;\nexport type Used = [Gpu, Tensor];',
    );
  }, 60_000);

  test.each([
    ['a kernel', SAXPY, 1200],
    [
      'a kernel and its call',
      `${SAXPY}\ndeclare const y: Tensor<'f32', [4]>;\nvoid saxpy({ y, a: 2, x: y });`,
      7000,
    ],
    // The type checker computes the type of a tensor once.
    [
      'ten more calls',
      `${SAXPY}\ndeclare const y: Tensor<'f32', ` +
        `[4]>;\n${'void saxpy({ y, a: 2, x: y });\n'.repeat(11)}`,
      9000,
    ],
    [
      'a kernel with constants, functions and structures',
      `
    const Body = struct({ x: f32, y: f32, m: f32 });
    const square = (x: number, _: Gpu): number => x * x;
    void kernel('k', { out: output(f32, 3), bodies: input(Body) }, (
      { out, bodies }, { square, TILE, globalId },
    ) => {
      out[globalId.z]![globalId.y]![globalId.x] = square(bodies[TILE]!.m);
    }, { uses: { TILE: 16, square } });`,
      1400,
    ],
    [
      'an element kernel and its call',
      `const saxpy = elementKernel('saxpy', { y: inout(f32), a: f32, x: input(f32) },
      ({ y, a, x }) => a * x + y);
    declare const y: Tensor<'f32', [4]>;\nvoid saxpy({ y, a: 2, x: y });`,
      7000,
    ],
    [
      'a tile kernel',
      `void tileKernel('twice', { y: output(f32), x: input(f32) }, ({ y, x }, tile) => ` +
        'y.store(x.load() / tile.sum(x.load(), 1)), { tile: [1, null] });',
      2500,
    ],
  ])(
    '%s',
    (_, body, budget) => {
      const { count, errors } = instantiations(body);
      expect(errors).toEqual([]);
      expect(count - nothing.count).toBeLessThan(budget);
      // A count of zero would mean that the type was not checked.
      expect(count - nothing.count).toBeGreaterThan(10);
    },
    60_000,
  );
});
