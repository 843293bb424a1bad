import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openCpu } from './open.js';
import { messageOf } from './testing/open-fake.js';
import { kernelOf } from './testing/checked-device.js';
import { packParams } from './testing/open-fake.js';
import { Schedule } from './schedule.js';

test('an order has every number once', () => {
  fc.assert(fc.property(fc.nat(), fc.nat(1000), fc.integer({ min: 1, max: 2000 }), (seed, launch, count) => {
    const order = new Schedule(seed).order(launch, count);
    const numbers = new Set(Array.from({ length: count }, (_, i) => order(i)));
    expect(numbers.size).toBe(count);
    expect(Math.max(...numbers)).toBe(count - 1);
  }));
});

/** The order in which blocks took tickets. */
function tickets(seed: number): string {
  const cu = openCpu({ memoryBytes: 2 ** 24, schedule: { seed } });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const text = kernelOf(1, 'mov.u32 %r1, %ctaid.x;\natom.global.add.u32 %r2, [%rd0], 1;\nmul.wide.u32 %rd1, %r1, 4;\nadd.u64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1+4], %r2;');
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(text, {}), 'k');
  const address = cu.cuMemAllocManaged(40, 1);
  const { buffer, byteOffset } = cu.hostView(address, 40);
  cu.cuLaunchKernel(func, 8, 1, 1, 1, 1, 1, 0, 0, packParams([[address]]), 0, 8);
  cu.cuCtxSynchronize();
  return new Int32Array(buffer, byteOffset + 4, 8).join();
}

test('a seed decides the order of blocks, and does so again', () => {
  const orders = Array.from({ length: 10 }, (_, seed) => tickets(seed));
  expect(new Set(orders).size).toBeGreaterThan(3);
  expect(Array.from({ length: 10 }, (_, seed) => tickets(seed))).toEqual(orders);
});

test('an error names the seed', () => {
  const cu = openCpu({ memoryBytes: 2 ** 24, schedule: { seed: 77 } });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(kernelOf(0, 'trap;'), {}), 'k');
  cu.cuLaunchKernel(func, 1, 1, 1, 1, 1, 1, 0, 0, new Int32Array(2), 0, 0);
  expect(messageOf(() => cu.cuCtxSynchronize())).toContain('(schedule: { seed: 77 })');
});
