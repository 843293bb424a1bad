/** Launches that may begin before the kernel before them ends, of kernels in PTX. */
import { CudaArgumentError, u32 } from 'async-cuda/core';
import { beforeEach, expect, test } from 'vitest';

import { onDevice } from './test-device.js';

const module = (instructions: string): string => `.version 7.8
.target sm_90
.address_size 64
.visible .entry counts(.param .u64 y) {
  .reg .b64 %y; .reg .b32 %v;
  ld.param.u64 %y, [y];
  ${instructions}
  ld.global.u32 %v, [%y]; add.u32 %v, %v, 1; st.global.u32 [%y], %v; ret;
}`;
const ONE = { grid: 1, block: 1, programmatic: true };

onDevice('programmatic launches', (host) => {
  beforeEach((context) => {
    // GPUs that have the one have the other.
    if (!host.device.properties.clusterLaunch) context.skip();
  });

  test('wait for the kernel before them, at once and in a graph', async () => {
    const text = module('griddepcontrol.launch_dependents; griddepcontrol.wait;');
    const kernel = (await host.load(text)).kernel('counts');
    using y = host.device.alloc(u32, 1);
    y.fill(host.stream, 0);
    for (let launch = 0; launch < 100; launch++) kernel.launch(host.stream, ONE, y);
    expect([...(await y.read(host.stream))]).toEqual([100]);
    const graph = await host.stream.capture(() => {
      for (let launch = 0; launch < 10; launch++) kernel.launch(host.stream, ONE, y);
    });
    graph.launch(host.stream);
    graph.launch(host.stream);
    expect([...(await y.read(host.stream))]).toEqual([120]);
    await graph.close();
  });

  test('of PTX that never waits are refused', async () => {
    const kernel = (await host.load(module('griddepcontrol.launch_dependents;'))).kernel('counts');
    using y = host.device.alloc(u32, 1);
    y.fill(host.stream, 7);
    expect(() => kernel.launch(host.stream, ONE, y)).toThrow(CudaArgumentError);
    expect(() => kernel.launch(host.stream, ONE, y)).toThrow(
      "options.programmatic: expected false or nothing, since kernel 'counts' never waits",
    );
    kernel.launch(host.stream, { ...ONE, programmatic: false }, y);
    expect([...(await y.read(host.stream))]).toEqual([8]);
  });
});
