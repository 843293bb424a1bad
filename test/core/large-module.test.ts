/**
 * Modules larger than what is posted as it is: they travel through shared memory, cut into slices.
 */
import { expect, test } from 'vitest';

import { CoreDevice, u32 } from '../../src/core/index.js';

const KERNEL = `.version 7.0
.target sm_70
.address_size 64
.visible .entry answer(.param .u64 p0)
{
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p0];
  st.global.u32 [%rd1], 42;
  ret;
}
`;
const COMMENT = '// a line that means nothing\n';

test.each([
  ['text', (text: string): string | Uint8Array => text],
  ['bytes', (text: string): string | Uint8Array => Buffer.from(text)],
])('a module of megabytes loads from %s', async (_, image) => {
  await using device = await CoreDevice.open(process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu');
  await using module = await device.loadModule(image(COMMENT.repeat(100_000) + KERNEL));
  using out = device.alloc(u32, 1);
  module.kernel('answer').launch(device.stream, { grid: 1, block: 1 }, out);
  expect([...(await out.read(device.stream))]).toEqual([42]);
});
