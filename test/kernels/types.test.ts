/**
 * Types of kernels: bodies are typed from the signature, calls by name. The type checker is the
 * test.
 */
import {
  bool,
  deviceFunction,
  f16,
  f32,
  f64,
  i32,
  i64,
  inout,
  input,
  kernel,
  output,
  struct,
  u32,
  u8,
} from 'async-cuda';
import type { Device, DeviceOp, Gpu, OpModule, Tensor } from 'async-cuda';
import type { GpuWith, ReadElements, WrittenElements } from 'async-cuda/kernels';
import type { Partitioned } from 'async-cuda/tensor';
import type { Closing } from 'async-cuda/tensor';
import { expect, expectTypeOf, test } from 'vitest';

const gelu = (x: number, { fast }: Gpu): number =>
  0.5 * x * (1 + fast.tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
const square = (x: number): number => x * x;
const slopes = { SLOPE: 0.01, square };
const leaky = deviceFunction(
  (x: number, gpu: GpuWith<typeof slopes>) => (x > 0 ? gpu.square(x) : gpu.SLOPE * x),
  { uses: slopes },
);
const Body = struct({ x: f32, y: f32, id: i64, alive: bool });

const saxpy = kernel('saxpy', { y: inout(f32), a: f32, x: input(f32) }, ({ y, a, x }, gpu) => {
  const i = gpu.globalId.x;
  if (i < y.length) y[i] = a * x[i]! + y[i]!;
});

const all = kernel(
  'all',
  {
    out: output(f32, 2),
    mask: input(bool),
    half: input(f16),
    bodies: inout(Body),
    first: input(Body),
    flag: bool,
    wide: i64,
    one: Body,
  },
  ({ out, mask, half, bodies, first, flag, wide, one }, gpu) => {
    expectTypeOf(out).branded.toEqualTypeOf<
      ReadElements<WrittenElements<number>> & { readonly shape: readonly [number, number] }
    >();
    expectTypeOf(out.shape[1]).toEqualTypeOf<number>();
    expectTypeOf(mask[0]).toEqualTypeOf<boolean | undefined>();
    expectTypeOf(half[0]).toEqualTypeOf<number | undefined>();
    expectTypeOf(bodies[0]!.x).toEqualTypeOf<number>();
    expectTypeOf(bodies[0]!.id).toEqualTypeOf<number>();
    expectTypeOf(bodies[0]!.alive).toEqualTypeOf<boolean>();
    expectTypeOf(flag).toEqualTypeOf<boolean>();
    expectTypeOf(wide).toEqualTypeOf<number>();
    expectTypeOf(gpu.dynamicShared.f32().length).toEqualTypeOf<number>();
    expectTypeOf(gpu.dynamicShared.bool()[0]!).toEqualTypeOf<boolean>();
    expectTypeOf(gpu.dynamicShared.f32(4, 8)[0]![0]!).toEqualTypeOf<number>();
    expectTypeOf(gpu.shared.bool(4, 4)[1]![2]!).toEqualTypeOf<boolean>();
    expectTypeOf(gpu.local.bool(2, 4, 4)[1]![2]![3]!).toEqualTypeOf<boolean>();
    expectTypeOf(one.alive).toEqualTypeOf<boolean>();
    expectTypeOf(gpu.TILE).toEqualTypeOf<number>();
    expectTypeOf(gpu.SHIFT).toEqualTypeOf<number>();
    expectTypeOf(gpu.FAST).toEqualTypeOf<boolean>();
    expectTypeOf(gpu.weights).toEqualTypeOf<readonly number[]>();
    expectTypeOf(gpu.gelu).toEqualTypeOf<(x: number) => number>();
    expectTypeOf(gpu.leaky).toEqualTypeOf<(x: number) => number>();
    expectTypeOf(gpu.square).toEqualTypeOf<(x: number) => number>();
    const row = out[gpu.blockIdx.y]!;
    row[gpu.globalId.x] = gpu.leaky(half[0]!) + (mask[0] === true ? 1 : 0);
    bodies[0]!.x = 1;
    // @ts-expect-error: an input is only read
    mask[0] = true;
    // @ts-expect-error: a field of an input is only read
    first[0]!.x = 1;
    // @ts-expect-error: rows are not replaced
    out[0] = row;
    // @ts-expect-error: there is no such constant
    void gpu.TYLE;
  },
  {
    uses: { TILE: 16, SHIFT: 3n, FAST: true, weights: [1, 2, 3], gelu, leaky, square },
    block: [32, 8],
  },
);

// Never called: the type checker reads it.
function declared(
  device: Device,
  module: OpModule,
  x: Tensor<'f32', [4]>,
  m: Tensor<'f32', [2, 3]>,
  mask: Tensor<'bool', [4]>,
  half: Tensor<'f16', [4]>,
  tiles: Partitioned<'f32', [4]>,
  bytes: Tensor<'u8', [64]>,
): void {
  const op = saxpy({ y: x, a: 2, x: device.ones(f32, [4]) });
  expectTypeOf(op).toEqualTypeOf<
    DeviceOp<{ y: Tensor<'f32', [4]>; a: number; x: Tensor<'f32', [4]> } & Closing>
  >();
  expectTypeOf(op.andThen(({ y }) => y.read())).toEqualTypeOf<DeviceOp<Float32Array>>();
  expectTypeOf(op.andThen(({ y }) => y.read())).toEqualTypeOf<DeviceOp<Float32Array>>();
  expectTypeOf(saxpy({ y: tiles, a: 2, x: m })).toEqualTypeOf<
    DeviceOp<{ y: Partitioned<'f32', [4]>; a: number; x: Tensor<'f32', [2, 3]> } & Closing>
  >();
  expectTypeOf(saxpy.with({ block: 128 })).toEqualTypeOf<typeof saxpy>();
  expectTypeOf(all.with({ uses: { TILE: 32 } })).toEqualTypeOf<typeof all>();
  void all(
    {
      out: m,
      mask,
      half,
      bodies: bytes,
      first: bytes,
      flag: true,
      wide: 5n,
      one: { x: 1, y: 2, id: 3, alive: false },
    },
    { sharedBytes: 1024 },
  );
  // The declarations serve for modules as well.
  void module.kernel('k', [inout(f32), f64, input(u8), u32, i32]);

  // @ts-expect-error: the tensor has another dtype
  void saxpy({ y: half, a: 2, x });
  // @ts-expect-error: an argument is missing
  void saxpy({ y: x, a: 2 });
  // @ts-expect-error: there is no such argument
  void saxpy({ y: x, a: 2, x, z: 1 });
  // @ts-expect-error: the parameter is a number, not a tensor
  void saxpy({ y: x, a: x, x });
  // @ts-expect-error: there is no such option
  void saxpy({ y: x, a: 2, x }, { gird: 4 });
  // @ts-expect-error: there is no such constant
  void all.with({ uses: { TYLE: 32 } });
  // @ts-expect-error: a list in place of a number
  void all.with({ uses: { TILE: [32] } });
  // @ts-expect-error: structures have fields
  void kernel('k', { s: struct(8) }, () => undefined);
  // @ts-expect-error: SLOPE is not among its uses
  void deviceFunction((v: number, gpu: GpuWith<typeof slopes>) => v * gpu.SLOPE);
}

test('types of kernels', () => {
  expect(declared).toBeTypeOf('function');
});
