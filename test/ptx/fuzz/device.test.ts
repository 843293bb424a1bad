/**
 * Changed kernels on the CPU device: they end, are cut short, or fault, and touch no memory but
 * their own.
 */
import { expect, test } from 'vitest';
import { judge } from './judge.js';
import { Inputs } from './mutations.js';
import { runOnDevice } from './on-device.js';
import { seedModules } from './seeds.js';

const SECONDS = Number(process.env.ASYNC_CUDA_FUZZ_SECONDS ?? 4);
const FROM = Number(process.env.ASYNC_CUDA_FUZZ_FROM ?? Date.now() % 2 ** 31);

test(
  'what compiles runs into nothing but the ends that a launch has',
  () => {
    const inputs = new Inputs(seedModules());
    const end = performance.now() + SECONDS * 1000;
    let number = FROM;
    let ran = 0;
    for (; performance.now() < end; number++) {
      const text = inputs.at(number);
      const { module } = judge(text);
      if (!module?.kernels.length) continue;
      ran++;
      const complaint = runOnDevice(text, module, number);
      if (complaint !== undefined) expect.fail(`ASYNC_CUDA_FUZZ_FROM=${number}: ${complaint}`);
    }
    console.log(`ran ${ran} modules of ${number - FROM} inputs from ASYNC_CUDA_FUZZ_FROM=${FROM}`);
    expect(ran).toBeGreaterThan(0);
  },
  SECONDS * 1000 + 60_000,
);
