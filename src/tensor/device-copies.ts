/** Copies of tensors to another device. */
import type { CoreDevice, DTypeName, DeviceBuffer } from '../core/index.js';
import { Operation } from '../core/operation.js';
import { poolOf } from '../ops/pools.js';
import type { Run } from '../ops/run.js';
import { policyOf } from '../ops/scheduling.js';

/** Copies a buffer to new memory of another device, on a stream of that device. */
export function copyAcross<D extends DTypeName>(
  run: Run,
  source: DeviceBuffer<D>,
  device: CoreDevice,
): DeviceBuffer<D> {
  const stream = policyOf(device).nextStream();
  const pool = poolOf(device);
  const blocks = run.mode === 'block';
  if (blocks) {
    // This thread can wait for the copy on the other device only where no work on this device is
    // left to wait for.
    source.memory.orderEnd(run.stream);
    run.block();
  }
  const target = run.own(
    device.allocScoped(
      source.dtype,
      source.length,
      pool === undefined ? { stream } : { stream, pool },
    ),
  );
  if (!blocks) run.dependOn(target.copyFrom(stream, source).finished());
  else if (device.kind !== source.device.kind)
    target.writeBlocking(stream, source.readBlocking(run.stream));
  else {
    const operation = new Operation(stream);
    operation.take();
    try {
      target.copyFrom(stream, source);
    } finally {
      operation.letGo();
    }
    operation.block(stream);
  }
  return target;
}
