import { build } from 'esbuild';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, test, vi } from 'vitest';

import { LibraryNotFoundError } from '../error.js';
import { koffiPath, openLibcuda } from './open.js';
import { buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

afterEach(() => vi.unstubAllEnvs());

function failure(open: () => unknown): LibraryNotFoundError {
  try {
    open();
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('where there is no driver', () => {
  test('a path that is not there is the only one tried', () => {
    const error = failure(() => openLibcuda({ path: '/nowhere/libcuda.so.1' }));
    expect(error.tried).toEqual([{ path: '/nowhere/libcuda.so.1', reason: 'no such file' }]);
    expect(error.message).toContain('Install the NVIDIA driver');
  });

  test('the path in ASYNC_CUDA_LIBCUDA is the only one tried', () => {
    vi.stubEnv('ASYNC_CUDA_LIBCUDA', '/nowhere/libcuda.so.1');
    expect(failure(() => openLibcuda()).tried).toEqual([
      { path: '/nowhere/libcuda.so.1', reason: 'no such file' },
    ]);
  });

  test("a file that is no library is listed with the loader's reason", () => {
    const path = fileURLToPath(import.meta.url);
    expect(failure(() => openLibcuda({ path })).tried).toEqual([
      { path, reason: expect.stringContaining('invalid ELF header') },
    ]);
  });

  test.skipIf(process.platform !== 'linux' || process.arch !== 'x64')(
    'every path is listed (Linux x64 only)',
    (context) => {
      let error: LibraryNotFoundError;
      try {
        error = failure(() => openLibcuda());
      } catch {
        context.skip('SKIPPED: this machine has a driver');
        return;
      }
      const tried = error.tried.map(({ path }) => path);
      expect(tried.slice(0, 2)).toEqual(['libcuda.so.1', 'libcuda.so']);
      for (const path of [
        '/usr/lib/x86_64-linux-gnu/libcuda.so.1',
        '/usr/lib/wsl/lib/libcuda.so.1',
        '/usr/local/cuda/compat/libcuda.so.1',
      ]) {
        expect(tried).toContain(path);
        expect(error.message).toContain(path);
      }
      expect(error.tried.every(({ reason }) => reason.length > 0)).toBe(true);
    },
  );
});

test('a missing koffi is an error that names what to install', () => {
  const error = failure(() => openLibcuda({ koffiPath: '/nowhere/koffi/index.cjs' }));
  expect(error.message).toContain('npm install koffi');
  expect(error.tried[0]).toMatchObject({ path: '/nowhere/koffi/index.cjs' });
});

describe('with a driver', () => {
  if (whyNoStandIn !== undefined) {
    test.skip(whyNoStandIn, () => {});
    return;
  }
  const path = buildStandIn(13000);

  test('ASYNC_CUDA_LIBCUDA is loaded', () => {
    vi.stubEnv('ASYNC_CUDA_LIBCUDA', path);
    const driver = openLibcuda();
    expect(driver.provider).toBe('libcuda');
    expect(driver.cuDriverGetVersion()).toBe(13000);
  });

  test('the library in the folder that ASYNC_CUDA_LIBCUDA names is loaded', () => {
    vi.stubEnv('ASYNC_CUDA_LIBCUDA', join(path, '..'));
    expect(openLibcuda().cuDriverGetVersion()).toBe(13000);
  });

  test(
    'in a Worker made from text, which resolves no packages, with the path that the main ' +
      'thread found',
    async () => {
      const bundle = await build({
        stdin: {
          contents: `
          import { openLibcuda } from './open.ts';
          import { parentPort, workerData } from 'node:worker_threads';
          parentPort.postMessage(openLibcuda(workerData).cuDriverGetVersion());`,
          resolveDir: fileURLToPath(new URL('.', import.meta.url)),
          loader: 'ts',
        },
        bundle: true,
        write: false,
        platform: 'node',
        format: 'cjs',
        external: ['koffi'],
        logLevel: 'silent',
      });
      const worker = new Worker(bundle.outputFiles[0]!.text, {
        eval: true,
        execArgv: [],
        workerData: { path, koffiPath: koffiPath() },
      });
      const answer = await new Promise((resolve, reject) =>
        worker.once('message', resolve).once('error', reject),
      );
      expect(answer).toBe(13000);
      await worker.terminate();
    },
  );
});
