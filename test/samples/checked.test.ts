/**
 * Every sample case on a device that is checked: nothing is found but the races that the kernels do have.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

import type { CheckReport } from 'async-cuda/core';
import { TestDevice } from '../core/test-device.js';
import { SAMPLE_MODULES } from './cases/all.js';
import { runCase } from './run-case.js';

/** Kernels of the samples that race, and why. */
const RACES: Readonly<Record<string, string>> = {
  spin: 'takes its lock with a relaxed compare-and-swap, and no fence behind it',
  warpops: 'all threads write the same words',
  bar_arrive: 'threads read the word of a neighbour that updates it',
  structs: 'all threads read the word that the first one writes',
  sw: 'reads and writes words of other threads',
  big: 'reads words that other threads update',
};

const racing = new Set<string>();

describe.each(SAMPLE_MODULES)('$name', ({ name, cases }) => {
  test.each(cases.filter(({ targets }) => targets === undefined || targets.includes('sm_80')))('$kernel, $name', async (sample) => {
    const host = new TestDevice('worker', { check: { keepGoing: true } });
    await host.open();
    const reports: CheckReport[] = [];
    host.device.on('check', (report) => reports.push(report));
    try {
      await runCase(host, readFileSync(new URL(`../../src/ptx/samples/sm_80/${name}.ptx`, import.meta.url), 'utf8'), sample);
    } finally {
      await host.close();
    }
    const others = reports.filter(({ kind }) => kind !== 'race' || !(sample.kernel in RACES));
    expect(others.map(({ message }) => message)).toEqual([]);
    if (reports.length > 0) racing.add(sample.kernel);
  });
});

test('and each of those is found', () => {
  expect([...racing].sort()).toEqual(Object.keys(RACES).sort());
});
