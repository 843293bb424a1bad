/**
 * Handles and addresses of the driver API. All of them fit 53 bits.
 */
export type CUdevice = number;
export type CUcontext = number;
export type CUstream = number;
export type CUevent = number;
export type CUmodule = number;
export type CUlibrary = number;
export type CUkernel = number;
export type CUfunction = number;
export type CUgraph = number;
export type CUgraphNode = number;
export type CUgraphExec = number;
/** All 64 bits of it count: it is not an address. */
export type CUgraphConditionalHandle = bigint;
export type CUmemoryPool = number;
export type CUarray = number;
export type CUtexObject = number;
export type CUsurfObject = number;
/** A device address in bytes. */
export type CUdeviceptr = number;
/** A host address in bytes of memory that was registered with the driver or allocated by it. */
export type HostAddress = number;
