/** Loading of modules: on the thread for slow calls, or on a thread that blocks. */
import type { KnownOfModule, LoadedModule } from '../runtime/load-module.js';
import type { CoreDevice } from './device.js';
import { Module } from './module.js';
import { shareImage } from './module-image.js';
import { jitOptions } from './module-options.js';
import type { ModuleOptions } from './module-options.js';

/** Loads an image, of whose kernels some facts may be known. cuLibraryLoadData */
export async function load(
  device: CoreDevice,
  image: string | Uint8Array,
  options: ModuleOptions,
  known?: KnownOfModule,
): Promise<Module> {
  const shared = await shareImage(image, device.staging.turns);
  const loaded = await device.runtime.call(
    'loadModule',
    shared,
    jitOptions(options),
    device.properties.sharedMemoryPerBlockOptin,
    known,
  );
  return moduleOf(device, loaded, options);
}

/** Loads PTX or machine code whose kernels' names are known while the calling thread blocks. */
export function loadNow(
  device: CoreDevice,
  image: string | Uint8Array,
  kernels: readonly string[],
  options: ModuleOptions,
): Module {
  const loaded = device.runtime.callBlocking(
    'loadModule',
    image,
    jitOptions(options),
    device.properties.sharedMemoryPerBlockOptin,
    { kernels },
  );
  return moduleOf(device, loaded, options);
}

function moduleOf(device: CoreDevice, loaded: LoadedModule, options: ModuleOptions): Module {
  const { library, kernels, failed, prints } = loaded;
  return new Module(device, library, kernels, failed, options.prints ?? prints);
}
