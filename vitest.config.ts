import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const source = fileURLToPath(new URL('./src/', import.meta.url));

export default defineConfig({
  resolve: {
    // Tests import the package by its own name and get the sources, so that they never test an old
    // build.
    alias: [
      { find: /^async-cuda$/, replacement: `${source}index.ts` },
      { find: /^async-cuda\/([a-z0-9]+)$/, replacement: `${source}$1/index.ts` },
    ],
  },
  test: {
    include: [
      'src/**/*.test.ts',
      'test/**/*.test.ts',
      'demo/**/*.test.ts',
      'examples/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    globalSetup: ['./scripts/vitest-setup.mjs'],
    // Processes, not threads: a test that ends a device, or crashes a driver, takes only its own
    // file with it.
    pool: 'forks',
    // One GPU has one memory: a test that fills it would fail those beside it.
    fileParallelism: !(process.env.ASYNC_CUDA_TEST_DEVICE ?? 'cpu').startsWith('cuda'),
    // Vitest leaves one core to itself, and has little to do: half of a machine with two.
    maxWorkers: availableParallelism(),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
  },
});
