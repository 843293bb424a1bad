/**
 * What a checked device reports of the memory of tensors: which tensor it is, and where the program
 * made it.
 */
import { expect, test } from 'vitest';

import { CudaCheckError } from '../../src/core/index.js';
import type { CheckReport } from '../../src/core/index.js';
import { Device, i32, inout, input, kernel } from '../../src/index.js';

const racy = kernel('racy', { bins: inout(i32), x: input(i32) }, ({ bins, x }, gpu) => {
  const i = gpu.globalId.x;
  if (i < x.length) bins[x[i]!] = bins[x[i]!]! + 1;
});

async function memoryOfRace(
  run: (device: Device) => PromiseLike<unknown>,
): Promise<NonNullable<CheckReport['memory']>> {
  await using device = await Device.open('cpu', { check: true });
  let error: unknown;
  try {
    await run(device);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(CudaCheckError);
  return (error as CudaCheckError).reports[0]!.memory!;
}

const shape = { grid: 1, block: 64 };
/** The nearest call is in this file. */
const HERE = /^\s+at .*checked-memory\.test\.ts:\d+:\d+\)?(\n|$)/;

test('the report names the right one of the tensors of a chain', async () => {
  const memory = await memoryOfRace((device) =>
    racy({ bins: device.zeros(i32, [4]), x: device.zeros(i32, [64]) }, shape),
  );
  expect(memory).toMatchObject({ bytes: 16, label: 'alloc i32[4]' });
  expect(memory.stack).toMatch(HERE);
});

test('the order in which a chain makes tensors does not matter', async () => {
  const memory = await memoryOfRace((device) =>
    device
      .zeros(i32, [64], { label: 'x' })
      .andThen((x) =>
        device.zeros(i32, [4], { label: 'bins' }).andThen((bins) => racy({ bins, x }, shape)),
      ),
  );
  expect(memory).toMatchObject({ bytes: 16, label: "alloc i32[4] 'bins'" });
  expect(memory.stack).toMatch(HERE);
});

test('the report has the call that made an awaited tensor', async () => {
  const memory = await memoryOfRace(async (device) => {
    const bins = await device.zeros(i32, [4]);
    const x = await device.zeros(i32, [64]);
    await racy({ bins, x }, shape);
  });
  expect(memory).toMatchObject({ bytes: 16, label: 'alloc i32[4]' });
  expect(memory.stack).toMatch(HERE);
});
