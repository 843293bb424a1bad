/** A kernel that never ends. */
import { describe, expect, test } from 'vitest';

import { allModes, onCpu } from '../core/test-device.js';
import { runProgram } from './program.js';

describe.each(allModes)('An endless kernel with 5,000 launches behind it (%s)', (mode) => {
  const run = (() => {
    let ended: ReturnType<typeof runProgram> | undefined;
    return () => (ended ??= runProgram('endless', { args: [mode] }));
  })();
  const result = async (): Promise<Record<string, unknown>> => (await run()).result as Record<string, unknown>;

  test('lets another stream go on', async () => {
    expect(await result()).toMatchObject({ value: 50, values: [50] });
  });

  test('lets the waits for it be aborted', async () => {
    expect(await result()).toMatchObject({ aborted: 'TimeoutError', later: 'TimeoutError' });
  });

  test('does not keep the device from closing, and what is in flight rejects', async () => {
    const { closed, rejected } = await result();
    expect(rejected).toEqual(['ERR_CUDA_DEVICE_CLOSED', 'ERR_CUDA_DEVICE_CLOSED', 'ERR_CUDA_DEVICE_CLOSED']);
    expect(closed).toBeGreaterThan(150);
    expect(closed).toBeLessThan(5000);
  });

  test.runIf(onCpu)('leaves a CPU device that can be opened again', async () => {
    expect(await result()).toMatchObject({ reopened: '3' });
  });

  test('lets the process end', async () => {
    const { code, signal, stderr, afterFirstLine } = await run();
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(afterFirstLine).toBeLessThan(5000);
  });
});
