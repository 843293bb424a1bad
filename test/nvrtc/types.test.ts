/**
 * Kernels of CUDA C++ are typed from their text, up to the launch. The type checker is the test.
 */
import { f32 } from 'async-cuda';
import type { Device, DeviceOp, OpModule, Tensor } from 'async-cuda';
import type {
  KernelsOf,
  StructArgument,
  Untyped,
  UntypedParameters,
  Readable,
  Writable,
} from 'async-cuda/nvrtc';
import { expectTypeOf, test } from 'vitest';

type Scale = KernelsOf<`
  extern "C" __global__ void scale(float* y, const float* x, float k, int n) { y[0] = x[0]; }`>;

// Never called: nothing here needs a device.
async function declared(
  device: Device,
  y: Tensor<'f32', [4]>,
  x: Tensor<'f32', [2, 2]>,
  half: Tensor<'f16', [4]>,
  text: string,
): Promise<void> {
  const module = await device.compile(`
    #include <cuda_fp16.h>
    typedef float real;
    struct Options { real scale; int flags[2]; };
    extern "C" __global__ void scale(real* y, const float* __restrict__ x, /* by */ float k,
      int n) {
      if (n > 0) { printf("%d\n", n); }
    }
    extern "C" __global__ void other(const half* h, Options options, Foreign f,
      unsigned long long count, bool on) {}
  `);
  expectTypeOf(module).toExtend<OpModule>();
  const op = module.scale.call({ grid: 1, block: 4 }, y, x, 2, 4);
  expectTypeOf(op).toExtend<DeviceOp<unknown>>();
  void module.scale.call({ grid: 1, block: 4 }, device.ones(f32, [4]), x, 2, 4);
  void module.other.call({ grid: 1, block: 4 }, half, { scale: 1, flags: [1, 2] }, 3, 5n, true);
  void module.other.call({ grid: 1, block: 4 }, null, new Uint8Array(12), y, 5, false);
  // @ts-expect-error: another dtype
  void module.scale.call({ grid: 1, block: 4 }, half, x, 2, 4);
  // @ts-expect-error: an argument is missing
  void module.scale.call({ grid: 1, block: 4 }, y, x, 2);
  // @ts-expect-error: a bigint for an int
  void module.scale.call({ grid: 1, block: 4 }, y, x, 2, 4n);
  // @ts-expect-error: a field of the structure is missing
  void module.other.call({ grid: 1, block: 4 }, half, { scale: 1 }, 3, 5n, true);
  // @ts-expect-error: a number for a bool
  void module.other.call({ grid: 1, block: 4 }, half, new Uint8Array(12), 3, 5n, 1);
  // @ts-expect-error: there is no such kernel
  void module.scael;
  // A text that is no literal has any kernel, with any arguments.
  const any = await device.compile(text);
  void any['anything']?.call({ grid: 1, block: 4 }, y, 1, 2n, true);
  const open = await device.compile(
    '#include "mine.cuh"\nextern "C" __global__ void scale(float* y) {}',
  );
  void open['hidden']?.call({ grid: 1, block: 4 }, y, 1);
  // @ts-expect-error: the visible ones are typed
  void open.scale.call({ grid: 1, block: 4 }, 'y');
}

test('kernels are typed from their source', () => {
  expectTypeOf<Scale>().toEqualTypeOf<{
    readonly scale: readonly [Writable<'f32'>, Readable<'f32'>, number, number];
  }>();
  expectTypeOf<KernelsOf<'extern "C" __global__ void k(Foo f, int m BAR) {}'>>().toEqualTypeOf<{
    readonly k: UntypedParameters;
  }>();
  expectTypeOf<KernelsOf<'extern "C" __global__ void k(Foo f) {}'>>().toEqualTypeOf<{
    readonly k: readonly [Untyped];
  }>();
  expectTypeOf<
    KernelsOf<'struct P { float x; }; extern "C" __global__ void k(P p) {}'>
  >().toEqualTypeOf<{ readonly k: readonly [StructArgument<{ x: 'f32' }>] }>();
  expectTypeOf<KernelsOf<string>>().toEqualTypeOf<{ readonly [name: string]: UntypedParameters }>();
  expectTypeOf(declared).toBeFunction();
});
