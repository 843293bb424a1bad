import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

import { cacheFolder, makeFolder } from './cache-folder.js';

const home = (): string => '/home/ada';
const on = (platform: NodeJS.Platform, env: Record<string, string> = {}): string | undefined =>
  cacheFolder({ env, platform, home });

test.skipIf(process.platform === 'win32')('is where the platform keeps its caches', () => {
  expect(on('linux')).toBe('/home/ada/.cache/async-cuda');
  expect(on('linux', { XDG_CACHE_HOME: '/scratch' })).toBe('/scratch/async-cuda');
  expect(on('linux', { XDG_CACHE_HOME: 'relative' })).toBe('/home/ada/.cache/async-cuda');
  expect(on('darwin', { XDG_CACHE_HOME: '/scratch' })).toBe('/home/ada/Library/Caches/async-cuda');
  expect(on('win32', { LOCALAPPDATA: '/local' })).toBe('/local/async-cuda');
});

test('is what ASYNC_CUDA_CACHE_DIR names', () => {
  expect(on('linux', { ASYNC_CUDA_CACHE_DIR: '/kept', XDG_CACHE_HOME: '/scratch' })).toBe(
    resolve('/kept'),
  );
});

test('is none where ASYNC_CUDA_CACHE_DISABLE is set', () => {
  expect(
    on('linux', { ASYNC_CUDA_CACHE_DISABLE: '1', ASYNC_CUDA_CACHE_DIR: '/kept' }),
  ).toBeUndefined();
  for (const no of ['', '0']) expect(on('linux', { ASYNC_CUDA_CACHE_DISABLE: no })).toBeDefined();
});

test('is none for a user without a home', () => {
  const noHome = (): never => {
    throw new Error('no such user');
  };
  expect(cacheFolder({ env: {}, platform: 'linux', home: noHome })).toBeUndefined();
  expect(cacheFolder({ env: {}, platform: 'linux', home: () => '' })).toBeUndefined();
});

test.runIf(process.platform === 'linux')(
  'a folder is made with its parents; where it cannot be made, the attempt ends',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-folder-'));
    try {
      await makeFolder(join(folder, 'a', 'b', 'c'), 0o700);
      await makeFolder(join(folder, 'a', 'b', 'c'), 0o700);
      expect(statSync(join(folder, 'a', 'b', 'c')).mode & 0o777).toBe(0o700);
      await makeFolder('/proc/async-cuda/a/b', 0o700);
      expect(existsSync('/proc/async-cuda')).toBe(false);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
