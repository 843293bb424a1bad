/**
 * What devices there are, found out without opening any of them.
 */
import { enumerateCuda } from '../runtime/providers.js';

/** A device that {@link Device.list} found. */
export interface DeviceInfo {
  /** `cuda` for an NVIDIA GPU, `cpu` for the embedded device. */
  kind: 'cuda' | 'cpu';
  /** What {@link Device.open} takes: `cuda:0`. */
  id: `${'cuda' | 'cpu'}:${number}`;
  /** cuDeviceGetName */
  name: string;
  /** Major and minor. */
  computeCapability: readonly [number, number];
  /** bytes */
  totalMemory: number;
}

/** Every NVIDIA GPU, then the CPU device, which is always there. */
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
