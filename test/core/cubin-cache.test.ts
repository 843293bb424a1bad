/** Compiled code that is kept on disk: a GPU's only, since the CPU device compiles in the time that reading takes. */
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Device} from 'async-cuda/core';
import { i32 } from 'async-cuda/core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { ELEMENTWISE } from './kernels/elementwise.js';
import { onCpu, openTestDevice } from './test-device.js';

describe('Compiled code', () => {
  let folder: string;
  let device: Device;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'async-cuda-kept-'));
    // Read when a thread of the device starts.
    process.env['ASYNC_CUDA_CACHE_DIR'] = folder;
    device = await openTestDevice();
  });
  afterAll(async () => {
    await device.close();
    delete process.env['ASYNC_CUDA_CACHE_DIR'];
    await rm(folder, { recursive: true, force: true });
  });

  async function runs(): Promise<void> {
    await using module = await device.loadModule(ELEMENTWISE);
    using buffer = device.alloc(i32, 4);
    buffer.fill(device.stream, 1);
    module.kernel('add1').launch(device.stream, { grid: 1, block: 4 }, buffer, 4);
    expect([...(await buffer.read(device.stream))]).not.toEqual([1, 1, 1, 1]);
  }

  test.runIf(onCpu)('is not kept for the CPU device', async () => {
    await runs();
    expect(await readdir(folder)).toEqual([]);
  });

  test.skipIf(onCpu)('is kept, taken again, and compiled anew where it is spoiled', async () => {
    await runs();
    const [name, ...others] = await readdir(folder);
    expect([name, others]).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.cubin$/), []]);
    await runs();
    const path = join(folder, name!);
    const whole = await readFile(path);
    await writeFile(path, whole.subarray(0, whole.length >> 1));
    await runs();
    expect((await readFile(path)).equals(whole)).toBe(true);
  });
});
