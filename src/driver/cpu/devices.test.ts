import { expect, test } from 'vitest';
import { CUdevice_attribute as D } from '../attributes.js';
import { createCpuDriver } from './cpu-driver.js';
import { fakeCompile } from './testing/fake-compiler.js';
import { openFake, resultOf } from './testing/open-fake.js';

test('before cuInit every call is NOT_INITIALIZED, without a context INVALID_CONTEXT', () => {
  const cu = createCpuDriver({ compile: fakeCompile });
  expect(resultOf(() => cu.cuDeviceGetCount())).toBe('CUDA_ERROR_NOT_INITIALIZED');
  expect(resultOf(() => cu.cuMemAlloc(4))).toBe('CUDA_ERROR_NOT_INITIALIZED');
  expect(cu.cuStreamQuery(0)).toBe(3);
  expect(resultOf(() => cu.cuInit(1))).toBe('CUDA_ERROR_INVALID_VALUE');
  cu.cuInit(0);
  expect(resultOf(() => cu.cuMemAlloc(4))).toBe('CUDA_ERROR_INVALID_CONTEXT');
  expect(cu.cuCtxGetCurrent()).toBe(0);
  expect(cu.poll(100)).toBe(false);
});

test('a device has a name and properties', () => {
  const { cu } = openFake({ devices: 2, multiprocessors: 6 });
  expect(cu.cuDriverGetVersion()).toBe(13000);
  expect(cu.cuDeviceGetCount()).toBe(2);
  expect(cu.cuDeviceGetName(cu.cuDeviceGet(1))).toBe('async-cuda CPU device');
  expect(cu.cuDeviceGetUuid(0)).toHaveLength(16);
  expect(cu.cuDeviceGetUuid(0)).not.toEqual(cu.cuDeviceGetUuid(1));
  expect(cu.cuDeviceGetPCIBusId(1)).toBe('0000:C1:00.0');
  expect(cu.cuDeviceTotalMem(0)).toBe(64 * 2 ** 20);
  const get = (attribute: number): number => cu.cuDeviceGetAttribute(attribute, 1);
  expect(get(D.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)).toBe(8);
  expect(get(D.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)).toBe(6);
  expect(get(D.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)).toBe(232448);
  expect(get(D.CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)).toBe(1);
  expect(get(D.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)).toBe(1);
  expect(resultOf(() => get(9999))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(resultOf(() => cu.cuDeviceGet(2))).toBe('CUDA_ERROR_INVALID_DEVICE');
  expect(cu.cuDeviceCanAccessPeer(0, 1)).toBe(false);
});

test('there is one primary context, which is counted and ends with its last release', () => {
  const { cu, context } = openFake();
  expect(cu.cuDevicePrimaryCtxRetain(0)).toBe(context);
  cu.cuDevicePrimaryCtxRelease(0);
  expect(cu.cuDevicePrimaryCtxGetState(0).active).toBe(true);
  cu.cuDevicePrimaryCtxRelease(0);
  expect(cu.cuDevicePrimaryCtxGetState(0).active).toBe(false);
  expect(resultOf(() => cu.cuMemGetInfo())).toBe('CUDA_ERROR_CONTEXT_IS_DESTROYED');
  expect(resultOf(() => cu.cuCtxSetCurrent(context))).toBe('CUDA_ERROR_INVALID_CONTEXT');
  expect(resultOf(() => cu.cuDevicePrimaryCtxRelease(0))).toBe('CUDA_ERROR_INVALID_CONTEXT');
});

test('after a reset the device has all its memory again, without the earlier contents', () => {
  const { cu, stream } = openFake();
  const free = cu.cuMemGetInfo().free;
  const address = cu.cuMemAlloc(1000);
  const event = cu.cuEventCreate(0);
  cu.cuMemAllocAsync(5000, stream);
  cu.cuDevicePrimaryCtxReset(0);
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
  expect(cu.cuMemGetInfo().free).toBe(free);
  expect(resultOf(() => cu.cuMemFree(address))).toBe('CUDA_ERROR_INVALID_VALUE');
  expect(cu.cuEventQuery(event)).toBe(400);
  expect(cu.cuMemPoolGetAttribute(cu.cuDeviceGetDefaultMemPool(0), 7)).toBe(0);
});

test('resetting many times takes no more memory', () => {
  const { cu } = openFake({ memoryBytes: 2 ** 32 - 65536 });
  for (let i = 0; i < 40; i++) {
    cu.cuDevicePrimaryCtxReset(0);
    cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0));
    cu.cuMemsetD8Async(cu.cuMemAlloc(1000), 1, 1000, 0);
    cu.cuCtxSynchronize();
  }
});

test('a fault on one device does not affect the other', () => {
  const { cu, kernel, launch, stream, context } = openFake({ devices: 2 });
  launch(kernel('crash'), stream);
  while (cu.poll(100));
  cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(1));
  const own = cu.cuStreamCreateWithPriority(1, 0);
  launch(cu.cuModuleGetFunction(cu.cuModuleLoadDataEx('empty', {}), 'empty'), own);
  cu.cuStreamSynchronize(own);
  expect(cu.cuStreamQuery(stream)).toBe(719);
  cu.cuCtxSetCurrent(context);
  expect(cu.cuStreamQuery(own)).toBe(719);
});

test('limits are kept; those of other kinds are UNSUPPORTED_LIMIT', () => {
  const { cu } = openFake();
  expect(cu.cuCtxGetLimit(2)).toBe(8 * 2 ** 20);
  cu.cuCtxSetLimit(2, 2 ** 20);
  expect(cu.cuCtxGetLimit(2)).toBe(2 ** 20);
  expect(resultOf(() => cu.cuCtxGetLimit(7))).toBe('CUDA_ERROR_UNSUPPORTED_LIMIT');
});

test('kernels cannot reach another device', () => {
  const { cu, context } = openFake({ devices: 2 });
  const second = cu.cuDevicePrimaryCtxRetain(1);
  expect(resultOf(() => cu.cuCtxEnablePeerAccess(second, 0))).toBe(
    'CUDA_ERROR_PEER_ACCESS_UNSUPPORTED',
  );
  expect(resultOf(() => cu.cuCtxEnablePeerAccess(context, 0))).toBe('CUDA_ERROR_INVALID_DEVICE');
  expect(resultOf(() => cu.cuCtxDisablePeerAccess(second))).toBe(
    'CUDA_ERROR_PEER_ACCESS_NOT_ENABLED',
  );
});

test('options out of range are refused', () => {
  expect(() => createCpuDriver({ compile: fakeCompile, devices: 0 })).toThrow('devices is 0');
  expect(() =>
    createCpuDriver({ compile: fakeCompile, devices: 2, memoryBytes: 3 * 2 ** 30 }),
  ).toThrow('2 devices can have 65536 to');
});
