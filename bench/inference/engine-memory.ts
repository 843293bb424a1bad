/**
 * Memory that loading, running and releasing an engine a hundred times leaves: host memory that was
 * allocated and not freed, and the device's. Loads before them do not count: memory that a library
 * keeps once is not a leak. The peer in C shows what ONNX Runtime and cuDNN keep of every engine.
 */
import { readFile } from 'node:fs/promises';

import type { AnyTensor, Device } from 'async-cuda';

import { allocatedMemory } from '../../test/core/allocated-memory.js';
import type { Benchmark, Round } from '../benchmark.js';
import { core, inference, root } from '../library.js';
import { MATRIX } from '../peers/onnxruntime.js';
import { placeFor } from './engine-runs.js';

const TIMES = 100;
const BEFORE = 60;
const MIB = 2 ** 20;
const PAGE = 4096;
const WIDTH = MATRIX.shape[1]!;

async function round(
  device: Device,
  model: Uint8Array,
  x: AnyTensor,
  times: number,
): Promise<Round> {
  const used = async (): Promise<number> => (await (await device.core.pool()).statistics()).used;
  const once = async (): Promise<void> => {
    const shape = (n: number): number[] => [n, WIDTH];
    const engine = await inference.loadEngine(device, model, {
      tensorrt: { shapes: { x: { min: shape(1), opt: shape(1), max: shape(8) } } },
    });
    const { y } = await engine.infer({ x });
    const values = (await y!.read()) as Float32Array;
    if (!values.every((value, i) => value === 2 * i))
      throw new Error('an engine gave something wrong');
    y!.close();
    await engine.close();
  };
  for (let i = 0; i < BEFORE; i++) await once();
  const [before, beforeOnDevice, beforeFree, beforeResident] = [
    await allocatedMemory(),
    await used(),
    (await device.core.memoryInfo()).free,
    process.memoryUsage.rss(),
  ];
  for (let i = 0; i < times; i++) await once();
  const after = await allocatedMemory();
  return {
    // A page where there is no more than before: 0 would count as a round without a measurement.
    samples: [Math.max(PAGE, after - before) / MIB],
    notes: {
      'tensors on the device, MiB': ((await used()) - beforeOnDevice) / MIB,
      "the device's memory, MiB": (beforeFree - (await device.core.memoryInfo()).free) / MIB,
      'the resident memory, MiB': (process.memoryUsage.rss() - beforeResident) / MIB,
      'weights, MiB': (WIDTH ** 2 * 4) / MIB,
    },
  };
}

export const engineMemory: Benchmark = {
  area: 'inference',
  name: 'memory that 100 engines leave, loaded, run and released',
  unit: 'MiB',
  statistic: 'longest',
  bar: '<= 16',
  rounds: 1,
  warmUp: false,
  peers: [
    {
      name: 'C, the same library',
      program: 'a matrix in ONNX Runtime',
      request: async ({ device, count }) =>
        `memory ${count(TIMES)} ${BEFORE} ${await placeFor(device.kind)} ${MATRIX.shape.join(' ')}`,
    },
  ],
  start: async ({ device, count }) => {
    const lazy = await root.Device.open(device.kind);
    const model = await readFile(await MATRIX.file());
    const x = await lazy.tensor(
      core.f32,
      Float32Array.from({ length: WIDTH }, (_, i) => i),
      [1, WIDTH],
    );
    return {
      round: () => round(lazy, model, x as unknown as AnyTensor, count(TIMES)),
      close: async () => {
        x.close();
        await lazy.close();
      },
    };
  },
};
