/** The properties of a device for `async-cuda info`: one row for each, read from the driver. */
import { CUdevice_attribute } from '../driver/attributes.js';
import type { CUdevice, Driver } from '../driver/driver.js';
import { messageOf } from '../ground/other-realms.js';

export interface DeviceInfo {
  /** The name for Device.open(): `cuda:0`, `cpu:0`. */
  id: string;
  name: string;
  /** The text of each property, or the driver's error. */
  properties: Record<string, string>;
}

type Row = (driver: Driver, device: CUdevice) => string;
type AttributeName = keyof typeof CUdevice_attribute;

const attribute = (driver: Driver, device: CUdevice, name: AttributeName): number =>
  driver.cuDeviceGetAttribute(CUdevice_attribute[name], device);

const number =
  (name: AttributeName): Row =>
  (driver, device) =>
    String(attribute(driver, device, name));
const yesNo =
  (name: AttributeName): Row =>
  (driver, device) =>
    attribute(driver, device, name) === 0 ? 'no' : 'yes';
const kibibytes =
  (name: AttributeName): Row =>
  (driver, device) =>
    `${attribute(driver, device, name) / 1024} KiB`;

export const DEVICE_ROWS: Readonly<Record<string, Row>> = {
  'compute capability': (driver, device) =>
    (['MAJOR', 'MINOR'] as const)
      .map((part) => attribute(driver, device, `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_${part}`))
      .join('.'),
  memory: (driver, device) => gibibytes(driver.cuDeviceTotalMem(device)),
  multiprocessors: number('CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT'),
  'shared memory per block': kibibytes('CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK'),
  'shared memory per block, at most': kibibytes(
    'CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN',
  ),
  'L2 cache': kibibytes('CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE'),
  clock: (driver, device) =>
    `${attribute(driver, device, 'CU_DEVICE_ATTRIBUTE_CLOCK_RATE') / 1000} MHz`,
  ECC: yesNo('CU_DEVICE_ATTRIBUTE_ECC_ENABLED'),
  'memory pools': yesNo('CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED'),
  'host registration': yesNo('CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED'),
  'compute mode': (driver, device) => {
    const modes = ['default', 'exclusive', 'prohibited', 'exclusive process'];
    const mode = attribute(driver, device, 'CU_DEVICE_ATTRIBUTE_COMPUTE_MODE');
    return modes[mode] ?? String(mode);
  },
  'PCI bus id': (driver, device) => driver.cuDeviceGetPCIBusId(device),
};

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

export function describeDevices(driver: Driver, kind: 'cuda' | 'cpu'): DeviceInfo[] {
  return Array.from({ length: driver.cuDeviceGetCount() }, (_, ordinal) => {
    const device = driver.cuDeviceGet(ordinal);
    const properties: Record<string, string> = {};
    for (const [name, row] of Object.entries(DEVICE_ROWS)) {
      try {
        properties[name] = row(driver, device);
      } catch (error) {
        // An older driver may not support the attribute. The report contains all others.
        properties[name] = messageOf(error);
      }
    }
    return { id: `${kind}:${ordinal}`, name: driver.cuDeviceGetName(device), properties };
  });
}
