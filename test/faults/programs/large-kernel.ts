/**
 * Runs a large kernel once, then ends. It has so many labels, each of which may go to each other,
 * or is of the shape that is named.
 */
import { CoreDevice, u32 } from '../../../src/core/index.js';
import { LONG_SHAPES, manyBranches } from '../../ptx/large-kernel.js';
import type { LongShape } from '../../ptx/large-kernel.js';

const [size, thread, how, shape, blocks] = process.argv.slice(2);
const device = await CoreDevice.open('cpu', { thread: thread as 'inline' | 'worker' });
const module = await device.loadModule(
  shape === undefined ? manyBranches(Number(size)) : LONG_SHAPES[shape as LongShape](Number(size)),
);
const words = device.alloc(u32, 1);
words.fill(device.stream, 1);
await module
  .kernel('branches')
  .launch(device.stream, { grid: Number(blocks ?? 1), block: 64 }, words);
await device.close();
console.log('leaving');
if (how === 'exit') process.exit(7);
process.exitCode = 7;
