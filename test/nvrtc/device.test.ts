/** `device.compile`: CUDA C++ to kernels that run, on both devices. */
import { Device, f32, f64, i32, i8, u32, u8 } from 'async-cuda';
import type { CompiledKernel, CompiledModule } from 'async-cuda';
import { NvrtcCompileError } from 'async-cuda/nvrtc';
import { afterAll, beforeAll, expect, expectTypeOf, test } from 'vitest';

import { failure, onCpu, testDevice } from '../core/test-device.js';
import { describeWith, ownCache } from './nvrtc.js';

const SCALE = `extern "C" __global__ void scale(float* y, const float* x, float k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = k * x[i];
}` as const;
const MANY = `
__constant__ float offset = 1;
__global__ void shift(float* y) { y[threadIdx.x] += offset; }
__global__ void twice(float* y) { y[threadIdx.x] *= 2; }
__global__ void twice(int* y) { y[threadIdx.x] *= 2; }
namespace inner { __global__ void hidden(float* y) { y[threadIdx.x] = 7; } }
template <typename T, int N> __global__ void fill(T* y, T value) {
  for (int i = 0; i < N; i++) y[i] = value;
}
extern "C" __global__ void close(float* y) { y[0] = 5; }
`;

describeWith('NVRTC', `device.compile (${testDevice})`, () => {
  ownCache();
  let device: Device;
  beforeAll(async () => {
    device = await Device.open(testDevice);
  });
  afterAll(() => device.close());

  test('gives kernels by name, typed from the text', async () => {
    const { scale, program } = await device.compile(SCALE);
    const x = await device.arange(f32, 300);
    const y = await device.zeros(f32, [300]);
    await scale.call({ grid: 2, block: 256 }, y, x, 3, 300);
    expect([...(await y.read())]).toEqual(Array.from({ length: 300 }, (_, i) => 3 * i));
    expect(program.ptx).toContain('.entry scale(');
    expect(program.has('cubin')).toBe(!onCpu);
    expectTypeOf<CompiledModule<typeof SCALE>['scale']>().toExtend<
      CompiledKernel<readonly unknown[]>
    >();
    // @ts-expect-error the text has no such kernel
    const missing: unknown = (await device.compile(SCALE)).scales;
    expect(missing).toBeUndefined();
  });

  test('memory of a pointer to const is only read', async () => {
    const module = await device.compile(
      'struct S; typedef const float* In; extern "C" __global__ void f(float* y, const ' +
        'float* x, float const* __restrict__ z, const S* s, In in, void* any, const unsigned ' +
        'long long n) { *y = *x + *z + *in; }',
    );
    expect(Array.from({ length: 7 }, (_, i) => module.kernel('f').core.writes(i))).toEqual([
      true,
      false,
      false,
      false,
      false,
      true,
      true,
    ]);
    const { scale } = await device.compile(SCALE);
    using x = await device.ones(f32, [4, 4]);
    using y = await device.zeros(f32, [16]);
    // While a tensor is cut into tiles nothing writes to it.
    const tiles = x.partition([2, 2]);
    await scale.call({ grid: 1, block: 16 }, y, x, 3, 16);
    expect((await failure(() => scale.call({ grid: 1, block: 16 }, x, y, 3, 16))).message).toMatch(
      /tiles|partition/,
    );
    tiles.unpartition();
    expect([...(await y.read())]).toEqual(new Array(16).fill(3));
    await module.close();
  });

  test('operations are arguments, and results are the written ones', async () => {
    const { scale } = await device.compile(SCALE);
    const read = await scale
      .call({ grid: 1, block: 64 }, device.zeros(f32, [64]), device.ones(f32, [64]), 2, 64)
      .andThen(([y]) => y.read());
    expect([...read]).toEqual(new Array(64).fill(2));
  });

  test('names are those of the source, of nameExpressions, or mangled', async () => {
    const module = await device.compile(MANY, {
      nameExpressions: ['fill<float, 4>', 'fill<int, 2>', 'inner::hidden'],
    });
    expect([...module.kernelNames].sort()).toEqual(
      [
        '_Z5twicePf',
        '_Z5twicePi',
        'close',
        'fill<float, 4>',
        'fill<int, 2>',
        'inner::hidden',
        'shift',
      ].sort(),
    );
    const y = await device.zeros(f32, [8]);
    const whole = await device.zeros(i32, [2]);
    await module.kernel('fill<float, 4>').call({ grid: 1, block: 1 }, y, 1.5);
    await module.kernel('fill<int, 2>').call({ grid: 1, block: 1 }, whole, 9);
    await module.kernel('shift').call({ grid: 1, block: 8 }, y);
    await module.kernel('_Z5twicePf').call({ grid: 1, block: 8 }, y);
    await module.kernel('_Z5twicePi').call({ grid: 1, block: 2 }, whole);
    expect([...(await y.read())]).toEqual([5, 5, 5, 5, 2, 2, 2, 2]);
    expect([...(await whole.read())]).toEqual([18, 18]);
    // Kernels do not replace a module's own methods.
    await module.kernel('close').call({ grid: 1, block: 1 }, y);
    expect((await y.read())[0]).toBe(5);
    expect(module.close).toBeTypeOf('function');
    await module.close();
  });

  test('modules are disposed of, and not thenables', async () => {
    const module = await device.compile('extern "C" __global__ void then(float* y) { y[0] = 1; }');
    expect('then' in module).toBe(false);
    expect(module.kernel('then').name).toBe('then');
    await module[Symbol.asyncDispose]();
    expect((await failure(() => module.kernel('then'))).code).toBe('ERR_CUDA_DISPOSED');
  });

  test('arguments are checked against the source', async () => {
    const { scale } = await device.compile(SCALE as string);
    const y = await device.zeros(f32, [4]);
    const x = await device.zeros(f32, [4]);
    expect((await failure(() => scale!.call({ grid: 1, block: 4 }, y, y))).message).toContain(
      'takes 4 arguments, got 2',
    );
    expect(
      (await failure(() => scale!.call({ grid: 1, block: 4 }, y, x, 'x' as never, 4))).argument,
    ).toBe('args[2]');
    expect((await failure(() => scale!.call({ grid: 1, block: 4 }, y, x, 1, 0.5))).argument).toBe(
      'args[3]',
    );
  });

  test('memory of other elements is refused, also without types of the source', async () => {
    const source: string = `struct S { float x; };
      extern "C" __global__ void f(float* y, const int* i, unsigned char* bytes, char* text,
      void* any, S* s, double* d) { y[0] = i[0]; extern __shared__ int more[]; }`;
    const { f } = await device.compile(source);
    using floats = await device.zeros(f32, [8]);
    using other = await device.zeros(f32, [8]);
    using integers = await device.full(i32, [8], 5);
    using words = await device.full(u32, [8], 6);
    using bytes = await device.zeros(u8, [8]);
    using signs = await device.zeros(i8, [8]);
    using doubles = await device.zeros(f64, [8]);
    const launch = (...args: unknown[]) => f!.call({ grid: 1, block: 1 }, ...(args as []));
    await launch(floats, integers, bytes, signs, other, bytes, doubles);
    // Signed and unsigned integers have the same bits; null, void and structures accept any memory.
    await launch(floats, words, signs, bytes, bytes, floats, null);
    expect((await floats.read())[0]).toBe(6);
    for (const [place, args] of [
      [0, [integers, integers, bytes, bytes, null, null, null]],
      [1, [floats, other, bytes, bytes, null, null, null]],
      [2, [floats, integers, integers, bytes, null, null, null]],
      [3, [floats, integers, bytes, floats, null, null, null]],
      [6, [floats, integers, bytes, bytes, null, null, other]],
    ] as const) {
      expect(await failure(() => launch(...args))).toMatchObject({
        code: 'ERR_CUDA_INVALID_ARGUMENT',
        argument: `args[${place}]`,
      });
    }
    expect(
      (await failure(() => launch(device.value(bytes), integers, bytes, bytes, null, null, null)))
        .message,
    ).toMatch(
      /^args\[0\]: .* f32, .* parameter 0 of kernel 'f' .*, got DeviceBuffer<u8>.*reinterpret/,
    );
    await launch(bytes.reinterpret(f32), integers, bytes, bytes, null, null, null);
  });

  test('printf and structures by value', async () => {
    const { structured } = await device.compile(
      `struct Pair { float a; int b; };
      extern "C" __global__ void structured(float* y, Pair pair) {
        y[threadIdx.x] = pair.a + pair.b;
      }` as string,
    );
    const bytes = new DataView(new ArrayBuffer(8));
    bytes.setFloat32(0, 0.5, true);
    bytes.setInt32(4, 3, true);
    const y = await device.zeros(f32, [2]);
    await structured!.call({ grid: 1, block: 2 }, y, bytes);
    expect([...(await y.read())]).toEqual([3.5, 3.5]);
  });

  test('a template without an instance is an error with what to write', async () => {
    const module = await device.compile(MANY);
    const error = await failure(() => module.kernel('fill'));
    expect(error.code).toBe('ERR_CUDA_NOT_FOUND');
    expect(error.message).toContain("nameExpressions: ['fill<float>']");
    expect((await failure(() => module.kernel('nothing'))).message).toMatch(/It has .*\bshift\b/);
  });

  test('errors are those of compile', async () => {
    expect(
      await failure(() => device.compile('extern "C" __global__ void f() { nope(); }')),
    ).toBeInstanceOf(NvrtcCompileError);
    expect(
      (await failure(() => device.compile(SCALE, { fastMaths: true } as never))).message,
    ).toContain("Did you mean 'fastMath'?");
    expect((await failure(() => device.compile('kernels.cu'))).message).toContain(
      "await readFile(name, 'utf8')",
    );
    expect(
      (await failure(() => device.compile(SCALE, { outputs: ['cubin'] } as never))).argument,
    ).toBe('options.outputs');
  });

  test('the architecture may be named', async () => {
    const { program } = await device.compile(SCALE, { architecture: 'compute_75' });
    expect(program.ptx).toMatch(/^\.target sm_75/m);
  });
});
