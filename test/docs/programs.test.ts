/**
 * The pages in docs/ are true: each TypeScript block compiles against the sources and prints what
 * its comments state, in a process of its own that ends by itself.
 */
import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';

import { haveLibrary } from '../nvrtc/nvrtc.js';
import { problemsOf, repository } from '../project/entry-points.js';
import { ProgramFolder, documentedPrograms } from './programs.js';
import { someOf } from '../random-runs.js';

const documented = await documentedPrograms();
const { ptx } = documented;
// Those of one page need a real NVRTC.
const withNvrtc = haveLibrary('NVRTC') && haveLibrary('nvJitLink');
if (!withNvrtc && process.env['ASYNC_CUDA_TEST_NVRTC'] === 'required')
  throw new Error('there is no NVRTC or no nvJitLink, and ASYNC_CUDA_TEST_NVRTC=required');
const programs = documented.programs.filter(({ file }) => withNvrtc || !file.startsWith('nvrtc-'));

let folder: ProgramFolder;
beforeAll(async () => {
  folder = await ProgramFolder.create();
  await folder.write('kernels.ptx', ptx);
  // Where programs find optional packages.
  await symlink(`${repository}node_modules`, `${folder.path}/node_modules`, 'junction');
  const sources = await Promise.all(
    programs.map(({ file, text }) => folder.write(`${file}.mts`, text)),
  );
  await build({
    entryPoints: sources,
    outdir: folder.path,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    external: ['koffi'],
    logLevel: 'silent',
    alias: {
      'async-cuda': `${repository}src/index.ts`,
      'async-cuda/ops': `${repository}src/ops/index.ts`,
      'async-cuda/tensor': `${repository}src/tensor/index.ts`,
      'async-cuda/kernels': `${repository}src/kernels/index.ts`,
      'async-cuda/library': `${repository}src/library/index.ts`,
      'async-cuda/nvrtc': `${repository}src/nvrtc/index.ts`,
      'async-cuda/images': `${repository}src/images/index.ts`,
      'async-cuda/onnxruntime': `${repository}src/onnxruntime/index.ts`,
      'async-cuda/tensorrt': `${repository}src/tensorrt/index.ts`,
      'async-cuda/inference': `${repository}src/inference/index.ts`,
      'async-cuda/core': `${repository}src/core/index.ts`,
      'async-cuda/driver': `${repository}src/driver/index.ts`,
    },
  });
});
afterAll(() => folder?.remove());

test('the guide has programs', () => {
  expect(programs.filter(({ file }) => file.startsWith('guide-')).length).toBeGreaterThan(6);
});

test.each(programs)('$title: each console.log has its output as a comment', ({ text, prints }) => {
  expect(prints.length).toBe(text.match(/console\.log\(/g)?.length ?? 0);
});

someOf(7, test)(programs)('$title: runs', async ({ file, prints }) => {
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [`${folder.path}/${file}.mjs`],
    {
      env: {
        ...process.env,
        ASYNC_CUDA_DEVICE: process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu',
        NODE_OPTIONS: '',
      },
      timeout: 20_000,
    },
  );
  expect(stdout.trimEnd().split('\n')).toEqual(prints.length === 0 ? [''] : prints);
  expect(stderr).toBe('');
});

test('all of them compile', { tags: 'thorough' }, () => {
  expect(problemsOf(programs.map(({ file }) => `${folder.path}/${file}.mts`))).toEqual([]);
});
