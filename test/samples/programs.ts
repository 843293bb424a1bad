/** Cases of k14_printf that print or end the device: each in a process of its own. */
import { fileURLToPath } from 'node:url';

import { runProgram } from '../faults/program.js';
import type { RecordedProgram } from './recording.js';

export interface SampleProgram {
  name: string;
  kernel: 'hello' | 'trapk';
  values: readonly number[];
  /** Its lines, in any order; undefined where the fault decides how many come out. */
  prints?: readonly string[];
  /** The fault that the launch rejects with: a GPU reports a trap in one of two ways. */
  fault?: { driverNames: readonly string[]; says?: RegExp };
}

const printed = (values: readonly number[], texts: readonly string[]): string[] =>
  texts.map((text, i) => `t ${i} of -2147483648: ${text} str`).slice(0, values.length);
const HELLO = [0, -0, 1.5, 0.1, 16777216, 1e-40, 1e30, Infinity, 0.0000005, 2.5e-7];

export const PROGRAMS: readonly SampleProgram[] = [
  {
    name: 'printf',
    kernel: 'hello',
    values: HELLO,
    // 0.1 and 1e30 are the nearest floats; 0.0000005 lies below its decimal, 2.5e-7 rounds to 0.
    prints: printed(HELLO, [
      '0.000000',
      '-0.000000',
      '1.500000',
      '0.100000',
      '16777216.000000',
      '0.000000',
      '1000000015047466219876688855040.000000',
      'inf',
      '0.000000',
      '0.000000',
    ]),
  },
  {
    name: 'an assertion that fails',
    kernel: 'hello',
    values: [1, 2, 3, -1, 5],
    fault: { driverNames: ['CUDA_ERROR_ASSERT'], says: /f\[threadIdx\.x\]>=0\.f.*thread \(?3/ },
  },
  {
    name: 'an assertion that NaN fails',
    kernel: 'hello',
    values: [1, NaN],
    fault: { driverNames: ['CUDA_ERROR_ASSERT'] },
  },
  {
    name: 'trap',
    kernel: 'trapk',
    values: [42, 0, 0, 0, 0, 0, 0, 0],
    fault: {
      driverNames: ['CUDA_ERROR_LAUNCH_FAILED', 'CUDA_ERROR_ILLEGAL_INSTRUCTION'],
      says: /trap/,
    },
  },
  {
    name: 'a breakpoint without a debugger',
    kernel: 'trapk',
    values: [41, 7, 0, 0, 0, 0, 0, 0],
    fault: { driverNames: ['CUDA_ERROR_LAUNCH_FAILED'], says: /brkpt/ },
  },
  { name: 'no trap', kernel: 'trapk', values: [41, 6, 0, 0, 0, 0, 0, 0], prints: [] },
];

/** How the program ended. */
export interface Ending extends RecordedProgram {
  code: string | null;
  message: string | null;
}

export async function endOf(ptx: URL, { kernel, values }: SampleProgram): Promise<Ending> {
  const list = values.map((value) => (Object.is(value, -0) ? '-0' : String(value))).join(',');
  const ended = await runProgram('sample', { args: [fileURLToPath(ptx), kernel, list] });
  if (ended.result === undefined)
    throw new Error(`the program ended with ${ended.code ?? ended.signal}: ${ended.stderr}`);
  const { code, driverName, message } = ended.result as {
    code: string | null;
    driverName: string | null;
    message: string | null;
  };
  const stdout = ended.stdout
    .trimEnd()
    .split('\n')
    .slice(0, -1)
    .filter((line) => line !== '')
    .sort();
  return { stdout, code, driverName, message };
}
