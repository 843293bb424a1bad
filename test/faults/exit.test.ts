/**
 * process.exit at any point neither crashes nor takes long. ASYNC_CUDA_TEST_EXITS is the number of
 * runs, one of each point by default; ASYNC_CUDA_TEST_EXIT_MS is the limit, which is more than the
 * guaranteed half second since CI machines are shared.
 */
import { describe, expect, test } from 'vitest';

import type { LongShape } from '../ptx/large-kernel.js';
import { runProgram } from './program.js';
import { namedSeed, someOf } from '../random-runs.js';

const runs = Number(process.env['ASYNC_CUDA_TEST_EXITS'] ?? 12);
const late = Number(process.env['ASYNC_CUDA_TEST_EXIT_MS'] ?? 2000);
const POINTS = [
  'opening',
  'idle',
  'long-kernel',
  'many-blocks',
  'endless-kernel',
  'launches',
  'copies',
  'loading',
  'allocating',
  'closing',
  'call',
  'closed',
];
const seed = namedSeed ?? 1;

describe('process.exit', () => {
  someOf(
    2,
    test,
  )(Array.from({ length: runs }, (_, i) => ({ point: POINTS[i % POINTS.length]!, run: seed + i })))(
    'while $point ($run)',
    async ({ point, run }) => {
      const ended = await runProgram('exit', { args: [point, run] });
      expect({
        code: ended.code,
        signal: ended.signal,
        stdout: ended.stdout,
        stderr: ended.stderr,
      }).toEqual({
        code: 7,
        signal: null,
        stdout: 'leaving\n',
        stderr: '',
      });
      expect(ended.afterFirstLine).toBeLessThan(late);
    },
  );
});

describe('process.exit while helpers of large copies start', { tags: 'thorough' }, () => {
  test.each(['process', 'worker'])(
    'of the %s',
    async (where) => {
      for (let ms = 0; ms < 100; ms += 10) {
        const { code, signal, stderr } = await runProgram('helpers-loading', { args: [ms, where] });
        expect({ code, signal, stderr }).toEqual({ code: 7, signal: null, stderr: '' });
      }
    },
    60_000,
  );
});

describe('the end of a process after a kernel that V8 takes long to optimise', () => {
  someOf(
    1,
    test,
  )([
    ['inline', 'exit'],
    ['inline', 'natural'],
    ['worker', 'exit'],
    ['worker', 'natural'],
  ])(
    'thread %s, %s',
    async (thread, how) => {
      const { code, signal, stdout, stderr, afterFirstLine } = await runProgram('large-kernel', {
        args: [160, thread, how],
        timeout: 60_000,
      });
      expect({ code, signal, stdout, stderr }).toEqual({
        code: 7,
        signal: null,
        stdout: 'leaving\n',
        stderr: '',
      });
      expect(afterFirstLine).toBeLessThan(late);
    },
    60_000,
  );
});

describe('the natural end of a process after a kernel that V8 optimises slowly', () => {
  someOf(
    1,
    test,
  )<[LongShape, number]>([
    ['loops, each in the next', 150],
    ['loops, each in the next', 200],
    ['loops, each in the next', 300],
    ['loops, each in the next', 400],
    ['loops that overlap', 150],
    ['loops that overlap', 300],
    ['loops in a row', 600],
    ['loops in a row', 2000],
    ['branches to one label', 1500],
    ['no branches', 10_000],
    ['no branches', 60_000],
  ])(
    '%s, %i',
    async (shape, size) => {
      const args = [size, 'inline', 'natural', shape];
      const ended = await runProgram('large-kernel', { args, timeout: 60_000 });
      const { code, signal, stdout, stderr } = ended;
      const wanted = { code: 7, signal: null, stdout: 'leaving\n', stderr: '' };
      expect({ code, signal, stdout, stderr }).toEqual(wanted);
      expect(ended.afterFirstLine).toBeLessThan(late);
    },
    60_000,
  );
});

describe('the natural end of a process after many threads of such a kernel', () => {
  // This many threads run in lanes.
  test.each(['inline', 'worker'])(
    'thread %s',
    { tags: 'thorough', timeout: 60_000 },
    async (thread) => {
      const args = [300, thread, 'natural', 'loops, each in the next', 512];
      const ended = await runProgram('large-kernel', { args, timeout: 60_000 });
      const { code, signal, stdout, stderr } = ended;
      const wanted = { code: 7, signal: null, stdout: 'leaving\n', stderr: '' };
      expect({ code, signal, stdout, stderr }).toEqual(wanted);
      expect(ended.afterFirstLine).toBeLessThan(late);
    },
  );
});

describe('a process', () => {
  test('ends by itself while a device is open and idle', async () => {
    expect(await runProgram('idle', { args: ['open'] })).toMatchObject({
      code: 0,
      signal: null,
      stderr: '',
    });
  });

  test('stays until awaited work is done', async () => {
    expect(await runProgram('idle', { args: ['work'] })).toMatchObject({
      code: 0,
      stderr: '',
      result: { value: 5 },
    });
  });

  test('stays until awaited work is done, also with fake timers', async () => {
    expect(await runProgram('idle', { args: ['fake-timers'] })).toMatchObject({
      code: 0,
      stderr: '',
      result: { value: 5 },
    });
  });
});
