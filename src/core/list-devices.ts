/** The list of the devices of the machine, made without opening them. */
import { enumerateCuda } from '../runtime/providers.js';

/** A device in the list of `CoreDevice.list`. */
export interface DeviceInfo {
  /** `cuda` for an NVIDIA GPU, `cpu` for the embedded device. */
  kind: 'cuda' | 'cpu';
  /** The name for `CoreDevice.open`: `cuda:0`. */
  id: `${'cuda' | 'cpu'}:${number}`;
  /** cuDeviceGetName */
  name: string;
  /** Major and minor. */
  computeCapability: readonly [number, number];
  /** Bytes of the device's memory. */
  totalMemory: number;
}

/** Lists the NVIDIA GPUs, then the CPU device, which always exists. */
export async function listDevices(): Promise<DeviceInfo[]> {
  const gpus = await enumerateCuda();
  return [
    ...gpus.map((gpu, ordinal): DeviceInfo => ({ kind: 'cuda', id: `cuda:${ordinal}`, ...gpu })),
    {
      kind: 'cpu',
      id: 'cpu:0',
      name: 'async-cuda CPU device',
      computeCapability: [8, 0],
      totalMemory: 4294901760,
    },
  ];
}
