/**
 * The cost of tracking owners on the JS thread: values of many tensors that pass through many
 * steps. Each step determines the memory of its value.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark, Contender, Setup } from '../benchmark.js';
import { type DeviceBuffer, type DeviceOp, core, ops } from '../library.js';

const TENSORS = 100;
const STEPS = 1000;
const SAMPLES = 21;
const WARM_UP = 20;

type Buffers = readonly DeviceBuffer[];

const { f32 } = core;
const { operation } = ops;

/** Submits the results of `make`, and times that; the values are closed. */
async function start(
  { device, count }: Setup,
  make: () => DeviceOp<Buffers>,
  expected: number,
): Promise<Contender> {
  const { stream } = device;
  const once = async (): Promise<number> => {
    const op = make();
    const begun = performance.now();
    const running = op.runOn(stream);
    const end = performance.now();
    const given = await running;
    if (new Set(given).size !== expected || given.some((buffer) => buffer.isClosed))
      throw new Error(`expected ${expected} open buffers, got ${given.length}`);
    for (const buffer of given) buffer.close();
    return ((end - begun) * 1e3) / STEPS;
  };
  for (let k = 0; k < count(WARM_UP); k++) await once();
  return {
    async round() {
      const samples: number[] = [];
      for (let k = 0; k < count(SAMPLES); k++) samples.push(await once());
      return { samples };
    },
  };
}

export const ownershipCosts: readonly Benchmark[] = [
  {
    area: 'ops',
    name: `a tuple of ${TENSORS} tensors through ${STEPS} steps, time of the JS thread, each step`,
    unit: 'µs',
    statistic: 'median',
    caller: 'main',
    bar: '<= 10',
    peers: [],
    start: (setup) =>
      start(
        setup,
        () => {
          let op = operation(setup.device, (context): Buffers =>
            Array.from({ length: TENSORS }, () => context.alloc(f32, 1)),
          );
          for (let i = 0; i < STEPS; i++) op = op.map((each) => [...each]);
          return op;
        },
        TENSORS,
      ),
  },
  {
    area: 'ops',
    name:
      `a list that grows by a tensor in each of ${STEPS} steps, time of the JS thread, each ` +
      'step',
    unit: 'µs',
    statistic: 'median',
    caller: 'main',
    bar: '<= 50',
    peers: [],
    start: (setup) =>
      start(
        setup,
        () => {
          let op = operation(setup.device, (): Buffers => []);
          for (let i = 0; i < STEPS; i++)
            op = op.andThen((before) =>
              operation(setup.device, (context): Buffers => [...before, context.alloc(f32, 1)]),
            );
          return op;
        },
        STEPS,
      ),
  },
];
