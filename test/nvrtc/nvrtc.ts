/**
 * The NVRTC that the suite tests with: the machine's, or the one that `scripts/install-nvrtc.mjs`
 * has put into node_modules. Where there is none, tests that need it are skipped with a message;
 * with ASYNC_CUDA_TEST_NVRTC=required, as in `.ci/run`, that fails.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findLibrary, KNOWN_LIBRARIES } from 'async-cuda/driver';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

const installed = fileURLToPath(
  new URL('../../node_modules/.cache/nvrtc/nvidia/cu13/lib', import.meta.url),
);
if (existsSync(installed)) {
  process.env['ASYNC_CUDA_NVRTC'] ??= installed;
  process.env['ASYNC_CUDA_NVJITLINK'] ??= installed;
}

const libraries = { NVRTC: KNOWN_LIBRARIES.nvrtc, nvJitLink: KNOWN_LIBRARIES.nvJitLink } as const;

/** Whether the library is on this machine. Prints a warning where it is not. */
export function haveLibrary(name: keyof typeof libraries): boolean {
  if ('path' in findLibrary(libraries[name])) return true;
  console.error(
    `\n!!! LEFT OUT: there is no ${name} on this machine, and its tests were not run. Run ` +
      `node scripts/install-nvrtc.mjs (no GPU needed).\n`,
  );
  return false;
}

/**
 * Declares tests that need a real library of NVIDIA's. Where it is missing, they are skipped with a
 * message, or fail.
 */
export function describeWith(name: keyof typeof libraries, title: string, body: () => void): void {
  const found = haveLibrary(name);
  if (!found && process.env['ASYNC_CUDA_TEST_NVRTC'] === 'required') {
    test(`${title}: ${name} is there`, () =>
      expect.fail(`there is no ${name}, and ASYNC_CUDA_TEST_NVRTC=required`));
  }
  describe.skipIf(!found)(title, body);
}

/** A cache of this file's own, so that no result of another file is read. */
export function ownCache(): { readonly folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'async-cuda-nvrtc-'));
  beforeAll(() => {
    vi.stubEnv('ASYNC_CUDA_CACHE_DIR', folder);
    vi.stubEnv('ASYNC_CUDA_CACHE_DISABLE', '');
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true, force: true });
  });
  return { folder };
}
