/**
 * Development mode: operations that were never run are named, with the place where they were made.
 */
import { afterEach, expect, test } from 'vitest';

import { CudaArgumentError, CoreDevice } from '../../src/core/index.js';
import { setDevelopmentMode, value } from '../../src/ops/index.js';
import { collectGarbage } from '../core/garbage.js';

const warnings: string[] = [];
const listen = (warning: Error): void => void warnings.push(warning.message);

afterEach(() => {
  setDevelopmentMode(false);
  process.off('warning', listen);
  warnings.length = 0;
});

/** Made here, and dropped. */
function forgets(): void {
  value(1).map((one) => one + 1);
}

/** Parts of an operation that is run are run. */
async function runs(device: CoreDevice): Promise<void> {
  expect(
    await value(2)
      .map((two) => two + 1)
      .runOn(device.stream),
  ).toBe(3);
}

async function collected(until: () => boolean): Promise<void> {
  for (let turn = 0; turn < 100 && !until(); turn++) await collectGarbage(1);
}

test('an operation that was never run is named with its place', async () => {
  process.on('warning', listen);
  await using device = await CoreDevice.open('cpu');
  setDevelopmentMode(true);
  await runs(device);
  forgets();
  await collected(() => warnings.length > 0);
  await collectGarbage(10);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(
    /^an operation was made and never run: .* at forgets \(.*\/development\.test\.ts:\d+:\d+\)$/s,
  );
});

test('nothing is reported when the mode is off', async () => {
  process.on('warning', listen);
  forgets();
  await collectGarbage(10);
  expect(warnings).toEqual([]);
});

test('the mode is a boolean', () => {
  for (const wrong of ['yes', 1, undefined, null]) {
    expect(() => {
      setDevelopmentMode(wrong as never);
    }).toThrow(CudaArgumentError);
    expect(() => {
      setDevelopmentMode(wrong as never);
    }).toThrow('on: expected true or false, got');
  }
});
