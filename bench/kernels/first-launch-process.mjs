/**
 * A process of its own for first-launch.ts: `first-launch-process.mjs DEVICE WAY IMAGE`. It opens
 * the device, makes the tensors, and then times the first launch of softmax until its end, checks
 * the result and prints how long that took.
 *
 * WAY: `typescript`, the kernel called; `loaded`, the same code loaded from the file IMAGE and
 * launched by the core; `write`, the kernel called, and IMAGE written after it: on a GPU a cubin,
 * on the CPU device PTX. Plain JavaScript, so that nothing but Node runs first.
 */
import { readFile, writeFile } from 'node:fs/promises';

import { Tensor, input, kernel, output } from 'async-cuda';
import { CoreDevice, f32, i32, inout } from 'async-cuda/core';

const [deviceName, way, path] = process.argv.slice(2);
const ROWS = 32;
const COLUMNS = 1000;
const BLOCK = 128;

const softmax = kernel(
  'softmax',
  { y: output(f32), x: input(f32), columns: i32 },
  ({ y, x, columns }, gpu) => {
    const row = gpu.blockIdx.x * columns;
    let most = -Infinity;
    for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
      most = Math.max(most, x[row + i]);
    most = gpu.block.max(most);
    let sum = 0;
    for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
      sum += Math.exp(x[row + i] - most);
    const scale = 1 / gpu.block.sum(sum);
    for (let i = gpu.threadIdx.x; i < columns; i += gpu.blockDim.x)
      y[row + i] = Math.exp(x[row + i] - most) * scale;
  },
  { block: BLOCK },
);

const device = await CoreDevice.open(deviceName);
const { stream } = device;
const x = device.alloc(f32, ROWS * COLUMNS);
const y = device.alloc(f32, ROWS * COLUMNS);
await x.fill(stream, 3);
await y.fill(stream, 0);

const ways = {
  async typescript() {
    const tensors = { y: Tensor.of(y, [ROWS * COLUMNS]), x: Tensor.of(x, [ROWS * COLUMNS]) };
    const start = performance.now();
    await softmax({ ...tensors, columns: COLUMNS }, { grid: ROWS });
    return performance.now() - start;
  },
  async loaded() {
    const image = await readFile(path, device.kind === 'cuda' ? undefined : 'utf8');
    const start = performance.now();
    const module = await device.loadModule(image);
    // What the compiler makes of this signature: lengths that the body does not look at are not
    // passed.
    await module
      .kernel('softmax', [inout(f32), input(f32), i32])
      .launch(stream, { grid: ROWS, block: BLOCK }, y, x, COLUMNS);
    return performance.now() - start;
  },
  async write() {
    const ms = await ways.typescript();
    const ptx = await softmax.ptx(device);
    await writeFile(path, device.kind === 'cuda' ? (await device.machineCode(ptx)).cubin : ptx);
    return ms;
  },
};

const ms = await ways[way]();
const values = await y.read(stream);
if (!values.every((value) => Math.abs(value * COLUMNS - 1) < 1e-4))
  throw new Error(`softmax gave a wrong result: ${values[0]}`);
console.log(JSON.stringify({ ms }));
await device.close();
