/**
 * V8's code of the threads' script, kept on disk when a device is closed, and taken when the next
 * thread starts.
 */
import { mkdtemp, readFile, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { i32 } from 'async-cuda/core';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { DiskCache } from '../../src/runtime/disk-cache.js';
import { ELEMENTWISE } from './kernels/elementwise.js';
import { openTestDevice } from './test-device.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'async-cuda-code-'));
  process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
});

afterEach(async () => {
  delete process.env['ASYNC_CUDA_CACHE_DIR'];
  delete process.env['ASYNC_CUDA_CACHE_DISABLE'];
  await rm(folder, { recursive: true, force: true });
});

/** Opens a device in a thread of its own, has it do something, and closes it. */
async function runs(): Promise<void> {
  await using device = await openTestDevice();
  await using module = await device.loadModule(ELEMENTWISE);
  using buffer = device.alloc(i32, 4);
  buffer.fill(device.stream, 1);
  module.kernel('add1').launch(device.stream, { grid: 1, block: 4 }, buffer, 4);
  expect([...(await buffer.read(device.stream))]).not.toEqual([1, 1, 1, 1]);
}

async function kept(): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.code'));
  expect(names).toHaveLength(1);
  return join(folder, names[0]!);
}

test('is written by the first thread and read by the second', async () => {
  await runs();
  const path = await kept();
  const { ino, size } = await stat(path);
  expect(size).toBeGreaterThan(100_000);
  await runs();
  expect((await stat(await kept())).ino).toBe(ino);
});

test.each<[string, (path: string) => Promise<void>]>([
  ['cut off', (path) => truncate(path, 50_000)],
  [
    'whole, and no code of this V8',
    async (path) =>
      new DiskCache(folder).set(path.slice(folder.length + 1), new Uint8Array(100_000).fill(1)),
  ],
])('a file that is %s is replaced', async (_, spoil) => {
  await runs();
  const path = await kept();
  const { size } = await stat(path);
  await spoil(path);
  await runs();
  expect(await kept()).toBe(path);
  expect((await readFile(path)).length).toBeGreaterThan(size / 2);
});

test('is not written where the environment disables it', async () => {
  process.env['ASYNC_CUDA_CACHE_DISABLE'] = '1';
  await runs();
  expect(await readdir(folder)).toEqual([]);
});
