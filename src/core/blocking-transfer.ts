/** Transfers that block the calling thread. */
import { CudaError } from '../ground/errors.js';
import { ACCESS_READ, ACCESS_WHOLE, ACCESS_WRITE } from '../runtime/commands.js';
import { STAGING_SEGMENT_BYTES } from '../runtime/layout.js';
import type { Decoder, Encoder } from './host-codec.js';
import type { Place, Staging } from './staging.js';
import type { Stream } from './stream.js';
import { putCopy, slices, type Region } from './transfer.js';

/** Bytes that a blocking thread copies at a time. */
const BLOCKING_BYTES = STAGING_SEGMENT_BYTES / 2;

/**
 * Does the same as {@link writeRegion}, on a thread that blocks where staging is full. The source
 * has been copied when it returns.
 */
export function writeRegionBlocking(
  stream: Stream,
  staging: Staging,
  region: Region,
  source: Encoder,
  what: string,
): void {
  const { runtime } = stream;
  const root = runtime.nextRoot();
  runtime.name(root, what, '.write');
  stream.order(region.resource, ACCESS_WRITE);
  const access = ACCESS_WRITE | (region.whole ? ACCESS_WHOLE : 0);
  for (const slice of slices(region, BLOCKING_BYTES)) {
    const bytes = slice.line * slice.rows * slice.depth;
    const { segment, offset } = placeBlocking(stream, staging, bytes);
    staging.encode(source, slice.host, bytes, offset);
    putCopy(
      stream,
      root,
      false,
      true,
      slice.host === 0 ? access : ACCESS_WRITE,
      region,
      slice,
      staging,
      offset,
    );
    const mark = stream.commit();
    segment.uses.set(stream, mark);
    stream.used(region.resource, ACCESS_WRITE, mark);
  }
}

/**
 * Does the same as {@link readRegion}, on a thread that blocks until the copy has ended. Failures
 * are those of the operation that is held.
 */
export function readRegionBlocking(
  stream: Stream,
  staging: Staging,
  region: Region,
  target: Decoder,
  what: string,
): void {
  const { runtime } = stream;
  const root = runtime.nextRoot();
  runtime.name(root, what, '.read');
  stream.order(region.resource, ACCESS_READ);
  for (const slice of slices(region, BLOCKING_BYTES)) {
    const bytes = slice.line * slice.rows * slice.depth;
    const { segment, offset } = placeBlocking(stream, staging, bytes);
    putCopy(stream, root, false, false, ACCESS_READ, region, slice, staging, offset);
    const mark = stream.commit();
    segment.uses.set(stream, mark);
    stream.used(region.resource, ACCESS_READ, mark);
    stream.block(mark);
    staging.decode(target, slice.host, bytes, offset);
  }
}

function placeBlocking(stream: Stream, staging: Staging, bytes: number): Place {
  const place = staging.place(bytes);
  if (place !== undefined) return place;
  // This frees the segments of this stream's own copies. Segments of other copies may need the
  // event loop, which does not run meanwhile.
  stream.block(stream.mark);
  const again = staging.place(bytes);
  if (again !== undefined) return again;
  throw new CudaError(
    'ERR_CUDA_OUT_OF_MEMORY',
    'all staging memory is taken by transfers that are under way, and a thread that blocks ' +
      'cannot let them go on: await them first.',
  );
}
