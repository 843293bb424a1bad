import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';

import type { Machine } from './find.js';
import { loadKoffi } from './koffi.js';
import { KNOWN_LIBRARIES, howToGet } from './libraries.js';
import type { LibraryRow } from './libraries.js';
import { LibraryNotFoundError } from './library-not-found.js';
import { findFunction, openLibrary } from './open-library.js';

const nowhere: Machine = {
  platform: 'linux',
  arch: 'x64',
  env: {},
  home: '/nowhere',
  root: '/nowhere',
};
/** A library that every Linux has, as if it were NVIDIA's. */
const libc: LibraryRow = {
  name: 'the C library',
  base: 'c',
  versions: ['6'],
  windows: [],
  from: 'package',
  environment: ['ASYNC_CUDA_LIBC'],
};

function failure(open: () => unknown): LibraryNotFoundError {
  try {
    open();
  } catch (error) {
    if (error instanceof LibraryNotFoundError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

test.runIf(process.platform === 'linux')(
  'a library that only the loader knows is found by its name',
  () => {
    const { library, path } = openLibrary(loadKoffi(), libc, { machine: nowhere });
    expect(path).toBe('libc.so.6');
    expect(findFunction(library, 'int abs(int x)')).toBeTypeOf('function');
    expect(findFunction(library, 'int async_cuda_has_no_such_function(int x)')).toBeUndefined();
  },
);

test('a library that is not there: every path, and how to get it', () => {
  const missing: LibraryRow = { ...KNOWN_LIBRARIES.nvrtc, base: 'async-cuda-has-none' };
  const error = failure(() => openLibrary(loadKoffi(), missing, { machine: nowhere }));
  const tried = error.tried.map(({ path }) => path);
  // The printed error has one list, also as the cause of the error on another thread.
  const whole = new Error(error.message, {
    cause: LibraryNotFoundError.from(error.message, error.tried),
  });
  expect(
    inspect(whole).split('/nowhere/usr/local/cuda/lib64/libasync-cuda-has-none.so.13'),
  ).toHaveLength(2);
  for (const path of [
    '/nowhere/usr/local/cuda/lib64/libasync-cuda-has-none.so.13',
    'libasync-cuda-has-none.so.13',
  ])
    expect(tried).toContain(path);
  for (const path of tried) expect(error.message).toContain(path);
  expect(error.message).toContain(
    'pip install nvidia-cuda-nvrtc` (for older CUDA: nvidia-cuda-nvrtc-cu12, ' +
      'nvidia-cuda-nvrtc-cu11)',
  );
  expect(error.message).toContain('ASYNC_CUDA_NVRTC');
});

test("a file that is named is the only one tried, and the error has the loader's reason", () => {
  const path = fileURLToPath(import.meta.url);
  expect(failure(() => openLibrary(loadKoffi(), libc, { path })).tried).toEqual([
    { path, reason: expect.stringMatching(/invalid ELF header|not a/) },
  ]);
  expect(
    failure(() =>
      openLibrary(loadKoffi(), libc, { machine: { ...nowhere, env: { ASYNC_CUDA_LIBC: path } } }),
    ).tried.map((each) => each.path),
  ).toEqual([path]);
});

test.each(Object.entries(KNOWN_LIBRARIES))('%s can be got', (_, row: LibraryRow) => {
  const advice = howToGet(row);
  expect(advice).toMatch(row.from === 'driver' ? /Install the NVIDIA driver/ : /Install it with /);
  expect(advice).toContain(row.environment[0]!);
});
