/** Opens a provider and makes its device's primary context current on the calling thread. */
import { availableParallelism } from 'node:os';

import type { CheckReport } from '../../ground/check-report.js';
import type { MemberStart } from '../../driver/cpu/crew/control.js';
import type { Member } from '../../driver/cpu/crew/crew-options.js';
import { openCpu } from '../../driver/cpu/open.js';
import type { Driver } from '../../driver/driver.js';
import { conditionalNodes } from '../conditionals.js';
import type { AskForLargePages } from '../large-pages.js';
import type { EnumeratedDevice, OpenReply, ProviderConfig } from '../messages.js';
import { PINNED_BYTES, SLOTS_BYTES, viewShared } from '../layout.js';
import type { SharedBuffers } from '../layout.js';
import { OPEN_ATTRIBUTES, runProcedure } from '../procedures.js';
import type { DeviceAttributes, PinnedInfo } from '../procedures.js';
import { findMissing, patch, withoutParamInfo } from './fallbacks.js';
import { keepApart } from './keep-apart.js';
import { lacksParamInfo, openGpuDriver } from './open-gpu-driver.js';

/** The functions that a CPU device calls. */
export interface DriverServices {
  print: (text: string) => void;
  /** Is called with the reports of a checked device. */
  report?: (report: CheckReport) => void;
  /** Starts the threads of a crew. Without it the calling thread runs all blocks. */
  start?: (start: MemberStart) => Member;
  askForLargePages?: AskForLargePages;
  /**
   * Is called where V8 may optimise code in the background for this many milliseconds: the process
   * does not end before.
   */
  optimises?: (ms: number) => void;
}

export function openDriver(config: ProviderConfig, services: DriverServices): Driver {
  if (config.provider === 'libcuda') return openGpuDriver(config);
  const driver = openEmbedded(config, services);
  return lacksParamInfo(config) ? withoutParamInfo(driver) : driver;
}

function openEmbedded(
  config: ProviderConfig,
  { print, report, start, askForLargePages, optimises }: DriverServices,
): Driver {
  return openCpu({
    print,
    ...(askForLargePages === undefined ? {} : { askForLargePages }),
    ...(report === undefined ? {} : { report }),
    ...(optimises === undefined ? {} : { optimises }),
    ...(config.memoryBytes === undefined ? {} : { memoryBytes: config.memoryBytes }),
    ...(config.stallLimit === undefined ? {} : { stallLimit: config.stallLimit }),
    ...(config.computeCapability === undefined
      ? {}
      : { computeCapability: config.computeCapability }),
    ...(config.check === undefined ? {} : { check: config.check }),
    ...(config.schedule === undefined ? {} : { schedule: config.schedule }),
    ...(start === undefined
      ? {}
      : {
          crew: {
            workers: config.workers ?? availableParallelism(),
            processors: availableParallelism(),
            start,
            eager: config.without?.includes('solo') === true,
            keepApart: keepApart(config.koffiPath),
          },
        }),
  });
}

export interface OpenedDevice {
  /** The driver to use from then on, with replacements for what the platform does not support. */
  driver: Driver;
  reply: OpenReply;
  /** The buffers, with the memory of the slots and staging. */
  buffers: SharedBuffers;
}

interface PinnedSlots extends PinnedInfo {
  buffer: ArrayBufferLike;
  registered: boolean;
}

/** The flags CU_MEMHOSTALLOC_PORTABLE and CU_MEMHOSTALLOC_DEVICEMAP. */
const PORTABLE_AND_MAPPED = 3;

/**
 * Page-locks the memory that the threads share with the device. Where the platform registers no
 * host memory, the driver allocates it: every thread then has a view of its own, which on a GPU is
 * an ArrayBuffer for JavaScript.
 */
function pinSlots(driver: Driver, config: ProviderConfig, buffers: SharedBuffers): PinnedSlots {
  let refused: unknown;
  if (config.without?.includes('registration') !== true) {
    try {
      const pinned = runProcedure(driver, 'registerPinned', [
        buffers.pinned,
        PINNED_BYTES,
      ]) as PinnedInfo;
      return { ...pinned, buffer: buffers.pinned, registered: true };
    } catch (error) {
      refused = error;
    }
  }
  let address: number;
  try {
    address = config.hostMemory ?? driver.cuMemHostAlloc(PINNED_BYTES, PORTABLE_AND_MAPPED);
  } catch (error) {
    throw refused ?? error;
  }
  const { buffer, byteOffset } = driver.hostView(address, PINNED_BYTES);
  new Uint8Array(buffer, byteOffset, SLOTS_BYTES).fill(0);
  return {
    address,
    deviceAddress: driver.cuMemHostGetDevicePointer(address, 0),
    byteOffset,
    buffer,
    registered: false,
  };
}

/**
 * Retains the primary context, page-locks the slots and the staging area, and determines the
 * device's properties and missing features.
 */
export function openDevice(
  driver: Driver,
  config: ProviderConfig,
  buffers: SharedBuffers,
): OpenedDevice {
  driver.cuInit(0);
  // Every CPU device is a provider instance of its own, with one device in it.
  const device = driver.cuDeviceGet(config.provider === 'cpu' ? 0 : config.ordinal);
  const context = driver.cuDevicePrimaryCtxRetain(device);
  driver.cuCtxSetCurrent(context);
  const pinned = pinSlots(driver, config, buffers);
  const slotsAddress = pinned.deviceAddress;
  const attributes = {} as DeviceAttributes;
  for (const [name, attribute] of Object.entries(OPEN_ATTRIBUTES)) {
    attributes[name as keyof DeviceAttributes] = attributeOrZero(driver, attribute, device);
  }
  try {
    runProcedure(driver, 'keepPool', [device]);
  } catch {
    // There are no pools: plain allocation replaces them.
  }
  const own: SharedBuffers = { ...buffers, pinned: pinned.buffer, pinnedOffset: pinned.byteOffset };
  const { slots } = viewShared(own);
  const missing = findMissing(
    driver,
    config.without ?? [],
    slotsAddress,
    slots,
    attributes.memoryPools,
  );
  const reply: OpenReply = {
    name: driver.cuDeviceGetName(device),
    uuid: driver.cuDeviceGetUuid(device),
    pciBusId: driver.cuDeviceGetPCIBusId(device),
    totalMemory: driver.cuDeviceTotalMem(device),
    driverVersion: driver.cuDriverGetVersion(),
    conditionalNodes: conditionalNodes(driver, config.without ?? []),
    attributes,
    device,
    context,
    slotsAddress,
    stagingAddress: pinned.address + SLOTS_BYTES,
    pinnedOffset: pinned.byteOffset,
    registered: pinned.registered,
    hostMemory: pinned.registered || driver.provider === 'libcuda' ? undefined : pinned.buffer,
    ...driver.cuCtxGetStreamPriorityRange(),
    patched: missing.memops || missing.pools,
    memoryOperations: !missing.memops,
    pools: !missing.pools,
  };
  return { driver: patch(driver, missing, slotsAddress, slots), reply, buffers: own };
}

/** Lists the devices that a provider shows. */
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

/**
 * Returns an attribute. One that this driver does not have reads as zero: the device lacks the
 * feature.
 */
function attributeOrZero(driver: Driver, attribute: number, device: number): number {
  try {
    return driver.cuDeviceGetAttribute(attribute, device);
  } catch {
    return 0;
  }
}
