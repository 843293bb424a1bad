/**
 * Types of operations: they are inferred through every combinator, and tuples stay tuples. The type
 * checker is the test.
 */
import { f32 } from 'async-cuda/core';
import type { CoreDevice } from 'async-cuda/core';
import { allOf, empty, operation, parallel, value, withContext, zip } from 'async-cuda/ops';
import type { DeviceOp, OpGraph, Running, SharedOp } from 'async-cuda/ops';
import { callKernel, zeros } from 'async-cuda/tensor';
import type { Tensor } from 'async-cuda/tensor';
import { expect, expectTypeOf, test } from 'vitest';

// Never called: the type checker reads it.
function declared(device: CoreDevice, kernel: Parameters<typeof callKernel>[0]): void {
  const op = value(1 as number);
  expectTypeOf(op).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(op.andThen((x) => value(String(x)))).toEqualTypeOf<DeviceOp<string>>();
  expectTypeOf(op.map((x) => [x])).toEqualTypeOf<DeviceOp<number[]>>();
  expectTypeOf(op.tap(() => undefined)).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(op.withContext(({ stream }) => value(stream.priority))).toEqualTypeOf<
    DeviceOp<number>
  >();
  expectTypeOf(op.label('x').shared()).toEqualTypeOf<SharedOp<number>>();
  expectTypeOf(op.shared().shared()).toEqualTypeOf<SharedOp<number>>();
  expectTypeOf(op.orElse(() => 'x')).toEqualTypeOf<DeviceOp<number | string>>();
  expectTypeOf(op.orElse(() => value('x' as string))).toEqualTypeOf<DeviceOp<number | string>>();
  expectTypeOf(
    op.orElse((error) => (error instanceof Error ? value(true as boolean) : ('x' as string))),
  ).toEqualTypeOf<DeviceOp<number | string | boolean>>();
  expectTypeOf(
    op.orElse(() => {
      throw new Error('another');
    }),
  ).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(op.orElse(() => undefined)).toEqualTypeOf<DeviceOp<number | undefined>>();
  expectTypeOf(op.orElse<string>(() => 'x')).toEqualTypeOf<DeviceOp<number | string>>();
  expectTypeOf(op.tap((x) => [x].push(x))).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(
    op.tap(() => {
      throw new Error('mine');
    }),
  ).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(op.ensure(() => undefined)).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(zip(op, 'a' as string, zip(op))).toEqualTypeOf<
    DeviceOp<[number, string, [number]]>
  >();
  expectTypeOf(parallel(op, value(true as boolean))).toEqualTypeOf<DeviceOp<[number, boolean]>>();
  expectTypeOf(allOf([op, op])).toEqualTypeOf<DeviceOp<number[]>>();
  expectTypeOf(zip(op, value('x' as string)).unzip()).toEqualTypeOf<
    [DeviceOp<number>, DeviceOp<string>]
  >();
  expectTypeOf(zip(op, value('x' as string)).first()).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(zip(op, value('x' as string)).last()).toEqualTypeOf<DeviceOp<string>>();
  expectTypeOf(empty()).toEqualTypeOf<DeviceOp<void>>();
  expectTypeOf(withContext(() => op)).toEqualTypeOf<DeviceOp<number>>();
  expectTypeOf(operation(device, ({ stream }) => device.alloc(f32, 1).read(stream))).toEqualTypeOf<
    DeviceOp<Float32Array>
  >();
  expectTypeOf(op.sync()).toEqualTypeOf<number>();
  expectTypeOf(op.runOn(device.stream)).toEqualTypeOf<Running<number>>();
  expectTypeOf(op.capture()).toEqualTypeOf<Promise<OpGraph<number>>>();
  expectTypeOf<Awaited<typeof op>>().toEqualTypeOf<number>();

  const made = zeros(device, f32, [2, 3]);
  expectTypeOf(made).toEqualTypeOf<DeviceOp<Tensor<'f32', [2, 3]>>>();
  expectTypeOf(made.map((x) => x.transpose().shape)).toEqualTypeOf<DeviceOp<readonly [3, 2]>>();
  expectTypeOf(made.andThen((x) => x.read())).toEqualTypeOf<DeviceOp<Float32Array>>();
  expectTypeOf(callKernel(kernel, { grid: 1, block: 1 }, made, 5)).toEqualTypeOf<
    DeviceOp<[Tensor<'f32', [2, 3]>, 5]>
  >();

  // @ts-expect-error: the argument is not an operation
  op.andThen(() => 1);
  // @ts-expect-error: a promise is not awaited
  op.andThen(async () => value(1));
  // @ts-expect-error: a promise is not awaited
  op.tap(async () => undefined);
  // @ts-expect-error: a promise is not awaited
  op.orElse(async () => 5);
  // @ts-expect-error: a promise is not awaited
  op.ensure(async () => undefined);
  made.when(
    // @ts-expect-error: a promise is not awaited
    async () => zeros(device, f32, [1]),
    () => made,
  );
  // @ts-expect-error: a promise is not awaited
  op.withContext(async () => value(1));
  // @ts-expect-error: a promise is not awaited
  made.andThen(async (x) => x.dup());
  // @ts-expect-error: an operation in place of a value
  op.map(() => value(1));
  // @ts-expect-error: 6 elements are not 4
  made.map((x) => x.reshape([4]));
}

test('types of operations', () => {
  expect(declared).toBeTypeOf('function');
});
