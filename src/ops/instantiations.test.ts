/**
 * A budget for the type instantiations of long chains of operations, which detects types that grow.
 * All of it is thorough: to read the program takes seconds.
 */
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';

import { typeCosts } from '../../test/type-budget.js';

const PREAMBLE =
  "import type { DeviceOp } from './device-op.js';\nimport type { allOf, parallel, zip } from " +
  "'./make.js';\ndeclare const a: DeviceOp<number>;\ndeclare const b: " +
  'DeviceOp<string>;\ndeclare const zipped: typeof zip;\ndeclare const together: typeof ' +
  'parallel;\ndeclare const every: typeof allOf;';

const instantiations = typeCosts(fileURLToPath(new URL('./', import.meta.url)), PREAMBLE, {
  types: ['node'],
});

describe('the cost to the type checker', { tags: 'thorough' }, () => {
  let nothing = 0;
  beforeAll(() => {
    nothing = instantiations('').count;
  }, 60_000);

  const repeat = (count: number, part: (i: number) => string): string =>
    Array.from({ length: count }, (_, i) => part(i)).join('');

  test.each([
    [
      'a chain of 200 andThen',
      'export const x: DeviceOp<number> = ' +
        `a${repeat(200, () => '.andThen((n) => a.map((m) => m + n))')};`,
      200,
      20,
    ],
    [
      'a chain of 200 map and tap',
      'export const x: DeviceOp<number> = ' +
        `a${repeat(200, () => '.map((n) => n + 1).tap((n) => void n)')};`,
      200,
      1,
    ],
    [
      'each step another tuple',
      'export const x: DeviceOp<string> = a.map((n) => [n] as ' +
        `const)${repeat(60, () => '.map(([n]) => [n] as const)')}.map(([n]) => String(n));`,
      60,
      25,
    ],
    [
      'a zip of 100',
      'export const x: DeviceOp<readonly [number, ...unknown[]]> = zipped(a, ' +
        `${repeat(99, (i) => (i % 2 === 0 ? 'b, ' : 'a, '))});`,
      100,
      30,
    ],
    [
      'zips within zips, 50 deep',
      `export const x = ${repeat(50, () => 'zipped(a, ')}b${repeat(50, () => ')')};`,
      50,
      90,
    ],
    [
      'a parallel of 50, taken apart',
      `const [x, y] = together(a, b, ${repeat(48, () => 'a, ')}).unzip();\nexport const z: ` +
        'DeviceOp<number> = x.andThen(() => y).andThen(() => a);',
      50,
      60,
    ],
    [
      'all of a list, 100 times',
      'export const x = every([a, ' +
        `b])${repeat(100, () => '.andThen((list) => every([a, ...list]))')};`,
      100,
      25,
    ],
    [
      'decisions, 50 of them',
      'export const x: DeviceOp<number> = ' +
        'a' +
        repeat(
          50,
          () =>
            '.when(() => null as never, () => b, () => a)' +
            '.repeatWhile(() => null as never, () => b)',
        ) +
        ';',
      50,
      30,
    ],
  ])(
    '%s',
    (_, body, steps, budget) => {
      const { count, errors } = instantiations(body);
      expect(errors).toEqual([]);
      const each = (count - nothing) / steps;
      expect(each, `instantiations for each of ${steps} steps`).toBeLessThan(budget);
      // A count of zero would mean that the types were not checked.
      expect(count - nothing).toBeGreaterThan(10);
    },
    60_000,
  );

  test('a type error is reported at the step that causes it', () => {
    expect(
      instantiations(
        `export const x: DeviceOp<string> = a${repeat(100, () => '.andThen(() => a)')};`,
      ).errors.join('\n'),
    ).toContain("'DeviceOp<number>' is not assignable to type 'DeviceOp<string>'");
    expect(instantiations('export const x = a.map(async (n) => n);').errors.join('\n')).toContain(
      'return a DeviceOp from andThen()',
    );
  }, 60_000);
});
