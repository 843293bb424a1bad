/** Variables are aligned as `.align` states, in every state space that has an address. */
import { inout, u32, u64 } from 'async-cuda/core';
import { expect, test } from 'vitest';

import { onCpu, onDevice } from './test-device.js';

/**
 * The alignments that the device honours. On an H200 a variable of a module is aligned to 512 bytes
 * at most: ptxas accepts a larger `.align` without an error.
 */
const HONOURED = onCpu ? [16, 256, 1024, 4096, 65536] : [16, 256];

const ALIGNED = (align: number): string => `.version 7.0
.target sm_70
.address_size 64
.global .b8 before[3];
.global .align ${align} .b8 first[8] = {1};
.global .b8 between;
.visible .global .align ${align} .u32 second = 77;
.const .align ${Math.min(align, 1024)} .u32 constant = 5;
.visible .entry where(.param .u64 out, .param .u64 read) {
  .reg .b64 %o, %a; .reg .b32 %s, %v;
  .shared .b8 odd; .shared .align ${Math.min(align, 1024)} .b8 tile[16];
  ld.param.u64 %o, [out]; cvta.to.global.u64 %o, %o;
  mov.u64 %a, first; st.global.u64 [%o], %a; mov.u64 %a, second; st.global.u64 [%o+8], %a;
  mov.u64 %a, constant; st.global.u64 [%o+16], %a;
  mov.u32 %s, tile; cvt.u64.u32 %a, %s; st.global.u64 [%o+24], %a;
  ld.param.u64 %o, [read]; cvta.to.global.u64 %o, %o;
  ld.global.u32 %v, [second]; st.global.u32 [%o], %v; ld.const.u32 %v, [constant];
  st.global.u32 [%o+4], %v; ret;
}`;

onDevice('alignment', (host) => {
  test.each(HONOURED)('.align %i', async (align) => {
    await using module = await host.device.loadModule(ALIGNED(align));
    using out = host.device.alloc(u64, 4);
    using read = host.device.alloc(u32, 2);
    module
      .kernel('where', [inout(u64), inout(u32)])
      .launch(host.stream, { grid: 1, block: 1 }, out, read);
    const [first, second, constant, tile] = await out.read(host.stream);
    expect([first! % BigInt(align), second! % BigInt(align)]).toEqual([0n, 0n]);
    expect([
      constant! % BigInt(Math.min(align, 1024)),
      tile! % BigInt(Math.min(align, 1024)),
    ]).toEqual([0n, 0n]);
    expect([...(await read.read(host.stream))]).toEqual([77, 5]);
  });
});
