/** The names that the package exports. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const source = readFileSync(new URL('../../src/index.ts', import.meta.url), 'utf8');

test('the root exports at most 70 names, types included', () => {
  const lists = [...source.matchAll(/^export (?:type )?\{([^}]*)\} from/gm)];
  expect(lists.length).toBe([...source.matchAll(/^export /gm)].length);
  const names = lists.flatMap(([, list]) => list!.split(',').map((name) => name.trim()));
  expect(names.filter((name) => name !== '').length).toBeLessThanOrEqual(70);
});
