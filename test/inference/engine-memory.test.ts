/** Engines that come and go: what they held goes with them, in the process and on the device. */
import { f32 } from 'async-cuda/core';
import { loadEngine } from 'async-cuda/inference';
import { full } from 'async-cuda/tensor';
import koffi from 'koffi';
import { expect, test } from 'vitest';

import { allocatedMemory, allocatorTells } from '../core/allocated-memory.js';
import { residentMemory } from '../core/resident-memory.js';
import { onDevice, usedMemory } from '../core/test-device.js';
import { matrixModel } from '../onnxruntime/matrix-model.js';

/** Rows and columns of the weights: 16 MiB of them. */
const EXTENT = 2048;
const TIMES = 100;
const MIB = 2 ** 20;
/**
 * The cuDNN handles that ONNX Runtime creates for a session: one with it, one with the stream of
 * its runs, one more where another thread runs it than loaded it.
 */
const HANDLES = 3;

/**
 * The memory that cuDNN keeps of a destroyed handle: some 80 KiB in 9.x up to now. An engine cannot
 * free it, and must not keep anything else.
 */
async function keptByHandle(): Promise<number> {
  let library: ReturnType<typeof koffi.load>;
  try {
    // The one that the CUDA provider has loaded: no other code has put it where the loader looks.
    library = koffi.load('libcudnn.so.9');
  } catch {
    return 0;
  }
  const create = library.func('int cudnnCreate(_Out_ uintptr_t* handle)');
  const destroy = library.func('int cudnnDestroy(uintptr_t handle)');
  const once = (): void => {
    const handle: [number | bigint] = [0];
    expect(create(handle)).toBe(0);
    expect(destroy(handle[0])).toBe(0);
  };
  const times = 20;
  once();
  const before = await allocatedMemory();
  for (let i = 0; i < times; i++) once();
  return Math.max(0, (await allocatedMemory()) - before) / times;
}

/**
 * glibc keeps blocks of up to 32 MiB after one was freed, in each thread's own heap: this adds up
 * to an engine or two, which is not a leak. With this setting it frees them at once. Other systems
 * have no such setting.
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
  test(
    'a hundred that are loaded, run and released leave nothing',
    { tags: 'thorough', timeout: 300_000 },
    async () => {
      const model = matrixModel(EXTENT);
      using x = await full(on.device, f32, [1, EXTENT], 3);
      const once = async (): Promise<void> => {
        await using engine = await loadEngine(on.device, model, { engine: 'onnxruntime' });
        const { y } = await engine.infer({ x });
        expect(((await y!.read()) as Float32Array)[EXTENT - 1]).toBe(6);
        y!.close();
      };
      returnLargeBlocks();
      // What libraries keep once, they keep with the first ones; the process's memory settles later
      // than that.
      for (let i = 0; i < 60; i++) await once();
      const [before, residentBefore, onDeviceBefore] = [
        await allocatedMemory(),
        await residentMemory(),
        await usedMemory(on.device),
      ];
      for (let i = 0; i < TIMES; i++) await once();
      const [after, residentAfter] = [await allocatedMemory(), await residentMemory()];
      expect(await usedMemory(on.device)).toBe(onDeviceBefore);
      const kept = on.device.kind === 'cuda' ? TIMES * HANDLES * (await keptByHandle()) : 0;
      if (allocatorTells()) expect(after - before).toBeLessThan(2 * MIB + kept);
      // Less than two engines, of 1600 MiB in all. The allocator keeps some memory for later.
      expect(residentAfter - residentBefore).toBeLessThan(32 * MIB + kept);
    },
  );
});
