/** The names that the package exports. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import * as root from '../../src/index.js';

const source = readFileSync(new URL('../../src/index.ts', import.meta.url), 'utf8');

test('the root exports at most 70 names, types included', () => {
  const types = [...source.matchAll(/^export type \{([^}]*)\} from/gm)].flatMap(([, list]) =>
    list!.split(',').filter((name) => name.trim() !== ''),
  );
  // What is no list of types is a list of values, or the dtypes.
  expect([...source.matchAll(/^export type /gm)].length).toBeGreaterThan(0);
  expect(Object.keys(root).length + types.length).toBeLessThanOrEqual(70);
});
