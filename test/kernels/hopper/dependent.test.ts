/**
 * Programmatic dependent launches: kernels that may begin before the one before them ends, and wait
 * for it before they use memory.
 */
import { CudaArgumentError, Device, f32, inout, input, kernel, output } from 'async-cuda';
import type { Tensor } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { failure, onCpu, range, testDevice } from '../../core/test-device.js';
import { hopperOptions, openHopper } from './hopper-device.js';

let device: Device;
let found: Device | undefined;
beforeAll(async () => {
  found = await openHopper();
  if (found !== undefined) device = found;
});
afterAll(() => found?.close());
beforeEach(({ skip }) => {
  if (found === undefined) skip('SKIPPED: the GPU is of another generation');
});

const COUNT = 10_000;
/**
 * `y[i] = 2 · x[COUNT - 1 - i] + 1`, so that each block needs what another block of the kernel
 * before wrote. The turns of the loop keep a grid busy after its dependents may begin.
 */
const turned = kernel('turned', { y: output(f32), x: input(f32) }, ({ y, x }, gpu) => {
  const i = gpu.globalId.x;
  gpu.grid.launchDependents();
  gpu.grid.waitForDependencies();
  if (i < y.length) {
    let sum = 1;
    for (let turn = 0; turn < 2; turn++) sum += x[y.length - 1 - i]!;
    y[i] = sum;
  }
});
const early = kernel('early', { y: inout(f32) }, ({ y }, gpu) => {
  gpu.grid.launchDependents();
  y[gpu.globalId.x] = y[gpu.globalId.x]! + 1;
});

/** The values after so many kernels, from those of the host. */
function after(kernels: number): number[] {
  let values = range(COUNT).map((i) => i % 7);
  for (let turn = 0; turn < kernels; turn++)
    values = values.map((_, i) => Math.fround(2 * values[COUNT - 1 - i]! + 1));
  return values;
}
const begin = (on: Device): Promise<Tensor<'f32'>> =>
  Promise.resolve(
    on.tensor(
      f32,
      range(COUNT).map((i) => i % 7),
    ),
  ) as Promise<Tensor<'f32'>>;

test.each([false, true])('a chain has the results of a sequence, checked: %s', async (check) => {
  if (check && !onCpu) return;
  await using own = check
    ? await Device.open(testDevice, { ...hopperOptions, check: true })
    : undefined;
  const on = own ?? device;
  using a = await begin(on);
  using b = await on.zeros(f32, [COUNT]);
  const stream = on.createStream();
  for (let turn = 0; turn < 20; turn++) {
    const [x, y] = turn % 2 === 0 ? [a, b] : [b, a];
    turned({ y, x } as never, { programmatic: true }).runOn(stream);
  }
  expect([...(await a.read().runOn(stream))]).toEqual(after(20));
});

test('a copy after a dependent kernel has what all kernels before it wrote', async () => {
  const stream = device.createStream();
  using a = await begin(device);
  using b = await device.zeros(f32, [COUNT]);
  early({ y: a }, { grid: 1 }).runOn(stream);
  turned({ y: b, x: a } as never, { programmatic: true }).runOn(stream);
  const [first, second] = [a.read().runOn(stream), b.read().runOn(stream)];
  const wanted = range(COUNT).map((i) => (i % 7) + (i < 256 ? 1 : 0));
  expect([...(await first)]).toEqual(wanted);
  expect([...(await second)]).toEqual(wanted.map((_, i) => 2 * wanted[COUNT - 1 - i]! + 1));
});

test('a graph has the results of a sequence, each time that it is launched', async () => {
  using a = await begin(device);
  using b = await device.zeros(f32, [COUNT]);
  const stream = device.createStream();
  await turned.prepare(device);
  const graph = await stream.capture(() => {
    for (let turn = 0; turn < 4; turn++) {
      const [x, y] = turn % 2 === 0 ? [a, b] : [b, a];
      turned({ y, x } as never, { programmatic: true }).runOn(stream);
    }
  });
  graph.launch(stream);
  graph.launch(stream);
  expect([...(await a.read().runOn(stream))]).toEqual(after(8));
  await graph.close();
  stream.close();
});

test('a kernel that never waits is refused', async () => {
  using y = await device.zeros(f32, [256]);
  const error = await failure(async () => {
    await early({ y }, { programmatic: true });
  });
  expect(error).toBeInstanceOf(CudaArgumentError);
  expect(error.message).toContain('options.programmatic: expected false or nothing, since kernel');
  expect(error.message).toContain('gpu.grid.waitForDependencies()');
  expect([...(await y.read())].every((value) => value === 0)).toBe(true);
});

test('loads stay behind the wait, and are no loads of constant memory', async () => {
  const text = await turned.ptx({ capability: [9, 0] });
  const [wait, load] = [text.indexOf('griddepcontrol.wait'), text.indexOf('ld.global')];
  expect(text.indexOf('griddepcontrol.launch_dependents')).toBeLessThan(wait);
  expect(wait).toBeGreaterThan(0);
  expect(load).toBeGreaterThan(wait);
  expect(text).not.toContain('ld.global.nc');
  expect(text.match(/\bld\.global/g)).toHaveLength(1);
});

test('a load before the wait is made again after it', async () => {
  const twice = kernel('twice', { y: output(f32), x: input(f32) }, ({ y, x }, gpu) => {
    const i = gpu.globalId.x;
    const before = x[i]!;
    gpu.grid.waitForDependencies();
    y[i] = before + x[i]!;
  });
  expect((await twice.ptx({ capability: [9, 0] })).match(/\bld\.global/g)).toHaveLength(2);
});

test('older devices refuse the instructions', async () => {
  const error = await failure(() => turned.ptx({ capability: [8, 9] }));
  expect(error.message).toContain('needs a device of compute capability 9.0');
});

test('a simulation leaves them out', async () => {
  const y = new Float32Array(4);
  await turned.simulate({ y, x: Float32Array.of(1, 2, 3, 4) });
  expect([...y]).toEqual([9, 7, 5, 3]);
});
