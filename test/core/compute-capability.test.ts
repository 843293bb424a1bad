/** The compute capability of CPU devices. */
import { CoreDevice, f32 } from 'async-cuda/core';
import { input, kernel, output } from 'async-cuda/kernels';
import { expect, test } from 'vitest';

import { failure } from './test-device.js';

test.each([
  ['8.0', [8, 0]],
  ['9.0', [9, 0]],
  [undefined, [8, 0]],
] as const)('%s', async (computeCapability, expected) => {
  await using device = await CoreDevice.open('cpu', {
    thread: 'inline',
    ...(computeCapability === undefined ? {} : { computeCapability }),
  });
  expect(device.properties.computeCapability).toEqual(expected);
});

test('kernels are compiled for it', async () => {
  const negate = kernel('negate', { x: input(f32), out: output(f32) }, ({ x, out }, gpu) => {
    const i = gpu.globalId.x;
    if (i < x.length) out[i] = -x[i]!;
  });
  await using eight = await CoreDevice.open('cpu', { thread: 'inline' });
  await using nine = await CoreDevice.open('cpu', { thread: 'inline', computeCapability: '9.0' });
  expect(await negate.ptx(eight)).toContain('.target sm_80');
  expect(await negate.ptx(nine)).toContain('.target sm_90');
});

test('two capabilities are two devices', async () => {
  await using eight = await CoreDevice.open('cpu');
  await using nine = await CoreDevice.open('cpu', { computeCapability: '9.0' });
  expect([eight, nine].map(({ properties }) => properties.computeCapability[0])).toEqual([8, 9]);
});

test.each([['7.5'], [9], [[9, 0]], [null]])('%j is refused', async (computeCapability) => {
  const error = await failure(() =>
    CoreDevice.open('cpu', { computeCapability: computeCapability as never }),
  );
  expect(error).toMatchObject({
    code: 'ERR_CUDA_INVALID_ARGUMENT',
    argument: 'options.computeCapability',
    message: expect.stringContaining("one of '8.0', '8.9', '9.0'") as string,
  });
});
