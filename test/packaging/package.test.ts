/**
 * The package as users get it: packed, installed in an empty application, imported, required,
 * bundled and type-checked.
 */
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transform } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { bundlers } from './bundlers.js';
import { fixture, InstalledApp, repository } from './installed-app.js';

/**
 * Programs of fixture/, each with the source of the entry that it imports and what it prints when
 * all is well.
 */
const programs = [
  { file: 'ptx.mjs', entry: 'src/ptx/index.ts', prints: 'ptx: correct' },
  { file: 'driver.mjs', entry: 'src/driver/index.ts', prints: 'driver: correct' },
  { file: 'saxpy.mjs', entry: 'src/core/index.ts', prints: 'saxpy: correct' },
  { file: 'operations.mjs', entry: 'src/index.ts', prints: 'operations: correct' },
].filter(({ entry }) => existsSync(join(repository, entry)));

const haveCore = programs.some(({ file }) => file === 'saxpy.mjs');

/** The TypeScript examples of the front page, each a file of its own. */
const examples = [
  ...readFileSync(join(repository, 'README.md'), 'utf8').matchAll(/^```ts\n(.*?)^```$/gms),
].map(([, text], i) => ({
  file: `readme-${i + 1}.ts`,
  text: text ?? '',
  /** The expected output of its last console.log, from its comment. */
  prints: /console\.log\(.*\); \/\/ (.*)\s*$/.exec(text ?? '')?.[1] ?? 'nothing is said',
}));

let app: InstalledApp;
beforeAll(async () => {
  app = await InstalledApp.create();
}, 300_000);
afterAll(() => app?.remove());
afterEach(() => {
  vi.unstubAllEnvs();
});

test(
  'the tarball holds the build, the licences and the front page, and no more',
  { tags: 'thorough' },
  () => {
    const others = app.packed
      .map(({ path }) => path)
      .filter(
        (path) =>
          !/^dist\/.*\.(js|js\.map|d\.ts)$/.test(path) &&
          !/^(package\.json|README\.md|CHANGELOG\.md|LICENSE-(MIT|APACHE))$/.test(path),
      );
    expect(others).toEqual([]);
  },
);

test('no declaration of a test is in the tarball', { tags: 'thorough' }, () => {
  expect(app.packed.filter(({ path }) => /\.test[.-]|\/testing\//.test(path))).toEqual([]);
});

test('every file that package.json names is in the tarball', { tags: 'thorough' }, async () => {
  const manifest = JSON.parse(
    await readFile(join(app.folder, 'node_modules/async-cuda/package.json'), 'utf8'),
  ) as {
    exports: Record<string, string | Record<string, string>>;
    bin: Record<string, string>;
  };
  const named = [...Object.values(manifest.exports), manifest.bin].flatMap((v) =>
    typeof v === 'string' ? [v] : Object.values(v),
  );
  const packed = new Set(app.packed.map(({ path }) => `./${path}`));
  expect(named.filter((path) => !packed.has(path))).toEqual([]);
});

describe.each(programs)('program $file', ({ file, prints }) => {
  test('runs as an ES module', { tags: 'thorough' }, async () => {
    expect(await app.run(file)).toContain(prints);
  });

  test(
    'runs with require(), which takes an ES module without top-level await',
    { tags: 'thorough' },
    async () => {
      const program = await readFile(join(fixture, file), 'utf8');
      const required = program.replace(
        /^import (?:\* as )?(.*) from ('.*');$/gm,
        'const $1 = require($2);',
      );
      expect(required).not.toMatch(/^import/m);
      const name = file.replace('.mjs', '.cjs');
      await app.write(name, required);
      expect(await app.run(name)).toContain(prints);
    },
  );

  test.each(bundlers)('runs bundled by $name', { tags: 'thorough' }, async ({ name, bundle }) => {
    const out = join(app.folder, 'bundled', name.replace(/\W+/g, '-'));
    const bundled = await bundle(join(app.folder, file), out);
    expect(await app.run(bundled)).toContain(prints);
  });
});

test(
  'a thread that blocks compiles by itself, by require(), with nothing kept on disk',
  { tags: 'thorough' },
  async () => {
    vi.stubEnv('ASYNC_CUDA_CACHE_DISABLE', '1');
    expect(await app.run('blocking.mjs')).toContain('blocking: correct');
  },
);

test.runIf(haveCore).each(examples)(
  'the example $file runs',
  { tags: 'thorough' },
  async ({ file, text, prints }) => {
    const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node20.19' });
    const program = file.replace('.ts', '.mjs');
    await app.write(program, code);
    expect(await app.run(program)).toContain(prints);
  },
);

const compilers = [
  { version: '5.9', bin: 'typescript/bin/tsc' },
  { version: '6', bin: 'typescript-6/bin/tsc' },
  { version: '7', bin: 'typescript-7/bin/tsc' },
];
/** All that can be imported. */
const { exports } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { types: string }>;
};
const entries = Object.entries(exports).flatMap(([path, to]) =>
  typeof to === 'string' ? [] : [path.replace('.', 'async-cuda')],
);
const resolutions = [
  { module: 'nodenext', moduleResolution: 'nodenext' },
  { module: 'esnext', moduleResolution: 'bundler' },
];

describe.each(compilers)('the declarations under TypeScript $version', ({ version, bin }) => {
  test.each(resolutions)(
    'with moduleResolution $moduleResolution',
    { tags: 'thorough' },
    async ({ module, moduleResolution }) => {
      await app.write(
        'entries.ts',
        entries.map((entry, i) => `export * as e${i} from '${entry}';\n`).join(''),
      );
      const sources = ['entries.ts'];
      if (haveCore) {
        sources.push('consumer.ts', ...examples.map(({ file }) => file));
        for (const { file, text } of examples) await app.write(file, text);
      }
      const project = await app.write(
        `tsconfig.${version}.${moduleResolution}.json`,
        JSON.stringify({
          compilerOptions: {
            target: 'es2022',
            lib: ['es2022'],
            types: ['node'],
            module,
            moduleResolution,
            strict: true,
            exactOptionalPropertyTypes: true,
            skipLibCheck: false,
            noEmit: true,
          },
          files: sources,
        }),
      );
      await app.run(join(repository, 'node_modules', bin), '-p', project);
    },
  );
});
