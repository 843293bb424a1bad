/** A device of compute capability 9.0: the CPU device, or the GPU that the tests run on. */
import { Device } from 'async-cuda';

import { testDevice } from '../../core/test-device.js';

export const hopperOptions = testDevice === 'cpu' ? ({ computeCapability: '9.0' } as const) : {};

/** Undefined where the tests run on a GPU of another generation. */
export async function openHopper(): Promise<Device | undefined> {
  const device = await Device.open(testDevice, hopperOptions);
  if (device.properties.computeCapability.join('.') === '9.0') return device;
  await device.close();
  return undefined;
}
