/**
 * A chain of 1,000 operations, each on the result of the one before: y = x * g on 2,048
 * half-precision numbers, to and fro between two buffers, then one await.
 */
import { performance } from 'node:perf_hooks';

import type { Benchmark } from '../benchmark.js';
import { core } from '../library.js';
import { bitsOfF16, roundToF16 } from './f16.js';
import { loadKernels } from './tick.js';

const OPERATIONS = 1000;
const ELEMENTS = 2048;
/**
 * 1 + 2⁻¹⁰, exact in f16: every operation of the chain moves the value by one or two units in the
 * last place.
 */
const G = 1.0009765625;
const SAMPLES = 11;
/**
 * Many short rounds: a processor that is slow for some seconds (see `processor.ts`) is slow for all
 * contenders.
 */
const ROUNDS = 27;

const { f16, f32, i32, input, output } = core;

/** The result of the chain for 1. */
function chainResult(): number {
  let value = 1;
  for (let i = 0; i < OPERATIONS; i++) value = roundToF16(value * G);
  return value;
}

export const chain: Benchmark = {
  area: 'runtime',
  name: 'chain of 1,000 operations, each',
  unit: 'µs',
  statistic: 'median',
  caller: 'runtime thread',
  rounds: ROUNDS,
  peers: [
    {
      name: 'C',
      bar: '<= 1.05',
      program: 'launches',
      request: () => `chain ${SAMPLES} ${OPERATIONS} ${ELEMENTS} ${bitsOfF16(chainResult())}`,
    },
  ],
  async start({ device }) {
    const { stream } = device;
    const module = await loadKernels(device);
    const scale = module.kernel('scale_f16', [output(f16), input(f16), f32, i32]);
    const a = device.alloc(f16, ELEMENTS);
    const b = device.alloc(f16, ELEMENTS);
    const launch = { grid: ELEMENTS / 256, block: 256 };
    const queue = (): void => {
      for (let i = 0; i < OPERATIONS; i += 2) {
        scale.launch(stream, launch, b, a, G, ELEMENTS);
        scale.launch(stream, launch, a, b, G, ELEMENTS);
      }
    };
    return {
      async round() {
        a.fill(stream, 1);
        queue();
        const expected = chainResult();
        const result = await a.read(stream);
        if (!result.every((value) => value === expected))
          throw new Error(`the chain gave ${result[0]}, not ${expected}`);
        const times: number[] = [];
        for (let k = 0; k < SAMPLES; k++) {
          const start = performance.now();
          queue();
          await stream.finished();
          times.push(((performance.now() - start) * 1e3) / OPERATIONS);
        }
        return { samples: times };
      },
      async close() {
        a.close();
        b.close();
        await module.close();
      },
    };
  },
};
