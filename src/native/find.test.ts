import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { findLibrary } from './find.js';
import type { FindResult, Machine } from './find.js';
import { KNOWN_LIBRARIES, LIBCUDA, fileNames } from './libraries.js';

const { nvrtc, nvinfer, nvonnxparser, tensorrtRtx, tensorrtRtxParser, cudnn, onnxruntime } =
  KNOWN_LIBRARIES;

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'async-cuda-find-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** A machine whose disk is the fabricated tree, with nothing of the real environment. */
function machine(env: Record<string, string> = {}, arch = 'x64'): Machine {
  return { platform: 'linux', arch, env, home: join(root, 'home/ada'), root };
}
function file(path: string, content = ''): string {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, content);
  return full;
}
const paths = (result: FindResult): string[] =>
  'tried' in result ? result.tried.map((entry) => entry.path) : [];

describe('a library is found', () => {
  test.each([
    ['usr/lib/x86_64-linux-gnu/libcuda.so.1'],
    ['usr/lib64/libcuda.so.1'],
    ['usr/lib/wsl/lib/libcuda.so.1'],
    ['usr/local/nvidia/lib64/libcuda.so.1'],
    ['usr/local/cuda/compat/libcuda.so.1'],
    ['usr/lib/x86_64-linux-gnu/libcuda.so'],
    ['run/opengl-driver/lib/libcuda.so.1'],
  ])('libcuda at /%s', (path) => {
    const expected = file(path);
    expect(findLibrary(LIBCUDA, machine())).toEqual({ path: expected });
  });

  test('libcuda on a Jetson', () => {
    const expected = file('usr/lib/aarch64-linux-gnu/tegra/libcuda.so.1');
    expect(findLibrary(LIBCUDA, machine({}, 'arm64'))).toEqual({ path: expected });
    expect(findLibrary(LIBCUDA, machine({}, 'x64'))).toHaveProperty('tried');
  });

  test.each([
    [
      'ASYNC_CUDA_TENSORRT_RTX',
      tensorrtRtx,
      'libtensorrt_rtx.so.1',
      tensorrtRtxParser,
      'libtensorrt_onnxparser_rtx.so.1',
    ],
    ['ASYNC_CUDA_TENSORRT', nvinfer, 'libnvinfer.so.10', nvonnxparser, 'libnvonnxparser.so.10'],
  ] as const)(
    'a parser in the folder, or beside the file, that %s names',
    (variable, row, name, parserRow, parserName) => {
      const [library, parser, other] = [
        file(`opt/own/${name}`),
        file(`opt/own/${parserName}`),
        file(`usr/lib/x86_64-linux-gnu/${parserName}`),
      ];
      for (const named of [join(root, 'opt/own'), library]) {
        expect(findLibrary(row, machine({ [variable]: named }))).toEqual({ path: library });
        expect(findLibrary(parserRow, machine({ [variable]: named }))).toEqual({ path: parser });
      }
      // Where the folder has no parser, the other places are tried, its own variable first.
      rmSync(parser);
      expect(findLibrary(parserRow, machine({ [variable]: library }))).toEqual({ path: other });
      expect(
        findLibrary(parserRow, machine({ [variable]: library, [parserRow.environment[0]]: other })),
      ).toEqual({ path: other });
    },
  );

  test.each([
    ['usr/local/cuda/lib64/libnvrtc.so.12'],
    ['usr/local/cuda-12.4/targets/x86_64-linux/lib/libnvrtc.so.12'],
    ['opt/cuda/lib64/libnvrtc.so.13'],
    ['usr/lib/python3/dist-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12'],
    ['usr/local/lib/python3.12/dist-packages/nvidia/cu13/lib/libnvrtc.so.13'],
    ['usr/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13'],
    ['home/ada/.local/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2'],
  ])('NVRTC at /%s', (path) => {
    const expected = file(path);
    expect(findLibrary(nvrtc, machine())).toEqual({ path: expected });
  });

  test('in the toolkit that CUDA_HOME or CUDA_PATH names', () => {
    const expected = file('apps/cuda/lib64/libnvrtc.so.13');
    for (const variable of ['CUDA_HOME', 'CUDA_PATH']) {
      expect(findLibrary(nvrtc, machine({ [variable]: join(root, 'apps/cuda') }))).toEqual({
        path: expected,
      });
    }
  });

  test('in wheels of the active Python environment', () => {
    const wheel = file('venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13');
    expect(findLibrary(nvrtc, machine({ VIRTUAL_ENV: join(root, 'venv') }))).toEqual({
      path: wheel,
    });
    const conda = file('conda/lib/libnvrtc.so.12');
    expect(findLibrary(nvrtc, machine({ CONDA_PREFIX: join(root, 'conda') }))).toEqual({
      path: conda,
    });
    const tensorrt = file('venv/lib/python3.12/site-packages/tensorrt_libs/libnvinfer.so.10');
    expect(findLibrary(nvinfer, machine({ VIRTUAL_ENV: join(root, 'venv') }))).toEqual({
      path: tensorrt,
    });
  });

  test('in wheels of a Python that is on the PATH, and of folders that PYTHONPATH names', () => {
    const wheel = file(
      'elsewhere/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12',
    );
    file('elsewhere/bin/python3');
    expect(
      findLibrary(
        nvrtc,
        machine({ PATH: `${join(root, 'usr/bin')}:${join(root, 'elsewhere/bin')}` }),
      ),
    ).toEqual({ path: wheel });
    const target = file('target/nvidia/cu13/lib/libnvrtc.so.13');
    expect(findLibrary(nvrtc, machine({ PYTHONPATH: join(root, 'target') }))).toEqual({
      path: target,
    });
  });

  test('ONNX Runtime in a wheel, by its whole version, the newest first', () => {
    const wheel = 'venv/lib/python3.12/site-packages/onnxruntime/capi';
    file(`${wheel}/libonnxruntime.so.1.9.0`);
    const newest = file(`${wheel}/libonnxruntime.so.1.23.2`);
    file(`${wheel}/libonnxruntime_providers_cuda.so`);
    expect(findLibrary(onnxruntime, machine({ VIRTUAL_ENV: join(root, 'venv') }))).toEqual({
      path: newest,
    });
    expect(
      findLibrary(onnxruntime, machine({ ASYNC_CUDA_ONNXRUNTIME: join(root, wheel) })),
    ).toEqual({ path: newest });
  });

  test('ONNX Runtime in an npm package, before wheels', () => {
    file('venv/lib/python3.12/site-packages/onnxruntime/capi/libonnxruntime.so.1.23.2');
    file('app/node_modules/onnxruntime-node/package.json', '{}');
    const expected = file(
      'app/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1',
    );
    const found = findLibrary(onnxruntime, {
      ...machine({ VIRTUAL_ENV: join(root, 'venv') }),
      modules: [join(root, 'elsewhere/'), join(root, 'app/')],
    });
    expect(found).toEqual({ path: expected });
  });

  test('in folders of ld.so.conf and what it includes', () => {
    file('etc/ld.so.conf', '# the loader\ninclude /etc/ld.so.conf.d/*.conf\n/opt/first # why\n');
    file('etc/ld.so.conf.d/cudnn.conf', '/opt/second\n');
    const second = file('opt/second/libcudnn.so.9');
    expect(findLibrary(cudnn, machine())).toEqual({ path: second });
    rmSync(second);
    const first = file('opt/first/libcudnn.so.9');
    expect(findLibrary(cudnn, machine())).toEqual({ path: first });
  });

  test('a path in an environment variable comes before the usual folders', () => {
    file('usr/lib/x86_64-linux-gnu/libnvrtc.so.13');
    const wheel = file('venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12');
    const toolkit = file('apps/cuda/lib64/libnvrtc.so.12');
    const listed = file('listed/libnvrtc.so.12');
    const env = { VIRTUAL_ENV: join(root, 'venv') };
    expect(findLibrary(nvrtc, machine(env))).toEqual({ path: wheel });
    expect(findLibrary(nvrtc, machine({ ...env, CUDA_HOME: join(root, 'apps/cuda') }))).toEqual({
      path: toolkit,
    });
    expect(
      findLibrary(
        nvrtc,
        machine({ ...env, LD_LIBRARY_PATH: `${join(root, 'nowhere')}:${join(root, 'listed')}` }),
      ),
    ).toEqual({ path: listed });
  });

  test('the newest of several versions and toolkits', () => {
    file('usr/local/cuda-9.2/lib64/libnvrtc.so.12');
    file('usr/local/cuda-12.4/lib64/libnvrtc.so');
    file('usr/local/cuda-12.4/lib64/libnvrtc.so.12');
    const expected = file('usr/local/cuda-12.4/lib64/libnvrtc.so.13');
    expect(findLibrary(nvrtc, machine())).toEqual({ path: expected });
  });

  test("through the library's own variable, a file or a folder", () => {
    const expected = file('mine/libnvrtc.so.12');
    const renamed = file('mine/nvrtc-copy');
    expect(findLibrary(nvrtc, machine({ ASYNC_CUDA_NVRTC: join(root, 'mine') }))).toEqual({
      path: expected,
    });
    expect(findLibrary(nvrtc, machine({ ASYNC_CUDA_NVRTC: renamed }))).toEqual({ path: renamed });
  });
});

describe('a library is not found', () => {
  test('every path is listed, with the reason', () => {
    mkdirSync(join(root, 'usr/lib64'), { recursive: true });
    const result = findLibrary(LIBCUDA, machine()) as { tried: { path: string; reason: string }[] };
    expect(result.tried).toContainEqual({
      path: join(root, 'usr/lib64/libcuda.so.1'),
      reason: 'no such file',
    });
    expect(result.tried).toContainEqual({
      path: join(root, 'usr/lib64/libcuda.so'),
      reason: 'no such file',
    });
    expect(result.tried).toContainEqual({
      path: join(root, 'usr/lib/wsl/lib/libcuda.so.1'),
      reason: 'no such folder',
    });
    expect(new Set(paths(result)).size).toBe(result.tried.length);
  });

  test("nothing replaces what the library's own variable names", () => {
    file('usr/lib64/libcuda.so.1');
    const named = join(root, 'gone/libcuda.so.1');
    expect(findLibrary(LIBCUDA, machine({ ASYNC_CUDA_LIBCUDA: named }))).toEqual({
      tried: [{ path: named, reason: 'no such file' }],
    });
  });

  test('the driver is not looked for in toolkits and wheels: theirs are stubs', () => {
    file('usr/local/cuda/lib64/libcuda.so.1');
    file('usr/local/cuda/lib64/stubs/libcuda.so');
    expect(
      findLibrary(LIBCUDA, machine({ CUDA_HOME: join(root, 'usr/local/cuda') })),
    ).toHaveProperty('tried');
  });
});

describe('the known libraries', () => {
  test.each(Object.entries(KNOWN_LIBRARIES))('%s has a name for each platform', (_, row) => {
    expect(fileNames(row, 'linux')[0]).toBe(`lib${row.base}.so.${row.versions[0]}`);
    expect(fileNames(row, 'win32').every((name) => name.endsWith('.dll'))).toBe(true);
    expect(row.environment.every((name) => /^ASYNC_CUDA_[A-Z]+(?:_[A-Z]+)*$/.test(name))).toBe(
      true,
    );
  });

  test('on Windows (names only, untested there): the toolkit and the system folder', () => {
    const windows: Machine = {
      platform: 'win32',
      arch: 'x64',
      env: { CUDA_PATH: join(root, 'CUDA'), SystemRoot: join(root, 'Windows') },
      home: root,
      root: '',
    };
    const dll = file('CUDA/bin/nvrtc64_120_0.dll');
    expect(findLibrary(nvrtc, windows)).toEqual({ path: dll });
    const driver = file('Windows/System32/nvcuda.dll');
    expect(findLibrary(LIBCUDA, windows)).toEqual({ path: driver });
  });
});
