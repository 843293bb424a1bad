import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Machine } from './find.js';
import { headerFolders } from './headers.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'async-cuda-headers-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function machine(env: Record<string, string> = {}): Machine {
  return { platform: 'linux', arch: 'x64', env, home: root, root };
}
function file(path: string): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, '');
  return full;
}
const found = (library: string, env?: Record<string, string>): string[] =>
  headerFolders(join(root, library), machine(env)).map((path) => path.slice(root.length + 1));

test.each([
  ['usr/local/cuda/lib64/libnvrtc.so.13', 'usr/local/cuda/include'],
  [
    'usr/local/cuda-12.4/targets/x86_64-linux/lib/libnvrtc.so.12',
    'usr/local/cuda-12.4/targets/x86_64-linux/include',
  ],
  ['site-packages/nvidia/cu13/lib/libnvrtc.so.13', 'site-packages/nvidia/cu13/include'],
])('headers beside %s', (library, folder) => {
  file(`${folder}/cuda_fp16.h`);
  expect(found(library)).toEqual([folder]);
});

test("the C++ libraries' folder of CUDA 13", () => {
  file('cuda/include/cuda_fp16.h');
  file('cuda/include/cccl/cuda/std/array');
  expect(found('cuda/lib64/libnvrtc.so.13')).toEqual(['cuda/include', 'cuda/include/cccl']);
});

test('a wheel of CUDA 12 has its headers in wheels beside it', () => {
  file('nvidia/cuda_runtime/include/cuda_fp16.h');
  file('nvidia/cuda_cccl/include/nv/target');
  file('nvidia/cuda_nvrtc/include/nvrtc.h');
  expect(found('nvidia/cuda_nvrtc/lib/libnvrtc.so.12')).toEqual([
    'nvidia/cuda_runtime/include',
    'nvidia/cuda_nvrtc/include',
    'nvidia/cuda_cccl/include',
  ]);
});

test('a library without headers takes those of the toolkit', () => {
  file('nvidia/cuda_nvrtc/include/nvrtc.h');
  const library = 'nvidia/cuda_nvrtc/lib/libnvrtc.so.12';
  expect(found(library)).toEqual([]);
  file('usr/include/cuda_fp16.h');
  expect(found(library)).toEqual(['usr/include']);
  file('usr/local/cuda-12.4/include/cuda_fp16.h');
  expect(found(library)).toEqual(['usr/local/cuda-12.4/include']);
  file('apps/cuda/include/cuda_fp16.h');
  expect(found(library, { CUDA_HOME: join(root, 'apps/cuda') })).toEqual(['apps/cuda/include']);
});

describe('what wheels lack', () => {
  const library = 'site-packages/nvidia/cu13/lib/libnvrtc.so.13';
  const wheels = 'site-packages/nvidia/cu13/include';
  const headers = (folder: string, version: number, ...files: string[]): void => {
    file(`${folder}/cuda_fp16.h`);
    writeFileSync(
      join(root, folder, 'cuda.h'),
      `/* ${'*'.repeat(5000)} */\n#define CUDA_VERSION ${version}\n`,
    );
    for (const each of files) file(`${folder}/${each}`);
  };

  test('is taken from a toolkit of their version', () => {
    headers(wheels, 13000);
    headers('usr/local/cuda-12.9/include', 12090, 'crt/mma.h', 'nv/target');
    headers('usr/local/cuda-13.0/include', 13000, 'crt/mma.h', 'cccl/nv/target');
    expect(found(library)).toEqual([
      wheels,
      'usr/local/cuda-13.0/include',
      'usr/local/cuda-13.0/include/cccl',
    ]);
  });

  test('is taken from a toolkit of another version for C++ libraries in their own folder', () => {
    headers(wheels, 13000);
    headers('usr/local/cuda-12.9/include', 12090, 'crt/mma.h', 'nv/target');
    expect(found(library)).toEqual([wheels]);
    headers('usr/local/cuda-13.2/include', 13020, 'crt/mma.h', 'cccl/nv/target');
    expect(found(library)).toEqual([wheels, 'usr/local/cuda-13.2/include/cccl']);
    headers(wheels, 13000, 'cccl/nv/target');
    expect(found(library)).toEqual([wheels, `${wheels}/cccl`]);
  });

  test('is nothing where all of it is there', () => {
    headers(wheels, 13000, 'crt/mma.h', 'cccl/nv/target');
    headers('usr/local/cuda-13.0/include', 13000, 'crt/mma.h', 'cccl/nv/target');
    expect(found(library)).toEqual([wheels, `${wheels}/cccl`]);
  });

  test('is not taken from others where the headers have no version', () => {
    file(`${wheels}/cuda_fp16.h`);
    file('usr/local/cuda/include/cuda_fp16.h');
    file('usr/local/cuda/include/crt/mma.h');
    expect(found(library)).toEqual([wheels]);
  });
});
