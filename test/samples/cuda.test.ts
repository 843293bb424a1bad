/**
 * Programs as people bring them (cuda/NAME.cu, compiled by nvcc with -arch=sm_80 -std=c++17
 * -fmad=false), against JavaScript: a thread at a time, and in vector lanes from the first launch
 * on.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';

import { TestDevice, onCpu } from '../core/test-device.js';
import { CIPHERS } from './cuda/ciphers.js';
import { GRAPHS } from './cuda/graphs.js';
import { LANGUAGE } from './cuda/language.js';
import { MATRICES } from './cuda/matrices.js';
import { TEXT } from './cuda/text.js';
import { WARPS } from './cuda/warps.js';
import { checkAgainstJavaScript } from './javascript.js';
import { runCase } from './run-case.js';
import { someOf } from '../random-runs.js';

const MODULES = [CIPHERS, GRAPHS, LANGUAGE, MATRICES, TEXT, WARPS];
const ptxOf = (module: string): string =>
  readFileSync(new URL(`./cuda/${module}.ptx`, import.meta.url), 'utf8');

describe.each(onCpu ? ['none', 'all'] : ['a GPU has its own'])('Programs, lanes: %s', (lanes) => {
  const host = new TestDevice('worker');
  beforeAll(async () => {
    if (onCpu) vi.stubEnv('ASYNC_CUDA_CPU_LANES', lanes);
    await host.open();
  });
  afterAll(async () => {
    await host.close();
    vi.unstubAllEnvs();
  });

  describe.each(MODULES)('$name', ({ name, cases }) => {
    someOf(2, test)(cases)('$kernel, $name', async (sample) => {
      checkAgainstJavaScript(sample, 'sm_80', await runCase(host, ptxOf(name), sample), new Map());
      expect(host.errors).toEqual([]);
    });
  });
});

test.each(MODULES)('every kernel of $name has a case', ({ name, cases }) => {
  const there = [...ptxOf(name).matchAll(/\.entry\s+(\w+)/g)].map(([, kernel]) => kernel);
  const tried = cases.flatMap(({ kernel, launches }) => [
    kernel,
    ...launches.map((launch) => launch.kernel ?? kernel),
  ]);
  expect(new Set(tried)).toEqual(new Set(there));
});
