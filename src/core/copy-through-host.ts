/**
 * Copies between devices through the host, for devices that cannot access each other's memory: a
 * GPU and a CPU device.
 *
 * The copy is ordered on both sides. The read is queued on the source's `device.stream` now, and
 * the target's stream is held until the bytes have arrived.
 */
import type { CoreDevice } from './device.js';
import { DTYPES } from '../ground/dtype.js';
import { decoderFor, encoderFor } from './host-codec.js';
import type { Pending } from './pending.js';
import type { Stream } from './stream.js';
import { readRegion, regionBytes, writeRegionLater } from './transfer.js';
import type { Region } from './transfer.js';

/** A region, and its device. */
export interface Place {
  readonly device: CoreDevice;
  region(): Region;
}

export function copyThroughHost(stream: Stream, target: Place, source: Place): Pending {
  const from = source.region();
  const bytes = new Uint8Array(regionBytes(from));
  const decoder = decoderFor(DTYPES.u8, bytes, true, 'source', true);
  const read = readRegion(
    source.device.stream,
    source.device.staging,
    from,
    decoder,
    'copyFrom',
    () => encoderFor(DTYPES.u8, bytes, true, 'source'),
    '',
  );
  return writeRegionLater(stream, target.device.staging, target.region(), read.then(), 'copyFrom');
}
