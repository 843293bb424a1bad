/** Errors name what an NVRTC lacks: stand-ins take the place of old and new versions. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CudaOutOfMemoryError, CoreDevice } from 'async-cuda/core';
import { Device as LazyDevice } from 'async-cuda';
import { compile } from 'async-cuda/nvrtc';
import type { CompileOptions } from 'async-cuda/nvrtc';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';

import { failure } from '../core/test-device.js';

const SOURCE = 'extern "C" __global__ void f() {}';
const why =
  process.platform !== 'linux'
    ? 'Linux only'
    : spawnSync('gcc', ['--version']).status !== 0
      ? 'gcc is not installed'
      : undefined;

describe.skipIf(why !== undefined)(
  `an NVRTC of another version${why === undefined ? '' : ` (SKIPPED: ${why})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'async-cuda-old-nvrtc-'));
    const library = (major: number, minor: number, ...flags: string[]): string => {
      const path = join(folder, `libnvrtc-${major}.${minor}.so`);
      execFileSync('gcc', [
        '-shared',
        '-fPIC',
        `-DMAJOR=${major}`,
        `-DMINOR=${minor}`,
        ...flags,
        fileURLToPath(new URL('./old-nvrtc.c', import.meta.url)),
        '-o',
        path,
        '-ldl',
      ]);
      return path;
    };
    let old: string;
    beforeAll(() => {
      old = library(11, 8);
    });
    afterEach(() => vi.unstubAllEnvs());
    afterAll(() => rmSync(folder, { recursive: true }));

    test.each<[CompileOptions, string]>([
      [
        { precompiledHeaders: true },
        'options.precompiledHeaders needs NVRTC 12.8 or later; this is NVRTC 11.8',
      ],
      [{ outputs: ['ltoir'] }, "'ltoir' needs NVRTC 12.0 or later"],
      [{ standard: 'c++20' }, "options.standard: 'c++20' needs NVRTC 12.0 or later"],
    ])('is too old for %j', async (options, says) => {
      vi.stubEnv('ASYNC_CUDA_NVRTC', old);
      const error = await failure(() => compile(SOURCE, { ...options, cache: false }));
      expect([error.code, error.message]).toEqual([
        'ERR_CUDA_UNSUPPORTED',
        expect.stringContaining(says),
      ]);
      expect(error.message).toContain(old);
    });

    test('is too new for the device', async () => {
      vi.stubEnv('ASYNC_CUDA_NVRTC', old);
      await using core = await CoreDevice.open('cpu');
      const error = await failure(() => LazyDevice.of(core).compile(SOURCE, { cache: false }));
      expect([error.code, error.message]).toEqual([
        'ERR_CUDA_UNSUPPORTED',
        expect.stringContaining('compute capability 9.0 and later, and the device has 8.0'),
      ]);
    });

    test('its failures have its own names, and out of memory has its own code', async () => {
      vi.stubEnv('ASYNC_CUDA_NVRTC', old);
      const error = await failure(() => compile(SOURCE, { cache: false }));
      expect([error.code, error.message]).toEqual([
        'ERR_CUDA_INTERNAL',
        expect.stringContaining('nvrtcCreateProgram returned NVRTC_ERROR_INTERNAL_ERROR (11)'),
      ]);
      vi.stubEnv('ASYNC_CUDA_NVRTC', library(13, 0));
      expect(await failure(() => compile(SOURCE, { cache: false }))).toBeInstanceOf(
        CudaOutOfMemoryError,
      );
    });

    test('its second library is found beside it, where it is not named', async () => {
      const name = (minor: number): string => `libnvrtc-builtins.so.12.${minor}`;
      const compileWith = (minor: number): Promise<Error> => {
        vi.stubEnv('ASYNC_CUDA_NVRTC', library(12, minor, `-DBUILTINS="${name(minor)}"`));
        return failure(() => compile(SOURCE, { cache: false }));
      };
      expect(await compileWith(1)).not.toBeInstanceOf(CudaOutOfMemoryError);
      execFileSync('gcc', [
        '-shared',
        '-fPIC',
        '-x',
        'c',
        '/dev/null',
        `-Wl,-soname,${name(2)}`,
        '-o',
        join(folder, name(2)),
      ]);
      expect(await compileWith(2)).toBeInstanceOf(CudaOutOfMemoryError);
    });
  },
);
