import { expect, test } from 'vitest';
import { engineFeatures } from './engine-features.js';

const major = Number(process.versions.node.split('.')[0]);

test('features of every supported Node are detected', () => {
  expect(engineFeatures()).toMatchObject({
    wasmSimd: true,
    wasmThreads: true,
    atomicsWaitAsync: true,
  });
});

test('memory64 and Float16Array are detected where Node has them', () => {
  expect(engineFeatures().wasmMemory64).toBe(major >= 24);
  expect(engineFeatures().float16Array).toBe(major >= 24);
});

test('relaxed SIMD is detected where Node has it, and fused only then', () => {
  const { wasmRelaxedSimd, wasmRelaxedMaddFused } = engineFeatures();
  expect(wasmRelaxedSimd).toBe(major >= 21);
  if (!wasmRelaxedSimd) expect(wasmRelaxedMaddFused).toBe(false);
});
