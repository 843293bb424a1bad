/**
 * The library's sort compared with CUB's: timed by the device's events, both from an unchanged
 * buffer into another.
 */
import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { core, library, root } from '../library.js';

const { u32 } = core;

const SAMPLES = 3;
const LAUNCHES = 10;
/** On the CPU device only the results are checked. */
const COUNTS = { cuda: 16 * 2 ** 20, cpu: 2 ** 15 };

/** As in bench/peers/cuda/sorts.cu. */
function keys(count: number): Uint32Array<ArrayBuffer> {
  return new Uint32Array(count).map((_, i) => {
    const x = Math.imul(i + 1, 2654435761) >>> 0;
    return Math.imul(x ^ (x >>> 15), 2246822519);
  });
}

async function start({ device, count }: Setup): Promise<Contender> {
  const { stream } = device;
  const given = keys(COUNTS[device.kind]);
  const buffer = device.alloc(u32, given.length);
  await buffer.write(stream, given);
  const op = library.sort(root.Tensor.of(buffer, [given.length]));
  // Closed once it is queued: the next sort takes the same memory.
  const once = op.map((sorted) => {
    sorted.close();
  });
  const expected = given.slice().sort();
  return {
    async round() {
      const sorted = await op.runOn(stream);
      const result = await sorted.read();
      sorted.close();
      const wrong = result.findIndex((value, i) => value !== expected[i]);
      if (wrong >= 0)
        throw new Error(`sort: element ${wrong} is ${result[wrong]}, not ${expected[wrong]}`);
      const samples: number[] = [];
      for (let k = 0; k < count(SAMPLES); k++) {
        const [begin, end] = [device.createEvent(), device.createEvent()];
        stream.record(begin);
        for (let i = 0; i < LAUNCHES; i++) void once.runOn(stream);
        stream.record(end);
        samples.push(((await begin.elapsed(end)) * 1000) / LAUNCHES);
        begin.close();
        end.close();
      }
      return { samples };
    },
    close() {
      buffer.close();
      return Promise.resolve();
    },
  };
}

export const sorting: Benchmark = {
  area: 'kernels',
  name: 'sort of 16 M u32, in TypeScript',
  unit: 'µs',
  statistic: 'median',
  rounds: 5,
  peers: [
    {
      name: 'cub::DeviceRadixSort::SortKeys',
      program: 'CUB',
      request: ({ device, count }) => `sort ${COUNTS[device.kind]} ${count(SAMPLES)} ${LAUNCHES}`,
    },
  ],
  start,
};
