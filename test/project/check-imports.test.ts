/** The rules of .dependency-cruiser.mjs, on fabricated trees: each must be able to fail. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cruise, type ICruiseResult, type IConfiguration } from 'dependency-cruiser';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';
import { afterEach, expect, test } from 'vitest';

const configPath = fileURLToPath(new URL('../../.dependency-cruiser.mjs', import.meta.url));
const { default: config, layers } = (await import(configPath)) as {
  default: IConfiguration & { forbidden: { name: string }[] };
  layers: Record<string, unknown>;
};

const trees: string[] = [];
afterEach(() => {
  for (const tree of trees.splice(0)) rmSync(tree, { recursive: true });
});

function plant(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'check-imports-'));
  trees.push(root);
  const all = {
    'package.json': JSON.stringify({
      name: 'async-cuda',
      type: 'module',
      dependencies: { koffi: '1.0.0', acorn: '1.0.0' },
      devDependencies: { esbuild: '1.0.0' },
    }),
    'tsconfig.json': JSON.stringify({
      compilerOptions: {
        module: 'nodenext',
        verbatimModuleSyntax: true,
        baseUrl: root,
        paths: { 'async-cuda': ['./src/index.ts'], 'async-cuda/*': ['./src/*/index.ts'] },
      },
    }),
    ...Object.fromEntries(
      ['koffi', 'acorn', 'esbuild', 'vitest'].flatMap((name) => [
        [`node_modules/${name}/package.json`, JSON.stringify({ name, main: 'index.js' })],
        [`node_modules/${name}/index.js`, ''],
      ]),
    ),
    ...Object.fromEntries(Object.keys(layers).map((name) => [indexOf(name), 'export {};'])),
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

const indexOf = (layer: string) =>
  layer.endsWith('.ts') ? `src/${layer}` : `src/${layer}/index.ts`;

/** `rule: from -> to` of each violation in a tree of these files, with types or without. */
async function check(files: Record<string, string>, withTypes = true): Promise<string[]> {
  const root = plant(files);
  const { output } = await cruise(
    ['src'],
    {
      ...config.options,
      tsConfig: { fileName: join(root, 'tsconfig.json') },
      ruleSet: { forbidden: config.forbidden },
      validate: true,
      baseDir: root,
      tsPreCompilationDeps: withTypes,
    } as Parameters<typeof cruise>[1],
    {},
    { tsConfig: extractTSConfig(join(root, 'tsconfig.json')) as object },
  );
  return (output as ICruiseResult).summary.violations
    .map(({ rule, from, to }) => `${rule.name}: ${from} -> ${to}`)
    .sort();
}

test('the command prints the violations and fails', { tags: 'thorough' }, () => {
  const bin = fileURLToPath(
    new URL('../../node_modules/dependency-cruiser/bin/dependency-cruise.mjs', import.meta.url),
  );
  const flags = ['--ts-pre-compilation-deps', '--ts-config', 'tsconfig.json'];
  const run = (files: Record<string, string>) =>
    spawnSync(process.execPath, [bin, ...['--config', configPath], ...flags, 'src'], {
      cwd: plant(files),
      encoding: 'utf8',
    });
  const bad = run({ 'src/ptx/a.ts': `import '../core/index.js';` });
  expect(bad.stdout).toMatch(/error ptx-imports-below: src\/ptx\/a\.ts → src\/core\/index\.ts/);
  expect(bad.status).not.toBe(0);
  expect(run({}).status).toBe(0);
});

test('imports down the layers, of builtins and of dependencies pass', async () => {
  const violations = await check({
    'src/ptx/index.ts': `export * from './parse.js';`,
    'src/ptx/parse.ts': `export const parse = 1;`,
    'src/ptx/parse.test.ts':
      `import { readFileSync } from 'node:fs'; ` + `import { test } from 'vitest';`,
    'src/compiler/index.ts': `import 'acorn';`,
    'src/driver/index.ts': `import '../ptx/index.js'; import 'node:fs'; import koffi from 'koffi';`,
    'src/core/index.ts': `import type { a } from '../runtime/index.js'; import '../ptx/index.js';`,
    'src/library/index.ts':
      `import '../tensor/index.js'; import '../ops/index.js'; import '../core/index.js'; ` +
      `import '../compiler/index.js';`,
    'src/index.ts': `export * from './device/index.js'; import 'async-cuda/driver';`,
  });
  expect(violations).toEqual([]);
});

test('an import up the layers is a violation', async () => {
  const violations = await check({
    'src/driver/index.ts': `import '../ptx/index.js';\n\nimport '../core/index.js';`,
  });
  expect(violations).toEqual(['driver-imports-below: src/driver/index.ts -> src/core/index.ts']);
});

test('the comment of a rule lists what the layer may import', () => {
  const rule = config.forbidden.find(({ name }) => name === 'driver-imports-below');
  expect(rule).toMatchObject({ comment: 'src/driver may import driver, ground, ptx, native.' });
});

test('a row without "what it may import" does not allow lower layers', async () => {
  const violations = await check({ 'src/core/index.ts': `import '../driver/index.js';` });
  expect(violations).toEqual(['core-imports-below: src/core/index.ts -> src/driver/index.ts']);
});

test('a file that is no door is imported by its layer, tests and threads only', async () => {
  const violations = await check({
    'src/core/hidden.ts': `export const hidden = 1;`,
    'src/core/index.ts': `export * from './hidden.js';`,
    'src/ops/index.ts': `import '../core/index.js'; import '../core/hidden.js';`,
    'src/ops/index.test.ts': `import '../core/hidden.js';`,
    'src/tensor/thread/main.ts': `import '../../core/hidden.js';`,
  });
  expect(violations).toEqual(['core-through-its-doors: src/ops/index.ts -> src/core/hidden.ts']);
});

test.each([
  ['a type import', `import type { A } from '../core/index.js';`],
  ['a re-export', `export { A } from '../core/index.js';`],
  ['a dynamic import', `export const a = () => import('../core/index.js');`],
  ['an import type', `export type A = import('../core/index.js').A;`],
  ['a require', `const a = require('../core/index.js');`],
  ['the package by its own name', `import 'async-cuda/core';`],
])('%s counts', { tags: 'thorough' }, async (_, text) => {
  const violations = await check({ 'src/runtime/a.ts': text });
  expect(violations).toEqual(['runtime-imports-below: src/runtime/a.ts -> src/core/index.ts']);
});

test('the table applies to tests, too', async () => {
  const violations = await check({ 'src/ptx/a.test.ts': `import '../driver/index.js';` });
  expect(violations).toEqual(['ptx-imports-below: src/ptx/a.test.ts -> src/driver/index.ts']);
});

test('a pure compiler has no builtin, its own or through another layer', async () => {
  const violations = await check({
    'src/ground/shown.ts': `import 'node:util';`,
    'src/ptx/a.ts': `import 'node:fs';`,
    'src/compiler/a.ts': `import 'path';`,
    'src/compiler/b.ts': `import '../ground/shown.js';`,
  });
  expect(violations.map((each) => each.split(' -> ')[0])).toEqual([
    'compiler-reaches-no-builtin: src/compiler/a.ts',
    'compiler-reaches-no-builtin: src/compiler/b.ts',
    'ptx-reaches-no-builtin: src/ptx/a.ts',
  ]);
});

test('a pure compiler imports no package but those of its row', async () => {
  const violations = await check({
    'src/ptx/a.ts': `import 'acorn';`,
    'src/compiler/a.ts': `import 'koffi';\nimport 'acorn';`,
  });
  expect(violations.map((each) => each.split(' -> ')[0])).toEqual([
    'compiler-packages: src/compiler/a.ts',
    'ptx-packages: src/ptx/a.ts',
  ]);
});

test('a package that is not a dependency is a violation, installed or not', async () => {
  const violations = await check({ 'src/driver/a.ts': `import 'esbuild';\nimport 'unheard-of';` });
  expect(violations.map((each) => each.split(' -> ')[0])).toEqual([
    'only-dependencies: src/driver/a.ts',
    'only-dependencies: src/driver/a.ts',
  ]);
});

test('a path outside src/ is a violation', async () => {
  const violations = await check({
    'src/driver/a.ts': `import '../../test/b.js';`,
    'test/b.ts': 'export {};',
  });
  expect(violations).toEqual(['nothing-outside-src: src/driver/a.ts -> test/b.ts']);
});

test('a folder without a row is a violation, and so is an import of it', async () => {
  const violations = await check({
    'src/elsewhere/a.ts': `import '../core/index.js';`,
    'src/driver/a.ts': `import '../elsewhere/a.js';`,
  });
  expect(violations).toEqual([
    'driver-imports-below: src/driver/a.ts -> src/elsewhere/a.ts',
    'every-folder-has-a-row: src/elsewhere/a.ts -> src/core/index.ts',
  ]);
});

test('a cycle by values is a violation, also one that types would shorten', async () => {
  const files = {
    'src/core/a.ts':
      `import { c } from './b.js'; ` + `import type { C } from './c.js'; export const a = c;`,
    'src/core/b.ts': `export { c } from './c.js';`,
    'src/core/c.ts': `import { a } from './a.js'; export type C = 1; export const c = () => a;`,
  };
  expect(await check(files, false)).toContain('no-cycle-by-values: src/core/a.ts -> src/core/b.ts');
});

test('types may refer to each other in a cycle within a folder, not across folders', async () => {
  const cycle = (other: string) => ({
    'src/core/a.ts': `import type { B } from './${other}'; export type A = B;`,
    [`src/core/${other.replace('.js', '.ts')}`]:
      `import type { A } from '${other.includes('/') ? '../a.js' : './a.js'}'; ` +
      `export type B = A;`,
  });
  expect(await check(cycle('b.js'))).toEqual([]);
  expect(await check(cycle('graphs/b.js'))).toEqual([
    'no-cycle-between-folders: src/core/a.ts -> src/core/graphs/b.ts',
  ]);
});

test('text that only looks like an import is none', async () => {
  const violations = await check({
    'src/ptx/a.ts': 'const a = `import "node:fs"`; const b = /require("fs")/; // import "x"',
  });
  expect(violations).toEqual([]);
});
