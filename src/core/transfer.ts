/**
 * Copies between plain host arrays and device memory, through staging.
 *
 * A small copy is made at the call. A large one holds its stream, goes through staging slice by
 * slice (each short enough for the event loop), and then lets the stream go on. So the order of the
 * calls is the order on the device.
 */
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WHOLE,
  ACCESS_WRITE,
  COPY_DEVICE_TO_HOST,
  COPY_FROM_ARRAY,
  COPY_HOST_TO_DEVICE,
  COPY_TO_ARRAY,
  OP,
} from '../runtime/commands.js';
import type { CompletionSlot } from '../runtime/completion.js';
import { CudaError } from '../ground/errors.js';
import { STAGING_SEGMENTS, STAGING_SEGMENT_BYTES, WORD } from '../runtime/layout.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { Runtime } from '../runtime/runtime.js';
import { ownCopy } from './host-codec.js';
import type { Decoder, Encoder } from './host-codec.js';
import { Pending, pendingOf } from './pending.js';
import type { Resource } from './resource.js';
import type { Segment, Staging } from './staging.js';
import type { Stream } from './stream.js';

/**
 * Up to this size a write is copied at the call: 16 KiB take less than 2 µs. A read that takes no
 * longer than copying this many bytes is taken out of staging at once. Some hundred reads with
 * conversion that end together would block the event loop.
 */
const SMALL_BYTES = 1 << 16;
/**
 * Up to this size a write is copied at the call too, where this turn of the event loop has not
 * copied much. It is copied part by part: the device copies the first part while JavaScript copies
 * the second.
 */
const MEDIUM_BYTES = STAGING_SEGMENT_BYTES;
const MEDIUM_PART_BYTES = MEDIUM_BYTES / 4;
/**
 * Slices that JavaScript converts element by element are an eighth of a segment, because conversion
 * takes longer.
 */
const CONVERTED_BYTES = STAGING_SEGMENT_BYTES / 8;

/**
 * Segments of one transfer that are in use at a time. Work on a stream may take for ever, and the
 * transfers after it must leave segments to those of other streams.
 */
const SEGMENTS_UNDERWAY = STAGING_SEGMENTS / 4;

/**
 * A part of device memory, as slices of rows of equal length. One-dimensional memory is a single
 * row.
 */
export interface Region {
  readonly resource: Resource;
  /** Byte offset of the first row. */
  readonly offset: number;
  /** Bytes of one row. */
  readonly line: number;
  readonly rows: number;
  /** Bytes from one row to the next. */
  readonly pitch: number;
  /** Slices of {@link rows} rows each, and bytes from one to the next. Default: one slice. */
  readonly depth?: number;
  readonly slicePitch?: number;
  /** Whether the region is the whole resource. */
  readonly whole: boolean;
  /**
   * Whether the resource is an array, which is addressed by coordinates. Offsets are those of a
   * dense array.
   */
  readonly array?: boolean;
}

interface Slice {
  /** Byte offset in the dense host representation. */
  host: number;
  /** Byte offset in device memory. */
  device: number;
  line: number;
  rows: number;
  depth: number;
}

/** Bytes of a region, without the gaps between its rows and slices. */
export function regionBytes({ line, rows, depth = 1 }: Region): number {
  return line * rows * depth;
}

/** Cuts a region into slices of at most `limit` bytes. */
export function* slices(region: Region, limit = STAGING_SEGMENT_BYTES): Generator<Slice> {
  const { line, rows, offset, depth = 1, slicePitch = 0 } = region;
  const plane = line * rows;
  if (plane === 0) return;
  if (depth > 1 && plane <= limit) {
    const step = Math.floor(limit / plane);
    for (let z = 0; z < depth; z += step) {
      yield {
        host: z * plane,
        device: offset + z * slicePitch,
        line,
        rows,
        depth: Math.min(step, depth - z),
      };
    }
    return;
  }
  for (let z = 0; z < depth; z++) yield* rowsOf(region, offset + z * slicePitch, z * plane, limit);
}

/** The single slice of a region that need not be cut. */
function wholeOf({ line, rows, offset, depth = 1 }: Region): Slice {
  return { host: 0, device: offset, line, rows, depth };
}

/**
 * Cuts one slice of a region, which begins at `offset` on the device and at `host` in the host's
 * representation.
 */
function* rowsOf(
  { line, rows, pitch }: Region,
  offset: number,
  host: number,
  limit: number,
): Generator<Slice> {
  if (line > limit) {
    for (let row = 0; row < rows; row++) {
      for (let at = 0; at < line; at += limit) {
        const bytes = Math.min(limit, line - at);
        yield {
          host: host + row * line + at,
          device: offset + row * pitch + at,
          line: bytes,
          rows: 1,
          depth: 1,
        };
      }
    }
    return;
  }
  const step = Math.max(1, Math.floor(limit / line));
  for (let row = 0; row < rows; row += step) {
    yield {
      host: host + row * line,
      device: offset + row * pitch,
      line,
      rows: Math.min(step, rows - row),
      depth: 1,
    };
  }
}

/** Writes one copy between staging and device memory into the ring. */
export function putCopy(
  stream: Stream,
  root: number,
  bypass: boolean,
  toDevice: boolean,
  access: number,
  region: Region,
  slice: Slice,
  staging: Staging,
  stagingOffset: number,
): void {
  const { ring } = stream.runtime;
  const device = region.resource.handle | (access << ACCESS_SHIFT);
  if (slice.depth > 1 || region.array === true) {
    const body = bypass
      ? stream.beginBypass(OP.copy3D, 18, root)
      : stream.begin(OP.copy3D, 18, root);
    const dense = {
      handle: staging.handle,
      offset: stagingOffset,
      pitch: slice.line,
      rows: slice.rows,
    };
    const there = {
      handle: device,
      offset: slice.device,
      pitch: region.pitch,
      rows: region.slicePitch! / region.pitch,
    };
    let kind = toDevice ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST;
    if (region.array === true) kind |= toDevice ? COPY_TO_ARRAY : COPY_FROM_ARRAY;
    putBox(
      ring.memory,
      body,
      toDevice ? there : dense,
      toDevice ? dense : there,
      slice.line,
      slice.rows,
      slice.depth,
      kind,
    );
  } else if (slice.rows === 1) {
    const body = bypass ? stream.beginBypass(OP.copy, 13, root) : stream.begin(OP.copy, 13, root);
    const { memory } = ring;
    memory[body] = toDevice ? device : staging.handle;
    putInt64(memory, body + 1, toDevice ? slice.device : stagingOffset);
    memory[body + 3] = toDevice ? staging.handle : device;
    putInt64(memory, body + 4, toDevice ? stagingOffset : slice.device);
    putInt64(memory, body + 6, slice.line);
    memory[body + 8] = toDevice ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST;
  } else {
    const body = bypass
      ? stream.beginBypass(OP.copy2D, 15, root)
      : stream.begin(OP.copy2D, 15, root);
    const { memory } = ring;
    memory[body] = toDevice ? device : staging.handle;
    putInt64(memory, body + 1, toDevice ? slice.device : stagingOffset);
    memory[body + 3] = toDevice ? region.pitch : slice.line;
    memory[body + 4] = toDevice ? staging.handle : device;
    putInt64(memory, body + 5, toDevice ? stagingOffset : slice.device);
    memory[body + 7] = toDevice ? slice.line : region.pitch;
    memory[body + 8] = slice.line;
    memory[body + 9] = slice.rows;
    memory[body + 10] = toDevice ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_HOST;
  }
}

/** One end of a 3-D copy: bytes, and rows from one slice to the next. */
export interface BoxEnd {
  /** The handle with its access. */
  readonly handle: number;
  readonly offset: number;
  readonly pitch: number;
  readonly rows: number;
}

/** Writes the 14 words of {@link OP.copy3D}. `width` is in bytes. */
export function putBox(
  memory: Int32Array,
  body: number,
  to: BoxEnd,
  from: BoxEnd,
  width: number,
  height: number,
  depth: number,
  kind: number,
): void {
  memory[body] = to.handle;
  putInt64(memory, body + 1, to.offset);
  memory[body + 3] = to.pitch;
  memory[body + 4] = to.rows;
  memory[body + 5] = from.handle;
  putInt64(memory, body + 6, from.offset);
  memory[body + 8] = from.pitch;
  memory[body + 9] = from.rows;
  memory[body + 10] = width;
  memory[body + 11] = height;
  memory[body + 12] = depth;
  memory[body + 13] = kind;
}

/** Queues the copy of a host array to a region of `what`. */
export function writeRegion(
  stream: Stream,
  staging: Staging,
  region: Region,
  source: Encoder,
  what: string,
): Pending {
  stream.checkNotCaptured(
    `${what}.write`,
    'write before the capture, or copy from a PinnedBuffer, which the graph reads at each launch',
  );
  const { runtime } = stream;
  const bytes = regionBytes(region);
  const access = ACCESS_WRITE | (region.whole ? ACCESS_WHOLE : 0);
  const root = runtime.nextRoot();
  runtime.name(root, what, '.write');
  if (bytes === 0) return new Pending(stream, root, stream.mark);
  stream.order(region.resource, ACCESS_WRITE);
  const place = mayCopyNow(staging, bytes, source.cost) ? staging.place(bytes) : undefined;
  if (place !== undefined) {
    if (bytes > SMALL_BYTES) {
      staging.turns.spend(bytes * source.cost);
      staging.crew?.start(bytes);
    }
    let mark = stream.mark;
    for (const slice of slices(region, MEDIUM_PART_BYTES)) {
      const at = place.offset + slice.host;
      staging.encode(source, slice.host, slice.line * slice.rows * slice.depth, at);
      // An earlier failure is cleared by writing the whole region, so the first slice alone has
      // that access.
      putCopy(
        stream,
        root,
        false,
        true,
        slice.host === 0 ? access : ACCESS_WRITE,
        region,
        slice,
        staging,
        at,
      );
      mark = stream.commit();
      if (bytes > MEDIUM_PART_BYTES) runtime.hurry();
    }
    place.segment.uses.set(stream, mark);
    stream.used(region.resource, ACCESS_WRITE, mark);
    return new Pending(stream, root, mark);
  }
  // The program may change a small source when this returns, so it is copied, also where staging
  // has no room.
  return pumpAfterHold(
    stream,
    staging,
    region,
    bytes <= SMALL_BYTES ? ownCopy(source) : source,
    root,
    access,
  );
}

/** Whether a copy may be made at the call, or at once when its turn comes. */
function mayCopyNow(staging: Staging, bytes: number, cost: number): boolean {
  return bytes <= SMALL_BYTES || (bytes <= MEDIUM_BYTES && cost === 1 && staging.turns.fits(bytes));
}

/** Like {@link writeRegion}, for bytes that arrive later: the stream is held until they have. */
export function writeRegionLater(
  stream: Stream,
  staging: Staging,
  region: Region,
  source: Promise<Encoder>,
  label: string,
): Pending {
  stream.checkNotCaptured(label, 'copy before the capture');
  const root = stream.runtime.nextRoot();
  stream.runtime.name(root, label);
  stream.order(region.resource, ACCESS_WRITE);
  return pumpAfterHold(
    stream,
    staging,
    region,
    source,
    root,
    ACCESS_WRITE | (region.whole ? ACCESS_WHOLE : 0),
  );
}

function pumpAfterHold(
  stream: Stream,
  staging: Staging,
  region: Region,
  source: Encoder | Promise<Encoder>,
  root: number,
  access: number,
): Pending {
  const { runtime } = stream;
  const slot = stream.transferSlot;
  const release = runtime.nextHold(slot);
  const memory = [region.resource.handle];
  const mark = stream.hold(slot, release, {
    kind: 'copy',
    operation: root,
    memory,
    bytes: regionBytes(region),
    direction: 'hostToDevice',
  });
  stream.used(region.resource, ACCESS_WRITE, mark);
  return pendingOf(stream, pumpIn(stream, staging, region, source, root, access, slot, release));
}

async function pumpIn(
  stream: Stream,
  staging: Staging,
  region: Region,
  origin: Encoder | Promise<Encoder>,
  root: number,
  access: number,
  slot: CompletionSlot,
  release: number,
): Promise<void> {
  const { runtime } = stream;
  const underway: Promise<void>[] = [];
  runtime.expect(root);
  staging.crew?.start(regionBytes(region));
  if (origin instanceof Promise) origin.catch(ignore);
  try {
    await runtime.reached(slot, release);
    const source = origin instanceof Promise ? await origin : origin;
    for (const slice of slices(region, source.cost > 1 ? CONVERTED_BYTES : STAGING_SEGMENT_BYTES)) {
      const bytes = slice.line * slice.rows * slice.depth;
      if (underway.length >= SEGMENTS_UNDERWAY) await underway[underway.length - SEGMENTS_UNDERWAY];
      const acquired = staging.acquire();
      const segment = acquired instanceof Promise ? await acquired : acquired;
      try {
        await inTurns(staging, bytes, source.cost, (from, part) => {
          if (runtime.lost !== undefined) throw runtime.lost;
          staging.encode(source, slice.host + from, part, segment.offset + from);
        });
      } catch (error) {
        staging.release(segment);
        throw error;
      }
      // An earlier failure is cleared by writing the whole region, so the first slice alone has
      // that access.
      putCopy(
        stream,
        root,
        true,
        true,
        slice.host === 0 ? access : ACCESS_WRITE,
        region,
        slice,
        staging,
        segment.offset,
      );
      runtime.ring.commit();
      const returned = returnSegment(runtime, stream, staging, segment, slot);
      returned.catch(ignore);
      underway.push(returned);
    }
    await underway[underway.length - 1];
    const failure = runtime.failureOf(root);
    if (failure !== undefined) throw failure;
  } catch (error) {
    runtime.failureOf(root);
    if (runtime.lost === undefined) poison(stream, region, error);
    throw error;
  } finally {
    runtime.release(slot, release);
  }
}

/**
 * Copies part by part, each in a turn of the event loop that has room for it. A slice that is
 * converted is one part.
 */
async function inTurns(
  staging: Staging,
  bytes: number,
  cost: number,
  copy: (from: number, bytes: number) => void,
): Promise<void> {
  for (let from = 0; from < bytes;) {
    const part = cost === 1 ? staging.turns.part(bytes - from) : bytes;
    const turn = staging.turns.take(part * cost);
    if (turn !== undefined) await turn;
    copy(from, part);
    from += part;
  }
}

function ignore(): void {
  // The transfer rejects with the same error through its last slice.
}

/** The contents did not arrive: marks the memory as undefined, with the error. */
function poison(stream: Stream, region: Region, error: unknown): void {
  const { runtime } = stream;
  const id = Atomics.add(runtime.shared.control, WORD.failures, 1) + 1;
  runtime.rememberFailure(
    id,
    error instanceof CudaError
      ? error
      : new CudaError('ERR_CUDA_INTERNAL', String(error), { cause: error }),
  );
  const body = stream.beginBypass(OP.poison, 6, 0);
  const { memory } = runtime.ring;
  memory[body] = region.resource.handle;
  memory[body + 1] = id;
  runtime.ring.commit();
}

async function returnSegment(
  runtime: Runtime,
  stream: Stream,
  staging: Staging,
  segment: Segment,
  slot: CompletionSlot,
): Promise<void> {
  const seq = runtime.fence(slot, stream.slot.index, 1);
  await runtime.completion.wait(slot, seq, stream.slot.index);
  staging.release(segment);
}

/** Queues the copy of a region of `what` to a host array; `finish` returns the value at the end. */
export function readRegion<T>(
  stream: Stream,
  staging: Staging,
  region: Region,
  target: Decoder,
  what: string,
  finish: () => T,
  method = '.read',
): Pending<T> {
  stream.checkNotCaptured(
    `${what}${method}`,
    'read after the launch, or copy to a PinnedBuffer, which the graph writes at each launch',
  );
  const { runtime } = stream;
  const { reads } = stream.device;
  const bytes = regionBytes(region);
  const root = runtime.nextRoot();
  runtime.name(root, what, method);
  if (bytes === 0) return new Pending(stream, root, stream.mark, finish);
  stream.order(region.resource, ACCESS_READ);
  const place =
    bytes <= SMALL_BYTES || (bytes <= MEDIUM_BYTES && target.cost === 1)
      ? staging.place(bytes)
      : undefined;
  if (place !== undefined) {
    putCopy(
      stream,
      root,
      false,
      false,
      ACCESS_READ,
      region,
      wholeOf(region),
      staging,
      place.offset,
    );
    const mark = stream.commit();
    const { segment } = place;
    runtime.expect(root);
    segment.uses.set(stream, mark);
    segment.readers++;
    reads.begin();
    stream.used(region.resource, ACCESS_READ, mark);
    const end = (): void => {
      segment.readers--;
      reads.end();
    };
    const take = (): T => {
      const failure = runtime.failureOf(root);
      try {
        if (failure !== undefined) throw failure;
        staging.decode(target, 0, bytes, place.offset);
      } finally {
        end();
      }
      return finish();
    };
    const lost = (error: unknown): never => {
      end();
      throw error;
    };
    const passed = stream.passedLater(mark);
    const cost = bytes * target.cost;
    const copied =
      cost <= SMALL_BYTES
        ? passed.then(take, lost)
        : passed.then(() => {
            const turn = staging.turns.take(cost);
            return turn === undefined ? take() : turn.then(take);
          }, lost);
    return pendingOf(stream, copied, mark);
  }
  const slot = stream.transferSlot;
  const release = runtime.nextHold(slot);
  const mark = stream.hold(slot, release, {
    kind: 'copy',
    operation: root,
    memory: [region.resource.handle],
    bytes,
    direction: 'deviceToHost',
  });
  stream.used(region.resource, ACCESS_READ, mark);
  return pendingOf(
    stream,
    pumpOut(stream, staging, region, target, root, slot, release).then(finish),
  );
}

async function pumpOut(
  stream: Stream,
  staging: Staging,
  region: Region,
  target: Decoder,
  root: number,
  slot: CompletionSlot,
  release: number,
): Promise<void> {
  const { runtime } = stream;
  const { reads } = stream.device;
  const copies: Promise<void>[] = [];
  let released = false;
  reads.begin();
  runtime.expect(root);
  staging.crew?.start(regionBytes(region));
  try {
    await runtime.reached(slot, release);
    for (const slice of slices(region, target.cost > 1 ? CONVERTED_BYTES : STAGING_SEGMENT_BYTES)) {
      if (copies.length >= SEGMENTS_UNDERWAY) await copies[copies.length - SEGMENTS_UNDERWAY];
      const acquired = staging.acquire();
      const segment = acquired instanceof Promise ? await acquired : acquired;
      if (runtime.lost !== undefined) throw runtime.lost;
      putCopy(stream, root, true, false, ACCESS_READ, region, slice, staging, segment.offset);
      runtime.ring.commit();
      const seq = runtime.fence(slot, stream.slot.index, 1);
      const copy = takeOut(runtime, stream, staging, segment, slot, seq, slice, target, root);
      copy.catch(ignore);
      copies.push(copy);
    }
    // The stream may go on as soon as the last copy is queued. JavaScript takes the bytes out of
    // staging later.
    runtime.release(slot, release);
    released = true;
    await Promise.all(copies);
  } finally {
    if (!released) runtime.release(slot, release);
    await Promise.allSettled(copies);
    reads.end();
    runtime.failureOf(root);
  }
}

async function takeOut(
  runtime: Runtime,
  stream: Stream,
  staging: Staging,
  segment: Segment,
  slot: CompletionSlot,
  seq: number,
  slice: Slice,
  target: Decoder,
  root: number,
): Promise<void> {
  await runtime.completion.wait(slot, seq, stream.slot.index);
  try {
    const failure = runtime.failureOf(root, true);
    if (failure !== undefined) throw failure;
    const bytes = slice.line * slice.rows * slice.depth;
    const exclusive = staging.copyOut === undefined ? undefined : target.exclusive();
    if (exclusive !== undefined && staging.copyOut !== undefined) {
      const address = runtime.info.stagingAddress + segment.offset;
      await staging.copyOut(exclusive.subarray(slice.host, slice.host + bytes), address, bytes);
      return;
    }
    await inTurns(staging, bytes, target.cost, (from, part) =>
      staging.decode(target, slice.host + from, part, segment.offset + from),
    );
  } finally {
    staging.release(segment);
  }
}
