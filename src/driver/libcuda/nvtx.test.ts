/** Ranges for profilers, on stand-ins for them. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { thisMachine } from '../../native/find.js';
import type { Machine } from '../../native/find.js';
import { openNvtx } from './nvtx.js';
import { NvtxTool } from './stand-in/nvtx-tool.js';
import { whyNoStandIn } from './stand-in/stand-in.js';

/** A machine without libraries. */
function machine(env: Record<string, string>): Machine {
  return { ...thisMachine(), home: '/nowhere', root: '/nowhere', env };
}

test('where there is neither a tool nor the library there are no ranges', () => {
  expect(openNvtx(machine({}))).toBeUndefined();
  expect(openNvtx(machine({ NVTX_INJECTION64_PATH: '' }))).toBeUndefined();
});

test('a tool that is not there is an error that names it', () => {
  expect(() => openNvtx(machine({ NVTX_INJECTION64_PATH: '/nowhere/tool.so' }))).toThrow(
    '/nowhere/tool.so',
  );
});

describe.skipIf(whyNoStandIn !== undefined)('NVTX', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'async-cuda-nvtx-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('a tool is attached as by NVTX 3, and gets the ranges in their order', () => {
    const tool = new NvtxTool(folder, 'tool');
    const nvtx = openNvtx(machine({ NVTX_INJECTION64_PATH: tool.path }))!;
    expect(tool.take()).toEqual(['attached']);
    nvtx.push('outer');
    nvtx.push('größer');
    nvtx.pop();
    nvtx.pop();
    expect(tool.take()).toEqual(['push outer', 'push größer', 'pop', 'pop']);
  });

  test('a tool without ranges gets none', () => {
    const tool = new NvtxTool(folder, 'idle tool');
    const nvtx = openNvtx(machine({ NVTX_INJECTION64_PATH: tool.path }))!;
    nvtx.push('range');
    nvtx.pop();
    expect(tool.take()).toEqual(['attached']);
  });

  test('a tool that refuses is an error', () => {
    const { path } = new NvtxTool(folder, 'refusing tool');
    expect(() => openNvtx(machine({ NVTX_INJECTION64_PATH: path }))).toThrow(
      'refuses to be attached to',
    );
  });

  test('libnvToolsExt is used where no tool is named', () => {
    const library = new NvtxTool(folder, 'libnvToolsExt');
    for (const env of [{ ASYNC_CUDA_NVTOOLSEXT: library.path }, { LD_LIBRARY_PATH: folder }]) {
      const nvtx = openNvtx(machine(env))!;
      nvtx.push('range');
      nvtx.pop();
      expect(library.take()).toEqual(['push range', 'pop']);
    }
  });
});
