/**
 * Copies between devices through the host: for devices that cannot reach each other's memory, a GPU and a CPU device
 * among them.
 *
 * Ordered on both sides: the read is queued on the source's stream now, and the target's stream is held until the bytes
 * have come.
 */
import type { DeviceBuffer } from './buffer.js';
import type { DTypeName } from './dtype.js';
import { encoderFor } from './host-codec.js';
import type { Pending } from './pending.js';
import type { Stream } from './stream.js';
import { writeRegionLater } from './transfer.js';

export function copyThroughHost<D extends DTypeName>(stream: Stream, target: DeviceBuffer<D>, source: DeviceBuffer<D>): Pending {
  const bits = source.readBits(source.device.stream).then((words) => encoderFor(source.dtype, words, true, 'source'));
  return writeRegionLater(stream, target.device.staging, target.region(), bits, 'copyFrom');
}
