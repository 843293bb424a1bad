/** scripts/check-imports.mjs, run on fabricated trees: it must be able to fail. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';

const script = new URL('../../scripts/check-imports.mjs', import.meta.url);
const { checkImports } = (await import(script.href)) as {
  checkImports(root: string): { file: string; line: number; message: string }[];
};

const trees: string[] = [];
afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true });
});

function plant(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'check-imports-'));
  trees.push(root);
  const all = {
    'package.json': '{"name":"async-cuda","dependencies":{"koffi":"1.0.0"}}',
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

/** The complaints about a tree of these files, as the command prints them. */
function check(files: Record<string, string>): string[] {
  return checkImports(plant(files)).map(({ file, line, message }) => `${file}:${line}: ${message}`);
}

test('the command prints the violations and fails', { tags: 'thorough' }, () => {
  const run = (files: Record<string, string>) =>
    spawnSync(process.execPath, [fileURLToPath(script), plant(files)], { encoding: 'utf8' });
  const bad = run({ 'src/ptx/a.ts': `import 'node:fs';` });
  expect(bad.stderr).toMatch(/^src\/ptx\/a.ts:1: 'node:fs'/);
  expect(bad.status).toBe(1);
  expect(run({ 'src/ptx/a.ts': '' }).status).toBe(0);
});

test('imports down the layers, of builtins and of dependencies pass', () => {
  const complaints = check({
    'src/ptx/index.ts': `export * from './parse.js';`,
    'src/ptx/parse.ts': `export const parse = 1;`,
    'src/ptx/parse.test.ts': `import { readFileSync } from 'node:fs'; import { test } from 'vitest';`,
    'src/driver/index.ts': `import '../ptx/index.js'; import 'node:fs'; import koffi from 'koffi';`,
    'src/core/index.ts': `import type { a } from '../runtime/index.js'; import '../ptx/index.js';`,
    'src/library/index.ts':
      `import '../tensor/index.js'; import '../ops/index.js'; import '../core/index.js'; ` +
      `import '../compiler/index.js';`,
    'src/index.ts': `export * from './device/index.js'; import 'async-cuda/driver';`,
  });
  expect(complaints).toEqual([]);
});

test('an import up the layers is named with file, line and what is allowed', () => {
  const complaints = check({
    'src/driver/index.ts': `import '../ptx/index.js';\n\nimport '../core/index.js';`,
  });
  expect(complaints).toEqual([
    `src/driver/index.ts:3: '../core/index.js': driver may not import core; allowed: driver, ` +
      'ground, ptx, native',
  ]);
});

test('a row that names no "what it may import" does not reach further down', () => {
  const complaints = check({ 'src/core/index.ts': `import '../driver/index.js';` });
  expect(complaints).toEqual([
    `src/core/index.ts:1: '../driver/index.js': core may not import driver; allowed: core, ` +
      'ground, runtime, ptx',
  ]);
});

test.each([
  ['a type import', `import type { A } from '../core/index.js';`],
  ['a re-export', `export { A } from '../core/index.js';`],
  ['a dynamic import', `const a = () => import('../core/index.js');`],
  ['an import type', `export type A = import('../core/index.js').A;`],
  ['a require', `const a = require('../core/index.js');`],
  ['the package by its own name', `import 'async-cuda/core';`],
])('%s counts', (_, text) => {
  const complaints = check({ 'src/runtime/a.ts': text });
  expect(complaints).toHaveLength(1);
  expect(complaints[0]).toContain('runtime may not import core');
});

test('a test obeys the table too', () => {
  const complaints = check({ 'src/ptx/a.test.ts': `import '../driver/index.js';` });
  expect(complaints).toHaveLength(1);
});

test('a pure compiler imports no builtin, and no package but those of its row', () => {
  const complaints = check({
    'src/ptx/a.ts': `import 'node:fs';\nimport 'koffi';`,
    'src/compiler/a.ts': `import 'path';\nimport 'acorn';`,
  });
  expect(complaints.map((c) => c.split(': ')[0])).toEqual([
    'src/compiler/a.ts:1',
    'src/ptx/a.ts:1',
    'src/ptx/a.ts:2',
  ]);
});

test('a package that is no dependency, a path outside src/ and a folder without a row are named', () => {
  const complaints = check({
    'src/driver/a.ts': `import 'esbuild';\nimport '../../test/b.js';`,
    'src/elsewhere/a.ts': '',
  });
  expect(complaints[0]).toContain(`'esbuild' is not one of package.json's dependencies (koffi)`);
  expect(complaints[1]).toContain('is outside src/');
  expect(complaints[2]).toContain('src/elsewhere is in no row');
});

test('text that only looks like an import is none', () => {
  const complaints = check({
    'src/ptx/a.ts': 'const a = `import "node:fs"`; const b = /require("fs")/; // import "x"',
  });
  expect(complaints).toEqual([]);
});
