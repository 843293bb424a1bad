/**
 * Failed assertions of kernels in TypeScript name the line of the program's file. Each test has a
 * CPU device of its own, which is lost.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Device, elementKernel, f32, inout, input, kernel, output } from 'async-cuda';
import { describe, expect, test } from 'vitest';

import { failure } from '../core/test-device.js';

const file = fileURLToPath(import.meta.url);

/** The place of a line of this file. */
const placeOf = (text: string): string =>
  `${file}:${
    readFileSync(file, 'utf8')
      .split('\n')
      .findIndex((line) => line.includes(text)) + 1
  }`;

/** The text that is printed first, and the error that is thrown. */
async function failed(
  run: (device: Device) => unknown,
): Promise<readonly [said: string, message: string]> {
  const device = await Device.open('cpu');
  let said = '';
  device.on('print', (text) => {
    said ||= text.split('\n')[0]!;
  });
  const { message } = await failure(async () => {
    await run(device);
  });
  await device.close().catch(() => undefined);
  return [said, message];
}

const far = kernel('far', { y: inout(f32) }, ({ y }, gpu) => {
  const i = gpu.globalId.x;
  console.assert(i < 5, 'too far');
  if (i < y.length) y[i] = 1;
});

const positive = (x: number): number => {
  console.assert(x > 0, 'not positive');
  return x;
};
const rooted = elementKernel(
  'rooted',
  { y: output(f32), x: input(f32) },
  ({ x }, gpu) => Math.sqrt(gpu.positive(x)),
  { uses: { positive } },
);

describe('a failed console.assert names its file and line', () => {
  test('of a kernel, printed and thrown', async () => {
    const place = placeOf('console.assert(i < 5,');
    const [said, message] = await failed(async (device) => {
      await far({ y: await device.zeros(f32, [8]) });
    });
    expect(said).toBe(
      `${place}: far: block: [0,0,0], thread: [5,0,0] Assertion \`too far\` failed.`,
    );
    expect(message).toContain(`${place}: far: Assertion \`too far\` failed.`);
  });

  test('of a device function that an element kernel uses', async () => {
    const [said] = await failed(async (device) => {
      await rooted({ x: await device.zeros(f32, [4]) });
    });
    expect(said).toContain(`${placeOf('console.assert(x > 0,')}: rooted: `);
  });
});

test('lineInfo: false omits the place', async () => {
  const [said] = await failed(async (device) => {
    await far({ y: await device.zeros(f32, [8]) }, { lineInfo: false });
  });
  expect(said).toContain('far:0: far: block: [0,0,0], thread: [5,0,0]');
});
