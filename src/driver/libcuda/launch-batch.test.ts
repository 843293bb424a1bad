/**
 * Batches of launches reach cuLaunchKernelEx as they were prepared, through koffi and through
 * `node:ffi`.
 */
import { beforeEach, describe, expect, test } from 'vitest';

import { openLibcuda } from './open.js';
import { StandIn, buildStandIn, whyNoStandIn } from './stand-in/stand-in.js';

const STREAM = 0x7f20_0000_0020;
const FUNC = 0x7f10_0000_0010;

const hasNodeFfi =
  (process as { getBuiltinModule?: (name: string) => unknown }).getBuiltinModule?.('node:ffi') !==
  undefined;

describe.each([
  ['koffi', false],
  ['node:ffi', true],
] as const)('a batch of launches through %s', (_, nodeFfi) => {
  if (whyNoStandIn !== undefined || (nodeFfi && !hasNodeFfi)) {
    test.skip(whyNoStandIn ?? 'this Node has no node:ffi', () => undefined);
    return;
  }
  const standIn = new StandIn(buildStandIn(13000));
  beforeEach(() => {
    standIn.reset();
    standIn.parameters({ offset: 0, size: 8 }, { offset: 8, size: 4 }, { offset: 12, size: 4 });
  });
  const batch = () => openLibcuda({ path: standIn.path, nodeFfi }).launchBatch!()!;
  const launches = (): string[] =>
    standIn.takeLog().filter((line) => line.startsWith('cuLaunchKernelEx'));

  test(
    'makes the launches in the order in which they are run, each with its own config and ' +
      'parameters',
    () => {
      const { prepare, run, words, stride, capacity } = batch();
      for (let i = 0; i < capacity; i++) {
        words.set([i, 0, 100 + i, 200 + i], i * stride);
        expect(
          prepare(
            i,
            FUNC + 256 * (i % 2),
            i + 1,
            7 - (i % 3),
            3,
            32 * (i + 1),
            2,
            (i % 2) + 1,
            i * 4,
            STREAM + i,
            16,
          ),
        ).toBe(true);
      }
      for (let i = 0; i < capacity; i++) run(i);
      const lines = launches();
      expect(lines).toHaveLength(capacity);
      const hex = (value: number): string =>
        Buffer.from(new Int32Array([value]).buffer).toString('hex');
      lines.forEach((line, i) => {
        expect(line).toContain((FUNC + 256 * (i % 2)).toString(16));
        expect(line).toContain(
          'config ' +
            `${[i + 1, 7 - (i % 3), 3, 32 * (i + 1), 2, (i % 2) + 1, i * 4].map(hex).join('')} ` +
            `stream ${(STREAM + i).toString(16)}`,
        );
        for (const word of [i, 100 + i, 200 + i]) expect(line).toContain(hex(word));
      });
    },
  );

  test('refuses a launch with too few bytes, for which cuLaunchKernel has an error', () => {
    expect(batch().prepare(0, FUNC, 1, 1, 1, 1, 1, 1, 0, STREAM, 15)).toBe(false);
  });

  test('names the launch that failed', () => {
    const { prepare, run } = batch();
    prepare(0, FUNC, 3, 2, 1, 64, 1, 4, 16, STREAM, 16);
    standIn.returns('cuLaunchKernelEx', 701);
    expect(() => run(0)).toThrow(
      'CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES (701): grid 3×2×1, block 64×1×4, 16 bytes of ' +
        'dynamic shared memory',
    );
  });
});
