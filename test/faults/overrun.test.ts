/**
 * Kernels that write past the end of a buffer, on a CPU device without checks: accesses that a GPU
 * allows, and others.
 */
import { CudaDeviceLostError, CoreDevice, i32, output, u32 } from 'async-cuda/core';
import { describe, expect, test } from 'vitest';

import { allModes, failure, onCpu } from '../core/test-device.js';
import { someOf } from '../random-runs.js';

const MARK = `.version 7.0
.target sm_70
.address_size 64
.visible .entry mark(.param .u64 out, .param .u32 step) {
  .reg .b64 %a, %o; .reg .b32 %r<6>; .reg .pred %p;
  ld.param.u64 %o, [out]; ld.param.u32 %r4, [step];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r0, %r1, %r2;
  mul.wide.u32 %a, %r3, 4; add.u64 %a, %a, %o; st.global.u32 [%a], %r4; ret;
}`;

someOf(1, describe.runIf(onCpu))(allModes)(
  'A kernel that writes past the end of its only buffer (%s)',
  (mode) => {
    test('a block of threads too many is harmless, as on a GPU', async () => {
      await using device = await CoreDevice.open('cpu:6', { thread: mode, check: false });
      const mark = (await device.loadModule(MARK)).kernel('mark', [output(i32), u32]);
      using out = device.alloc(i32, 10);
      for (let i = 1; i <= 4; i++)
        await mark.launch(device.stream, { grid: 2, block: 1024 }, out, i);
      expect([...(await out.read(device.stream))]).toEqual(Array(10).fill(4));
    });

    test('half a megabyte too much is an error that names the checking device', async () => {
      const device = await CoreDevice.open('cpu:6', { thread: mode, check: false });
      const mark = (await device.loadModule(MARK)).kernel('mark');
      const out = device.alloc(i32, 10);
      const error = await failure(() =>
        mark.launch(device.stream, { grid: 128, block: 1024 }, out, 0x7f7f7f7f),
      );
      expect(error).toBeInstanceOf(CudaDeviceLostError);
      expect(error.message).toContain(
        'mark: what the device keeps of a running block was overwritten, as by a write far ' +
          "past the end of a buffer. Device.open('cpu', { check: true }) tells which.",
      );
      await device.close();
    });
  },
);
