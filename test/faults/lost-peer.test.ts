/**
 * A lost device does not affect other devices, as far as the library can prevent it: NVIDIA's
 * driver passes a fault of one GPU on to all GPUs of the process, whether they share work or not
 * (580, tested in C). In both cases work that uses both devices rejects, and nothing hangs.
 */
import { expect, test } from 'vitest';

import { CoreDevice } from '../../src/core/index.js';
import { onCpu } from '../core/test-device.js';
import { runProgram } from './program.js';

const gpus = onCpu ? 0 : (await CoreDevice.list()).filter(({ kind }) => kind === 'cuda').length;

const PAIRS = onCpu
  ? [
      ['cpu:0', 'cpu:1', 'worker', 'worker'],
      ['cpu:0', 'cpu:1', 'inline', 'worker'],
      ['cpu:0', 'cpu:1', 'worker', 'inline'],
      ['cpu:0', 'cpu:1', 'inline', 'inline'],
    ]
  : [
      ['cuda:0', 'cuda:1', 'worker', 'worker'],
      ['cuda:0', 'cpu:0', 'worker', 'worker'],
      ['cpu:0', 'cuda:0', 'worker', 'worker'],
    ];

const gone = { code: 'ERR_CUDA_DEVICE_LOST', cause: 'ERR_CUDA_DRIVER' };

test.each(PAIRS)('%s is lost, %s goes on (%s, %s)', async (lost, kept, ...modes) => {
  if (gpus < 2 && kept === 'cuda:1') {
    console.warn('skipped: there is one GPU');
    return expect(gpus).toBeLessThan(2);
  }
  const ended = await runProgram('lost-peer', { args: [lost, kept, ...modes] });
  expect(ended.stderr).toBe('');
  const { before, inFlight, later, closed, heard, unhandled, waited } = ended.result as Record<
    string,
    unknown[]
  >;
  expect(before).toEqual([1, 1, 1, 1]);
  expect(closed).toEqual(['resolved', 'resolved']);
  expect(unhandled).toEqual([]);
  expect(waited as unknown as number).toBeLessThan(5000);
  expect(inFlight![0]).toEqual(gone);
  expect(inFlight![3]).toEqual(gone);
  if (heard!.includes('b lost')) {
    expect([lost, kept]).toEqual(['cuda:0', 'cuda:1']);
    for (const outcome of inFlight!)
      if (typeof (outcome as { code?: string }).code === 'string') expect(outcome).toEqual(gone);
    expect(later).toEqual([gone, gone, gone, gone, gone]);
    return;
  }
  // Work that waited goes on; copies of the lost memory reject.
  expect(inFlight![1]).toBe('resolved');
  expect(['ERR_CUDA_UNDEFINED_CONTENTS', 'ERR_CUDA_DEVICE_LOST']).toContain(
    (inFlight![2] as { code: string }).code,
  );
  expect(inFlight![4]).toEqual([3, 3, 3, 3]);
  expect(later!.slice(0, 4)).toEqual([gone, gone, gone, gone]);
  expect(later![4]).toEqual([7, 7, 7, 7]);
  expect(heard!.filter((each) => each !== 'a lost')).toEqual([]);
});
