/** Engines that come and go: what they held goes with them, in the process and on the device. */
import { f32 } from 'async-cuda/core';
import { loadEngine } from 'async-cuda/inference';
import { full } from 'async-cuda/tensor';
import koffi from 'koffi';
import { expect, test } from 'vitest';

import { residentMemory } from '../core/resident-memory.js';
import { onDevice, usedMemory } from '../core/test-device.js';
import { onnxModel } from '../onnxruntime/onnx-model.js';

/** Rows and columns of the weights: 16 MiB of them. */
const EXTENT = 2048;
const MIB = 2 ** 20;

function matrixModel(): Uint8Array {
  const data = Float32Array.from({ length: EXTENT ** 2 }, (_, i) => (i % (EXTENT + 1) === 0 ? 2 : 0));
  return onnxModel({
    inputs: [['x', 'f32', ['n', EXTENT]]], outputs: [['y', 'f32', ['n', EXTENT]]], nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    constants: [{ name: 'w', type: 'f32', shape: [EXTENT, EXTENT], data }],
  });
}

/**
 * glibc keeps blocks of up to 32 MiB for later once such a one was freed, in each thread's own heap: an engine here and there, which is
 * no leak. Told so it gives them back at once. Elsewhere there is nothing to tell.
 */
function returnLargeBlocks(): void {
  const M_MMAP_THRESHOLD = -3;
  if (process.platform !== 'linux') return;
  try {
    koffi.load('libc.so.6').func('int mallopt(int parameter, int value)')(M_MMAP_THRESHOLD, MIB);
  } catch {
    // Another C library, whose allocator is another one.
  }
}

onDevice('memory of engines', (on) => {
  test('a hundred that are loaded, run and released leave nothing', async () => {
    const model = matrixModel();
    using x = await full(on.device, f32, [1, EXTENT], 3);
    const once = async (): Promise<void> => {
      await using engine = await loadEngine(on.device, model, { engine: 'onnxruntime' });
      const { y } = await engine.run({ x });
      expect((await y!.read() as Float32Array)[EXTENT - 1]).toBe(6);
      y!.close();
    };
    returnLargeBlocks();
    // What the library keeps once, it keeps with the first ones; the process's memory settles later than that.
    for (let i = 0; i < 60; i++) await once();
    const [before, onDeviceBefore] = [await residentMemory(), await usedMemory(on.device)];
    for (let i = 0; i < 100; i++) await once();
    const after = await residentMemory();
    expect(await usedMemory(on.device)).toBe(onDeviceBefore);
    // Of 1600 MiB that went through it: less than two engines.
    expect(after - before).toBeLessThan(32 * MIB);
  }, 300_000);
});
