/**
 * Launches one kernel a thousand times; prints what the last launch wrote, and whether the kernel
 * has code of its own by then.
 */
import { CoreDevice, i32, output } from 'async-cuda/core';
import type { DeviceName } from 'async-cuda/core';

const device = await CoreDevice.open(
  (process.env['ASYNC_CUDA_TEST_DEVICE'] ?? 'cpu') as DeviceName,
);
const module = await device.loadModule(`.version 7.0
.target sm_70
.address_size 64
.visible .entry put(.param .u64 p, .param .u32 v)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [v];
  st.global.u32 [%rd1], %r1;
  ret;
}`);
const put = module.kernel('put', [output(i32), i32]);
const out = device.alloc(i32, 1);
for (let i = 0; i < 1000; i++) put.launch(device.stream, { grid: 1, block: 1 }, out, i);
console.log(
  JSON.stringify({ last: (await out.read(device.stream))[0], own: Object.hasOwn(put, 'launch') }),
);
await device.close();
