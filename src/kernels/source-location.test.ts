/** Kernels are located in the user's own file, whatever tool has changed it. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { captureStack } from '../core/call-stack.js';
import { locateText } from './source-location.js';
import type { SourceLocation } from './source-location.js';
import { someOf } from '../../test/random-runs.js';

/**
 * The types, the comment and the enum make the positions in the tools' output differ from the
 * user's.
 */
const APP = `import { captureStack, locateText } from './locate.mjs';

/** Parameters. */
interface Params {
  readonly y: Float32Array;
}
type Gpu = { readonly id: number };

function kernel(body: (params: Params, gpu: Gpu) => void): void {
  const text = Function.prototype.toString.call(body);
  const locator = locateText(text, captureStack(kernel));
  console.log(JSON.stringify(locator.at(text.indexOf('12345'))));
}

kernel(({ y }: Params, gpu: Gpu) => {
  const i: number = gpu.id as number;
  y[i] = 12345;
});

const before: (params: Params, gpu: Gpu) => void =
  ({ y }: Params, gpu: Gpu): void => { y[gpu.id + 1] = 12345 };
kernel(before);
kernel(({ y }: Params, gpu: Gpu): void => { y[gpu.id] = 12345 });
kernel(({ y }: Params, gpu: Gpu): void => { y[gpu.id] = 12345 });
`;

/** The place of 12345, for each call. */
const PLACES = APP.split('\n').flatMap((codeLine, index) =>
  codeLine.includes('= 12345')
    ? [{ line: index + 1, column: codeLine.indexOf('12345') + 1, codeLine }]
    : [],
);

let folder: string;
const at = (...parts: string[]): string => join(folder, ...parts);
const root = fileURLToPath(new URL('../../', import.meta.url));

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'source-location-')));
  const stdin = {
    contents: 'export * from "../core/call-stack.js"; export * from "./source-location.js";',
    resolveDir: fileURLToPath(new URL('.', import.meta.url)),
  };
  await build({
    stdin,
    outfile: at('locate.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  writeFileSync(at('app.ts'), APP);
  writeFileSync(at('package.json'), '{"type":"module"}');
});

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function run(file: string, node: readonly string[] = []): SourceLocation[] {
  const output = execFileSync(process.execPath, [...node, file], {
    encoding: 'utf8',
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SourceLocation);
}

const inApp = (): SourceLocation[] =>
  PLACES.map((place) => ({ file: at('app.ts'), ...place, original: true }));

function compile(out: string, options: ts.CompilerOptions): string {
  mkdirSync(at(out), { recursive: true });
  const { outputText, sourceMapText } = ts.transpileModule(APP, {
    fileName: at('app.ts'),
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, ...options },
  });
  writeFileSync(at(out, 'app.js'), outputText.replace('./locate.mjs', '../locate.mjs'));
  if (sourceMapText !== undefined)
    writeFileSync(at(out, 'app.js.map'), sourceMapText.replace('"app.ts"', '"../app.ts"'));
  return at(out, 'app.js');
}

test('a plain JavaScript file: the file itself', () => {
  const file = compile('plain', {});
  const lines = readFileSync(file, 'utf8').split('\n');
  const places = run(file);
  expect(places).toHaveLength(4);
  for (const place of places) {
    expect(place).toMatchObject({ file, original: true });
    expect(lines[place.line - 1]!.slice(place.column - 1)).toMatch(/^12345/);
    expect(place.codeLine).toBe(lines[place.line - 1]);
  }
  // The call distinguishes the two that are alike.
  expect(places.map((place) => place.line)).toEqual(
    [...places.map((place) => place.line)].sort((a, b) => a - b),
  );
});

test.each([[[]], [['--enable-source-maps']]])(
  "tsc's output, with a map beside it; node %s",
  (node) => {
    expect(run(compile('external', { sourceMap: true }), node)).toEqual(inApp());
  },
);

test(
  'what tsc writes for ES5 and CommonJS, with an inline map that holds the source',
  { tags: 'thorough' },
  async () => {
    const file = compile('es5', {
      target: ts.ScriptTarget.ES5,
      module: ts.ModuleKind.CommonJS,
      inlineSourceMap: true,
      inlineSources: true,
    });
    writeFileSync(at('es5', 'package.json'), '{"type":"commonjs"}');
    // require() of an ES module is not on every Node that is supported.
    const asCommon = readFileSync(file, 'utf8').replace(
      'require("../locate.mjs")',
      'require("./locate.cjs")',
    );
    writeFileSync(file, asCommon);
    await build({
      entryPoints: [at('locate.mjs')],
      outfile: at('es5', 'locate.cjs'),
      platform: 'node',
      format: 'cjs',
      logLevel: 'silent',
    });
    expect(
      run(file).map(({ line, column, codeLine, original }) => ({
        line,
        column,
        codeLine,
        original,
      })),
    ).toEqual(PLACES.map((place) => ({ ...place, original: true })));
  },
);

someOf(
  2,
  test,
)([
  ['inline', false],
  ['inline', true],
  ['linked', true],
] as const)('esbuild, %s map, minified: %s', async (sourcemap, minify) => {
  const outfile = at(`esbuild-${sourcemap}-${minify}`, 'app.mjs');
  await build({
    entryPoints: [at('app.ts')],
    outfile,
    bundle: true,
    minify,
    sourcemap,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  expect(run(outfile)).toEqual(inApp());
});

test('esbuild minified without a map: the line of the bundle', async () => {
  const outfile = at('esbuild-none', 'app.mjs');
  await build({
    entryPoints: [at('app.ts')],
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'silent',
  });
  const places = run(outfile);
  expect(places.map(({ file, original }) => ({ file, original }))).toEqual(
    places.map(() => ({ file: outfile, original: true })),
  );
  for (const { codeLine, column } of places) expect(codeLine.slice(column - 1)).toMatch(/^12345/);
});

test('tsx', () => {
  expect(run(at('app.ts'), [join(root, 'node_modules/tsx/dist/cli.mjs')])).toEqual(inApp());
});

const strips = (process.features as { typescript?: string | false }).typescript;

test.runIf(typeof strips === 'string')('types that Node strips', () => {
  expect(run(at('app.ts'))).toEqual(inApp());
});

test('webpack, modules in eval', { tags: 'thorough' }, async () => {
  const { default: webpack } = await import('webpack');
  const plain = ts.transpileModule(APP, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext },
  }).outputText;
  mkdirSync(at('webpack'), { recursive: true });
  writeFileSync(at('webpack', 'app.js'), plain.replace('./locate.mjs', '../locate.mjs'));
  for (const devtool of ['eval-source-map', 'eval', 'source-map'] as const) {
    const file = `out-${devtool}.cjs`;
    const compiler = webpack({
      mode: 'development',
      target: 'node',
      devtool,
      context: at('webpack'),
      entry: './app.js',
      output: { path: at('webpack'), filename: file },
      externalsPresets: { node: true },
    })!;
    await new Promise<void>((done, fail) => {
      compiler.run((error, stats) => {
        if (error !== null || stats?.hasErrors() === true)
          fail(error ?? new Error(stats?.toString()));
        else done();
      });
    });
    const lines = plain.split('\n');
    const places = run(at('webpack', file));
    expect(places).toHaveLength(4);
    for (const place of places) {
      // Without a map only the running text is left, and the place is marked so.
      expect([devtool, place.original]).toEqual([devtool, devtool !== 'eval']);
      expect(place.codeLine.slice(place.column - 1)).toMatch(/^12345/);
      if (devtool !== 'eval')
        expect(lines[place.line - 1]).toBe(place.codeLine.replace('../locate', './locate'));
    }
  }
});

function kernel(body: (y: Float32Array, i: number) => void): SourceLocation {
  const text = Function.prototype.toString.call(body);
  return locateText(text, captureStack(kernel)).at(text.indexOf('98765'));
}

test('vitest: this file', () => {
  const place = kernel((y: Float32Array, i: number): void => {
    const there = i as number;
    y[there] = 98765;
  });
  const file = fileURLToPath(import.meta.url);
  const lines = readFileSync(file, 'utf8').split('\n');
  const line = lines.findIndex((text) => text.includes('] = 98765;'));
  expect(place).toEqual({
    file,
    line: line + 1,
    column: lines[line]!.indexOf('98765') + 1,
    codeLine: lines[line],
    original: true,
  });
});

test('a function that another module gives', async () => {
  const file = join(folder, 'helper.mjs');
  writeFileSync(
    file,
    '// Another module.\n\nexport const helper = (x) => {\n  return x + 98764;\n};\n',
  );
  const { helper } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
    helper: (x: number) => number;
  };
  const text = Function.prototype.toString.call(helper);
  const place = locateText(text, captureStack(kernel)).at(text.indexOf('98764'));
  expect(place).toEqual({
    file,
    line: 4,
    column: 14,
    codeLine: '  return x + 98764;',
    original: true,
  });
});

test('a function of eval: the place is in its own text, and marked so', () => {
  const body = (0, eval)('(y, i) => {\n  y[i] = 98765;\n}') as (y: Float32Array, i: number) => void;
  const place = kernel(body);
  expect(place).toEqual({
    file: '<kernel>',
    line: 2,
    column: 10,
    codeLine: '  y[i] = 98765;',
    original: false,
  });
});

test("the text of an error's stack works too", () => {
  const file = compile('stack', { sourceMap: true });
  const text = readFileSync(file, 'utf8').split('kernel(')[2]!.split(';\n});')[0]! + ';\n}';
  const stack = `Error\n    at kernel (node:internal/x:1:1)\n    at file://${file}:14:1`;
  expect(locateText(text, stack).at(text.indexOf('12345'))).toEqual(inApp()[0]);
});
