/** Devices whose tensor cores multiply all dtypes: by `mma` of warps and by warp groups. */
import { Device } from 'async-cuda';
import { afterAll, beforeAll, beforeEach, describe } from 'vitest';

import { onCpu, testDevice } from '../core/test-device.js';

/** The device of the tests of a block; it is set before they run. */
export interface TensorCoreHost {
  device: Device;
  /** Ten times the compute capability. */
  version: number;
}

/** Declares tests for CPU devices of compute capability 8.9 and 9.0, or for the GPU. */
export function onTensorCores(title: string, body: (host: TensorCoreHost) => void): void {
  const each = onCpu ? (['8.9', '9.0'] as const) : (['of the GPU'] as const);
  describe.each(each)(`${title}%s`, (wanted) => {
    const host = { version: 0 } as TensorCoreHost;
    beforeAll(async () => {
      host.device = await Device.open(
        testDevice,
        wanted === 'of the GPU' ? {} : { computeCapability: wanted },
      );
      const [major, minor] = host.device.properties.computeCapability;
      host.version = major * 10 + minor;
    });
    afterAll(() => host.device.close());
    beforeEach(({ skip }) => {
      if (host.version < 89) skip('SKIPPED: the GPU has no products of all dtypes');
    });
    body(host);
  });
}
