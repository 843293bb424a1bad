/**
 * Opens a provider and makes its device's primary context current on the calling thread.
 */
import { openCpu } from '../../driver/cpu/open.js';
import type { Driver } from '../../driver/driver.js';
import { openLibcuda } from '../../driver/libcuda/open.js';
import type { EnumeratedDevice, OpenReply, ProviderConfig } from '../messages.js';
import { PINNED_BYTES, SLOTS_BYTES, viewShared } from '../layout.js';
import type { SharedBuffers } from '../layout.js';
import { OPEN_ATTRIBUTES, runProcedure } from '../procedures.js';
import type { DeviceAttributes, PinnedInfo } from '../procedures.js';
import { findMissing, mend } from './fallbacks.js';

export function openDriver(config: ProviderConfig, print: (text: string) => void): Driver {
  if (config.provider === 'cpu') {
    return openCpu({ print, ...(config.memoryBytes === undefined ? {} : { memoryBytes: config.memoryBytes }) });
  }
  return openLibcuda({
    ...(config.libraryPath === undefined ? {} : { path: config.libraryPath }),
    ...(config.koffiPath === undefined ? {} : { koffiPath: config.koffiPath }),
    ...(config.unloads === undefined ? {} : { unloads: config.unloads }),
  });
}

/** CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
const RELEASE_THRESHOLD = 4;

export interface OpenedDevice {
  /** The driver to go on with: where the platform lacks something, with a way round it. */
  driver: Driver;
  reply: OpenReply;
}

/** Retains the primary context, page-locks the slots and the staging area, and finds out what the device is and lacks. */
export function openDevice(driver: Driver, config: ProviderConfig, buffers: SharedBuffers): OpenedDevice {
  driver.cuInit(0);
  // Every CPU device is a provider instance of its own, with one device in it.
  const device = driver.cuDeviceGet(config.provider === 'cpu' ? 0 : config.ordinal);
  const context = driver.cuDevicePrimaryCtxRetain(device);
  driver.cuCtxSetCurrent(context);
  const pinned = runProcedure(driver, 'registerPinned', [buffers.pinned, PINNED_BYTES]) as PinnedInfo;
  const slotsAddress = pinned.deviceAddress;
  const attributes = {} as DeviceAttributes;
  for (const [name, attribute] of Object.entries(OPEN_ATTRIBUTES)) {
    attributes[name as keyof DeviceAttributes] = attributeOrZero(driver, attribute, device);
  }
  keepPool(driver, device);
  const { slots } = viewShared({ ...buffers, pinnedOffset: pinned.byteOffset });
  const missing = findMissing(driver, slotsAddress, slots, attributes.memoryPools);
  const reply: OpenReply = {
    name: driver.cuDeviceGetName(device),
    uuid: driver.cuDeviceGetUuid(device),
    pciBusId: driver.cuDeviceGetPCIBusId(device),
    totalMemory: driver.cuDeviceTotalMem(device),
    driverVersion: driver.cuDriverGetVersion(),
    attributes,
    device,
    context,
    slotsAddress,
    stagingAddress: pinned.address + SLOTS_BYTES,
    pinnedOffset: pinned.byteOffset,
    ...driver.cuCtxGetStreamPriorityRange(),
    mended: missing.memops || missing.pools,
    memoryOperations: !missing.memops,
    pools: !missing.pools,
  };
  return { driver: mend(driver, missing, slotsAddress, slots), reply };
}

/**
 * Lets the device's own pool keep what is freed. By default it gives everything back whenever a stream is synchronised
 * with, and each allocation then maps memory anew: hundreds of microseconds, in which nothing is launched.
 */
function keepPool(driver: Driver, device: number): void {
  try {
    driver.cuMemPoolSetAttribute(driver.cuDeviceGetDefaultMemPool(device), RELEASE_THRESHOLD, Number.MAX_SAFE_INTEGER);
  } catch {
    // No pools: plain allocation takes their place.
  }
}

/** The devices that a provider shows. */
export function enumerate(driver: Driver): EnumeratedDevice[] {
  driver.cuInit(0);
  return Array.from({ length: driver.cuDeviceGetCount() }, (_, ordinal) => {
    const device = driver.cuDeviceGet(ordinal);
    return {
      name: driver.cuDeviceGetName(device),
      computeCapability: [
        attributeOrZero(driver, OPEN_ATTRIBUTES.computeCapabilityMajor, device),
        attributeOrZero(driver, OPEN_ATTRIBUTES.computeCapabilityMinor, device),
      ],
      totalMemory: driver.cuDeviceTotalMem(device),
    };
  });
}

/** An attribute that this driver does not know reads as zero: the device does not have the feature. */
function attributeOrZero(driver: Driver, attribute: number, device: number): number {
  try {
    return driver.cuDeviceGetAttribute(attribute, device);
  } catch {
    return 0;
  }
}
