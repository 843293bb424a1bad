/**
 * Output of kernels, in a process of its own whose standard output is a pipe, since a GPU's driver
 * writes to standard output.
 */
import { describe, expect, test } from 'vitest';

import { runProgram } from '../faults/program.js';
import { PRINTING } from './kernels/printing.js';
import { allModes, onCpu, onDevice, testDevice } from './test-device.js';
import { someOf } from '../random-runs.js';

const PROGRAMS: readonly { what: string; that: string; prints: readonly string[] }[] = [
  {
    what: 'launch',
    that: 'comes before the launch resolves',
    prints: ['begin', 'said 0 by 0', 'after 0', 'said 1 by 0', 'after 1', 'said 2 by 0', 'after 2'],
  },
  {
    what: 'sync',
    that: 'comes before stream.finished() resolves',
    prints: ['said 1 by 0', 'said 2 by 0', 'after'],
  },
  {
    what: 'read',
    that: 'comes before a read behind it resolves',
    prints: ['said 1 by 0', 'small', 'said 2 by 0', 'large'],
  },
  {
    what: 'call',
    that: 'comes before a host function behind it',
    prints: ['said 1 by 0', 'called', 'said 2 by 0', 'synchronized'],
  },
  {
    what: 'graph',
    that: 'of a graph comes at each launch',
    prints: [
      'captured',
      'said 1 by 0',
      'said 2 by 0',
      'once',
      'said 1 by 0',
      'said 2 by 0',
      'twice',
    ],
  },
  {
    what: 'streams',
    that: 'of one stream does not wait for another',
    prints: ['said 1 by 0', 'first', 'said 2 by 0', 'second'],
  },
  {
    what: 'late',
    that: 'comes first, however late the launch is awaited',
    prints: Array.from({ length: 50 }, (_, i) => [`said ${i} by 0`, `after ${i}`]).flat(),
  },
  {
    what: 'close',
    that: 'comes before device.close() resolves',
    prints: ['said 1 by 0', 'closed'],
  },
  {
    what: 'unawaited',
    that: 'that is not awaited comes before the process ends',
    prints: ['begin', 'said 1 by 0', 'said 2 by 0'],
  },
  {
    what: 'closed-stream',
    that: 'of a stream that was closed comes before the process ends',
    prints: ['said 1 by 0'],
  },
];

someOf(1, describe)(allModes)(`Text that a kernel prints (${testDevice}, %s)`, (mode) => {
  someOf(5, test)(PROGRAMS)('$that', async ({ what, prints }) => {
    const ended = await runProgram('print', { args: [what, mode] });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    expect(ended.stdout.trimEnd().split('\n')).toEqual(prints);
  });

  test('is complete after process.exit()', async () => {
    expect(await runProgram('print', { args: ['exit', mode] })).toMatchObject({
      code: 3,
      stdout: 'said 1 by 0\n',
      stderr: '',
    });
  });

  test('is complete where it exceeds the pipe’s capacity', async () => {
    const ended = await runProgram('print', { args: ['much', mode] });
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const lines = ended.stdout.trimEnd().split('\n');
    expect(lines.at(0)).toBe('begin');
    expect(lines.at(-1)).toBe('end');
    // Blocks print in any order.
    expect(new Set(lines.slice(1, -1))).toEqual(
      new Set(Array.from({ length: 50 * 256 }, (_, i) => `said 7 by ${i}`)),
    );
    expect(lines.length).toBe(50 * 256 + 2);
  });
});

onDevice('Text that a kernel prints', (host) => {
  test.runIf(onCpu)('is an event on the CPU device, before the launch resolves', async () => {
    const say = (await host.load(PRINTING)).kernel('say');
    const heard: string[] = [];
    const listener = (text: string): number => heard.push(text);
    host.device.on('print', listener);
    try {
      for (let i = 0; i < 20; i++) {
        await say.launch(host.stream, { grid: 1, block: 2 }, i);
        expect(heard.splice(0).join('')).toBe(`said ${i} by 0\nsaid ${i} by 1\n`);
      }
    } finally {
      host.device.off('print', listener);
    }
  });
});
