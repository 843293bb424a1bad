/**
 * Opens and closes a device the given number of times; prints how much more memory was resident at
 * the end than after the first few, in MB.
 */
import { CoreDevice } from 'async-cuda/core';

const [mode, times] = process.argv.slice(2);
const resident = (): number => process.memoryUsage.rss() / 1e6;
let before = 0;
for (let i = 0; i < Number(times); i++) {
  if (i === 10) before = resident();
  const device = await CoreDevice.open('cpu', { thread: mode as 'inline' | 'worker' });
  await device.close();
}
console.log(JSON.stringify({ more: Math.round(resident() - before) }));
