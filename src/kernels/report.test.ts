import { expect, test } from 'vitest';

import { spillsIn } from './report.js';

test("ptxas's report of spills, for all functions of the kernel", () => {
  const of = (name: string, stores: number, loads: number): string =>
    `ptxas info    : Function properties for ${name}\n    16 bytes stack frame, ${stores} ` +
    `bytes spill stores, ${loads} bytes spill loads\n`;
  expect(
    spillsIn(
      `ptxas info    : 0 bytes gmem\n${of('k', 12, 20)}ptxas info    : Used 32 ` +
        `registers\n${of('f', 4, 0)}`,
    ),
  ).toEqual({ spillStoreBytes: 16, spillLoadBytes: 20 });
  expect(spillsIn('')).toEqual({ spillStoreBytes: undefined, spillLoadBytes: undefined });
});
