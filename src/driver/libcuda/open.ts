/**
 * The `libcuda` provider: the interface of `driver.ts` on the machine's own NVIDIA driver.
 *
 * Each thread opens its own; they share the process's one driver. Opening loads koffi and libcuda
 * and makes no driver call.
 */
import { loadKoffi } from '../../native/koffi.js';
import { LIBCUDA } from '../../native/libraries.js';
import { NativeMemory, SCRATCH_SIZE } from '../../native/native-memory.js';
import { openLibrary } from '../../native/open-library.js';
import type { Driver } from '../driver.js';
import type { Binding } from './binding.js';
import { CALLS } from './calls.js';
import { codeCalls } from './code-calls.js';
import { copyCalls } from './copy-calls.js';
import { deviceCalls } from './device-calls.js';
import { bindCalls, versionText } from './driver-call.js';
import { graphCalls } from './graph-calls.js';
import { launchBatch } from './launch-batch.js';
import { launchCalls } from './launch-calls.js';
import type { LaunchOptions } from './launch-calls.js';
import { memoryCalls } from './memory-calls.js';
import { pointerCalls } from './node-ffi.js';
import { poolCalls } from './pool-calls.js';
import { streamCalls } from './stream-calls.js';
import { tensorMapCalls } from './tensor-map-calls.js';
import { textureCalls } from './texture-calls.js';

export { koffiPath } from '../../native/koffi.js';
export type { LaunchOptions } from './launch-calls.js';

export interface LibcudaOptions extends LaunchOptions {
  /**
   * The library's file; no other path is tried. `ASYNC_CUDA_LIBCUDA` does the same for a whole
   * process.
   */
  path?: string;
  /** koffi's file, from {@link koffiPath} on a thread that can resolve packages. */
  koffiPath?: string;
  /**
   * Whether launches may go through `node:ffi` where Node has it; otherwise through koffi. Default:
   * true.
   */
  nodeFfi?: boolean;
  /**
   * Four bytes that all threads' providers share. They are required when one thread unloads what
   * another launches: each provider caches the places of a function's parameters, and the driver
   * may reuse function handles once a module was unloaded.
   */
  unloads?: SharedArrayBuffer;
}

/**
 * Loads the NVIDIA driver's library. It makes no driver call; call `cuInit` first.
 *
 * @throws {LibraryNotFoundError} with every path tried, where there is no driver or no koffi
 *
 * @example
 * ```ts no-run
 * const driver = openLibcuda();
 * driver.cuInit(0);
 * console.log(driver.cuDeviceGetCount()); // 1
 * console.log(driver.cuDeviceGetName(driver.cuDeviceGet(0))); // NVIDIA H200
 * ```
 */
export function openLibcuda(options: LibcudaOptions = {}): Driver {
  const koffi = loadKoffi(options.koffiPath);
  const { library, path } = openLibrary(koffi, LIBCUDA, { path: options.path });
  const scratch = new NativeMemory(koffi, SCRATCH_SIZE);
  const calls = bindCalls(library, () => {
    const r = calls.cuDriverGetVersion.run(scratch.address);
    return r === 0 ? versionText(scratch.i32[0]!) : 'an unknown version';
  });
  const unloads = new Int32Array(options.unloads ?? new SharedArrayBuffer(4), 0, 1);
  const binding: Binding = {
    koffi,
    calls,
    scratch,
    unloads,
    pointerCalls:
      (options.nodeFfi === false ? undefined : pointerCalls(path, scratch, CALLS)) ?? {},
  };
  return {
    provider: 'libcuda',
    ...deviceCalls(binding),
    ...streamCalls(binding),
    ...memoryCalls(binding),
    ...poolCalls(binding),
    ...copyCalls(binding),
    ...textureCalls(binding),
    ...tensorMapCalls(binding),
    ...codeCalls(binding),
    ...launchCalls(binding, options),
    ...graphCalls(binding),
    ...(options.launchParams === 'buffer' || options.launchVia === 'cuLaunchKernel'
      ? {}
      : { launchBatch: () => launchBatch(binding) }),
  };
}
