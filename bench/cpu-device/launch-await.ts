/**
 * One launch of the empty kernel and its end on the CPU device: with a thread of its own, and on
 * the calling thread.
 */
import type { Bar, Benchmark } from '../benchmark.js';
import { core } from '../library.js';
import { launchThenAwait } from '../runtime/launch-await.js';

function launchAwaitOn(thread: 'worker' | 'inline', bar: Bar): Benchmark {
  return {
    area: 'cpu-device',
    name: `launch then await, ${thread === 'worker' ? 'with the thread' : 'inline'}`,
    unit: 'µs',
    statistic: 'median',
    bar,
    peers: [],
    async start({ count }) {
      const device = await core.CoreDevice.open('cpu', { thread });
      const contender = await launchThenAwait(device, count(2001));
      return { round: () => contender.round(), close: () => device.close() };
    },
  };
}

export const cpuLaunchAwait = [launchAwaitOn('worker', '<= 100'), launchAwaitOn('inline', '<= 10')];
