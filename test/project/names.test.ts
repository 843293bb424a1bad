/** The names that the package exports. */
import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { expect, test } from 'vitest';

import * as root from '../../src/index.js';
import { compilerOptions, entryPoints } from './entry-points.js';

const source = readFileSync(new URL('../../src/index.ts', import.meta.url), 'utf8');

test('the root exports at most 70 names, types included', () => {
  const types = [...source.matchAll(/^export type \{([^}]*)\} from/gm)].flatMap(([, list]) =>
    list!.split(',').filter((name) => name.trim() !== ''),
  );
  // What is no list of types is a list of values, or the dtypes.
  expect([...source.matchAll(/^export type /gm)].length).toBeGreaterThan(0);
  expect(Object.keys(root).length + types.length).toBeLessThanOrEqual(70);
});

test('a name means one thing on all sub-paths', { tags: 'thorough' }, () => {
  const entries = entryPoints();
  const program = ts.createProgram(
    entries.map(([, file]) => file),
    compilerOptions(),
  );
  const checker = program.getTypeChecker();
  const meanings = new Map<string, Map<ts.Symbol, string>>();
  for (const [path, file] of entries) {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
    for (const exported of checker.getExportsOfModule(module)) {
      const symbol =
        (exported.flags & ts.SymbolFlags.Alias) === 0
          ? exported
          : checker.getAliasedSymbol(exported);
      const known = meanings.get(exported.name) ?? new Map<ts.Symbol, string>();
      meanings.set(exported.name, known.set(symbol, known.get(symbol) ?? path));
    }
  }
  expect(meanings.size).toBeGreaterThan(400);
  const several = [...meanings].filter(([, known]) => known.size > 1);
  expect(several.map(([name, known]) => [name, ...known.values()])).toEqual([]);
});
