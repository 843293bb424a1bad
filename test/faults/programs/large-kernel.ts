/** Runs a kernel of so many labels, each of which may go to each other, once; then ends. */
import { Device, u32 } from '../../../src/core/index.js';
import { manyBranches } from '../../ptx/large-kernel.js';

const [labels, thread, how] = process.argv.slice(2);
const device = await Device.open('cpu', { thread: thread as 'inline' | 'worker' });
const module = await device.loadModule(manyBranches(Number(labels)));
const words = device.alloc(u32, 1);
words.fill(device.stream, 1);
await module.kernel('branches').launch(device.stream, { grid: 1, block: 64 }, words);
await device.close();
console.log('leaving');
if (how === 'exit') process.exit(7);
process.exitCode = 7;
