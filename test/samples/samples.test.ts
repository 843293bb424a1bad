/**
 * Every kernel of every sample module, for every target that nvcc compiled it for, through the
 * library: against JavaScript, against the other targets, and against what an H200 gave
 * (h200.json).
 *
 * ASYNC_CUDA_RECORD=FILE writes what this run's device gives to FILE.
 */
import { readFileSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { onCpu, onDevice, testDevice } from '../core/test-device.js';
import type { TestDevice } from '../core/test-device.js';
import { SAMPLE_MODULES } from './cases/all.js';
import { canonicalBytes, formatOf } from './equality.js';
import { PROGRAMS, endOf } from './programs.js';
import {
  compareWithRecorded,
  describeDevice,
  emptyRecording,
  h200,
  inNormalForm,
  notRecorded,
  recordCase,
  recordFile,
  recordedCase,
  writeRecording,
} from './recording.js';
import { checkAgainstJavaScript } from './javascript.js';
import type { Reference } from './javascript.js';
import { runCase } from './run-case.js';
import { TARGETS } from './sample-case.js';
import type { HostArray, SampleCase, Target } from './sample-case.js';
import { someOf } from '../random-runs.js';
import { UNCOVERED } from './uncovered.js';
import type { Uncovered } from './uncovered.js';

const sourceOf = (module: string, target: Target): URL =>
  new URL(`../ptx/samples/${target}/${module}.ptx`, import.meta.url);
const ptxOf = (module: string, target: Target): string =>
  readFileSync(sourceOf(module, target), 'utf8');

const recording = emptyRecording();
type Results = Map<string, HostArray>;

onDevice(
  'Sample kernels',
  (host) => {
    beforeAll(() => describeDevice(recording, host.device));

    for (const { name: module, cases } of SAMPLE_MODULES) {
      describe(module, () => {
        for (const sample of cases) {
          const uncovered = UNCOVERED.find(
            ({ kernel, devices }) => kernel === sample.kernel && devices.includes(testDevice),
          );
          if (uncovered === undefined) declareCase(host, module, sample);
          else declareUncovered(host, module, sample, uncovered);
        }
      });
    }
  },
  ['worker'],
);

function declareCase(host: TestDevice, module: string, sample: SampleCase): void {
  const title = `${sample.kernel}, ${sample.name}`;
  const targets = sample.targets ?? TARGETS;
  const ran = new Map<Target, Results>();
  const known = new Map<string, Reference>();
  for (const target of targets) {
    // The comparison of all targets builds on the first one, which `npm test` takes too.
    const tags = target === targets[0] ? 'base' : 'thorough';
    test(`${title}, ${target}`, { tags }, async () => {
      const results = await runCase(host, ptxOf(module, target), sample);
      ran.set(target, results);
      recordCase(recording, module, target, sample, results);
      checkAgainstJavaScript(sample, target, results, known);
    });
    test(`${title}, ${target}: as the H200 gave`, { tags }, ({ skip }) => {
      const recorded = h200 && recordedCase(h200, module, target, sample);
      if (h200 === undefined || recorded === undefined) return skip(notRecorded);
      expect(ran.has(target), 'the case did not run').toBe(true);
      expect(compareWithRecorded(h200, recorded, sample, ran.get(target)!)).toEqual([]);
    });
  }
  // ptxas makes other machine code of another target's PTX; here the instructions are the same
  // functions.
  if (onCpu && targets.length > 1 && sample.differsByTarget === undefined) {
    test(`${title}: the same on all targets`, { tags: 'thorough' }, () => {
      for (const [name, output] of Object.entries(sample.outputs)) {
        const bytes = targets.map((target) => {
          const values = inNormalForm(ran.get(target)!.get(name)!, output);
          return Buffer.from(canonicalBytes(values, formatOf(values, output.format)));
        });
        for (const [i, other] of bytes.entries())
          expect(other.equals(bytes[0]!), `${name}, ${targets[i]} and ${targets[0]}`).toBe(true);
      }
    });
  }
}

function declareUncovered(
  host: TestDevice,
  module: string,
  sample: SampleCase,
  { reason, says }: Uncovered,
): void {
  for (const target of sample.targets ?? TARGETS) {
    test(`${sample.kernel}, ${sample.name}, ${target}: not yet, ${reason}`, async () => {
      await expect(
        runCase(host, ptxOf(module, target), sample),
        `${sample.kernel} runs: take it out of uncovered.ts`,
      ).rejects.toThrow(says);
    });
  }
}

describe(`Sample programs (${testDevice})`, () => {
  someOf(1, describe)(TARGETS)('k14_printf, %s', (target) => {
    for (const program of PROGRAMS) {
      test(`${program.kernel}, ${program.name}`, async () => {
        const { stdout, code, driverName, message } = await endOf(
          sourceOf('k14_printf', target),
          program,
        );
        ((recording.programs['k14_printf'] ??= {})[target] ??= {})[program.name] = {
          stdout,
          driverName,
        };
        if (program.prints !== undefined) expect(stdout).toEqual([...program.prints].sort());
        if (program.fault !== undefined) {
          expect(code).toBe('ERR_CUDA_DEVICE_LOST');
          expect(program.fault.driverNames).toContain(driverName);
          // A GPU's driver gives only the name.
          if (onCpu && program.fault.says !== undefined)
            expect(message).toMatch(program.fault.says);
        } else {
          expect(code).toBeNull();
        }
        const recorded = h200?.programs['k14_printf']?.[target]?.[program.name];
        if (recorded === undefined) return;
        expect(driverName).toBe(recorded.driverName);
        if (program.prints !== undefined) expect(stdout).toEqual(recorded.stdout);
      });
    }
  });
});

test('every kernel of every sample module has a case', () => {
  for (const target of TARGETS) {
    const files = readdirSync(new URL(`../ptx/samples/${target}/`, import.meta.url)).map((file) =>
      file.replace(/\.ptx$/, ''),
    );
    expect(SAMPLE_MODULES.map(({ name }) => name).sort()).toEqual(files.sort());
    for (const { name, cases } of SAMPLE_MODULES) {
      const there = [...ptxOf(name, target).matchAll(/\.entry\s+(\w+)/g)].map(
        ([, kernel]) => kernel!,
      );
      const tried = cases
        .filter(({ targets = TARGETS }) => targets.includes(target))
        .map(({ kernel }) => kernel);
      const programs = name === 'k14_printf' ? PROGRAMS.map(({ kernel }) => kernel as string) : [];
      expect(new Set([...tried, ...programs]), `${name}, ${target}`).toEqual(new Set(there));
    }
  }
});

afterAll(() => {
  if (recordFile !== undefined) writeRecording(recording, recordFile);
});
