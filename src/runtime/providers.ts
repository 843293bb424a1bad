/**
 * The data that a thread needs to open a provider. The JavaScript thread determines it, because a
 * worker made from text cannot resolve packages.
 */
import { findLibrary } from '../native/find.js';
import { koffiPath } from '../native/koffi.js';
import { LIBCUDA } from '../native/libraries.js';
import { CudaError } from '../ground/errors.js';
import { errorFromFailure } from './error-of-failure.js';
import type { EnumeratedDevice, ProviderConfig } from './messages.js';
import { ThreadWorker } from './workers.js';

/**
 * A counter shared by every thread that launches or unloads: the driver may reuse function handles.
 */
const unloads = new SharedArrayBuffer(4);

export function cudaConfig(ordinal: number): ProviderConfig {
  return { provider: 'libcuda', ordinal, koffiPath: koffiPath(), unloads };
}

/**
 * Undefined where the NVIDIA driver's library seems to be installed; else every path that was
 * tried. It loads no library.
 */
export function missingDriver(): readonly { path: string; reason: string }[] | undefined {
  const found = findLibrary(LIBCUDA);
  return 'path' in found ? undefined : found.tried;
}

/**
 * Lists the GPUs that the driver shows; none where there is no driver. It runs on a short-lived
 * thread, because cuInit takes long.
 */
export function enumerateCuda(): Promise<EnumeratedDevice[]> {
  if (missingDriver() !== undefined) return Promise.resolve([]);
  return new Promise((resolve, reject) => {
    const worker = new ThreadWorker(
      { role: 'enumerate', config: cudaConfig(0) },
      (message) => {
        if (message.kind === 'enumerated') resolve(message.devices);
        else if (message.kind === 'open-failed') {
          const error = errorFromFailure(message.error, 'Device.list');
          if (error.code === 'ERR_CUDA_NO_DEVICE' || error.code === 'ERR_CUDA_NO_DRIVER')
            resolve([]);
          else reject(error);
        } else return;
        worker.unref();
        void worker.end();
      },
      (reason) =>
        reject(
          new CudaError('ERR_CUDA_INTERNAL', `Device.list: ${reason.message}`, { cause: reason }),
        ),
    );
    worker.ref();
  });
}
