/** Expressions of many operators in a row, which are nested as deeply as they are long. */
import { Device, f32, i32, inout, kernel, output } from 'async-cuda';
import * as fc from '../fast-check.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { openTestDevice } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

let device: Device;
beforeAll(async () => {
  device = Device.of(await openTestDevice());
});
afterAll(() => device.close());

/** A function from a text, as if it were written in a file. */
const bodyOf = (expression: string): never =>
  (0, eval)(`({ y }, gpu) => { if (gpu.globalId.x === 0) y[0] = ${expression}; }`) as never;

someOf(1, test)([199, 200, 201, 400, 2500, 3500])(
  'a sum of %i terms is compiled, simulated and right',
  async (terms) => {
    const sum = kernel('sum', { y: inout(i32) }, bodyOf(`y[0]${' + 1'.repeat(terms - 1)}`));
    using y = await device.tensor(i32, [5]);
    await sum({ y });
    expect([...(await y.read())]).toEqual([5 + terms - 1]);
    const host = Int32Array.of(5);
    await sum.simulate({ y: host }, { grid: 1, block: 1 });
    expect([...host]).toEqual([5 + terms - 1]);
  },
);

test(
  'chains of mixed operators have the values that JavaScript gives them',
  { tags: 'random' },
  async () => {
    const operators = fc.array(
      fc.tuple(
        fc.constantFrom('+', '-', '*', '&', '|', '^', '<<', '>>>'),
        fc.integer({ min: 0, max: 9 }),
      ),
      { minLength: 190, maxLength: 700 },
    );
    await fc.assert(
      fc.asyncProperty(operators, fc.integer({ min: -100, max: 100 }), async (chain, first) => {
        // In groups, since + binds more closely than &; each step is one of 32 bits.
        const text = chain.reduce(
          (left, [operator, right]) => `${left} ${operator} ${right}`,
          'y[0]',
        );
        const kernelOf = kernel('mixed', { y: inout(i32) }, bodyOf(`(${text}) | 0`));
        using y = await device.tensor(i32, [first]);
        await kernelOf({ y });
        const host = Int32Array.of(first);
        await kernelOf.simulate({ y: host }, { grid: 1, block: 1 });
        expect([...(await y.read())]).toEqual([...host]);
      }),
      { numRuns: 12 },
    );
  },
);

test('a product at the end of a part is rounded once with the sum after it', async () => {
  const chain = (length: number): string => `${'1 * '.repeat(length)}y[0] * y[1] + y[2]`;
  const results = await Promise.all(
    [0, 150, 197, 198, 199, 200, 201].map(async (length) => {
      const fused = kernel('fused', { y: inout(f32) }, bodyOf(chain(length)));
      using y = await device.tensor(f32, [1 + 2 ** -12, 1 + 2 ** -12, -1]);
      await fused({ y });
      return (await y.read())[0];
    }),
  );
  const rounded = Math.fround((1 + 2 ** -12) ** 2 - 1);
  expect(results[0]).toBe(rounded);
  expect(new Set(results).size).toBe(1);
});

test('a value that is read before a write within the chain is kept', async () => {
  const order = kernel(
    'order',
    { y: inout(i32), z: output(i32) },
    (0, eval)(
      `({ y, z }, gpu) => { let a = 1; z[0] = ${'a + '.repeat(300)}(a = 7) + a; }`,
    ) as never,
  );
  using y = await device.tensor(i32, [0]);
  using z = await device.zeros(i32, [1]);
  await order({ y, z } as never);
  expect([...(await z.read())]).toEqual([300 + 7 + 7]);
});

describe('an expression that is too deep', () => {
  test('is an error with its place and its code', async () => {
    const deep = kernel('deep', { y: inout(i32) }, bodyOf(`1${' + 1'.repeat(20_000)}`));
    const error = await deep.prepare(device).then(
      () => undefined,
      (reason: unknown) => reason as Error & { code: string },
    );
    expect(error).toMatchObject({ code: 'ERR_CUDA_COMPILE' });
    expect(error!.message).toMatch(
      /line 1, column \d+ .*This kernel is nested too deeply to be read/,
    );
    expect(error!.message).toContain('y[0] = 1 + 1 + 1');
  });
});

test.each([
  [
    'a hole',
    [1, , 3],
    'options.uses.L[1]: expected a number, a bigint or a boolean, got undefined. The list ' +
      'has a hole there: write a constant for each element.',
  ],
  [
    'undefined',
    [1, undefined, 3],
    'options.uses.L[1]: expected a number, a bigint or a boolean, got undefined.',
  ],
  ['a text', [1, 'x'], "options.uses.L[1]: expected a number, a bigint or a boolean, got 'x'."],
] as const)('a list of constants with %s is refused', (_, list, message) => {
  expect(() =>
    kernel(
      'holes',
      { y: inout(i32) },
      ({ y }, gpu) => {
        y[0] = (gpu as unknown as { L: number[] }).L[0]!;
      },
      { uses: { L: list as never } },
    ),
  ).toThrow(message);
});
