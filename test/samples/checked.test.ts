/**
 * Every sample case on a device that is checked, in an order that a seed decides: results are what
 * they should be, and nothing is found but the races that the kernels do have.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

import type { CheckReport } from 'async-cuda/core';
import { TestDevice, onCpu } from '../core/test-device.js';
import { SAMPLE_MODULES } from './cases/all.js';
import { checkAgainstJavaScript } from './javascript.js';
import { runCase } from './run-case.js';
import { tagsOf } from '../random-runs.js';

/** Kernels of the samples that race, and why. */
const RACES: Readonly<Record<string, string>> = {
  hmath: 'all threads read the half that the first one writes',
  spin: 'takes its lock with a relaxed compare-and-swap, and no fence behind it',
  warpops: 'all threads write the same words',
  bar_arrive: 'threads read the word of a neighbour that updates it',
  structs: 'all threads read the word that the first one writes',
  sw: 'reads and writes words of other threads',
  big: 'reads words that other threads update',
};

const racing = new Set<string>();
const SAMPLE_NAMES = SAMPLE_MODULES.map(({ name }) => name);

describe.runIf(onCpu).each(SAMPLE_MODULES)('$name', ({ name, cases }) => {
  const fitting = cases.filter(({ targets }) => targets === undefined || targets.includes('sm_80'));
  for (const sample of fitting) {
    // `npm test` has all of the kernels that race, and one more case of each fourth module:
    // samples.test.ts runs all kernels there.
    const ofModules = tagsOf(SAMPLE_NAMES, name, Math.ceil(SAMPLE_NAMES.length / 4));
    const tags =
      sample.kernel in RACES ? [] : [...new Set([...tagsOf(fitting, sample, 1), ...ofModules])];
    test(`${sample.kernel}, ${sample.name}`, { tags }, async () => {
      const host = new TestDevice('worker', {
        check: { keepGoing: true },
        schedule: { seed: 2026 },
      });
      await host.open();
      const reports: CheckReport[] = [];
      host.device.on('check', (report) => reports.push(report));
      try {
        const results = await runCase(
          host,
          readFileSync(new URL(`../ptx/samples/sm_80/${name}.ptx`, import.meta.url), 'utf8'),
          sample,
        );
        // What races has no one result.
        if (!(sample.kernel in RACES)) checkAgainstJavaScript(sample, 'sm_80', results, new Map());
      } finally {
        await host.close();
      }
      const others = reports.filter(
        ({ kind }) => (kind !== 'race' && kind !== 'same-value') || !(sample.kernel in RACES),
      );
      expect(others.map(({ message }) => message)).toEqual([]);
      if (reports.length > 0) racing.add(sample.kernel);
    });
  }
});

test.runIf(onCpu)('and each of those is found', () => {
  expect([...racing].sort()).toEqual(Object.keys(RACES).sort());
});
