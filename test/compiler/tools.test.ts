/**
 * Texts of functions that tools have changed, read back: each gives the same tree as the original
 * text.
 */
import { transform as swc } from '@swc/wasm';
import { build as esbuildBuild, transform as esbuild, type TransformOptions } from 'esbuild';
import { createInstrumenter } from 'istanbul-lib-instrument';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rollup } from 'rollup';
import { minify } from 'terser';
import ts from 'typescript';
import { build as viteBuild } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import webpack from 'webpack';
import {
  readKernel,
  type KernelSource,
  type Signature,
  type SignatureEntry,
} from '../../src/compiler/index.js';
import type { StorageType } from '../../src/compiler/tree.js';
import {
  threadsForAxes,
  type CutAxis,
  type TensorForm,
  type TileForm,
} from '../../src/compiler/tiles/tile-form.js';
import { tileSource } from '../../src/compiler/tiles/tile-source.js';
import { sameTree } from './same-tree.test-support.js';
import { someOf } from '../random-runs.js';

const tensor = (storage: StorageType, rank = 1): SignatureEntry => ({
  kind: 'tensor',
  element: { storage },
  access: 'inout',
  rank,
});
const scalar = (storage: StorageType): SignatureEntry => ({ kind: 'scalar', storage });

const point = {
  fields: [
    { name: 'x', storage: 'f32', offset: 0 },
    { name: 'y', storage: 'f32', offset: 4 },
  ],
  bytes: 8,
  align: 4,
} as const;

/**
 * Sources as users write them. Products are not put into variables of their own where sums are made
 * of them: minifiers would fuse these.
 */
const kernels: Record<
  string,
  { source: string; signature: Signature; uses?: KernelSource['uses'] }
> = {
  saxpy: {
    signature: { y: tensor('f32'), a: scalar('f32'), x: tensor('f32') },
    source: `({ y, a, x }, gpu) => {
      const i = gpu.globalId.x;
      if (i < y.length) y[i] = a * x[i] + y[i];
    }`,
  },
  renamed: {
    signature: { y: tensor('f32'), x: tensor('i32') },
    source: `function ({ y: out, x: input }, { globalId, f32, gridDim, blockDim }) {
      const n = out.length;
      for (let i = globalId.x; i < n; i += gridDim.x * blockDim.x) {
        out[i] = f32(input[i]) * 0.5;
      }
    }`,
  },
  whole: {
    signature: { y: tensor('f32'), x: tensor('f32') },
    source: `function whole(args, gpu) {
      "use strict";
      const t = gpu.threadIdx;
      const { x: b } = gpu.blockIdx;
      if (t.x >= args.y.length) return;
      args.y[t.x + b] = Math.max(args.x[t.x], 0.0);
    }`,
  },
  loops: {
    signature: { y: tensor('f32'), x: tensor('f32'), n: scalar('i32') },
    source: `({ y, x, n }, gpu) => {
      const i = gpu.globalId.x;
      let sum = 0;
      let last = 0;
      outer: for (let k = 0; k < n; k++) {
        const v = x[k];
        if (v < 0) continue;
        for (let j = 0; j < k; j++) {
          const w = x[j];
          if (w === v) break outer;
          sum += v * w;
        }
        for (let j = 0; j < 4; ++j) last = j;
      }
      while (last > 0) { last -= 1; sum *= 2; }
      y[i] = sum;
    }`,
  },
  blocks: {
    signature: { y: tensor('f32'), n: tensor('i32'), x: tensor('f32') },
    source: `({ y, n, x }, gpu) => {
      const i = gpu.globalId.x;
      if (x[i] > 0) { const v = x[i]; y[i] = v + v; n[i] += 3; }
      if (x[i] < 0) { const v = n[i]; n[v] = v * v; y[v] = -1; }
    }`,
  },
  tile: {
    signature: { m: tensor('f32', 2), t: tensor('f32', 2) },
    uses: { TILE: 16 },
    source: `({ m, t }, gpu) => {
      const tile = gpu.shared.f32(gpu.TILE, gpu.TILE + 1);
      const { x, y } = gpu.threadIdx;
      const row = gpu.blockIdx.y * gpu.TILE + y;
      const column = gpu.blockIdx.x * gpu.TILE + x;
      tile[y][x] = m[row][column];
      gpu.block.sync();
      t[column][row] = tile[x][y];
    }`,
  },
  choices: {
    signature: { y: tensor('i32'), x: tensor('i32') },
    source: `({ y, x }, gpu) => {
      const i = gpu.globalId.x;
      const v = x[i];
      let k = 0;
      switch (v & 3) {
        case 0: k = 5; break;
        case 1: k = v > 100 ? 1 : 2; break;
        default: k = 7;
      }
      if (v === 12 && k !== 5) y[i] = k;
      else if (!(v < 9) || k === 5) y[i] = -k;
      y[i + 1] = v > 3 && v < 8 ? 1 : 0;
    }`,
  },
  groups: {
    signature: { y: tensor('f32'), c: tensor('i32') },
    source: `({ y, c }, gpu) => {
      const warp = gpu.warp;
      const total = warp.sum(y[gpu.globalId.x]);
      if (gpu.lane === 0) {
        gpu.atomicAdd(y, 0, total);
        gpu.atomicMax(c, 1, gpu.i32(total));
      }
      console.log('total', total);
      console.assert(total > 0, 'not above zero');
    }`,
  },
  structures: {
    signature: {
      p: { kind: 'tensor', element: { struct: point }, access: 'inout', rank: 1 },
      by: { kind: 'struct', struct: point },
    },
    uses: { scaled: { text: '(p, s) => ({ x: p.x * s, y: p.y * s })', uses: {} } },
    source: `({ p, by }, gpu) => {
      const i = gpu.globalId.x;
      const moved = gpu.scaled(p[i], 2);
      moved.x > 0 && moved.x < 9 ? p[i].x = moved.x + by.x : p[i].y = moved.y;
    }`,
  },
  truncated: {
    signature: { n: tensor('i32'), y: tensor('f32') },
    source: `({ n, y }, gpu) => {
      const i = gpu.globalId.x;
      n[i] = y[i] | 0;
      n[i + 1] = y[i] * 2 | 0;
    }`,
  },
  flags: {
    signature: { y: tensor('bool'), x: tensor('f32') },
    source: `({ y, x }, gpu) => {
      const i = gpu.globalId.x;
      let found = false;
      for (;;) {
        if (x[i] > Infinity || x[i] !== x[i]) { found = true; break; }
        x[i] *= 1e6;
        x[i] -= 0xff;
      }
      y[i] = found;
      gpu.unroll(4);
      for (let k = 0; k < 16; k++) x[k] = void 0 === undefined ? 1 : 2;
    }`,
  },
};
// A comparison with undefined is no kernel; what is tested is everything else of that loop.
kernels.flags!.source = kernels.flags!.source.replace('void 0 === undefined ? 1 : 2', '1 / 4');

const cutAxis = (name: string, cut: CutAxis['cut'] = 'blocks'): CutAxis => ({
  name,
  tile: 16,
  extent: 64,
  widest: 1,
  cut,
});
const run = (row: number | undefined, column: number | undefined): TensorForm => ({
  access: 'run',
  outer: [],
  row,
  column,
  rank: 2,
});
/** `m` by `n`, and an axis `k` that blocks walk. */
const cut: TileForm = {
  ...threadsForAxes(
    [cutAxis('m'), cutAxis('n'), cutAxis('k', 'walk')],
    [
      [0, 1],
      [0, 2],
      [2, 1],
    ],
  )!,
  broadcast: false,
  tensors: { c: run(0, 1), d: run(0, undefined), a: run(0, 2), b: run(2, 1), x: run(0, 1) },
};
const tileSignature: Signature = {
  ...Object.fromEntries(
    ['c', 'd'].map((name) => [name, { ...tensor('f32'), access: 'output' } as SignatureEntry]),
  ),
  ...Object.fromEntries(
    ['a', 'b', 'x'].map((name) => [name, { ...tensor('f32'), access: 'input' } as SignatureEntry]),
  ),
  scale: scalar('f32'),
};

/** Bodies of tile kernels. */
const tiles: Record<string, string> = {
  softmaxOfTiles: `({ c, x }, tile) => {
    const v = x.load();
    const e = Math.exp(v - tile.max(v, 1));
    c.store(e / tile.sum(e, 1));
  }`,
  severalStores: `({ c, d, x, scale }, { sum, max }) => {
    let v = x.load();
    v = v * scale;
    v = v + 1;
    c.store(v);
    d.store(sum(v, 1) + max(v, 1));
  }`,
  givenLater: `({ c, x }, tile) => {
    let v;
    v = x.load();
    let w;
    w = v * Math.abs(v);
    c.store(w * Math.exp(w));
  }`,
  productOfTiles: `({ c, a, b }, tile) => {
    let sum = 0;
    for (const part of tile.over('k')) sum = tile.dot(a.load(part), b.load(part), sum);
    c.store(sum);
  }`,
  twoLoops: `({ c, d, a, b, x, scale }, tile) => {
    const first = x.load();
    let most = -Infinity;
    let weight = 0;
    let sums = 0;
    for (const part of tile.over('k')) {
      const v = a.load(part);
      const higher = Math.max(most, tile.max(v, 1));
      weight = weight * Math.exp(most - higher) + tile.sum(Math.exp(v - higher), 1);
      sums = tile.dot(v, b.load(part), sums * scale);
      most = higher;
    }
    for (const part of tile.over('k')) {
      const v = a.load(part);
      weight += tile.sum(v / scale, 1);
    }
    d.store(weight);
    c.store(sums + first);
  }`,
};

/** All of them in one script, which leaves the functions where `evaluate` finds them. */
const script = `globalThis.kernelsOfTools = {};
${Object.entries(kernels)
  .map(([name, { source }]) => `globalThis.kernelsOfTools.${name} = ${source};`)
  .join('\n')}
${Object.entries(tiles)
  .map(([name, source]) => `globalThis.kernelsOfTools.${name} = ${source};`)
  .join('\n')}
globalThis.kernelsOfTools.method = {
  saxpy({ y, a, x }, gpu) {
    const i = gpu.globalId.x; if (i < y.length) y[i] = a * x[i] + y[i];
  },
}.saxpy;
`;

function evaluate(code: string): Record<string, unknown> {
  const scope = globalThis as { kernelsOfTools?: Record<string, unknown> };
  delete scope.kernelsOfTools;
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  new Function('exports', 'module', code)({}, {});
  return scope.kernelsOfTools!;
}

const treeOf = (name: string, text: string): string => {
  if (Object.hasOwn(tiles, name)) {
    const { d, ...others } = tileSignature;
    const signature = tiles[name]!.includes('d.store(') ? { d: d!, ...others } : others;
    return sameTree(
      readKernel(tileSource({ name, signature, text, uses: {}, indexType: 'i32' }, cut)),
    );
  }
  const { signature, uses } = kernels[name === 'method' ? 'saxpy' : name]!;
  return sameTree(readKernel({ name, signature, text, uses: uses ?? {}, indexType: 'i32' }));
};

const transpiled =
  (target: ts.ScriptTarget, module = ts.ModuleKind.ESNext) =>
  () =>
    ts.transpileModule(script, { compilerOptions: { target, module } }).outputText;
const byEsbuild = (options: TransformOptions) => async () => (await esbuild(script, options)).code;
const bySwc =
  (target: 'es5' | 'es2015' | 'es2022', minified = false) =>
  async () =>
    (
      await swc(script, {
        swcrc: false,
        configFile: false,
        sourceMaps: false,
        minify: minified,
        jsc: {
          target,
          parser: { syntax: 'ecmascript' },
          ...(minified && { minify: { compress: true, mangle: true } }),
        },
      })
    ).code;
const instrumented = (code: string): string =>
  createInstrumenter({ esModules: false, compact: false, produceSourceMap: false }).instrumentSync(
    code,
    '/kernels.js',
  );

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'async-cuda-tools-'));
  writeFileSync(join(folder, 'entry.js'), script);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bundledByWebpack = (mode: 'production' | 'development', target: string) => () =>
  new Promise<string>((resolve, reject) => {
    const filename = `webpack-${mode}-${target}.js`;
    webpack(
      {
        mode,
        entry: join(folder, 'entry.js'),
        output: { path: folder, filename },
        target: ['web', target],
        devtool: false,
        cache: false,
      },
      (error, stats) => {
        if (error !== null || stats?.hasErrors() === true)
          reject(error ?? new Error(stats!.toString()));
        else resolve(readFileSync(join(folder, filename), 'utf8'));
      },
    );
  });

const tools: Record<string, () => string | Promise<string>> = {
  'tsc, ES5': transpiled(ts.ScriptTarget.ES5),
  'tsc, ES5, CommonJS': transpiled(ts.ScriptTarget.ES5, ts.ModuleKind.CommonJS),
  'tsc, ES2015': transpiled(ts.ScriptTarget.ES2015),
  'tsc, ES2022': transpiled(ts.ScriptTarget.ES2022),
  'tsc, ES2022, CommonJS': transpiled(ts.ScriptTarget.ES2022, ts.ModuleKind.CommonJS),
  'tsc, ES5, then terser': async () =>
    (await minify(transpiled(ts.ScriptTarget.ES5)(), { compress: true, mangle: true })).code!,
  esbuild: byEsbuild({}),
  'esbuild, minify': byEsbuild({ minify: true }),
  'esbuild, keepNames': byEsbuild({ keepNames: true }),
  'esbuild, minify and keepNames': byEsbuild({ minify: true, keepNames: true }),
  'esbuild, ES2015, minify': byEsbuild({ minify: true, target: 'es2015' }),
  'esbuild, bundle': async () =>
    (
      await esbuildBuild({
        stdin: { contents: script },
        bundle: true,
        minify: true,
        write: false,
        format: 'iife',
      })
    ).outputFiles[0]!.text,
  tsx: byEsbuild({
    loader: 'ts',
    keepNames: true,
    minifyWhitespace: true,
    target: 'node20',
    format: 'cjs',
  }),
  terser: async () => (await minify(script, { compress: true, mangle: true })).code!,
  'terser, three passes, module': async () =>
    (
      await minify(script, {
        compress: { passes: 3, unsafe_math: false },
        mangle: { toplevel: true },
        module: true,
      })
    ).code!,
  'swc, ES5': bySwc('es5'),
  'swc, ES5, minify': bySwc('es5', true),
  'swc, ES2015': bySwc('es2015'),
  'swc, ES2022, minify': bySwc('es2022', true),
  'webpack, production': bundledByWebpack('production', 'es2020'),
  'webpack, production, ES5': bundledByWebpack('production', 'es5'),
  'webpack, development': async () => {
    const code = await bundledByWebpack('development', 'es2020')();
    return code;
  },
  'vite build': async () => {
    const built = await viteBuild({
      root: folder,
      configFile: false,
      logLevel: 'silent',
      build: {
        write: false,
        rollupOptions: { input: join(folder, 'entry.js'), output: { format: 'iife' } },
      },
    });
    const [{ output }] = (Array.isArray(built) ? built : [built]) as {
      output: { code: string }[];
    }[] as [{ output: { code: string }[] }];
    return output[0]!.code;
  },
  rollup: async () => {
    const bundle = await rollup({ input: join(folder, 'entry.js') });
    return (await bundle.generate({ format: 'iife' })).output[0].code;
  },
  istanbul: () => instrumented(script),
  'istanbul, after tsc to ES5': () => instrumented(transpiled(ts.ScriptTarget.ES5)()),
  'istanbul, then esbuild': async () =>
    (await esbuild(instrumented(script), { keepNames: true })).code,
  'istanbul, then terser': async () =>
    (await minify(instrumented(script), { compress: true, mangle: true })).code!,
};

describe('the text that a tool leaves gives the tree of the untouched text', () => {
  const untouched = evaluate(script);
  const names = Object.keys(untouched);
  const expected = new Map(names.map((name) => [name, treeOf(name, String(untouched[name]))]));

  someOf(2, it)(Object.keys(tools))(
    '%s',
    async (tool) => {
      const functions = evaluate(await tools[tool]!());
      expect(Object.keys(functions)).toEqual(names);
      for (const name of names)
        expect(treeOf(name, String(functions[name])), name).toBe(expected.get(name));
    },
    60_000,
  );

  it('esbuild, to ES2015: powers', { tags: 'thorough' }, async () => {
    const cube = '({ y, x }) => { y[0] = x[0] ** 3; y[1] **= 2; }';
    const { code } = await esbuild(`globalThis.kernelsOfTools = { cube: ${cube} };`, {
      target: 'es2015',
    });
    const textTree = (text: string): string =>
      sameTree(
        readKernel({
          name: 'cube',
          signature: { y: tensor('f32'), x: tensor('f32') },
          text,
          uses: {},
          indexType: 'i32',
        }),
      );
    expect(String(evaluate(code).cube)).toContain('__pow(');
    expect(textTree(String(evaluate(code).cube))).toBe(textTree(cube));
  });

  it('vitest, of this file', () => {
    // eslint-disable-next-line @typescript-eslint/no-explicit-any -- vitest removes types
    const saxpy = ({ y, a, x }: any, gpu: any): void => {
      const i = gpu.globalId.x;
      if (i < y.length) y[i] = a * x[i]! + y[i]!;
    };
    expect(treeOf('saxpy', String(saxpy))).toBe(expected.get('saxpy'));
  });
});
