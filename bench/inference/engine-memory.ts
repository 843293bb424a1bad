/**
 * What loading, running and releasing an engine a hundred times leaves behind: the process's memory and the device's. Loads before
 * them do not count: what a library keeps once is no leak.
 */
import { setTimeout } from 'node:timers/promises';

import type { AnyTensor, Device } from 'async-cuda';

import { onnxModel } from '../../test/onnxruntime/onnx-model.js';
import type { Benchmark, Round } from '../benchmark.js';
import { collectGarbage } from '../garbage.js';
import { core, inference, root } from '../library.js';

const TIMES = 100;
const BEFORE = 20;
const MIB = 2 ** 20;
const PAGE = 4096;
/** Of the weights' rows and columns: 16 MiB of them. */
const EXTENT = 2048;

function matrixModel(): Uint8Array {
  const data = Float32Array.from({ length: EXTENT ** 2 }, (_, i) => (i % (EXTENT + 1) === 0 ? 2 : 0));
  return onnxModel({
    inputs: [['x', 'f32', ['n', EXTENT]]], outputs: [['y', 'f32', ['n', EXTENT]]], nodes: [{ op: 'MatMul', inputs: ['x', 'w'], outputs: ['y'] }],
    constants: [{ name: 'w', type: 'f32', shape: [EXTENT, EXTENT], data }],
  });
}

/** Bytes that the process has in memory, once what nobody needs is gone. */
async function resident(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await setTimeout(20);
  }
  return process.memoryUsage.rss();
}

async function round(device: Device, model: Uint8Array, x: AnyTensor, times: number): Promise<Round> {
  const used = async (): Promise<number> => (await (await device.core.pool()).statistics()).used;
  const once = async (): Promise<void> => {
    const shape = (n: number): number[] => [n, EXTENT];
    const engine = await inference.loadEngine(device, model, { tensorrt: { shapes: { x: { min: shape(1), opt: shape(1), max: shape(8) } } } });
    const { y } = await engine.run({ x });
    const values = await y!.read() as Float32Array;
    if (!values.every((value, i) => value === 2 * i)) throw new Error('an engine gave something wrong');
    y!.close();
    await engine.close();
  };
  for (let i = 0; i < BEFORE; i++) await once();
  const [before, beforeOnDevice, beforeFree] = [await resident(), await used(), (await device.core.memoryInfo()).free];
  for (let i = 0; i < times; i++) await once();
  const after = await resident();
  return {
    // Where there is no more than before, a page: 0 would be a round that measured nothing.
    samples: [Math.max(PAGE, after - before) / MIB],
    notes: { 'tensors on the device, MiB': (await used() - beforeOnDevice) / MIB, "the device's memory, MiB": (beforeFree - (await device.core.memoryInfo()).free) / MIB, 'weights, MiB': EXTENT ** 2 * 4 / MIB },
  };
}

export const engineMemory: Benchmark = {
  area: 'inference', name: 'memory that 100 engines leave, loaded, run and released', unit: 'MiB', statistic: 'longest', bar: '<= 16', rounds: 1, warmUp: false, peers: [],
  start: async ({ device, count }) => {
    const lazy = await root.Device.open(device.kind);
    const model = matrixModel();
    const x = await lazy.tensor(core.f32, Float32Array.from({ length: EXTENT }, (_, i) => i), [1, EXTENT]);
    return {
      round: () => round(lazy, model, x as unknown as AnyTensor, count(TIMES)),
      close: async () => {
        x.close();
        await lazy.close();
      },
    };
  },
};
