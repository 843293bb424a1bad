/**
 * Loads a module and reads the properties of its kernels, in one call: reading a large PTX file
 * would block the event loop, so it happens on the thread that loads.
 */
import { types } from 'node:util';
import type { Driver, JitOptions } from '../driver/driver.js';
import { DriverError, MissingSymbolError } from '../driver/error.js';
import { CUresult } from '../ground/result.js';
import { kernelSignatures } from '../ptx/index.js';
import type { KernelSignature } from '../ptx/index.js';
import { describeFailure } from './failure.js';

export interface LoadedKernel {
  name: string;
  function: number;
  /** The kernel's signature in the PTX, where the image is PTX. */
  signature: KernelSignature | undefined;
  /** The driver's offsets and sizes in bytes; undefined before CUDA 12.4. */
  params: { offset: number; size: number }[] | undefined;
  attributes: {
    maxThreadsPerBlock: number;
    sharedBytes: number;
    constantBytes: number;
    localBytes: number;
    registers: number;
    ptxVersion: number;
    binaryVersion: number;
    maxDynamicSharedBytes: number;
  };
}

/** A kernel that did not compile, in a module of which others did. */
export interface FailedKernel {
  name: string;
  failure: ReturnType<typeof describeFailure>;
}

export interface LoadedModule {
  library: number;
  kernels: LoadedKernel[];
  failed: FailedKernel[];
  /** Whether the image mentions `vprintf`, which a kernel's printf calls. */
  prints: boolean;
}

/** CUfunction_attribute, in the order of LoadedKernel's attributes. */
const ATTRIBUTES = [0, 1, 2, 3, 4, 5, 6] as const;
const MAX_DYNAMIC_SHARED = 8;

/**
 * Returns the text of PTX; undefined for cubins, which begin with ELF's magic, and fatbins, which
 * begin with their own.
 */
export function ptxOf(image: string | Uint8Array): string | undefined {
  if (typeof image === 'string') return image;
  const [a = 0, b = 0, c = 0, d = 0] = image;
  const elf = a === 0x7f && b === 0x45 && c === 0x4c && d === 0x46;
  const fatbin = a === 0x50 && b === 0xed && c === 0x55 && d === 0xba;
  if (elf || fatbin) return undefined;
  return new TextDecoder().decode(image[image.length - 1] === 0 ? image.subarray(0, -1) : image);
}

/** Whether the image uses printf. Machine code has the name in its table of symbols. */
function mentionsPrintf(image: string | Uint8Array): boolean {
  if (typeof image === 'string') return image.includes('vprintf');
  return Buffer.from(image.buffer, image.byteOffset, image.byteLength).includes('vprintf');
}

/** What the caller has recorded of a module. */
export interface KnownOfModule {
  /** The PTX that the machine code was made of, from which its kernels' signatures are read. */
  readonly made?: string | Uint8Array;
  /**
   * Names of its kernels, whose parameters will be declared: then no text is read for them. On a
   * thread that has just started, reading takes as long as all the rest.
   */
  readonly kernels?: readonly string[];
}

/**
 * Loads a module. `optin` is the device's limit of shared memory for one block, in bytes.
 * `docs/design.md` explains why PTX is loaded with cuLibraryLoadData.
 */
export function loadModule(
  driver: Driver,
  shared: string | Uint8Array,
  options: JitOptions,
  optin: number,
  { made, kernels: known }: KnownOfModule = {},
): LoadedModule {
  // A large image comes in shared memory; this copy cannot be changed while it is read.
  const image =
    typeof shared === 'string' || !types.isSharedArrayBuffer(shared.buffer)
      ? shared
      : shared.slice();
  const own = ptxOf(image);
  const ptx = own ?? (made === undefined || typeof made === 'string' ? made : ptxOf(made.slice()));
  const library = driver.cuLibraryLoadData(image, options);
  try {
    if (own !== undefined && driver.provider === 'libcuda') checkCompiled(driver, library);
    const signatures =
      ptx === undefined || known !== undefined
        ? undefined
        : new Map(kernelSignatures(ptx).map((signature) => [signature.name, signature]));
    const names =
      known ??
      (signatures === undefined
        ? driver.cuLibraryEnumerateKernels(library).map((kernel) => driver.cuKernelGetName(kernel))
        : [...signatures.keys()]);
    const kernels: LoadedKernel[] = [];
    const failed: FailedKernel[] = [];
    for (const name of names) {
      try {
        kernels.push(loadKernel(driver, library, name, signatures?.get(name), optin));
      } catch (error) {
        failed.push({ name, failure: describeFailure(error, 'cuLibraryGetKernel') });
        if (failed.length === names.length) throw error;
      }
    }
    return { library, kernels, failed, prints: mentionsPrintf(ptx ?? image) };
  } catch (error) {
    driver.cuLibraryUnload(library);
    throw error;
  }
}

/**
 * The driver reports PTX that does not compile, with the compiler's log, when a kernel of the
 * library is first requested. This requests one before anything else reads the text; the library
 * has none of this name.
 */
function checkCompiled(driver: Driver, library: number): void {
  try {
    driver.cuLibraryGetKernel(library, 'async_cuda_is_it_compiled');
  } catch (error) {
    if (!(error instanceof DriverError) || error.result !== CUresult.CUDA_ERROR_NOT_FOUND)
      throw error;
  }
}

function loadKernel(
  driver: Driver,
  library: number,
  name: string,
  signature: KernelSignature | undefined,
  optin: number,
): LoadedKernel {
  const handle = driver.cuKernelGetFunction(driver.cuLibraryGetKernel(library, name));
  // The function is loaded now, so that no first launch does it.
  driver.cuFuncLoad(handle);
  const [
    maxThreadsPerBlock = 0,
    sharedBytes = 0,
    constantBytes = 0,
    localBytes = 0,
    registers = 0,
    ptxVersion = 0,
    binaryVersion = 0,
  ] = ATTRIBUTES.map((attribute) => driver.cuFuncGetAttribute(attribute, handle));
  const wanted = optin - sharedBytes;
  let maxDynamicSharedBytes = driver.cuFuncGetAttribute(MAX_DYNAMIC_SHARED, handle);
  if (wanted > maxDynamicSharedBytes) {
    // The limit is set to all that the device has; a launch uses what it requests.
    driver.cuFuncSetAttribute(handle, MAX_DYNAMIC_SHARED, wanted);
    maxDynamicSharedBytes = wanted;
  }
  return {
    name,
    function: handle,
    signature,
    params: paramsOf(driver, handle),
    attributes: {
      maxThreadsPerBlock,
      sharedBytes,
      constantBytes,
      localBytes,
      registers,
      ptxVersion,
      binaryVersion,
      maxDynamicSharedBytes,
    },
  };
}

function paramsOf(driver: Driver, handle: number): { offset: number; size: number }[] | undefined {
  const params: { offset: number; size: number }[] = [];
  try {
    for (
      let info = driver.cuFuncGetParamInfo(handle, 0);
      info !== undefined;
      info = driver.cuFuncGetParamInfo(handle, params.length)
    ) {
      params.push(info);
    }
    return params;
  } catch (error) {
    if (error instanceof MissingSymbolError) return undefined;
    throw error;
  }
}
