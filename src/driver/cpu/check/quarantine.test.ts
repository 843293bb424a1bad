// Memory in quarantine does not count as used, and is released where memory is short.

import * as fc from '../../../../test/fast-check.js';
import { describe, expect, test } from 'vitest';
import { openCpu } from '../open.js';
import { resultOf } from '../testing/open-fake.js';

type Step =
  | { kind: 'alloc'; bytes: number }
  | { kind: 'plain'; bytes: number }
  | { kind: 'free'; index: number }
  | { kind: 'sync' }
  | { kind: 'trim'; keep: number }
  | { kind: 'threshold'; bytes: number };

const RESERVED_CURRENT = 5;
const RESERVED_HIGH = 6;
const USED_CURRENT = 7;
const USED_HIGH = 8;
const RELEASE_THRESHOLD = 4;

const bytes = fc.constantFrom(1, 256, 257, 4096, 5000, 65536, 100_000);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('alloc' as const), bytes }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('plain' as const), bytes }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('free' as const), index: fc.nat(20) }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'sync' }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('trim' as const), keep: fc.nat(200_000) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('threshold' as const),
      bytes: fc.constantFrom(0, 4096, 200_000, 2 ** 30),
    }),
  },
);

/** The memory that a program observes after each step. */
function seen(steps: readonly Step[], check: boolean): number[][] {
  const cu = openCpu({ memoryBytes: 64 * 2 ** 20, check });
  cu.cuInit(0);
  const device = cu.cuDeviceGet(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(device));
  const stream = cu.cuStreamCreateWithPriority(1, 0);
  const pool = cu.cuDeviceGetDefaultMemPool(device);
  const live: { address: number; isOrdered: boolean }[] = [];
  return steps.map((each) => {
    switch (each.kind) {
      case 'alloc':
        live.push({ address: cu.cuMemAllocAsync(each.bytes, stream), isOrdered: true });
        break;
      case 'plain':
        live.push({ address: cu.cuMemAlloc(each.bytes), isOrdered: false });
        break;
      case 'free': {
        const [taken] = live.splice(each.index % Math.max(1, live.length), 1);
        if (taken === undefined) break;
        if (taken.isOrdered) cu.cuMemFreeAsync(taken.address, stream);
        else cu.cuMemFree(taken.address);
        break;
      }
      case 'sync':
        cu.cuStreamSynchronize(stream);
        break;
      case 'trim':
        cu.cuMemPoolTrimTo(pool, each.keep);
        break;
      case 'threshold':
        cu.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, each.bytes);
    }
    return [
      ...[RESERVED_CURRENT, RESERVED_HIGH, USED_CURRENT, USED_HIGH].map((attribute) =>
        cu.cuMemPoolGetAttribute(pool, attribute),
      ),
      cu.cuMemGetInfo().free,
    ];
  });
}

test('a program sees the same memory with and without the checker', { tags: 'random' }, () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      expect(seen(steps, true)).toEqual(seen(steps, false));
    }),
    { numRuns: 150 },
  );
});

describe('where memory is short', () => {
  const open = (): ReturnType<typeof openCpu> => {
    const cu = openCpu({ memoryBytes: 16 * 2 ** 20, check: true });
    cu.cuInit(0);
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
    return cu;
  };

  test('freed memory is reused', () => {
    const cu = open();
    for (let i = 0; i < 20; i++) {
      const address = cu.cuMemAlloc(12 * 2 ** 20);
      cu.cuMemFree(address);
    }
    const stream = cu.cuStreamCreateWithPriority(1, 0);
    for (let i = 0; i < 20; i++) {
      cu.cuMemFreeAsync(cu.cuMemAllocAsync(12 * 2 ** 20, stream), stream);
      cu.cuStreamSynchronize(stream);
    }
  });

  test('an allocation that is larger than the memory is refused', () => {
    const cu = open();
    cu.cuMemFree(cu.cuMemAlloc(8 * 2 ** 20));
    cu.cuMemAlloc(12 * 2 ** 20);
    expect(resultOf(() => cu.cuMemAlloc(8 * 2 ** 20))).toBe('CUDA_ERROR_OUT_OF_MEMORY');
  });
});
