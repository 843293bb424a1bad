/** A recording compares each output with that of another run. */
import { describe, expect, test } from 'vitest';

import { near } from './equality.js';
import { compareWithRecorded, emptyRecording, recordCase, recordedCase } from './recording.js';
import type { Recording } from './recording.js';
import type { HostArray, SampleCase } from './sample-case.js';

const SAMPLE: SampleCase = {
  kernel: 'k',
  name: 'a case',
  memory: { x: Float32Array.of(1, 2) },
  launches: [{ grid: 1, block: 2, args: ['x', 5n] }],
  outputs: {
    exact: { equal: 'bits' },
    close: { equal: near(2) },
    order: { equal: 'bits', normalForm: (values: Int32Array) => values.slice().sort() },
  },
};
const results = (exact: number, close: number, order: readonly number[]): Map<string, HostArray> =>
  new Map<string, HostArray>([
    ['exact', Float64Array.of(exact)],
    ['close', Float32Array.of(close)],
    ['order', Int32Array.from(order)],
  ]);

function recorded(): Recording {
  const recording = emptyRecording();
  recordCase(recording, 'module', 'sm_80', SAMPLE, results(NaN, 1, [3, 1, 2]));
  // As it comes back from a file.
  return JSON.parse(JSON.stringify(recording)) as Recording;
}

function compare(values: Map<string, HostArray>, sample = SAMPLE): string[] {
  const recording = recorded();
  return compareWithRecorded(
    recording,
    recordedCase(recording, 'module', 'sm_80', SAMPLE)!,
    sample,
    values,
  );
}

describe('A recording', () => {
  test('is equal to the same results, in any order, within the bound', () => {
    expect(compare(results(NaN, 1, [3, 1, 2]))).toEqual([]);
    expect(compare(results(NaN, 1 + 2 ** -22, [1, 2, 3]))).toEqual([]);
  });

  test('names each output that differs', () => {
    expect(compare(results(0, 1, [1, 2, 3]))).toEqual([
      expect.stringContaining('exact is not bit-equal'),
    ]);
    expect(compare(results(NaN, 1 + 2 ** -20, [1, 2, 3]))).toEqual([
      expect.stringContaining('close: 1 of 1 elements differ within 2 ulp'),
    ]);
    expect(compare(results(NaN, 1, [1, 2, 2]))).toEqual([expect.stringContaining('order')]);
  });

  test('does not answer for other inputs', () => {
    const changed = { ...SAMPLE, memory: { x: Float32Array.of(1, 3) } };
    expect(compare(results(NaN, 1, [1, 2, 3]), changed)).toEqual([
      expect.stringContaining('has changed since it was recorded'),
    ]);
    const launched = { ...SAMPLE, launches: [{ grid: 1, block: 2, args: ['x', 6n] as const }] };
    expect(compare(results(NaN, 1, [1, 2, 3]), launched)).toEqual([
      expect.stringContaining('has changed since it was recorded'),
    ]);
  });

  test('has nothing for a case or a target that was not recorded', () => {
    expect(recordedCase(recorded(), 'module', 'sm_90', SAMPLE)).toBeUndefined();
    expect(
      recordedCase(recorded(), 'module', 'sm_80', { ...SAMPLE, name: 'another' }),
    ).toBeUndefined();
  });
});
