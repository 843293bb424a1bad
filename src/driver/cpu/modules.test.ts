import { expect, test } from 'vitest';
import { DriverError } from '../error.js';
import { fakeCompile } from './testing/fake-compiler.js';
import { messageOf, openFake, resultOf } from './testing/open-fake.js';

test('PTX is taken as text and as bytes, with or without a terminating zero', () => {
  const { cu } = openFake();
  for (const image of [
    'empty',
    'empty\0',
    new TextEncoder().encode('empty'),
    new Uint8Array(new SharedArrayBuffer(8)).fill(32),
  ]) {
    cu.cuModuleLoadDataEx(image, {});
  }
});

test('the same text is compiled once', () => {
  let compiled = 0;
  const { cu } = openFake({ compile: (source) => (compiled++, fakeCompile(source)) });
  for (let i = 0; i < 3; i++) cu.cuModuleLoadDataEx('empty store', {});
  cu.cuLibraryLoadData(new TextEncoder().encode('empty store'), {});
  expect(compiled).toBe(1);
});

test('the time to find a kernel or a variable does not grow with their number', () => {
  const many = 300;
  let reads = 0;
  const counted = <T extends { name: string }>(each: T, name: string): T =>
    Object.defineProperty({ ...each }, 'name', { get: () => (reads++, name) });
  const { cu } = openFake({
    compile: (source) => {
      const one = fakeCompile(source);
      const times = <T extends { name: string }>(each: T, prefix: string): T[] =>
        Array.from({ length: many }, (_, i) => counted(each, `${prefix}${i}`));
      return {
        ...one,
        kernels: times(one.kernels[0]!, 'kernel'),
        variables: times(one.variables[0]!, 'variable'),
      };
    },
  });
  const library = cu.cuLibraryLoadData('$a empty', {});
  const module = cu.cuLibraryGetModule(library);
  for (let i = 0; i < many; i++) {
    cu.cuKernelGetFunction(cu.cuLibraryGetKernel(library, `kernel${i}`));
    cu.cuModuleGetGlobal(module, `variable${i}`);
  }
  expect(reads).toBeLessThan(8 * many);
});

test("PTX with an error is INVALID_PTX with the compiler's message as the error log", () => {
  const { cu } = openFake();
  let error: unknown;
  try {
    cu.cuModuleLoadDataEx('!syntax', {});
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(DriverError);
  expect((error as DriverError).result).toBe(218);
  expect((error as DriverError).errorLog).toContain('ptx:3:1: error: unexpected token');
  expect(messageOf(() => cu.cuLibraryLoadData('!unsupported', {}))).toContain(
    'the CPU device does not cover this PTX yet (line 3)',
  );
});

test('a kernel that the compiler does not cover is an error when requested; others work', () => {
  const { cu } = openFake();
  const module = cu.cuModuleLoadDataEx('empty !partly', {});
  expect(cu.cuModuleGetFunction(module, 'empty')).toBeGreaterThan(0);
  expect(messageOf(() => cu.cuModuleGetFunction(module, 'hard'))).toMatch(
    /INVALID_PTX \(218\).*not cover[^]*wgmma.mma_async is not covered/,
  );
  expect(
    resultOf(() => cu.cuLibraryGetKernel(cu.cuLibraryLoadData('empty !partly', {}), 'hard')),
  ).toBe('CUDA_ERROR_INVALID_PTX');
});

test('machine code for a GPU is NO_BINARY_FOR_GPU', () => {
  const { cu } = openFake();
  expect(
    messageOf(() => cu.cuModuleLoadDataEx(Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 2), {})),
  ).toContain('NO_BINARY_FOR_GPU (209): this is machine code');
  expect(resultOf(() => cu.cuLibraryLoadData(Uint8Array.of(0x50, 0xed, 0x55, 0xba, 1), {}))).toBe(
    'CUDA_ERROR_NO_BINARY_FOR_GPU',
  );
});

test('a kernel or variable that a module lacks is NOT_FOUND', () => {
  const { cu } = openFake();
  const module = cu.cuModuleLoadDataEx('empty store', {});
  expect(messageOf(() => cu.cuModuleGetFunction(module, 'missing'))).toContain(
    "NOT_FOUND (500): there is no kernel 'missing'; there is empty, store",
  );
  expect(resultOf(() => cu.cuModuleGetGlobal(module, 'missing'))).toBe('CUDA_ERROR_NOT_FOUND');
  expect(cu.cuModuleGetFunction(module, 'empty')).toBe(cu.cuModuleGetFunction(module, 'empty'));
});

test(
  'variables are placed, initialised and relocated; those that are not visible to a linker are ' +
    'found too',
  () => {
    const { cu, read } = openFake();
    const module = cu.cuModuleLoadDataEx('$a $b $_hidden empty', {});
    const a = cu.cuModuleGetGlobal(module, 'a');
    const b = cu.cuModuleGetGlobal(module, 'b');
    expect(a.bytes).toBe(64);
    expect(b.dptr - a.dptr).toBe(64);
    expect(read(a.dptr, 4)).toEqual([0x03020100, 0x07060504, a.dptr + 64, 0]);
    expect(cu.cuModuleGetGlobal(module, '_hidden')).toEqual({ dptr: b.dptr + 64, bytes: 64 });
    expect(resultOf(() => cu.cuMemFree(a.dptr))).toBe('CUDA_ERROR_INVALID_VALUE');
    const second = cu.cuModuleLoadDataEx('$a $b $_hidden empty', {});
    expect(cu.cuModuleGetGlobal(second, 'a').dptr).not.toBe(a.dptr);
  },
);

test('unloading ends the handles and lets queued kernels finish', () => {
  const { cu, launch, stream, read } = openFake();
  const module = cu.cuModuleLoadDataEx('$a store', {});
  const store = cu.cuModuleGetFunction(module, 'store');
  const { dptr } = cu.cuModuleGetGlobal(module, 'a');
  const out = cu.cuMemAlloc(4);
  launch(store, stream, [[out], 3]);
  cu.cuModuleUnload(module);
  expect(resultOf(() => launch(store, stream, [[out], 3]))).toBe('CUDA_ERROR_INVALID_HANDLE');
  expect(resultOf(() => cu.cuMemsetD8Async(dptr, 0, 4, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuModuleUnload(module))).toBe('CUDA_ERROR_INVALID_HANDLE');
  cu.cuStreamSynchronize(stream);
  expect(read(out, 1)).toEqual([3]);
});

test('a library has kernels by name, which are launched as functions or as they are', () => {
  const { cu, launch, stream, read } = openFake();
  const library = cu.cuLibraryLoadData('store empty $a', {});
  expect(cu.cuLibraryGetKernelCount(library)).toBe(2);
  expect(cu.cuLibraryEnumerateKernels(library).map((kernel) => cu.cuKernelGetName(kernel))).toEqual(
    ['store', 'empty'],
  );
  const kernel = cu.cuLibraryGetKernel(library, 'store');
  const out = cu.cuMemAlloc(8);
  launch(kernel, stream, [[out], 1]);
  launch(cu.cuKernelGetFunction(kernel), stream, [[out + 4], 2]);
  cu.cuStreamSynchronize(stream);
  expect(read(out, 2)).toEqual([1, 2]);
  expect(cu.cuLibraryGetGlobal(library, 'a')).toEqual(
    cu.cuModuleGetGlobal(cu.cuLibraryGetModule(library), 'a'),
  );
  expect(resultOf(() => cu.cuLibraryGetKernel(library, 'x'))).toBe('CUDA_ERROR_NOT_FOUND');
  cu.cuLibraryUnload(library);
  expect(resultOf(() => launch(kernel, stream, [[out], 1]))).toBe('CUDA_ERROR_INVALID_HANDLE');
});

test('a library works in a context that was made after it', () => {
  const { cu } = openFake();
  const library = cu.cuLibraryLoadData('empty', {});
  const before = cu.cuLibraryGetModule(library);
  cu.cuDevicePrimaryCtxReset(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  expect(cu.cuLibraryGetModule(library)).not.toBe(before);
});

test('linking one PTX text gives that text; more than one is not supported', () => {
  const { cu } = openFake();
  const input = { type: 1, data: 'store', name: 'a.ptx' };
  const { cubin } = cu.cuLink([input], {});
  expect(cu.cuModuleGetFunction(cu.cuModuleLoadDataEx(cubin, {}), 'store')).toBeGreaterThan(0);
  expect(resultOf(() => cu.cuLink([input, input], {}))).toBe('CUDA_ERROR_NOT_SUPPORTED');
  expect(resultOf(() => cu.cuLink([{ ...input, type: 0 }], {}))).toBe(
    'CUDA_ERROR_NO_BINARY_FOR_GPU',
  );
  expect(resultOf(() => cu.cuLink([{ ...input, data: '!syntax' }], {}))).toBe(
    'CUDA_ERROR_INVALID_PTX',
  );
});
