/** Each function of the library, and each operation on images, is in its guide and in a test. */
import { readFileSync, readdirSync } from 'node:fs';
import * as images from 'async-cuda/images';
import * as library from 'async-cuda/library';
import { describe, expect, test } from 'vitest';

import { repository } from './entry-points.js';

const read = (path: string): string => readFileSync(repository + path, 'utf8');
const namesOf = (module: object): string[] =>
  Object.keys(module).filter((name) => /^[a-z]/.test(name));

describe.each([
  ['library', namesOf(library)],
  ['images', namesOf(images)],
])('%s', (folder, names) => {
  test('the guide names each function', () => {
    const page = read(`docs/${folder}.md`);
    expect(names.filter((name) => !new RegExp(`\\b${name}\\(|\`${name}\``).test(page))).toEqual([]);
  });

  test('a test runs each function, or has a row for it', () => {
    const texts = readdirSync(`${repository}test/${folder}`)
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => read(`test/${folder}/${file}`))
      .join('\n');
    const isTested = (name: string): boolean =>
      new RegExp(String.raw`library\.${name}\b|'${name}'|\b${name}(\(|: [{[(])`).test(texts);
    expect(names.filter((name) => !isTested(name))).toEqual([]);
  });
});

test('the name by which a function of the library finds its kernels is its own', () => {
  const rows = [
    'unary',
    'trigonometry',
    'float-classes',
    'binary',
    'comparisons',
    'reductions',
  ].flatMap((file) =>
    [
      ...read(`src/library/${file}.ts`).matchAll(/^export const (\w+) = \w+<.*>\(([^]*?)\);$/gm),
    ].map(([, name, row]) => ({
      name: name!.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      // Its first text, but for the name of a group of dtypes or of a dtype's function.
      inRow: [...row!.matchAll(/^\s*(?:bool,\s*)?'(\w+)'|\bname: '(\w+)'/g)].map(
        ([, a, b]) => a ?? b,
      ),
    })),
  );
  expect(rows.length).toBeGreaterThan(55);
  for (const { name, inRow } of rows) expect([...new Set(inRow)]).toEqual([name]);
});
