/**
 * Native code prints more than a pipe holds, as a GPU's driver does, between two lines of the
 * program's own.
 */
import { loadKoffi } from '../../../src/native/koffi.js';
import { nativeOutput } from '../../../src/runtime/native-output.js';

const puts = loadKoffi().load('libc.so.6').func('int puts(const char*)') as (
  text: string,
) => number;
const output = nativeOutput(undefined);
if (output === undefined) throw new Error('there is no native output here');
process.stdout.write('begin\n');
output.bring(() => {
  for (let i = 0; i < 20_000; i++) puts(`native line ${i}`);
});
process.stdout.write('end\n');
