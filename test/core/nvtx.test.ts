/** NVTX ranges of labels, received by a stand-in for a profiler. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { i32, labelled } from 'async-cuda/core';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { NvtxTool } from '../../src/driver/libcuda/stand-in/nvtx-tool.js';
import { whyNoStandIn } from '../../src/driver/libcuda/stand-in/stand-in.js';
import { failure, openTestDevice, testDevice } from './test-device.js';

const source = new URL('../../src/core/index.ts', import.meta.url).pathname;

describe.skipIf(whyNoStandIn !== undefined)(`NVTX (${testDevice})`, () => {
  let folder: string;
  let tool: NvtxTool;
  const path = process.env['NVTX_INJECTION64_PATH'];

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'async-cuda-nvtx-'));
    tool = new NvtxTool(folder, 'tool');
    process.env['NVTX_INJECTION64_PATH'] = tool.path;
  });
  afterAll(() => {
    if (path === undefined) delete process.env['NVTX_INJECTION64_PATH'];
    else process.env['NVTX_INJECTION64_PATH'] = path;
    rmSync(folder, { recursive: true });
  });

  test('labels are ranges while a device is open whose options enable them', async () => {
    const queue = async (): Promise<void> => {
      const device = await openTestDevice();
      await labelled('not enabled', () => device.alloc(i32, 4).fill(device.stream, 1));
      await device.close();
    };
    await queue();
    expect(tool.take()).toEqual([]);

    const device = await openTestDevice({ nvtx: true });
    expect(tool.take()).toEqual(['attached']);
    using buffer = device.alloc(i32, 4);
    await labelled('outer', () => {
      buffer.fill(device.stream, 1);
      return labelled('inner', () => buffer.fill(device.stream, 2));
    });
    expect(() =>
      labelled('failing', () => {
        throw new Error('on the way');
      }),
    ).toThrow('on the way');
    expect(tool.take()).toEqual(['push outer', 'push inner', 'pop', 'pop', 'push failing', 'pop']);
    await device.close();
    await queue();
    expect(tool.take()).toEqual([]);
  });

  test('the environment enables them for every device', async () => {
    process.env['ASYNC_CUDA_NVTX'] = '1';
    try {
      const device = await openTestDevice();
      labelled('range', () => undefined);
      await device.close();
      const without = await openTestDevice({ nvtx: false });
      labelled('none', () => undefined);
      await without.close();
      expect(tool.take()).toEqual(['push range', 'pop']);
      process.env['ASYNC_CUDA_NVTX'] = 'yes';
      expect((await failure(() => openTestDevice())).message).toContain('ASYNC_CUDA_NVTX');
    } finally {
      delete process.env['ASYNC_CUDA_NVTX'];
    }
    expect((await failure(() => openTestDevice({ nvtx: 3 as never }))).message).toContain(
      'options.nvtx',
    );
  });

  test(
    'a process with a tool ends by itself; a missing tool is a warning',
    { tags: 'thorough' },
    async () => {
      const program = join(folder, 'program.mjs');
      const text = `
      import { CoreDevice, labelled } from '${source}';
      const device = await CoreDevice.open('${testDevice}', { nvtx: true });
      labelled('range', () => device.createStream());
      await device.close();
      console.log('done');`;
      await build({
        stdin: { contents: text, resolveDir: folder },
        outfile: program,
        bundle: true,
        format: 'esm',
        platform: 'node',
        external: ['koffi'],
        logLevel: 'silent',
      });
      const run = (env: Record<string, string>) =>
        promisify(execFile)(process.execPath, [program], {
          cwd: process.cwd(),
          env: { ...process.env, NODE_OPTIONS: '', ...env },
          timeout: 20_000,
        });
      expect(await run({})).toEqual({ stdout: 'done\n', stderr: '' });
      const { stdout, stderr } = await run({ NVTX_INJECTION64_PATH: '/nowhere/tool.so' });
      expect(stdout).toBe('done\n');
      expect(stderr).toContain(
        '[CUDA_NVTX] CudaWarning: no NVTX ranges: NVTX_INJECTION64_PATH names /nowhere/tool.so',
      );
    },
  );
});
