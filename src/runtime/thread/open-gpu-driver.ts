/**
 * Opens libcuda. It is apart from `open-driver.ts`, because the JavaScript thread calls the driver,
 * too, and does not use the CPU device.
 */
import type { Driver } from '../../driver/driver.js';
import { openLibcuda } from '../../driver/libcuda/open.js';
import type { ProviderConfig } from '../messages.js';
import { withoutParamInfo } from './fallbacks.js';

/**
 * Whether to use the driver like one that does not return the places of a kernel's parameters
 * (before 12.4).
 */
export function lacksParamInfo({ without }: ProviderConfig): boolean {
  return without?.includes('paraminfo') === true;
}

export function openGpuDriver(config: ProviderConfig): Driver {
  const older = lacksParamInfo(config);
  const driver = openLibcuda({
    ...(older ? { launchParams: 'buffer' } : {}),
    ...(config.libraryPath === undefined ? {} : { path: config.libraryPath }),
    ...(config.koffiPath === undefined ? {} : { koffiPath: config.koffiPath }),
    ...(config.unloads === undefined ? {} : { unloads: config.unloads }),
  });
  return older ? withoutParamInfo(driver) : driver;
}
