/**
 * A kernel with a fault makes its context unusable: all work rejects, nothing hangs, and the
 * process continues.
 */
import { describe, expect, test } from 'vitest';

import { allModes, onCpu } from '../core/test-device.js';
import { runProgram } from './program.js';
import { someOf } from '../random-runs.js';

interface Said {
  code: string;
  message: string;
  driverName: string | undefined;
  cause: string | undefined;
  work?: { stream: string; operations: string[] }[];
}

interface Report {
  inFlight: Said[];
  later: Said[];
  lost: Said[];
  errors: Said[];
  unhandled: string[];
  waited: number;
  atOnce: number;
  disposal: unknown;
  reopened: unknown;
  reopenedBehind: unknown;
  closed: unknown;
}

const runs = new Map<string, ReturnType<typeof runProgram>>();

/**
 * The output of the program that loses a device in this way. It runs once for all tests of a way.
 */
async function lose(kernel: string, mode: string, listen = 'all'): Promise<Report> {
  const args = [kernel, mode, listen];
  const run = runs.get(args.join()) ?? runProgram('lost', { args });
  runs.set(args.join(), run);
  const ended = await run;
  expect(ended.stderr).toBe('');
  expect(ended.code).toBe(0);
  return ended.result as Report;
}

const FAULTS = [
  ['read_far', ['CUDA_ERROR_ILLEGAL_ADDRESS']],
  ['write_null', ['CUDA_ERROR_ILLEGAL_ADDRESS']],
  ['misaligned', ['CUDA_ERROR_MISALIGNED_ADDRESS']],
  ['trapped', ['CUDA_ERROR_LAUNCH_FAILED', 'CUDA_ERROR_ILLEGAL_INSTRUCTION']],
] as const;

someOf(1, describe)(allModes)('A device that met a fault (%s)', (mode) => {
  someOf(2, test)(FAULTS)(
    '%s: everything in flight rejects with the fault as its cause',
    async (kernel, names) => {
      const { inFlight, waited } = await lose(kernel, mode);
      expect(inFlight.length).toBe(27);
      for (const each of inFlight) {
        expect(each.code).toBe('ERR_CUDA_DEVICE_LOST');
        expect(names).toContain(each.driverName);
        expect(each.cause).toBe(each.driverName);
      }
      expect(waited).toBeLessThan(5000);
    },
  );

  test('later calls reject at once', async () => {
    const { later, atOnce } = await lose('read_far', mode);
    expect(later.length).toBe(10);
    for (const each of later)
      expect(each).toMatchObject({
        code: 'ERR_CUDA_DEVICE_LOST',
        cause: 'CUDA_ERROR_ILLEGAL_ADDRESS',
      });
    expect(atOnce).toBeLessThan(500);
  });

  test('emits one lost event, and no error event', async () => {
    const { lost, errors } = await lose('read_far', mode);
    expect(lost.map((each) => each.code)).toEqual(['ERR_CUDA_DEVICE_LOST']);
    expect(errors).toEqual([]);
  });

  test('causes no unhandled rejection where all promises are handled', async () => {
    expect((await lose('read_far', mode)).unhandled).toEqual([]);
  });

  test('causes one unhandled rejection without a listener', { tags: 'thorough' }, async () => {
    expect((await lose('read_far', mode, 'none')).unhandled).toEqual(['ERR_CUDA_DEVICE_LOST']);
  });

  test('allows everything to be closed', async () => {
    const { disposal, closed } = await lose('read_far', mode);
    expect(disposal).toBe('resolved');
    expect(closed).toBe('resolved');
  });

  test.runIf(onCpu)('can be opened again, as the error states', async () => {
    const { reopened, reopenedBehind, lost } = await lose('read_far', mode);
    expect([reopened, reopenedBehind]).toEqual(['resolved', 'resolved']);
    expect(lost[0]!.message).toContain('Open the device again');
  });

  test.skipIf(onCpu)('cannot be used again by the process, as the error states', async () => {
    const { reopened, reopenedBehind, lost } = await lose('read_far', mode);
    expect(reopened).toMatchObject({ code: 'ERR_CUDA_DEVICE_LOST' });
    expect(reopenedBehind).toMatchObject({ code: 'ERR_CUDA_DEVICE_LOST' });
    expect(lost[0]!.message).toContain('restart');
  });

  test('names the streams and their unfinished work: kernels, buffers, copies, fills', async () => {
    const { lost } = await lose('read_far', mode);
    const { work = [], message } = lost[0]!;
    const operations = new Map(work.map((each) => [each.stream, each.operations]));
    expect(operations.get("stream 'default'")![0]).toBe("kernel read_far ('victim')");
    expect(message).toContain("In flight: stream 'default': kernel read_far ('victim')");
    // Work that had ended is not named; work after the fault may be.
    expect(message).not.toContain('fill');
    for (const stream of operations.keys())
      expect(["stream 'default'", "stream 'other'"]).toContain(stream);
    expect(operations.get("stream 'other'")?.[0]).toMatch(/^kernel harmless/);
  });

  test.runIf(onCpu)(
    'the message has the line, the block and the thread of the kernel',
    async () => {
      const { message } = (await lose('read_far', mode)).lost[0]!;
      expect(message).toMatch(/read_far: .*PTX line \d+, block \(0,0,0\), thread \(0,0,0\)\./);
    },
  );

  test.runIf(onCpu)('the message has the kernel and the thread', async () => {
    const { lost } = await lose('read_far', mode);
    expect(lost[0]!.message).toContain('read_far');
  });
});
