import { expect, test } from 'vitest';
import { CTX, FAULT } from '../../ptx/index.js';
import { CUfunction_attribute as F } from '../attributes.js';
import { messageOf, openFake, packParams, resultOf } from './testing/open-fake.js';

test('a grid runs all of its blocks', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  const out = cu.cuMemAlloc(4000);
  launch(kernel('store'), stream, [[out], 7], 1000);
  cu.cuStreamSynchronize(stream);
  expect(read(out, 1000)).toEqual(Array.from({ length: 1000 }, (_, i) => i + 7));
});

test('a launch is only queued by the call and runs in poll', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  const out = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(out, 0, 1, stream);
  launch(kernel('store'), stream, [[out], 9]);
  expect(cu.cuStreamQuery(stream)).toBe(600);
  expect(cu.poll(1e6)).toBe(false);
  expect(cu.cuStreamQuery(stream)).toBe(0);
  expect(read(out, 1)).toEqual([9]);
});

test('parameters are copied at the call', () => {
  const { cu, kernel, stream, read } = openFake();
  const out = cu.cuMemAlloc(4);
  const params = packParams([[out], 5]);
  cu.cuLaunchKernel(kernel('store'), 1, 1, 1, 1, 1, 1, 0, stream, params, 0, 12);
  params.fill(0);
  cu.cuStreamSynchronize(stream);
  expect(read(out, 1)).toEqual([5]);
});

test('a block sees its grid, its place, its threads and its memory in the context block', () => {
  const { cu, kernel, stream, read } = openFake();
  const out = cu.cuMemAlloc(CTX.bytes);
  cu.cuLaunchKernel(kernel('dump'), 2, 3, 1, 4, 2, 1, 512, stream, packParams([[out]]), 0, 8);
  cu.cuStreamSynchronize(stream);
  const words = read(out, CTX.bytes / 4);
  const at = (offset: number): number => words[offset / 4]!;
  expect(words.slice(0, 9)).toEqual([2, 3, 1, 4, 2, 1, 1, 2, 0]);
  expect(at(CTX.threads)).toBe(8);
  expect(at(CTX.sharedBytes)).toBe(512);
  expect(at(CTX.shared) % 128).toBe(0);
  expect(at(CTX.scratch) % 16).toBe(0);
  expect(at(CTX.scratch) - at(CTX.shared)).toBeGreaterThanOrEqual(512);
});

test('scratch is zero before each block', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  const out = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(out, 0, 1, stream);
  launch(kernel('scratch'), stream, [[out]], 50);
  launch(kernel('scratch'), stream, [[out]], 50);
  cu.cuStreamSynchronize(stream);
  expect(read(out, 1)).toEqual([0]);
});

test('a long kernel returns within about its budget', () => {
  const { cu, kernel, launch, stream } = openFake();
  const out = cu.cuMemAlloc(4);
  launch(kernel('count'), stream, [[out], 100_000_000]);
  cu.poll(1000);
  // Another process may take the processor during one of them.
  const turns = Array.from({ length: 5 }, () => {
    const begin = performance.now();
    expect(cu.poll(1000)).toBe(true);
    return performance.now() - begin;
  });
  expect(Math.min(...turns)).toBeLessThan(20);
});

test('a grid of many short blocks returns within about its budget, too', () => {
  const { cu, kernel, launch, stream } = openFake();
  launch(kernel('empty'), stream, [], 50_000_000);
  const begin = performance.now();
  expect(cu.poll(1000)).toBe(true);
  expect(performance.now() - begin).toBeLessThan(20);
});

test('kernels of two streams interleave', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const flag = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(flag, 0, 1, stream);
  cu.cuStreamSynchronize(stream);
  launch(kernel('spin'), stream, [[flag], 3]);
  launch(kernel('store'), other, [[flag], 3]);
  cu.cuStreamSynchronize(stream);
  expect(read(flag, 1)).toEqual([3]);
});

test('a kernel that spins at a high priority does not starve the one it waits for', () => {
  const { cu, kernel, launch } = openFake();
  const high = cu.cuStreamCreateWithPriority(1, -5);
  const low = cu.cuStreamCreateWithPriority(1, 0);
  const flag = cu.cuMemAlloc(4);
  cu.cuMemsetD32Async(flag, 0, 1, high);
  cu.cuStreamSynchronize(high);
  launch(kernel('spin'), high, [[flag], 1]);
  launch(kernel('store'), low, [[flag], 1]);
  cu.cuStreamSynchronize(high);
});

test('blocks that wait for later blocks get them started', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  const flags = cu.cuMemAlloc(4 * 41);
  cu.cuMemsetD32Async(flags, 0, 41, stream);
  launch(kernel('chain'), stream, [[flags], 40], 40);
  cu.cuStreamSynchronize(stream);
  expect(read(flags, 40)).toEqual(new Array(40).fill(1));
});

test('a cooperative launch runs all its blocks at once, or is refused', () => {
  const { cu, kernel, stream, read } = openFake();
  const flags = cu.cuMemAlloc(4 * 65);
  cu.cuMemsetD32Async(flags, 0, 65, stream);
  const config = {
    gridDimX: 64,
    gridDimY: 1,
    gridDimZ: 1,
    blockDimX: 32,
    blockDimY: 1,
    blockDimZ: 1,
    sharedMemBytes: 0,
    hStream: stream,
    attrs: { cooperative: true },
  };
  cu.cuLaunchKernelEx(config, kernel('chain'), packParams([[flags], 64]), 0, 12);
  cu.cuStreamSynchronize(stream);
  expect(read(flags, 64)).toEqual(new Array(64).fill(1));
  expect(
    resultOf(() =>
      cu.cuLaunchKernelEx(
        { ...config, gridDimX: 65 },
        kernel('chain'),
        packParams([[flags], 65]),
        0,
        12,
      ),
    ),
  ).toBe('CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE');
});

test('a launch beyond the limits is INVALID_VALUE and names the limit', () => {
  const { cu, kernel, stream } = openFake();
  const none = new Int32Array(0);
  const small = kernel('small');
  const go =
    (func: number, g: number[], b: number[], shared = 0): (() => void) =>
    () =>
      cu.cuLaunchKernel(func, g[0]!, g[1]!, g[2]!, b[0]!, b[1]!, b[2]!, shared, stream, none, 0, 0);
  expect(messageOf(go(small, [0, 1, 1], [1, 1, 1]))).toContain('INVALID_VALUE (1): gridDimX is 0');
  expect(messageOf(go(small, [1, 65536, 1], [1, 1, 1]))).toContain('gridDimY is 65536');
  expect(messageOf(go(small, [1, 1, 1], [1, 1, 65]))).toContain('blockDimZ is 65');
  expect(messageOf(go(small, [1, 1, 1], [65, 1, 1]))).toContain('more than the 64');
  expect(messageOf(go(kernel('empty'), [1, 1, 1], [1024, 2, 1]))).toContain('more than the 1024');
  expect(messageOf(go(kernel('exact'), [1, 1, 1], [4, 8, 1]))).toContain('blocks of (8,4,1)');
  expect(messageOf(go(small, [1, 1, 1], [1, 1, 1], 48 * 1024))).toContain('dynamic shared memory');
  expect(resultOf(go(kernel('store'), [1, 1, 1], [1, 1, 1]))).toBe('CUDA_ERROR_INVALID_VALUE');
  cu.cuFuncSetAttribute(small, F.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 226 * 1024);
  go(small, [1, 1, 1], [1, 1, 1], 226 * 1024)();
  cu.cuStreamSynchronize(stream);
});

test.each([
  [FAULT.outOfBounds, 'CUDA_ERROR_ILLEGAL_ADDRESS'],
  [FAULT.misaligned, 'CUDA_ERROR_MISALIGNED_ADDRESS'],
  [FAULT.trap, 'CUDA_ERROR_LAUNCH_FAILED'],
  [FAULT.assert, 'CUDA_ERROR_ASSERT'],
  [FAULT.divergentBarrier, 'CUDA_ERROR_LAUNCH_FAILED'],
])('fault kind %i is %s', (kind, name) => {
  const { cu, kernel, launch, stream } = openFake();
  launch(kernel('fault'), stream, [kind]);
  expect(resultOf(() => cu.cuStreamSynchronize(stream))).toBe(name);
});

test('a fault names kernel, address, line, block and thread', () => {
  const { cu, kernel, stream } = openFake();
  cu.cuLaunchKernel(
    kernel('fault'),
    1,
    1,
    1,
    4,
    2,
    1,
    0,
    stream,
    packParams([FAULT.outOfBounds]),
    0,
    4,
  );
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toContain(
    'fault: read or write out of bounds at 0x1234, PTX line 42, block (0,0,0), thread (1,1,0)',
  );
});

test('after a fault every call fails with its code and queued work is dropped', () => {
  const { cu, kernel, launch, stream, context } = openFake();
  const other = cu.cuStreamCreateWithPriority(1, 0);
  const event = cu.cuEventCreate(0);
  launch(kernel('fault'), stream, [FAULT.outOfBounds]);
  launch(kernel('spin'), stream, [[65536], 1]);
  cu.cuStreamWaitEvent(other, event, 0);
  launch(kernel('spin'), other, [[65536], 1]);
  cu.cuEventRecord(event, other);
  expect(cu.poll(1e6)).toBe(false);
  expect(cu.cuStreamQuery(stream)).toBe(700);
  expect(cu.cuStreamQuery(other)).toBe(700);
  expect(cu.cuEventQuery(event)).toBe(700);
  for (const call of [
    () => cu.cuMemAlloc(4),
    () => cu.cuStreamCreateWithPriority(0, 0),
    () => launch(1, stream),
    () => cu.cuCtxSynchronize(),
    () => cu.cuModuleLoadDataEx('empty', {}),
  ])
    expect(resultOf(call)).toBe('CUDA_ERROR_ILLEGAL_ADDRESS');
  expect(cu.cuCtxGetCurrent()).toBe(context);
});

test('a device that faulted works again after a reset', () => {
  const device = openFake();
  const { cu } = device;
  device.launch(device.kernel('crash'), device.stream);
  expect(resultOf(() => cu.cuCtxSynchronize())).toBe('CUDA_ERROR_LAUNCH_FAILED');
  cu.cuDevicePrimaryCtxReset(0);
  expect(resultOf(() => cu.cuMemAlloc(4))).toBe('CUDA_ERROR_CONTEXT_IS_DESTROYED');
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  expect(resultOf(() => cu.cuStreamSynchronize(device.stream))).toBe('CUDA_ERROR_INVALID_HANDLE');
  const out = cu.cuMemAlloc(4);
  const func = cu.cuModuleGetFunction(cu.cuModuleLoadDataEx('store', {}), 'store');
  device.launch(func, 0, [[out], 4]);
  cu.cuCtxSynchronize();
  expect(device.read(out, 1)).toEqual([4]);
});

test('printf goes to the callback, formatted as in C', () => {
  const { cu, kernel, launch, stream, printed } = openFake();
  const at = cu.cuMemAllocManaged(256, 1);
  const view = cu.hostView(at, 256);
  view.set(new TextEncoder().encode('%d|%5.2f|%s|%llx|%%|%-4u|\0'));
  view.set(new TextEncoder().encode('text\0'), 64);
  const args = new DataView(view.buffer, view.byteOffset + 128);
  args.setInt32(0, -3, true);
  args.setFloat64(8, Math.PI, true);
  args.setBigUint64(16, BigInt(at + 64), true);
  args.setBigUint64(24, 0xdeadbeefcafen, true);
  args.setUint32(32, 7, true);
  launch(kernel('print'), stream, [[at], [at + 128]]);
  cu.cuStreamSynchronize(stream);
  expect(printed).toEqual(['-3| 3.14|text|deadbeefcafe|%|7   |']);
});

test('malloc in a kernel returns memory of the heap, null when it is used up; free works', () => {
  const { cu, kernel, launch, stream, read } = openFake();
  cu.cuCtxSetLimit(2, 65536);
  const out = cu.cuMemAlloc(24);
  launch(kernel('malloc'), stream, [[out], [40_000]]);
  launch(kernel('malloc'), stream, [[out + 8], [40_000]]);
  cu.cuStreamSynchronize(stream);
  const [first, , second] = read(out, 4);
  expect(first! % 256).toBe(0);
  expect(first).toBeGreaterThan(0);
  expect(second).toBe(0);
  launch(kernel('free'), stream, [[first!]]);
  launch(kernel('malloc'), stream, [[out + 16], [40_000]]);
  cu.cuStreamSynchronize(stream);
  expect(read(out + 16, 1)).toEqual([first]);
});

test('a failed assertion is printed and is in the error', () => {
  const { cu, kernel, launch, stream, printed } = openFake();
  const at = cu.cuMemAllocManaged(64, 1);
  cu.hostView(at, 64).set(new TextEncoder().encode('i < n\0'));
  launch(kernel('assert'), stream, [[at]]);
  expect(messageOf(() => cu.cuStreamSynchronize(stream))).toContain('Assertion `i < n` failed.');
  expect(printed.join('')).toContain('block: [0,0,0], thread: [0,0,0] Assertion `i < n` failed.\n');
});

test('function attributes, parameters and occupancy', () => {
  const { cu, kernel } = openFake();
  const small = kernel('small');
  const get = (a: number): number => cu.cuFuncGetAttribute(a, small);
  expect([
    get(F.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    get(F.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
    get(F.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
    get(F.CU_FUNC_ATTRIBUTE_NUM_REGS),
    get(F.CU_FUNC_ATTRIBUTE_PTX_VERSION),
    get(F.CU_FUNC_ATTRIBUTE_BINARY_VERSION),
    get(F.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
  ]).toEqual([64, 1024, 16, 12, 80, 80, 47 * 1024]);
  expect(resultOf(() => get(99))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(cu.cuFuncGetParamInfo(kernel('store'), 0)).toEqual({ offset: 0, size: 8 });
  expect(cu.cuFuncGetParamInfo(kernel('store'), 1)).toEqual({ offset: 8, size: 4 });
  expect(cu.cuFuncGetParamInfo(kernel('store'), 2)).toBeUndefined();
  const empty = kernel('empty');
  expect(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(empty, 256, 0)).toBe(8);
  expect(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(empty, 33, 0)).toBe(32);
  expect(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(empty, 256, 100 * 1024)).toBe(2);
  expect(cu.cuOccupancyMaxPotentialBlockSize(empty, 0, 0)).toEqual({
    minGridSize: 4,
    blockSize: 1024,
  });
  expect(cu.cuOccupancyMaxPotentialBlockSize(small, 0, 0)).toEqual({
    minGridSize: 64,
    blockSize: 64,
  });
  expect(cu.cuOccupancyAvailableDynamicSMemPerBlock(empty, 2, 256)).toBe(113 * 1024);
});
