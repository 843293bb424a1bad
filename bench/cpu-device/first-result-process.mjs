/**
 * A process of its own for first-result.ts: imports the built package, runs saxpy on the CPU
 * device, checks the result and prints how long that took. Plain JavaScript, so that nothing but
 * Node runs before its first statement.
 */
const began = performance.timeOrigin + performance.now();
const start = performance.now();

const { CoreDevice, f32, i32, inout, input } = await import('async-cuda/core');
const { readFile } = await import('node:fs/promises');

const N = 1024;
const ptx = await readFile(new URL('../kernels/launch.ptx', import.meta.url), 'utf8');
const device = await CoreDevice.open('cpu');
const module = await device.loadModule(ptx);
const saxpy = module.kernel('saxpy', [inout(f32), input(f32), f32, i32]);
const x = device.alloc(f32, N);
const y = device.alloc(f32, N);
x.write(
  device.stream,
  Float32Array.from({ length: N }, (_, i) => i),
);
y.fill(device.stream, 1);
saxpy.launch(device.stream, { grid: 4, block: 256 }, y, x, 2, N);
const values = await y.read(device.stream);
const firstResult = performance.now() - start;

if (values.length !== N || !values.every((value, i) => value === 2 * i + 1))
  throw new Error('saxpy gave a wrong result');
console.log(JSON.stringify({ firstResult, began }));
await device.close();
