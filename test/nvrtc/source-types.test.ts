/** Kernels whose parameters are known from the source, launched on the device. */
import { Device, f32 } from 'async-cuda';
import { expect, test } from 'vitest';

import { describeWith, ownCache } from './nvrtc.js';

describeWith('NVRTC', 'kernels that are typed from their source', () => {
  ownCache();

  test(
    'take structures as objects and half as a number, and print newlines',
    { tags: 'thorough' },
    async () => {
      await using device = await Device.open('cpu');
      const module = await device.compile(`
      #include <cuda_fp16.h>
      struct Inner { float2 xy; };
      struct Options { bool on; Inner inner; short shifts[2]; long long n; };
      extern "C" __global__ void fill(float* y, const Options options, half h, float4 v) {
        if (options.on && threadIdx.x == 0) {
          y[0] = options.inner.xy.x; y[1] = options.inner.xy.y; y[2] = options.shifts[1];
          y[3] = options.n;
          y[4] = __half2float(h); y[5] = v.w;
          if (options.n > 0) printf("a\n");
        }
      }`);
      const y = await device.zeros(f32, [6]);
      const options = { on: true, inner: { xy: { x: 1.5, y: 2 } }, shifts: [3, -4], n: -5n };
      const given = await module.fill.call({ grid: 1, block: 32 }, y, options, 0.5, {
        x: 0,
        y: 0,
        z: 0,
        w: 7,
      });
      expect(given).toEqual([y, options, 0.5, { x: 0, y: 0, z: 0, w: 7 }]);
      expect(await y.read()).toEqual(Float32Array.of(1.5, 2, -4, -5, 0.5, 7));
      expect(() =>
        module.fill.call(
          { grid: 1, block: 32 },
          y,
          { ...options, shifts: [1] },
          0.5,
          new Float32Array(4),
        ),
      ).toThrow('shifts: expected a list of 2');
      y.close();
    },
  );

  test('a parameter list that a macro of an option changes is detected', async () => {
    await using device = await Device.open('cpu');
    const module = await device.compile(
      'extern "C" __global__ void k(float* y, int amount) { y[0] = 1; }',
      { defines: { amount: '*amounts' } },
    );
    expect(() => module.k).toThrow(
      "parameter 1 (amount) of kernel 'k' is i32 in its source and .u64 when compiled",
    );
  });
});
