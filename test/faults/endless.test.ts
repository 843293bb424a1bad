/** A kernel that never ends, and a function of the host. */
import { describe, expect, test } from 'vitest';

import { allModes, onCpu } from '../core/test-device.js';
import { runProgram } from './program.js';
import { someOf } from '../random-runs.js';

someOf(1, describe)(allModes)('An endless kernel with 5,000 launches after it (%s)', (mode) => {
  const run = (() => {
    let ended: ReturnType<typeof runProgram> | undefined;
    return () => (ended ??= runProgram('endless', { args: [mode] }));
  })();
  const result = async (): Promise<Record<string, unknown>> =>
    (await run()).result as Record<string, unknown>;

  test('does not stop another stream', { tags: 'thorough' }, async () => {
    expect(await result()).toMatchObject({ value: 50, values: [50] });
  });

  test('allows waits for it to be aborted', async () => {
    expect(await result()).toMatchObject({ aborted: 'TimeoutError', later: 'TimeoutError' });
  });

  test('does not prevent closing the device, and unfinished work rejects', async () => {
    const { closed, rejected } = await result();
    expect(rejected).toEqual([
      'ERR_CUDA_DEVICE_CLOSED',
      'ERR_CUDA_DEVICE_CLOSED',
      'ERR_CUDA_DEVICE_CLOSED',
    ]);
    expect(closed).toBeGreaterThan(150);
    expect(closed).toBeLessThan(5000);
  });

  test.runIf(onCpu)('does not prevent opening a CPU device again', async () => {
    expect(await result()).toMatchObject({ reopened: '3' });
  });

  test('does not prevent the end of the process', async () => {
    const { code, signal, stderr, afterFirstLine } = await run();
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(afterFirstLine).toBeLessThan(5000);
  });
});

someOf(1, describe)(allModes)('A function of the host that never ends (%s)', (mode) => {
  test.each([
    ['closed', 'ERR_CUDA_DEVICE_CLOSED'],
    ['lost', 'ERR_CUDA_DEVICE_LOST'],
  ])('rejects where the device is %s, and so does the work after it', async (end, code) => {
    const {
      result,
      code: exitCode,
      stderr,
    } = await runProgram('host-function', { args: [mode, end] });
    expect(result).toEqual([code, code]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  });
});
