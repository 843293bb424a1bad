import * as fc from '../../../test/fast-check.js';
import { expect, test } from 'vitest';
import { openCpu } from './open.js';
import { messageOf } from './testing/open-fake.js';
import { kernelOf } from './testing/checked-device.js';
import { packParams } from './testing/open-fake.js';
import { Schedule } from './schedule.js';

test('an order has every number once', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.nat(1000),
      fc.integer({ min: 1, max: 2000 }),
      (seed, launch, count) => {
        const order = new Schedule(seed).of(launch).order(count);
        const numbers = new Set(Array.from({ length: count }, (_, i) => order(i)));
        expect(numbers.size).toBe(count);
        expect(Math.max(...numbers)).toBe(count - 1);
      },
    ),
  );
});

/** Returns the order in which blocks, or the warps of one, took tickets. */
function tickets(seed: number, who = '%ctaid.x', grid = 8, block = 1): string {
  const cu = openCpu({ memoryBytes: 2 ** 24, schedule: { seed } });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const text = kernelOf(
    1,
    `mov.u32 %r1, ${who};\natom.global.add.u32 %r2, [%rd0], 1;\nmul.wide.u32 %rd1, %r1, ` +
      `4;\nadd.u64 %rd1, %rd1, %rd0;\nst.global.u32 [%rd1+4], %r2;`,
  );
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(text, {}), 'k');
  const address = cu.cuMemAllocManaged(40, 1);
  const { buffer, byteOffset } = cu.hostView(address, 40);
  cu.cuLaunchKernel(func, grid, 1, 1, block, 1, 1, 0, 0, packParams([[address]]), 0, 8);
  cu.cuCtxSynchronize();
  return new Int32Array(buffer, byteOffset + 4, 8).join();
}

test('a seed determines the order of blocks, reproducibly', () => {
  const orders = Array.from({ length: 10 }, (_, seed) => tickets(seed));
  expect(new Set(orders).size).toBeGreaterThan(3);
  expect(Array.from({ length: 10 }, (_, seed) => tickets(seed))).toEqual(orders);
});

test('a seed determines the order of the warps of a block', () => {
  const orders = Array.from({ length: 10 }, (_, seed) => tickets(seed, '%warpid', 1, 256));
  expect(new Set(orders).size).toBeGreaterThan(5);
  expect(Array.from({ length: 10 }, (_, seed) => tickets(seed, '%warpid', 1, 256))).toEqual(orders);
});

/**
 * Returns a counter that two blocks of one thread add to ten times each, with a plain load and
 * store.
 */
function counted(seed: number): number {
  const cu = openCpu({ memoryBytes: 2 ** 24, schedule: { seed } });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const text = kernelOf(
    1,
    'mov.u32 %r1, 0;\nL: ld.volatile.global.u32 %r2, [%rd0];\nmov.u32 %r3, 0;\nM: add.u32 ' +
      '%r3, %r3, 1;\nsetp.lt.u32 %p0, %r3, 40;\n@%p0 bra M;\n' +
      'add.u32 %r2, %r2, 1;\nst.volatile.global.u32 [%rd0], %r2;\nadd.u32 %r1, %r1, ' +
      '1;\nsetp.lt.u32 %p1, %r1, 10;\n@%p1 bra L;',
  );
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(text, {}), 'k');
  const address = cu.cuMemAllocManaged(4, 1);
  const { buffer, byteOffset } = cu.hostView(address, 4);
  cu.cuLaunchKernel(func, 2, 1, 1, 1, 1, 1, 0, 0, packParams([[address]]), 0, 8);
  cu.cuCtxSynchronize();
  return new Int32Array(buffer, byteOffset, 1)[0]!;
}

test('blocks take turns of any length, so that an update that is not atomic is lost', () => {
  const counts = Array.from({ length: 10 }, (_, seed) => counted(seed));
  expect(Math.min(...counts)).toBeLessThan(20);
  expect(Array.from({ length: 10 }, (_, seed) => counted(seed))).toEqual(counts);
});

test('an error names the seed', () => {
  const cu = openCpu({ memoryBytes: 2 ** 24, schedule: { seed: 77 } });
  cu.cuInit(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(kernelOf(0, 'trap;'), {}), 'k');
  cu.cuLaunchKernel(func, 1, 1, 1, 1, 1, 1, 0, 0, new Int32Array(2), 0, 0);
  expect(messageOf(() => cu.cuCtxSynchronize())).toContain('(schedule: { seed: 77 })');
});
