/** The lists of layers and of the package's sub-paths agree with one another. */
import { readFileSync, readdirSync } from 'node:fs';
import { relative } from 'node:path';
import { expect, test } from 'vitest';

import { entryPoints, repository } from './entry-points.js';

interface Layer {
  readonly imports?: readonly string[];
  readonly onTopOf?: readonly string[];
  readonly everything?: true;
}

const { layers } = (await import(`${repository}.dependency-cruiser.mjs`)) as {
  layers: Readonly<Record<string, Layer>>;
};
const read = (path: string): string => readFileSync(repository + path, 'utf8');

test('each layer is a folder of src/ or its index.ts, and each folder a layer', () => {
  const names = readdirSync(`${repository}src`, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() || entry.name === 'index.ts')
    .map(({ name }) => name);
  expect(Object.keys(layers).sort()).toEqual(names.sort());
});

test('CONTRIBUTING.md has the layers in their order, with what they may import', () => {
  const rows = [
    ...read('CONTRIBUTING.md').matchAll(/^\| (\[`src\/.*?) \| .* \| ([^|]*) \|$/gm),
  ].flatMap(([, first, allowed]) =>
    [...first!.matchAll(/`src\/([\w.]+)\/?`/g)].map(([, name]) => {
      const named = [...allowed!.matchAll(/`(\w+)`/g)].map(([, layer]) => layer!);
      return [name!, allowed === 'everything' ? ['everything'] : named.sort()];
    }),
  );
  expect(rows).toEqual(
    Object.entries(layers).map(([name, { imports = [], onTopOf = [], everything }]) => [
      name,
      everything ? ['everything'] : [...onTopOf, ...imports].sort(),
    ]),
  );
});

test('typedoc.json has each sub-path of the package', () => {
  const { entryPoints: pages } = JSON.parse(read('typedoc.json')) as { entryPoints: string[] };
  const files = entryPoints().map(([, file]) => relative(repository, file));
  expect([...pages].sort()).toEqual(files.sort());
});

test('the README says what each sub-path has', () => {
  const rows = read('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| `async-cuda'));
  const missing = entryPoints()
    .map(([path]) => path.replace('.', 'async-cuda'))
    .filter((path) => !rows.some((row) => row.includes(`\`${path}\``)));
  expect(missing).toEqual([]);
});
