/**
 * The sample kernels from their CUDA C++, compiled at run time by NVRTC for the device that runs
 * them, against JavaScript: the same cases that run nvcc's PTX of them.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { compile } from 'async-cuda/nvrtc';

import { onDevice } from '../core/test-device.js';
import { SAMPLE_MODULES } from '../samples/cases/all.js';
import { checkAgainstJavaScript } from '../samples/javascript.js';
import { runCase } from '../samples/run-case.js';
import { describeWith, ownCache } from './nvrtc.js';
import { someOf, tagsOf } from '../random-runs.js';

const FOLDER = new URL('../samples/kernels/', import.meta.url);
/** The options of nvcc, and the host headers, which NVRTC lacks. */
const OPTIONS = {
  standard: 'c++17',
  int128: true,
  headers: {
    cstdio: '',
    cassert: '#define assert(condition) ((condition) ? (void)0 : __trap())\n',
  },
} as const;

const compiled = new Map<string, Promise<string>>();
function ptxOf(module: string): Promise<string> {
  let ptx = compiled.get(module);
  if (ptx === undefined) {
    const source = readFileSync(new URL(`${module}.cu`, FOLDER), 'utf8');
    ptx = compile(source, {
      ...OPTIONS,
      name: `${module}.cu`,
      architecture: 'compute_80',
      fastMath: module === 'k18b_fastmath',
    }).then((program) => program.ptx);
    compiled.set(module, ptx);
  }
  return ptx;
}

describeWith('NVRTC', 'sample kernels from CUDA C++', () => {
  ownCache();

  describe('every source compiles', () => {
    someOf(1, test)(readdirSync(FOLDER).map((file) => file.replace('.cu', '')))(
      '%s',
      async (module) => {
        const ptx = await ptxOf(module);
        const source = readFileSync(new URL(`${module}.cu`, FOLDER), 'utf8');
        const declared = source.match(/extern\s+"C"\s+__global__/g)?.length ?? 0;
        expect(ptx.match(/\.entry\s/g)?.length ?? 0).toBeGreaterThanOrEqual(Math.max(1, declared));
      },
      120_000,
    );
  });

  onDevice(
    'runs',
    (host) => {
      for (const samples of SAMPLE_MODULES) {
        const { name: module, cases } = samples;
        const fitting = cases.filter(
          ({ targets }) => targets === undefined || targets.includes('sm_80'),
        );
        // One case of each kernel is enough: the test is whether NVRTC's PTX runs.
        const first = fitting.filter(
          ({ kernel }, i) => fitting.findIndex((other) => other.kernel === kernel) === i,
        );
        for (const sample of first) {
          const ofModule = tagsOf(first, sample, 1);
          const tags = ofModule.length > 0 ? ofModule : tagsOf(SAMPLE_MODULES, samples, 4);
          test(
            `${module}: ${sample.kernel}, ${sample.name}`,
            { tags, timeout: 120_000 },
            async () => {
              checkAgainstJavaScript(
                sample,
                'sm_80',
                await runCase(host, await ptxOf(module), sample),
                new Map(),
              );
            },
          );
        }
      }
    },
    ['worker'],
  );
});
