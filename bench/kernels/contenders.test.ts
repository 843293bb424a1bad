/**
 * Products, linear layers and attention as the benchmarks time them: small ones are computed and
 * proved on a device of compute capability 9.0, as the large ones are on an H200.
 */
import * as root from 'async-cuda';
import * as library from 'async-cuda/library';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { openHopper } from '../../test/kernels/hopper/hopper-device.js';
import { tagsOf } from '../../test/random-runs.js';
import { PeerAbsent } from '../peers/program.js';
import {
  startAttention,
  startAttentionBackward,
  startPackedAttention,
} from './attention-contender.js';
import { startTileAttention } from './tile-attention.js';
import { startConvolution, startGrouped } from './expert-contenders.js';
import { elementBits, productsOf, prove, startProduct } from './product-contenders.js';
import type { Conditions, ProductCase } from './product-contenders.js';

let device: root.Device | undefined;
beforeAll(async () => {
  device = await openHopper();
});
afterAll(() => device?.close());

const conditions = (): Conditions => ({ device: device!.core, count: () => 2 });

describe('contenders', () => {
  const cases: readonly ProductCase[] = [
    { m: 24, n: 40, k: 72, dtype: 'f16', kind: 'product' },
    { m: 3, n: 136, k: 64, dtype: 'bf16', kind: 'product' },
    { m: 24, n: 32, k: 48, dtype: 'f8e4m3', kind: 'product' },
    { m: 16, n: 24, k: 40, dtype: 'f16', kind: 'layer' },
    { m: 16, n: 24, k: 40, dtype: 'bf16', kind: 'layer' },
  ];
  for (const given of cases)
    test(JSON.stringify(given), { tags: tagsOf(cases, given, 2) }, async ({ skip }) => {
      if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
      const contender = await startProduct({ root, library }, conditions(), given, 'own');
      for (let round = 0; round < 2; round++)
        expect((await contender.round()).samples).toHaveLength(2);
      await contender.close?.();
    });

  test('a product as a tile kernel', async ({ skip }) => {
    if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
    const given = { m: 24, n: 40, k: 72, dtype: 'f16', kind: 'product' } as const;
    const contender = await startProduct({ root, library }, conditions(), given, 'tiles');
    expect((await contender.round()).samples).toHaveLength(2);
    await contender.close?.();
  });

  const kinds = [{ causal: true }, { causal: false }, { causal: false, masked: true }];
  for (const kind of kinds)
    test(
      `attention and its gradients: ${JSON.stringify(kind)}`,
      { tags: tagsOf(kinds, kind, 1) },
      async ({ skip }) => {
        if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
        const given = { batch: 1, heads: 2, length: 40, channels: 16, ...kind };
        for (const start of [startAttention, startAttentionBackward]) {
          const contender = await start({ root, library }, conditions(), given);
          expect((await contender.round()).samples).toHaveLength(2);
          await contender.close?.();
        }
      },
    );

  const masks = [true, false];
  for (const causal of masks)
    test(
      `attention as a tile kernel${causal ? ', causal' : ''}`,
      { tags: tagsOf(masks, causal, 1) },
      async ({ skip }) => {
        if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
        const given = { batch: 1, heads: 2, length: 40, channels: 64, causal };
        const contender = await startTileAttention({ root, library }, conditions(), given);
        expect((await contender.round()).samples).toHaveLength(2);
        await contender.close?.();
      },
    );

  test('attention of packed sequences', { tags: 'thorough' }, async ({ skip }) => {
    if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
    const given = { lengths: [20, 40], heads: 2, channels: 16 };
    const contender = await startPackedAttention({ root, library }, conditions(), given);
    expect((await contender.round()).samples).toHaveLength(2);
    await contender.close?.();
  });

  test('a product of grouped rows', async ({ skip }) => {
    if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
    const given = { k: 24, n: 40, ends: [3, 3, 70] };
    const contender = await startGrouped({ root, library }, conditions(), given);
    expect((await contender.round()).samples).toHaveLength(2);
    await contender.close?.();
  });

  test('a convolution', async ({ skip }) => {
    if (device === undefined) skip('SKIPPED: no device of compute capability 9.0');
    const given = { images: 2, channels: 8, side: 6, results: 16, weights: 3, stride: 2 };
    const contender = await startConvolution({ root, library }, conditions(), given);
    expect((await contender.round()).samples).toHaveLength(2);
    await contender.close?.();
  });

  test('cuBLASLt is an absent peer where there is none', async ({ skip }) => {
    if (device?.kind !== 'cpu') skip('SKIPPED: for the CPU device');
    const given: ProductCase = { m: 8, n: 8, k: 8, dtype: 'f16', kind: 'product' };
    const started = startProduct({ root, library }, conditions(), given, 'cublas');
    await expect(started).rejects.toThrow(PeerAbsent);
    expect((await device!.core.stats()).live.buffers).toBe(0);
  });

  test('a wrong element fails the benchmark', () => {
    const side = 8;
    const value = (bits: number): number => (bits >> 15 ? -1 : 1) * (0.5 + (bits & 0x3ff) / 2048);
    const product = Array.from({ length: side * side }, (_, at) => {
      let sum = 0;
      for (let i = 0; i < side; i++)
        sum +=
          value(elementBits(Math.floor(at / side) * side + i)) *
          value(elementBits(i * side + (at % side) + 7));
      return sum;
    });
    prove(product, side);
    product[side + 3]! += 1;
    expect(() => {
      prove(product, side);
    }).toThrow('element [1][3]');
  });

  test('some milliseconds lie between two events', () => {
    expect([1024, 4096, 8192].map((side) => productsOf({ m: side, n: side, k: side }))).toEqual([
      400, 29, 20,
    ]);
  });
});
