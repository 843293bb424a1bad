/**
 * The driver calls that this provider makes, one row each: the symbols that libcuda exports for it,
 * newest first, the arguments in C's order, and the CUDA version whose driver has the oldest of
 * those symbols.
 *
 * - Handles, device and host addresses and everything that C takes by pointer are `uintptr_t`:
 *   koffi takes a plain number for it, several times faster than a typed array (measured: 44
 *   against 80 ns for four arguments). What C writes through a pointer lands in the provider's own
 *   memory (`native-memory.ts`). `void*` is for images, whose bytes belong to the caller, and
 *   `const char*` for names.
 * - Symbols of one row share one signature. Where a newer symbol takes other arguments it has a row
 *   of its own, whose name ends in `_v1` or `_v2`; the provider asks which of them there is.
 * - CUmemLocation is passed by value: 8 bytes, which the x86-64, AArch64 and Windows calling
 *   conventions all put where a 64-bit integer goes. It is a `uint64_t` here.
 * - The `_ptds` and `_ptsz` symbols only give another meaning to stream 0. Every call here names
 *   its stream, so they are not used.
 */

type CType =
  | 'int'
  | 'uint8_t'
  | 'uint16_t'
  | 'uint32_t'
  | 'uint64_t'
  | 'uintptr_t'
  | 'size_t'
  | 'void*'
  | 'const char*';

/** A C type and C's name of the argument. */
export type Argument = `${CType} ${string}`;

export interface CallRow {
  /** The CUDA version whose driver first had the last of `symbols`. */
  readonly since: string;
  /** What libcuda may export it as, newest first. */
  readonly symbols: readonly [string, ...string[]];
  readonly args: readonly Argument[];
}

export const CALLS = {
  // Initialisation, devices
  cuInit: { since: '2.0', symbols: ['cuInit'], args: ['uint32_t Flags'] },
  cuDriverGetVersion: {
    since: '2.2',
    symbols: ['cuDriverGetVersion'],
    args: ['uintptr_t driverVersion'],
  },
  cuDeviceGetCount: { since: '2.0', symbols: ['cuDeviceGetCount'], args: ['uintptr_t count'] },
  cuDeviceGet: {
    since: '2.0',
    symbols: ['cuDeviceGet'],
    args: ['uintptr_t device', 'int ordinal'],
  },
  cuDeviceGetName: {
    since: '2.0',
    symbols: ['cuDeviceGetName'],
    args: ['uintptr_t name', 'int len', 'int dev'],
  },
  cuDeviceGetUuid: {
    since: '9.2',
    symbols: ['cuDeviceGetUuid_v2', 'cuDeviceGetUuid'],
    args: ['uintptr_t uuid', 'int dev'],
  },
  cuDeviceGetPCIBusId: {
    since: '4.1',
    symbols: ['cuDeviceGetPCIBusId'],
    args: ['uintptr_t pciBusId', 'int len', 'int dev'],
  },
  cuDeviceTotalMem: {
    since: '3.2',
    symbols: ['cuDeviceTotalMem_v2'],
    args: ['uintptr_t bytes', 'int dev'],
  },
  cuDeviceGetAttribute: {
    since: '2.0',
    symbols: ['cuDeviceGetAttribute'],
    args: ['uintptr_t pi', 'int attrib', 'int dev'],
  },
  cuDeviceCanAccessPeer: {
    since: '4.0',
    symbols: ['cuDeviceCanAccessPeer'],
    args: ['uintptr_t canAccessPeer', 'int dev', 'int peerDev'],
  },
  cuDeviceGetDefaultMemPool: {
    since: '11.2',
    symbols: ['cuDeviceGetDefaultMemPool'],
    args: ['uintptr_t pool_out', 'int dev'],
  },
  cuDeviceGetMemPool: {
    since: '11.2',
    symbols: ['cuDeviceGetMemPool'],
    args: ['uintptr_t pool', 'int dev'],
  },
  cuDeviceSetMemPool: {
    since: '11.2',
    symbols: ['cuDeviceSetMemPool'],
    args: ['int dev', 'uintptr_t pool'],
  },

  // Contexts
  cuDevicePrimaryCtxRetain: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxRetain'],
    args: ['uintptr_t pctx', 'int dev'],
  },
  cuDevicePrimaryCtxRelease: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxRelease_v2', 'cuDevicePrimaryCtxRelease'],
    args: ['int dev'],
  },
  cuDevicePrimaryCtxReset: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxReset_v2', 'cuDevicePrimaryCtxReset'],
    args: ['int dev'],
  },
  cuDevicePrimaryCtxSetFlags: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxSetFlags_v2', 'cuDevicePrimaryCtxSetFlags'],
    args: ['int dev', 'uint32_t flags'],
  },
  cuDevicePrimaryCtxGetState: {
    since: '7.0',
    symbols: ['cuDevicePrimaryCtxGetState'],
    args: ['int dev', 'uintptr_t flags', 'uintptr_t active'],
  },
  cuCtxSetCurrent: { since: '4.0', symbols: ['cuCtxSetCurrent'], args: ['uintptr_t ctx'] },
  cuCtxGetCurrent: { since: '4.0', symbols: ['cuCtxGetCurrent'], args: ['uintptr_t pctx'] },
  // cuCtxSynchronize_v2 (13.0) takes a context: not needed, the current one is meant.
  cuCtxSynchronize: { since: '2.0', symbols: ['cuCtxSynchronize'], args: [] },
  cuCtxGetStreamPriorityRange: {
    since: '5.5',
    symbols: ['cuCtxGetStreamPriorityRange'],
    args: ['uintptr_t leastPriority', 'uintptr_t greatestPriority'],
  },
  cuCtxGetLimit: {
    since: '3.1',
    symbols: ['cuCtxGetLimit'],
    args: ['uintptr_t pvalue', 'int limit'],
  },
  cuCtxSetLimit: { since: '3.1', symbols: ['cuCtxSetLimit'], args: ['int limit', 'size_t value'] },
  cuCtxEnablePeerAccess: {
    since: '4.0',
    symbols: ['cuCtxEnablePeerAccess'],
    args: ['uintptr_t peerContext', 'uint32_t Flags'],
  },
  cuCtxDisablePeerAccess: {
    since: '4.0',
    symbols: ['cuCtxDisablePeerAccess'],
    args: ['uintptr_t peerContext'],
  },

  // Streams
  cuStreamCreateWithPriority: {
    since: '5.5',
    symbols: ['cuStreamCreateWithPriority'],
    args: ['uintptr_t phStream', 'uint32_t flags', 'int priority'],
  },
  cuStreamDestroy: { since: '4.0', symbols: ['cuStreamDestroy_v2'], args: ['uintptr_t hStream'] },
  cuStreamQuery: { since: '2.0', symbols: ['cuStreamQuery'], args: ['uintptr_t hStream'] },
  cuStreamSynchronize: {
    since: '2.0',
    symbols: ['cuStreamSynchronize'],
    args: ['uintptr_t hStream'],
  },
  cuStreamWaitEvent: {
    since: '3.2',
    symbols: ['cuStreamWaitEvent'],
    args: ['uintptr_t hStream', 'uintptr_t hEvent', 'uint32_t Flags'],
  },
  cuStreamGetPriority: {
    since: '5.5',
    symbols: ['cuStreamGetPriority'],
    args: ['uintptr_t hStream', 'uintptr_t priority'],
  },
  cuStreamGetFlags: {
    since: '5.5',
    symbols: ['cuStreamGetFlags'],
    args: ['uintptr_t hStream', 'uintptr_t flags'],
  },
  // The first version of these four works only where the kernel module was told to allow it.
  cuStreamWriteValue32: {
    since: '8.0',
    symbols: ['cuStreamWriteValue32_v2', 'cuStreamWriteValue32'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint32_t value', 'uint32_t flags'],
  },
  cuStreamWaitValue32: {
    since: '8.0',
    symbols: ['cuStreamWaitValue32_v2', 'cuStreamWaitValue32'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint32_t value', 'uint32_t flags'],
  },
  cuStreamWriteValue64: {
    since: '9.0',
    symbols: ['cuStreamWriteValue64_v2', 'cuStreamWriteValue64'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint64_t value', 'uint32_t flags'],
  },
  cuStreamWaitValue64: {
    since: '9.0',
    symbols: ['cuStreamWaitValue64_v2', 'cuStreamWaitValue64'],
    args: ['uintptr_t stream', 'uintptr_t addr', 'uint64_t value', 'uint32_t flags'],
  },
  cuStreamBeginCapture: {
    since: '10.1',
    symbols: ['cuStreamBeginCapture_v2'],
    args: ['uintptr_t hStream', 'int mode'],
  },
  cuStreamEndCapture: {
    since: '10.0',
    symbols: ['cuStreamEndCapture'],
    args: ['uintptr_t hStream', 'uintptr_t phGraph'],
  },
  cuStreamGetCaptureInfo_v2: {
    since: '11.3',
    symbols: ['cuStreamGetCaptureInfo_v2'],
    args: [
      'uintptr_t hStream',
      'uintptr_t captureStatus_out',
      'uintptr_t id_out',
      'uintptr_t graph_out',
      'uintptr_t dependencies_out',
      'uintptr_t numDependencies_out',
    ],
  },
  cuStreamGetCaptureInfo_v1: {
    since: '10.1',
    symbols: ['cuStreamGetCaptureInfo'],
    args: ['uintptr_t hStream', 'uintptr_t captureStatus_out', 'uintptr_t id_out'],
  },

  // Their signatures before 12.3 have no edge data; conditional nodes need a newer driver anyway.
  cuStreamUpdateCaptureDependencies: {
    since: '12.3',
    symbols: ['cuStreamUpdateCaptureDependencies_v2'],
    args: [
      'uintptr_t hStream',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'uint32_t flags',
    ],
  },
  cuStreamBeginCaptureToGraph: {
    since: '12.3',
    symbols: ['cuStreamBeginCaptureToGraph'],
    args: [
      'uintptr_t hStream',
      'uintptr_t hGraph',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'int mode',
    ],
  },

  // Events
  cuEventCreate: {
    since: '2.0',
    symbols: ['cuEventCreate'],
    args: ['uintptr_t phEvent', 'uint32_t Flags'],
  },
  cuEventRecord: {
    since: '2.0',
    symbols: ['cuEventRecord'],
    args: ['uintptr_t hEvent', 'uintptr_t hStream'],
  },
  cuEventQuery: { since: '2.0', symbols: ['cuEventQuery'], args: ['uintptr_t hEvent'] },
  cuEventSynchronize: { since: '2.0', symbols: ['cuEventSynchronize'], args: ['uintptr_t hEvent'] },
  cuEventDestroy: { since: '4.0', symbols: ['cuEventDestroy_v2'], args: ['uintptr_t hEvent'] },
  cuEventElapsedTime: {
    since: '2.0',
    symbols: ['cuEventElapsedTime_v2', 'cuEventElapsedTime'],
    args: ['uintptr_t pMilliseconds', 'uintptr_t hStart', 'uintptr_t hEnd'],
  },

  // Memory
  cuMemGetInfo: {
    since: '3.2',
    symbols: ['cuMemGetInfo_v2'],
    args: ['uintptr_t free', 'uintptr_t total'],
  },
  cuMemAlloc: {
    since: '3.2',
    symbols: ['cuMemAlloc_v2'],
    args: ['uintptr_t dptr', 'size_t bytesize'],
  },
  cuMemAllocPitch: {
    since: '3.2',
    symbols: ['cuMemAllocPitch_v2'],
    args: [
      'uintptr_t dptr',
      'uintptr_t pPitch',
      'size_t WidthInBytes',
      'size_t Height',
      'uint32_t ElementSizeBytes',
    ],
  },
  cuMemFree: { since: '3.2', symbols: ['cuMemFree_v2'], args: ['uintptr_t dptr'] },
  cuMemAllocAsync: {
    since: '11.2',
    symbols: ['cuMemAllocAsync'],
    args: ['uintptr_t dptr', 'size_t bytesize', 'uintptr_t hStream'],
  },
  cuMemAllocFromPoolAsync: {
    since: '11.2',
    symbols: ['cuMemAllocFromPoolAsync'],
    args: ['uintptr_t dptr', 'size_t bytesize', 'uintptr_t pool', 'uintptr_t hStream'],
  },
  cuMemFreeAsync: {
    since: '11.2',
    symbols: ['cuMemFreeAsync'],
    args: ['uintptr_t dptr', 'uintptr_t hStream'],
  },
  cuMemAllocManaged: {
    since: '6.0',
    symbols: ['cuMemAllocManaged'],
    args: ['uintptr_t dptr', 'size_t bytesize', 'uint32_t flags'],
  },
  cuMemHostAlloc: {
    since: '2.2',
    symbols: ['cuMemHostAlloc'],
    args: ['uintptr_t pp', 'size_t bytesize', 'uint32_t Flags'],
  },
  cuMemFreeHost: { since: '2.0', symbols: ['cuMemFreeHost'], args: ['uintptr_t p'] },
  cuMemHostRegister: {
    since: '4.0',
    symbols: ['cuMemHostRegister_v2', 'cuMemHostRegister'],
    args: ['uintptr_t p', 'size_t bytesize', 'uint32_t Flags'],
  },
  cuMemHostUnregister: { since: '4.0', symbols: ['cuMemHostUnregister'], args: ['uintptr_t p'] },
  cuMemHostGetDevicePointer: {
    since: '3.2',
    symbols: ['cuMemHostGetDevicePointer_v2'],
    args: ['uintptr_t pdptr', 'uintptr_t p', 'uint32_t Flags'],
  },
  cuMemPrefetchAsync_v2: {
    since: '12.2',
    symbols: ['cuMemPrefetchAsync_v2'],
    args: [
      'uintptr_t devPtr',
      'size_t count',
      'uint64_t location',
      'uint32_t flags',
      'uintptr_t hStream',
    ],
  },
  cuMemPrefetchAsync_v1: {
    since: '8.0',
    symbols: ['cuMemPrefetchAsync'],
    args: ['uintptr_t devPtr', 'size_t count', 'int dstDevice', 'uintptr_t hStream'],
  },
  cuMemAdvise_v2: {
    since: '12.2',
    symbols: ['cuMemAdvise_v2'],
    args: ['uintptr_t devPtr', 'size_t count', 'int advice', 'uint64_t location'],
  },
  cuMemAdvise_v1: {
    since: '8.0',
    symbols: ['cuMemAdvise'],
    args: ['uintptr_t devPtr', 'size_t count', 'int advice', 'int device'],
  },
  cuPointerGetAttribute: {
    since: '4.0',
    symbols: ['cuPointerGetAttribute'],
    args: ['uintptr_t data', 'int attribute', 'uintptr_t ptr'],
  },

  // Memory pools
  cuMemPoolCreate: {
    since: '11.2',
    symbols: ['cuMemPoolCreate'],
    args: ['uintptr_t pool', 'uintptr_t poolProps'],
  },
  cuMemPoolDestroy: { since: '11.2', symbols: ['cuMemPoolDestroy'], args: ['uintptr_t pool'] },
  cuMemPoolTrimTo: {
    since: '11.2',
    symbols: ['cuMemPoolTrimTo'],
    args: ['uintptr_t pool', 'size_t minBytesToKeep'],
  },
  cuMemPoolGetAttribute: {
    since: '11.2',
    symbols: ['cuMemPoolGetAttribute'],
    args: ['uintptr_t pool', 'int attr', 'uintptr_t value'],
  },
  cuMemPoolSetAttribute: {
    since: '11.2',
    symbols: ['cuMemPoolSetAttribute'],
    args: ['uintptr_t pool', 'int attr', 'uintptr_t value'],
  },
  cuMemPoolSetAccess: {
    since: '11.2',
    symbols: ['cuMemPoolSetAccess'],
    args: ['uintptr_t pool', 'uintptr_t map', 'size_t count'],
  },

  // Copies and fills
  cuMemcpyHtoDAsync: {
    since: '3.2',
    symbols: ['cuMemcpyHtoDAsync_v2'],
    args: ['uintptr_t dstDevice', 'uintptr_t srcHost', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyDtoHAsync: {
    since: '3.2',
    symbols: ['cuMemcpyDtoHAsync_v2'],
    args: ['uintptr_t dstHost', 'uintptr_t srcDevice', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyDtoDAsync: {
    since: '3.2',
    symbols: ['cuMemcpyDtoDAsync_v2'],
    args: ['uintptr_t dstDevice', 'uintptr_t srcDevice', 'size_t ByteCount', 'uintptr_t hStream'],
  },
  cuMemcpyPeerAsync: {
    since: '4.0',
    symbols: ['cuMemcpyPeerAsync'],
    args: [
      'uintptr_t dstDevice',
      'uintptr_t dstContext',
      'uintptr_t srcDevice',
      'uintptr_t srcContext',
      'size_t ByteCount',
      'uintptr_t hStream',
    ],
  },
  cuMemcpy2DAsync: {
    since: '3.2',
    symbols: ['cuMemcpy2DAsync_v2'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemcpy3DAsync: {
    since: '3.2',
    symbols: ['cuMemcpy3DAsync_v2'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemcpy3DPeerAsync: {
    since: '4.0',
    symbols: ['cuMemcpy3DPeerAsync'],
    args: ['uintptr_t pCopy', 'uintptr_t hStream'],
  },
  cuMemsetD8Async: {
    since: '3.2',
    symbols: ['cuMemsetD8Async'],
    args: ['uintptr_t dstDevice', 'uint8_t uc', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD16Async: {
    since: '3.2',
    symbols: ['cuMemsetD16Async'],
    args: ['uintptr_t dstDevice', 'uint16_t us', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD32Async: {
    since: '3.2',
    symbols: ['cuMemsetD32Async'],
    args: ['uintptr_t dstDevice', 'uint32_t ui', 'size_t N', 'uintptr_t hStream'],
  },
  cuMemsetD2D8Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D8Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint8_t uc',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },
  cuMemsetD2D16Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D16Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint16_t us',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },
  cuMemsetD2D32Async: {
    since: '3.2',
    symbols: ['cuMemsetD2D32Async'],
    args: [
      'uintptr_t dstDevice',
      'size_t dstPitch',
      'uint32_t ui',
      'size_t Width',
      'size_t Height',
      'uintptr_t hStream',
    ],
  },

  // Arrays, textures and surfaces
  cuArrayCreate: {
    since: '3.2',
    symbols: ['cuArrayCreate_v2'],
    args: ['uintptr_t pHandle', 'uintptr_t pAllocateArray'],
  },
  cuArray3DCreate: {
    since: '3.2',
    symbols: ['cuArray3DCreate_v2'],
    args: ['uintptr_t pHandle', 'uintptr_t pAllocateArray'],
  },
  cuArrayDestroy: { since: '2.0', symbols: ['cuArrayDestroy'], args: ['uintptr_t hArray'] },
  cuTexObjectCreate: {
    since: '5.0',
    symbols: ['cuTexObjectCreate'],
    args: [
      'uintptr_t pTexObject',
      'uintptr_t pResDesc',
      'uintptr_t pTexDesc',
      'uintptr_t pResViewDesc',
    ],
  },
  cuTexObjectDestroy: {
    since: '5.0',
    symbols: ['cuTexObjectDestroy'],
    args: ['uint64_t texObject'],
  },
  cuSurfObjectCreate: {
    since: '5.0',
    symbols: ['cuSurfObjectCreate'],
    args: ['uintptr_t pSurfObject', 'uintptr_t pResDesc'],
  },
  cuSurfObjectDestroy: {
    since: '5.0',
    symbols: ['cuSurfObjectDestroy'],
    args: ['uint64_t surfObject'],
  },

  // Modules, libraries, linker
  cuModuleLoadDataEx: {
    since: '2.1',
    symbols: ['cuModuleLoadDataEx'],
    args: [
      'uintptr_t module',
      'void* image',
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
    ],
  },
  cuModuleUnload: { since: '2.0', symbols: ['cuModuleUnload'], args: ['uintptr_t hmod'] },
  cuModuleGetFunction: {
    since: '2.0',
    symbols: ['cuModuleGetFunction'],
    args: ['uintptr_t hfunc', 'uintptr_t hmod', 'const char* name'],
  },
  cuModuleGetGlobal: {
    since: '3.2',
    symbols: ['cuModuleGetGlobal_v2'],
    args: ['uintptr_t dptr', 'uintptr_t bytes', 'uintptr_t hmod', 'const char* name'],
  },
  cuLibraryLoadData: {
    since: '12.0',
    symbols: ['cuLibraryLoadData'],
    args: [
      'uintptr_t library',
      'void* code',
      'uintptr_t jitOptions',
      'uintptr_t jitOptionsValues',
      'uint32_t numJitOptions',
      'uintptr_t libraryOptions',
      'uintptr_t libraryOptionValues',
      'uint32_t numLibraryOptions',
    ],
  },
  cuLibraryUnload: { since: '12.0', symbols: ['cuLibraryUnload'], args: ['uintptr_t library'] },
  cuLibraryGetKernel: {
    since: '12.0',
    symbols: ['cuLibraryGetKernel'],
    args: ['uintptr_t pKernel', 'uintptr_t library', 'const char* name'],
  },
  cuLibraryGetKernelCount: {
    since: '12.4',
    symbols: ['cuLibraryGetKernelCount'],
    args: ['uintptr_t count', 'uintptr_t lib'],
  },
  cuLibraryEnumerateKernels: {
    since: '12.4',
    symbols: ['cuLibraryEnumerateKernels'],
    args: ['uintptr_t kernels', 'uint32_t numKernels', 'uintptr_t lib'],
  },
  cuKernelGetName: {
    since: '12.3',
    symbols: ['cuKernelGetName'],
    args: ['uintptr_t name', 'uintptr_t hfunc'],
  },
  cuLibraryGetGlobal: {
    since: '12.0',
    symbols: ['cuLibraryGetGlobal'],
    args: ['uintptr_t dptr', 'uintptr_t bytes', 'uintptr_t library', 'const char* name'],
  },
  cuLibraryGetModule: {
    since: '12.0',
    symbols: ['cuLibraryGetModule'],
    args: ['uintptr_t pMod', 'uintptr_t library'],
  },
  cuKernelGetFunction: {
    since: '12.0',
    symbols: ['cuKernelGetFunction'],
    args: ['uintptr_t pFunc', 'uintptr_t kernel'],
  },
  cuLinkCreate: {
    since: '6.5',
    symbols: ['cuLinkCreate_v2'],
    args: [
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
      'uintptr_t stateOut',
    ],
  },
  cuLinkAddData: {
    since: '6.5',
    symbols: ['cuLinkAddData_v2'],
    args: [
      'uintptr_t state',
      'int type',
      'void* data',
      'size_t size',
      'const char* name',
      'uint32_t numOptions',
      'uintptr_t options',
      'uintptr_t optionValues',
    ],
  },
  cuLinkComplete: {
    since: '5.5',
    symbols: ['cuLinkComplete'],
    args: ['uintptr_t state', 'uintptr_t cubinOut', 'uintptr_t sizeOut'],
  },
  cuLinkDestroy: { since: '5.5', symbols: ['cuLinkDestroy'], args: ['uintptr_t state'] },

  // Functions, occupancy
  cuFuncGetAttribute: {
    since: '2.2',
    symbols: ['cuFuncGetAttribute'],
    args: ['uintptr_t pi', 'int attrib', 'uintptr_t hfunc'],
  },
  cuFuncSetAttribute: {
    since: '9.0',
    symbols: ['cuFuncSetAttribute'],
    args: ['uintptr_t hfunc', 'int attrib', 'int value'],
  },
  cuFuncSetCacheConfig: {
    since: '3.0',
    symbols: ['cuFuncSetCacheConfig'],
    args: ['uintptr_t hfunc', 'int config'],
  },
  cuFuncLoad: { since: '12.4', symbols: ['cuFuncLoad'], args: ['uintptr_t hfunc'] },
  cuFuncGetParamInfo: {
    since: '12.4',
    symbols: ['cuFuncGetParamInfo'],
    args: ['uintptr_t func', 'size_t paramIndex', 'uintptr_t paramOffset', 'uintptr_t paramSize'],
  },
  cuOccupancyMaxActiveBlocksPerMultiprocessor: {
    since: '6.5',
    symbols: ['cuOccupancyMaxActiveBlocksPerMultiprocessor'],
    args: ['uintptr_t numBlocks', 'uintptr_t func', 'int blockSize', 'size_t dynamicSMemSize'],
  },
  cuOccupancyMaxPotentialBlockSize: {
    since: '6.5',
    symbols: ['cuOccupancyMaxPotentialBlockSize'],
    args: [
      'uintptr_t minGridSize',
      'uintptr_t blockSize',
      'uintptr_t func',
      'uintptr_t blockSizeToDynamicSMemSize',
      'size_t dynamicSMemSize',
      'int blockSizeLimit',
    ],
  },
  cuOccupancyAvailableDynamicSMemPerBlock: {
    since: '10.2',
    symbols: ['cuOccupancyAvailableDynamicSMemPerBlock'],
    args: ['uintptr_t dynamicSmemSize', 'uintptr_t func', 'int numBlocks', 'int blockSize'],
  },
  cuOccupancyMaxActiveClusters: {
    since: '11.7',
    symbols: ['cuOccupancyMaxActiveClusters'],
    args: ['uintptr_t numClusters', 'uintptr_t func', 'uintptr_t config'],
  },

  // Launch
  cuLaunchKernel: {
    since: '4.0',
    symbols: ['cuLaunchKernel'],
    args: [
      'uintptr_t f',
      'uint32_t gridDimX',
      'uint32_t gridDimY',
      'uint32_t gridDimZ',
      'uint32_t blockDimX',
      'uint32_t blockDimY',
      'uint32_t blockDimZ',
      'uint32_t sharedMemBytes',
      'uintptr_t hStream',
      'uintptr_t kernelParams',
      'uintptr_t extra',
    ],
  },
  cuLaunchKernelEx: {
    since: '11.6',
    symbols: ['cuLaunchKernelEx'],
    args: ['uintptr_t config', 'uintptr_t f', 'uintptr_t kernelParams', 'uintptr_t extra'],
  },

  // Graphs
  cuGraphCreate: {
    since: '10.0',
    symbols: ['cuGraphCreate'],
    args: ['uintptr_t phGraph', 'uint32_t flags'],
  },
  cuGraphDestroy: { since: '10.0', symbols: ['cuGraphDestroy'], args: ['uintptr_t hGraph'] },
  cuGraphClone: {
    since: '10.0',
    symbols: ['cuGraphClone'],
    args: ['uintptr_t phGraphClone', 'uintptr_t originalGraph'],
  },
  cuGraphGetNodes: {
    since: '10.0',
    symbols: ['cuGraphGetNodes'],
    args: ['uintptr_t hGraph', 'uintptr_t nodes', 'uintptr_t numNodes'],
  },
  cuGraphNodeGetType: {
    since: '10.0',
    symbols: ['cuGraphNodeGetType'],
    args: ['uintptr_t hNode', 'uintptr_t type'],
  },
  cuGraphConditionalHandleCreate: {
    since: '12.3',
    symbols: ['cuGraphConditionalHandleCreate'],
    args: [
      'uintptr_t pHandle_out',
      'uintptr_t hGraph',
      'uintptr_t ctx',
      'uint32_t defaultLaunchValue',
      'uint32_t flags',
    ],
  },
  cuGraphAddNode: {
    since: '12.3',
    symbols: ['cuGraphAddNode_v2'],
    args: [
      'uintptr_t phGraphNode',
      'uintptr_t hGraph',
      'uintptr_t dependencies',
      'uintptr_t dependencyData',
      'size_t numDependencies',
      'uintptr_t nodeParams',
    ],
  },
  cuGraphDebugDotPrint: {
    since: '11.3',
    symbols: ['cuGraphDebugDotPrint'],
    args: ['uintptr_t hGraph', 'const char* path', 'uint32_t flags'],
  },
  cuGraphInstantiate: {
    since: '11.4',
    symbols: ['cuGraphInstantiateWithFlags'],
    args: ['uintptr_t phGraphExec', 'uintptr_t hGraph', 'uint64_t flags'],
  },
  cuGraphExecUpdate_v2: {
    since: '12.0',
    symbols: ['cuGraphExecUpdate_v2'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hGraph', 'uintptr_t resultInfo'],
  },
  cuGraphExecUpdate_v1: {
    since: '10.2',
    symbols: ['cuGraphExecUpdate'],
    args: [
      'uintptr_t hGraphExec',
      'uintptr_t hGraph',
      'uintptr_t hErrorNode_out',
      'uintptr_t updateResult_out',
    ],
  },
  cuGraphExecDestroy: {
    since: '10.0',
    symbols: ['cuGraphExecDestroy'],
    args: ['uintptr_t hGraphExec'],
  },
  cuGraphUpload: {
    since: '11.1',
    symbols: ['cuGraphUpload'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hStream'],
  },
  cuGraphLaunch: {
    since: '10.0',
    symbols: ['cuGraphLaunch'],
    args: ['uintptr_t hGraphExec', 'uintptr_t hStream'],
  },
} as const satisfies Record<string, CallRow>;

/**
 * A row's name: NVIDIA's name of the call, with `_v1` or `_v2` where there is a row for each
 * signature.
 */
export type CallName = keyof typeof CALLS;

type ValueOf<A> = A extends `const char* ${string}`
  ? string | null
  : A extends `void* ${string}`
    ? Uint8Array | null
    : A extends `uint64_t ${string}`
      ? number | bigint
      : number;
type ValuesOf<A extends readonly Argument[]> = { -readonly [K in keyof A]: ValueOf<A[K]> };

/** What TypeScript passes for the arguments of a row. */
export type ArgumentsOf<N extends CallName> = ValuesOf<(typeof CALLS)[N]['args']>;
