/**
 * Unreferenced objects are freed when they are collected. ASYNC_CUDA_TEST_LEAK_MS is how long the
 * load lasts: three seconds by default, one in `npm test`, a minute before a release.
 */
import { describe, expect, test } from 'vitest';

import { allModes, onCpu } from '../core/test-device.js';
import { runProgram } from './program.js';
import { scale, someOf } from '../random-runs.js';

const milliseconds = Number(process.env['ASYNC_CUDA_TEST_LEAK_MS'] ?? Math.max(1000, 3000 * scale));

interface Report {
  before: { used: number; handles: number; free: number };
  after: { used: number; handles: number; free: number };
  rounds: number;
  warnings: { code: string; message: string }[];
  errors: string[];
}

someOf(1, describe)(allModes)('Under load and garbage collection (%s)', (mode) => {
  const run = (() => {
    let ended: ReturnType<typeof runProgram> | undefined;
    return async (): Promise<Report> => {
      ended ??= runProgram('leaks', {
        args: [milliseconds, mode],
        node: ['--expose-gc'],
        timeout: milliseconds + 100_000,
      });
      const { code, result, stderr } = await ended;
      // The output contains the one warning as well.
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      return result as Report;
    };
  })();
  const timeout = milliseconds + 110_000;

  test('device memory returns to the start', { timeout }, async () => {
    const { before, after, rounds } = await run();
    expect(rounds).toBeGreaterThan(20);
    expect(after.used).toBe(before.used);
  });

  test(
    'handles return to the start',
    async () => {
      const { before, after } = await run();
      expect(after.handles).toBe(before.handles);
    },
    timeout,
  );

  test(
    'a leak is reported once, with the remedy',
    async () => {
      const { warnings } = await run();
      expect(warnings.map((warning) => warning.code)).toEqual(['CUDA_LEAK']);
      expect(warnings[0]!.message).toContain("'using'");
    },
    timeout,
  );

  test(
    'nothing fails meanwhile',
    async () => {
      expect((await run()).errors).toEqual([]);
    },
    timeout,
  );
});

test.runIf(onCpu).each(allModes)(
  'Opening and closing devices leaves no more memory resident (%s)',
  { tags: 'thorough', timeout: 65_000 },
  async (mode) => {
    const { code, stderr, result } = await runProgram('open-close', {
      args: [mode, 80],
      timeout: 60_000,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // Each device has tables of 17 MB.
    expect((result as { more: number }).more).toBeLessThan(200);
  },
);
