import { expect, test } from 'vitest';
import { CUmemPool_attribute as P, CUpointer_attribute as A } from '../attributes.js';
import { messageOf, openFake, resultOf } from './testing/open-fake.js';

test('allocations begin at multiples of 256, above 64 KiB', () => {
  const { cu } = openFake();
  for (const bytes of [1, 255, 256, 257, 100_000]) {
    const address = cu.cuMemAlloc(bytes);
    expect(address % 256).toBe(0);
    expect(address).toBeGreaterThanOrEqual(65536);
  }
});

test('allocating nothing is INVALID_VALUE, too much is OUT_OF_MEMORY with sizes', () => {
  const { cu } = openFake();
  expect(resultOf(() => cu.cuMemAlloc(0))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemAlloc(-1))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemAllocAsync(0, 0))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(messageOf(() => cu.cuMemAlloc(2 ** 30))).toMatch(
    /OUT_OF_MEMORY \(2\): 1073741824 bytes were requested; of 67108864 bytes \d+ are free/,
  );
});

test(
  'a free of anything but the beginning of a live allocation is INVALID_VALUE; of null it is ' +
    'nothing',
  () => {
    const { cu, stream } = openFake();
    const address = cu.cuMemAlloc(1000);
    expect(resultOf(() => cu.cuMemFree(address + 256))).toBe('CUDA_ERROR_INVALID_VALUE');
    cu.cuMemFree(address);
    expect(resultOf(() => cu.cuMemFree(address))).toBe('CUDA_ERROR_INVALID_VALUE');
    expect(resultOf(() => cu.cuMemFreeAsync(address, stream))).toBe('CUDA_ERROR_INVALID_VALUE');
    cu.cuMemFree(0);
    cu.cuMemFreeAsync(0, stream);
  },
);

test('memory that queued work may use is not reused before that work is done', () => {
  const { cu, kernel, launch, stream } = openFake();
  const address = cu.cuMemAlloc(1000);
  const other = cu.cuStreamCreateWithPriority(1, 0);
  launch(kernel('store'), stream, [[address], 1]);
  launch(kernel('empty'), other);
  const free = cu.cuMemGetInfo().free;
  cu.cuMemFree(address);
  expect(cu.cuMemGetInfo().free).toBe(free);
  expect(cu.cuMemAlloc(1000)).not.toBe(address);
  cu.cuCtxSynchronize();
  expect(cu.cuMemAlloc(1000)).toBe(address);
});

test('an allocation waits for queued frees before it fails', () => {
  const { cu, kernel, launch, stream } = openFake();
  const most = cu.cuMemGetInfo().free;
  const half = Math.floor(most / 2) + 1024;
  launch(kernel('empty'), stream);
  const first = cu.cuMemAlloc(half);
  cu.cuMemFree(first);
  const second = cu.cuMemAlloc(half);
  launch(kernel('empty'), stream);
  cu.cuMemFreeAsync(second, stream);
  expect(cu.cuMemAlloc(half)).toBeGreaterThan(0);
});

test('a stream-ordered allocation does not wait for queued frees', () => {
  const { cu, kernel, launch, stream } = openFake();
  const half = Math.floor(cu.cuMemGetInfo().free / 2) + 1024;
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const address = cu.cuMemAllocAsync(half, stream);
  launch(kernel('empty'), stream);
  cu.cuMemFreeAsync(address, stream);
  expect(() => cu.cuMemAllocAsync(half, other)).toThrow('CUDA_ERROR_OUT_OF_MEMORY');
  cu.cuStreamSynchronize(stream);
  expect(cu.cuMemAllocAsync(half, other)).toBeGreaterThan(0);
});

test('a stream-ordered free takes effect when the stream reaches it', () => {
  const { cu, kernel, launch, stream } = openFake();
  const pool = cu.cuDeviceGetMemPool(0);
  const used = (): number => cu.cuMemPoolGetAttribute(pool, P.CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  const address = cu.cuMemAllocAsync(1000, stream);
  expect(used()).toBe(1024);
  launch(kernel('store'), stream, [[address], 1]);
  cu.cuMemFreeAsync(address, stream);
  expect(used()).toBe(1024);
  cu.cuStreamSynchronize(stream);
  expect(used()).toBe(0);
});

test(
  'an allocation takes over memory that its own stream is going to free, another stream does ' +
    'not',
  () => {
    const { cu, kernel, launch, stream } = openFake();
    const other = cu.cuStreamCreateWithPriority(1, 0);
    const address = cu.cuMemAllocAsync(1000, stream);
    launch(kernel('store'), stream, [[address], 1]);
    cu.cuMemFreeAsync(address, stream);
    expect(cu.cuMemAllocAsync(1000, other)).not.toBe(address);
    expect(cu.cuMemAllocAsync(900, stream)).toBe(address);
    cu.cuCtxSynchronize();
    cu.cuMemFreeAsync(address, stream);
    cu.cuCtxSynchronize();
    expect(resultOf(() => cu.cuMemFree(address))).toBe('CUDA_ERROR_INVALID_VALUE');
  },
);

test('a pool keeps freed memory up to its release threshold, and trimming returns it', () => {
  const { cu, stream } = openFake();
  const pool = cu.cuMemPoolCreate({ location: 0 });
  const get = (attribute: number): number => cu.cuMemPoolGetAttribute(pool, attribute);
  const cycle = (bytes: number): number => {
    const address = cu.cuMemAllocFromPoolAsync(bytes, pool, stream);
    cu.cuMemFreeAsync(address, stream);
    cu.cuStreamSynchronize(stream);
    return address;
  };
  cycle(4096);
  expect(get(P.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)).toBe(0);
  cu.cuMemPoolSetAttribute(pool, P.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, Infinity);
  const kept = cycle(4096);
  expect(get(P.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)).toBe(4096);
  expect(get(P.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)).toBe(0);
  expect(cycle(4000)).toBe(kept);
  cycle(100_000);
  expect(get(P.CU_MEMPOOL_ATTR_USED_MEM_HIGH)).toBe(100_096);
  cu.cuMemPoolSetAttribute(pool, P.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
  expect(get(P.CU_MEMPOOL_ATTR_USED_MEM_HIGH)).toBe(0);
  cu.cuMemPoolTrimTo(pool, 0);
  expect(get(P.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)).toBe(0);
});

test('memory that a pool keeps is returned before an allocation fails', () => {
  const { cu, stream } = openFake();
  cu.cuMemPoolSetAttribute(
    cu.cuDeviceGetDefaultMemPool(0),
    P.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
    Infinity,
  );
  const most = cu.cuMemGetInfo().free;
  cu.cuMemFreeAsync(cu.cuMemAllocAsync(most, stream), stream);
  cu.cuStreamSynchronize(stream);
  expect(cu.cuMemAlloc(most)).toBeGreaterThan(0);
});

test('a pool has a bound, and can be destroyed while in use; the default one cannot', () => {
  const { cu, stream } = openFake();
  const pool = cu.cuMemPoolCreate({ location: 0, maxSize: 8192 });
  cu.cuDeviceSetMemPool(0, pool);
  const address = cu.cuMemAllocAsync(8000, stream);
  expect(messageOf(() => cu.cuMemAllocAsync(1000, stream))).toContain(
    'the pool holds 8192 of at most 8192 bytes',
  );
  const free = cu.cuMemGetInfo().free;
  cu.cuMemPoolDestroy(pool);
  expect(cu.cuDeviceGetMemPool(0)).toBe(cu.cuDeviceGetDefaultMemPool(0));
  cu.cuMemFreeAsync(address, stream);
  cu.cuStreamSynchronize(stream);
  expect(cu.cuMemGetInfo().free).toBe(free + 8192);
  expect(resultOf(() => cu.cuMemPoolTrimTo(pool, 0))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuMemPoolDestroy(cu.cuDeviceGetDefaultMemPool(0)))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
});

test('rows of pitched memory begin at multiples of 512', () => {
  const { cu } = openFake();
  const { dptr, pitch } = cu.cuMemAllocPitch(700, 10, 4);
  expect(pitch).toBe(1024);
  expect(cu.cuPointerGetAttribute(A.CU_POINTER_ATTRIBUTE_RANGE_SIZE, dptr)).toBe(10_240);
  expect(resultOf(() => cu.cuMemAllocPitch(700, 10, 3))).toBe('CUDA_ERROR_INVALID_VALUE');
});

test('managed memory is one memory for kernels and for the host', () => {
  const { cu, kernel, launch, stream } = openFake();
  const address = cu.cuMemAllocManaged(64, 1);
  const view = cu.hostView(address, 64);
  const words = new Int32Array(view.buffer, view.byteOffset, 16);
  launch(kernel('store'), stream, [[address], 11], 3);
  cu.cuStreamSynchronize(stream);
  expect([...words.subarray(0, 3)]).toEqual([11, 12, 13]);
  cu.cuMemPrefetchAsync(address, 64, -1, stream);
  cu.cuMemAdvise(address, 64, 1, 0);
  const plain = cu.cuMemAlloc(64);
  expect(resultOf(() => cu.cuMemPrefetchAsync(plain, 64, 0, stream))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  expect(resultOf(() => cu.hostView(plain, 64))).toBe('CUDA_ERROR_INVALID_VALUE');
});

test('a view of managed memory remains valid when the memory grows', () => {
  const { cu, stream } = openFake({ memoryBytes: 512 * 2 ** 20 });
  const address = cu.cuMemAllocManaged(4, 1);
  const view = cu.hostView(address, 4);
  const big = cu.cuMemAlloc(400 * 2 ** 20);
  cu.cuMemsetD32Async(address, 0x01020304, 1, stream);
  cu.cuMemsetD8Async(big + 400 * 2 ** 20 - 4, 1, 4, stream);
  cu.cuStreamSynchronize(stream);
  expect([...view]).toEqual([4, 3, 2, 1]);
});

test('a device of 4 GiB opens at once and accesses no memory', () => {
  const before = process.memoryUsage().rss;
  const { cu } = openFake({ memoryBytes: 2 ** 32 - 65536 });
  const address = cu.cuMemAlloc(2 ** 32 - 2 ** 20);
  expect(cu.cuMemGetInfo().free).toBeLessThan(2 ** 20);
  const end = address + 2 ** 32 - 2 ** 20;
  cu.cuMemsetD32Async(end - 8, 0x7f0000ff, 2, 0);
  cu.cuCtxSynchronize();
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20);
});

test('host memory has synthetic addresses far above any device address', () => {
  const { cu } = openFake();
  const buffer = new SharedArrayBuffer(10_000);
  const whole = cu.hostAddress(buffer);
  const address = cu.cuMemHostRegister(buffer, 4096, 1000, 0);
  expect(whole).toBeGreaterThanOrEqual(2 ** 40);
  expect(address).toBe(whole + 4096);
  expect(cu.cuMemHostGetDevicePointer(address, 0)).toBe(address);
  expect(cu.hostAddress(new SharedArrayBuffer(4)) - whole).toBe(2 ** 33);
  const view = cu.hostView(address + 8, 4);
  expect([view.buffer, view.byteOffset, view.length]).toEqual([buffer, 4104, 4]);
  expect(resultOf(() => cu.cuMemHostRegister(buffer, 5000, 200, 0))).toBe(
    'CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED',
  );
  expect(resultOf(() => cu.cuMemHostRegister(buffer, 9999, 2, 0))).toBe('CUDA_ERROR_INVALID_VALUE');
  cu.cuMemHostUnregister(address);
  expect(resultOf(() => cu.cuMemHostUnregister(address))).toBe(
    'CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED',
  );
  expect(resultOf(() => cu.cuMemHostGetDevicePointer(address, 0))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(cu.cuMemHostRegister(buffer, 5000, 200, 0)).toBe(whole + 5000);
});

test('cuMemHostAlloc gives a buffer of its own, which only cuMemFreeHost frees', () => {
  const { cu } = openFake();
  const address = cu.cuMemHostAlloc(100, 0);
  expect(cu.hostView(address, 100).buffer.byteLength).toBe(100);
  expect(resultOf(() => cu.cuMemHostUnregister(address))).toBe(
    'CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED',
  );
  cu.cuMemFreeHost(address);
  expect(resultOf(() => cu.cuMemFreeHost(address))).toBe('CUDA_ERROR_INVALID_VALUE');
});

test('pointer attributes', () => {
  const { cu, context, stream, host } = openFake();
  const plain = cu.cuMemAlloc(1000);
  const managed = cu.cuMemAllocManaged(1000, 1);
  const ordered = cu.cuMemAllocAsync(1000, stream);
  const registered = host(64).address;
  const get = cu.cuPointerGetAttribute.bind(cu);
  expect(get(A.CU_POINTER_ATTRIBUTE_CONTEXT, plain + 5)).toBe(context);
  expect(get(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain)).toBe(2);
  expect(get(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, registered)).toBe(1);
  expect(get(A.CU_POINTER_ATTRIBUTE_IS_MANAGED, plain)).toBe(0);
  expect(get(A.CU_POINTER_ATTRIBUTE_IS_MANAGED, managed)).toBe(1);
  expect(get(A.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, plain)).toBe(0);
  expect(get(A.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, plain + 999)).toBe(plain);
  expect(get(A.CU_POINTER_ATTRIBUTE_RANGE_SIZE, plain + 999)).toBe(1000);
  expect(get(A.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, ordered)).toBe(cu.cuDeviceGetMemPool(0));
  expect(get(A.CU_POINTER_ATTRIBUTE_BUFFER_ID, plain)).not.toBe(
    get(A.CU_POINTER_ATTRIBUTE_BUFFER_ID, managed),
  );
  expect(resultOf(() => get(A.CU_POINTER_ATTRIBUTE_RANGE_SIZE, plain + 1000))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
  cu.cuMemFree(plain);
  expect(resultOf(() => get(A.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, plain))).toBe(
    'CUDA_ERROR_INVALID_VALUE',
  );
});

test('large allocations request large pages once for their memory, small ones never', () => {
  const asked: Uint8Array[] = [];
  const { cu } = openFake({
    askForLargePages: (memory) => {
      asked.push(memory);
    },
  });
  cu.cuMemAlloc(100_000);
  expect(asked).toHaveLength(0);
  const size = 8 * 2 ** 20;
  const address = cu.cuMemAlloc(size);
  expect(asked).toHaveLength(1);
  const [{ byteOffset, byteLength }] = asked as [Uint8Array];
  expect(byteOffset % 65536).toBe(0);
  // It is all of it, except the part that shares its page with the memory before it.
  expect(byteOffset).toBeLessThan(address + 2 * 2 ** 20);
  expect(byteOffset + byteLength).toBeGreaterThanOrEqual(address + size);
  cu.cuMemFree(address);
  cu.cuMemAlloc(size);
  expect(asked).toHaveLength(1);
});

test('large allocations of one size do not begin at the same place of a bank', () => {
  const { cu } = openFake();
  const size = 8 * 2 ** 20;
  const [a, b, c] = [cu.cuMemAlloc(size), cu.cuMemAlloc(size), cu.cuMemAlloc(size)];
  expect(new Set([a, b, c].map((address) => address % 2 ** 17)).size).toBe(3);
});
