/** Each function of the library is in the guide's table and in a test of this folder. */
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as library from 'async-cuda/library';
import { expect, test } from 'vitest';

const folder = fileURLToPath(new URL('./', import.meta.url));
const names = Object.keys(library);

test('docs/library.md names each function in its table', () => {
  const page = readFileSync(`${folder}/../../docs/library.md`, 'utf8');
  const table = page.slice(0, page.indexOf('## Options'));
  expect(names.filter((name) => !new RegExp(`\`${name}[\`(]`).test(table))).toEqual([]);
});

test('a test runs each function, or has a row for it', () => {
  const texts = readdirSync(folder)
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => readFileSync(folder + file, 'utf8'))
    .join('\n');
  const isTested = (name: string): boolean =>
    new RegExp(String.raw`library\.${name}\b|'${name}'|\b${name}(\(|: [{[(])`).test(texts);
  expect(names.filter((name) => !isTested(name))).toEqual([]);
});

test('the name by which a function finds its kernels is its own', () => {
  const rows = ['unary', 'binary', 'reductions'].flatMap((file) => {
    const text = readFileSync(`${folder}/../../src/library/${file}.ts`, 'utf8');
    return [...text.matchAll(/^export const (\w+) = \w+<.*>\(([^]*?)\);$/gm)].map(
      ([, name, row]) => ({
        name: name!.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        inRow: [...row!.matchAll(/^\s*'(\w+)'|name: '(\w+)'/g)].map(([, a, b]) => a ?? b),
      }),
    );
  });
  expect(rows.length).toBeGreaterThan(55);
  for (const { name, inRow } of rows) expect([...new Set(inRow)]).toEqual([name]);
});
