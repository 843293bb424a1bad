/**
 * Texts of kernels with changed tokens are compiled and loaded, or refused with a CudaCompileError
 * that has the place, the fault and what to write instead; never with another error, and never
 * without an end.
 *
 * Each text is changed in several ways. A failure prints the command that runs it again.
 */
import { CudaCompileError, Device } from 'async-cuda';
import { expect, test } from 'vitest';

import { KernelSourceError } from '../../../src/compiler/source-error.js';
import { onDevice } from '../../core/test-device.js';
import { Random } from '../../compiler/fuzz/random-kernel.test-support.js';
import { functionOf, kernelOf } from './compare-source.js';
import { randomSource } from './random-source.js';
import { Watch } from './watch.js';
import { wrongSource } from './wrong-source.js';
import { failureOf, seedsOf } from '../../random-runs.js';

const SEEDS = seedsOf(15);
const RUNS = SEEDS.length;
const CHANGED = 40;
const LONGEST_MS = 60_000;
const MOST_TOLD = 5;

/** What is wrong with the error of a text; undefined where nothing is. */
function complaint(error: unknown): string | undefined {
  if (!(error instanceof CudaCompileError))
    return `threw ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  const { cause } = error;
  if (!(cause instanceof KernelSourceError)) return `does not load: ${error.message}`;
  const { what, fix, span, text } = cause;
  if (what === '' || fix === '') return `says neither what nor how: ${error.message}`;
  if (span === undefined) return `says no place: ${error.message}`;
  if (!(span.start >= 0 && span.start <= span.end && span.end <= text.length))
    return `says a place outside of the text, ${span.start} to ${span.end} of ${text.length}`;
  if (!/line \d+, column \d+/.test(error.message) || !error.message.includes(fix))
    return `does not tell its place or its fix: ${error.message}`;
  return undefined;
}

/** Whether it is a function of JavaScript: no other text becomes a kernel. */
function isFunction(text: string): boolean {
  try {
    return typeof functionOf(text) === 'function';
  } catch {
    return false;
  }
}

onDevice(
  'Texts of kernels with tokens changed',
  (host) => {
    test(
      `${RUNS} × ${CHANGED} are compiled and loaded, or refused with place and fix`,
      async () => {
        const device = Device.of(host.device);
        const watch = new Watch(LONGEST_MS);
        const found: string[] = [];
        const counts = { compiled: 0, refused: 0, 'no function': 0 };
        for (const seed of SEEDS) {
          if (found.length >= MOST_TOLD) break;
          const source = randomSource(seed);
          const random = new Random(seed ^ 0xbad);
          for (let k = 0; k < CHANGED; k++) {
            const text = wrongSource(source.text, random);
            if (!isFunction(text)) {
              counts['no function']++;
              continue;
            }
            watch.begin(text);
            try {
              await kernelOf({ ...source, text }).prepare(device);
              counts.compiled++;
            } catch (error) {
              counts.refused++;
              const what = complaint(error);
              if (what !== undefined) found.push(failureOf(seed, `${what.slice(0, 600)}\n${text}`));
            }
          }
        }
        await watch.end();
        expect(found.join('\n\n')).toBe('');
        // Otherwise the test would pass with right texts only, or with none.
        expect(Math.min(counts.compiled, counts.refused)).toBeGreaterThan(RUNS / 2);
      },
      60_000 + RUNS * CHANGED * 1_000,
    );
  },
  ['worker'],
);
