/**
 * Mutated kernels on the CPU device: they end, are stopped, or fault, and access no memory but
 * their own.
 */
import { expect, test } from 'vitest';
import { judge } from './judge.js';
import { Inputs } from './mutations.js';
import { runOnDevice } from './on-device.js';
import { seedModules } from './seeds.js';
import { failureOf, namedSeed, scale } from '../../random-runs.js';

const SECONDS = 4 * scale;
const FROM = namedSeed ?? Date.now() % 2 ** 31;

test(
  'a text that compiles ends only as a launch can end',
  { tags: 'random', timeout: SECONDS * 1000 + 60_000 },
  () => {
    const inputs = new Inputs(seedModules());
    const end = performance.now() + SECONDS * 1000;
    let number = FROM;
    let ran = 0;
    // One module runs at the least: a machine with much else to do may need all the time for it.
    for (; performance.now() < end || ran === 0; number++) {
      const text = inputs.at(number);
      const { module } = judge(text);
      if (!module?.kernels.length) continue;
      ran++;
      const complaint = runOnDevice(text, module, number);
      if (complaint !== undefined) expect.fail(failureOf(number, complaint));
    }
    console.log(`ran ${ran} modules of ${number - FROM} inputs from number ${FROM}`);
    expect(ran).toBeGreaterThan(0);
  },
);
