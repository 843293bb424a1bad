/** Output of native code to standard output, where that is a pipe that Node has opened. */
import { expect, test } from 'vitest';

import { runProgram } from './program.js';

test.runIf(process.platform === 'linux')(
  'is complete and in order, whatever the pipe’s capacity',
  async () => {
    const { code, stdout, stderr } = await runProgram('native-output');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trimEnd().split('\n')).toEqual([
      'begin',
      ...Array.from({ length: 20_000 }, (_, i) => `native line ${i}`),
      'end',
    ]);
  },
);
