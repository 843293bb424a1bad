/**
 * The cost of operations on the thread that builds and submits them, a thousand at a time: built
 * anew each time, and one that is submitted again. The time of their execution is not included.
 */
import { performance } from 'node:perf_hooks';

import type { Bar, Benchmark, LocalPeer, Setup } from '../benchmark.js';
import type { DeviceOp, Stream } from '../library.js';
import { Scale } from './scale.js';

const OPERATIONS = 1000;
const SAMPLES = 101;
/** Submissions until the engine has optimised the code. */
const WARM_UP = 400;

/** Submits all of them; the result resolves when they end. */
type Submit = (scale: Scale, stream: Stream) => PromiseLike<unknown>;

async function start({ device, count }: Setup, prepare: (scale: Scale) => Submit) {
  const { stream } = device;
  const scale = await Scale.open(device);
  const submit = prepare(scale);
  for (let k = 0; k < count(WARM_UP); k++) await submit(scale, stream);
  return {
    async round() {
      await scale.prove(OPERATIONS, () => submit(scale, stream));
      const times: number[] = [];
      for (let k = 0; k < count(SAMPLES); k++) {
        const start = performance.now();
        const running = submit(scale, stream);
        const end = performance.now();
        await running;
        times.push(((end - start) * 1e3) / OPERATIONS);
      }
      return { samples: times };
    },
    close: () => scale.close(),
  };
}

const launches: LocalPeer = {
  name: 'launches of level 3',
  start: (setup) =>
    start(setup, () => (scale, stream) => {
      scale.launches(stream, OPERATIONS);
      return stream.finished();
    }),
};

function benchmark(name: string, bar: Bar, prepare: (scale: Scale) => Submit): Benchmark {
  return {
    area: 'ops',
    name: `${name}, time of the JS thread, each`,
    unit: 'µs',
    statistic: 'median',
    caller: 'main',
    bar,
    peers: [launches],
    start: (setup) => start(setup, prepare),
  };
}

function again(op: DeviceOp<unknown>): Submit {
  return (_scale, stream) => op.runOn(stream);
}

export const chainCosts = [
  benchmark(
    'chain of 1,000 built and submitted',
    '<= 0.5',
    () => (scale, stream) => scale.chain(OPERATIONS).runOn(stream),
  ),
  benchmark(
    'list of 1,000 built and submitted',
    '<= 0.5',
    () => (scale, stream) => scale.list(OPERATIONS).runOn(stream),
  ),
  benchmark('built chain of 1,000 submitted again', '<= 0.15', (scale) =>
    again(scale.chain(OPERATIONS)),
  ),
  benchmark('built list of 1,000 submitted again', '<= 0.15', (scale) =>
    again(scale.list(OPERATIONS)),
  ),
];
