import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import type { Plugin } from 'vitest/config';

const source = fileURLToPath(new URL('./src/', import.meta.url));

/**
 * What a run of the tests takes in: `vitest run` is `npm test`, `vitest run --mode thorough` is
 * `npm run test:thorough`, and `--mode all` is both at once, each test one time.
 */
const extents = {
  test: { tagsFilter: ['!thorough'], scale: '0.05', seed: '1' },
  thorough: { tagsFilter: ['thorough || scaled || random || base'], scale: '1', seed: '' },
  all: { tagsFilter: [], scale: '1', seed: '' },
};

/**
 * Files that need a process of their own: they replace modules or globals, listen for events of the
 * process, measure its memory or its garbage, end it, load libraries that stay in it, or need the
 * compiler not to be loaded yet. All other files share one process for each worker: to start one
 * and to import the sources there takes about a second of processor time, as long as most files
 * take themselves.
 */
const alone = [
  // Other files set flags of V8.
  'src/cli/engine-features.test.ts',
  'src/driver/cpu/check/samples.test.ts',
  'src/onnxruntime/options.test.ts',
  'src/runtime/own-files.test.ts',
  'test/core/{conditional,graph-parts,host-memory,pending,recycled-memory}.test.ts',
  'test/docs/**',
  'test/faults/{hostile-values,memory,misuse,overrun,paths,transfers,volume}.test.ts',
  'test/{inference,onnxruntime,tensorrt}/**',
  'test/kernels/{blocking,cache,calls,tuning}.test.ts',
  'test/nvrtc/compile.test.ts',
  'test/ops/{allocation-nodes,development}.test.ts',
  'test/packaging/**',
  'test/tensor/exchange.test.ts',
];

/**
 * The others, in groups that have processes of their own: a process keeps the modules of all files
 * that it has run.
 */
const shared = [
  ['src/**', 'bench/**'],
  ['test/{core,ops,tensor,kernels}/**'],
  // All that no other list has.
  ['{src,test,demo,examples,bench}/**'],
];

/**
 * V8's flags of the shared processes in `npm test`: kernels stay in V8's baseline code, and
 * functions of JavaScript have it from their first call. A test runs most of its kernels once: to
 * optimise them took more processor time than it saved, 9 s of 22 s in
 * test/library/attention.test.ts. The files of `alone` and the thorough tests run with V8's own
 * choice, as programs do.
 */
const baselineCode = ['--no-wasm-dynamic-tiering', '--no-wasm-tier-up', '--always-sparkplug'];

/** tsconfig.json decides what the sources become, and vitest does not look at it. */
const cacheKeys: Plugin = {
  name: 'tsconfig-in-cache-keys',
  configureVitest({ experimental_defineCacheKeyGenerator: define }) {
    const text = readFileSync(new URL('./tsconfig.json', import.meta.url), 'utf8');
    define(() => text);
  },
};

/** The glob of the tests among the files that a glob names. */
const testsIn = (glob: string): string => glob.replace('**', '**/*.test.ts');

export default defineConfig(({ mode }) => {
  if (!Object.hasOwn(extents, mode)) {
    throw new RangeError(`--mode is ${mode}; it must be ${Object.keys(extents).join(', ')}`);
  }
  const { tagsFilter, scale, seed } = extents[mode as keyof typeof extents];
  return {
    plugins: [cacheKeys],
    resolve: {
      // Tests import the package by its own name and get the sources, so that they never test an
      // old build.
      alias: [
        { find: /^async-cuda$/, replacement: `${source}index.ts` },
        { find: /^async-cuda\/([a-z0-9]+)$/, replacement: `${source}$1/index.ts` },
      ],
    },
    test: {
      projects: [
        ...shared.map((globs, at) => ({
          extends: true as const,
          // Without it vitest reads this file for a project as if there were no --mode.
          mode,
          test: {
            name: `shared ${at + 1}`,
            include: globs.map(testsIn),
            exclude: [...alone, ...shared.slice(0, at).flat()],
            isolate: false,
            execArgv: mode === 'test' ? baselineCode : [],
            // One group after the other: vitest ends a shared process where a file of another
            // project comes next.
            sequence: { groupOrder: at + 1 },
          },
        })),
        {
          extends: true,
          mode,
          test: { name: 'alone', include: alone.map(testsIn) },
        },
      ],
      tags: [
        {
          name: 'thorough',
          description: 'exhaustive or slow: npm run test:thorough',
          timeout: 300_000,
        },
        { name: 'base', description: 'what thorough tests build on: in both' },
        {
          name: 'scaled',
          description: 'goes through fewer rows where ASYNC_CUDA_TEST_SCALE is below 1',
        },
        {
          name: 'random',
          description: 'ASYNC_CUDA_TEST_SCALE times as many runs as it names',
          timeout: 300_000,
        },
      ],
      ...(tagsFilter.length === 0 ? {} : { tagsFilter }),
      // test/random-runs.ts reads them. The seed of `npm test` is always the same: a change is
      // known to be the cause of a failure. The thorough tests draw another one each time.
      env: {
        ASYNC_CUDA_TEST_SCALE: process.env['ASYNC_CUDA_TEST_SCALE'] ?? scale,
        ASYNC_CUDA_TEST_SEED: process.env['ASYNC_CUDA_TEST_SEED'] ?? seed,
      },
      // Each project transforms the sources by itself. With the cache one of them does, also in the
      // first run. `npx vitest --clearCache` removes it; it is in node_modules.
      experimental: { fsModuleCache: true },
      globalSetup: ['./scripts/vitest-setup.mjs'],
      setupFiles: ['./test/typed-array-equality.ts'],
      // Processes, not threads: a test that ends a device, or crashes a driver, takes only its own
      // file with it.
      pool: 'forks',

      // One GPU has one memory: a test that fills it would fail those beside it.
      fileParallelism: !(process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu').startsWith('cuda'),
      // One more than there are cores: tests wait for pauses and for processes that they start, a
      // tenth of the time on a machine with two cores. Vitest itself has little to do.
      maxWorkers: availableParallelism() + 1,
      // A machine may be loaded with four times the work that it has cores for.
      testTimeout: 120_000,
      hookTimeout: 180_000,
      teardownTimeout: 10_000,
    },
  };
});
