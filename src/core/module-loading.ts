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
  return moduleOf(device, loaded, options, waitsIn(image));
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
  return moduleOf(device, loaded, options, waitsIn(image));
}

/** Whether PTX has the wait of a dependent grid; undefined for machine code. */
const waitsIn = (image: string | Uint8Array): boolean | undefined =>
  typeof image === 'string' ? image.includes('griddepcontrol.wait') : undefined;

function moduleOf(
  device: CoreDevice,
  { library, kernels, failed, prints }: LoadedModule,
  options: ModuleOptions,
  waits: boolean | undefined,
): Module {
  return new Module(device, library, kernels, failed, { prints: options.prints ?? prints, waits });
}
