/**
 * The memory that the JavaScript thread and the runtime thread share: the place and the meaning of
 * each word.
 *
 * There are three SharedArrayBuffers. `control` contains the state words and the handle table,
 * `ring` the commands, and `slots` (page-locked, visible to the GPU) the completion slots and the
 * staging area. Handles are small integers that the JavaScript thread allocates; the table contains
 * the driver's object of each.
 */

/**
 * State words, as indices into `control` seen as an Int32Array. Words that different threads write
 * lie 64 bytes apart.
 */
export const WORD = {
  /**
   * Ring position (in words, increasing, wrapping at 2^32) up to which commands are decoded. The
   * decoder writes it.
   */
  tail: 16,
  /** One of {@link STATE}. */
  state: 32,
  /**
   * 1 while the JavaScript thread naps on this word, within a turn of its event loop. It writes 1;
   * the thread that wakes it writes 0.
   */
  nap: 49,
  /**
   * 1 while the JavaScript thread has stopped reading slots and has to be woken. The JavaScript
   * thread writes it.
   */
  watch: 48,
  /**
   * Incremented for every completion, failure or reply that the JavaScript thread should read. The
   * decoder writes it and notifies.
   */
  wake: 64,
  /** Messages posted to the JavaScript thread so far. The decoder writes it. */
  posted: 65,
  /** Streams that have parked commands, or unprinted text. The decoder writes it. */
  parked: 66,
  /** The driver's result code once the device is lost, {@link CLOSED} once it is closed, else 0. */
  lost: 67,
  /** Failures numbered so far. Both decoders increment it. */
  failures: 68,
  /**
   * 1 while the runtime thread is awake and waits for the JavaScript thread to return the decoder.
   * The decoder writes it.
   */
  shutOut: 69,
  /**
   * 1 while the runtime thread dozes: it polls the doorbell, and waking it takes no time. The
   * thread writes it.
   */
  dozing: 70,
  /** 1 requests that the runtime thread stop; it answers with 2. */
  stop: 80,
  /**
   * Incremented when the JavaScript thread, or one that has released a hold, wakes a sleeping
   * runtime thread, which waits on it.
   */
  doorbell: 96,
  /** One more than the highest slot in use. The JavaScript thread writes it. */
  slotsUsed: 112,
} as const;

export const STATE = {
  /** The runtime thread decodes, or looks for work. */
  running: 0,
  /** The runtime thread sleeps on `doorbell`. */
  sleeping: 1,
  /** The JavaScript thread has taken the decoder from the sleeping runtime thread. */
  inline: 2,
} as const;

export const MAX_HANDLES = 1 << 20;
/** The value of the word `lost` after the end of the runtime; it is no result of the driver. */
export const CLOSED = 998;
/**
 * The entry in the failure table of a handle for an object of another device: its value is the
 * number of that device times {@link MAX_HANDLES}, plus the handle there. Code that treats handles
 * with failures as poisoned checks for this value, too.
 */
export const FOREIGN = -1;
/**
 * As {@link FOREIGN}, for the condition of a conditional node: the decoder has its 64 bits, which
 * are not an address.
 */
export const CONDITION = -2;
/** Streams, and transfers in flight, have one slot each. */
export const MAX_SLOTS = 1024;
/** Slots lie 64 bytes apart so that two streams never share a cache line. */
export const SLOT_WORDS = 16;
/** Word of a slot: the fence value that the device writes. */
export const SLOT_FENCE = 0;
/** Word of a slot: the launch marker that the device writes. */
export const SLOT_MARKER = 1;
/**
 * Word of a slot: the value of the last hold that was released. The decoder writes it, and so do
 * threads that execute the work of a line.
 */
export const SLOT_HOLD = 2;
/** Word of a slot: the fence value that the JavaScript thread waits for. That thread writes it. */
export const SLOT_AWAITED = 3;
/**
 * Word of a slot: the slot of the stream that writes the fence value. The JavaScript thread writes
 * it.
 */
export const SLOT_STREAM = 4;
/** Word of a slot: the value of the hold that its stream has reached. The decoder writes it. */
export const SLOT_REACHED = 5;
/**
 * Word of a slot: how often room was made for an allocation of its stream that found too little
 * memory. The JavaScript thread writes it.
 */
export const SLOT_ROOM = 6;
/**
 * Word of a slot: the number of the stream's last wait for another device that it need not wait for
 * any more.
 */
export const SLOT_CROSSED = 7;

export const RING_WORDS = 1 << 18;

/**
 * Staging for copies from and to plain typed arrays: segments that are allocated and freed as a
 * whole.
 */
export const STAGING_SEGMENT_BYTES = 1 << 20;
export const STAGING_SEGMENTS = 32;

export const PAGE_BYTES = 4096;
const CONTROL_WORDS = 128;
const VALUES_OFFSET = CONTROL_WORDS * 4;
const STATUS_OFFSET = VALUES_OFFSET + MAX_HANDLES * 8;
const FAILURE_OFFSET = STATUS_OFFSET + MAX_HANDLES * 4;
const ISSUED_OFFSET = FAILURE_OFFSET + MAX_HANDLES * 4;
const STREAMS_OFFSET = ISSUED_OFFSET + MAX_SLOTS * 16;
const RING_OFFSET = STREAMS_OFFSET + MAX_SLOTS * 8;
/**
 * The tables and the ring take 17 MiB, of which few pages are ever accessed. glibc's malloc gets an
 * allocation from the system, zero and untouched, where it is larger than a threshold, which
 * increases up to 32 MiB with the sizes that are freed. A smaller one is cleared in malloc's heap,
 * and stays there when it is freed: opening and closing a device 120 times left a process of 1.1 GB
 * resident, most of it free. So the buffer is larger than that.
 */
const CONTROL_BYTES = Math.max(RING_OFFSET + RING_WORDS * 4, (32 << 20) + PAGE_BYTES);

/**
 * A page-locked buffer's page-aligned part must not share a page with anything else, so callers
 * allocate this much more.
 */
export const PINNED_SLACK_BYTES = 2 * PAGE_BYTES;
export const SLOTS_BYTES = MAX_SLOTS * SLOT_WORDS * 4;
/** Slots come first, then staging. */
export const PINNED_BYTES = SLOTS_BYTES + STAGING_SEGMENTS * STAGING_SEGMENT_BYTES;

/** All memory that an open device shares between its threads. */
export const SHARED_BYTES = CONTROL_BYTES + PINNED_BYTES;

/** The state of a handle, in the status table. */
export const HANDLE = {
  free: 0,
  /** The handle is allocated; its command has not been decoded. */
  pending: 1,
  live: 2,
  /** The creation of the object failed; the failure table contains why. */
  failed: 3,
  /** The decoder has destroyed the object; the JavaScript thread may reuse the handle. */
  released: 4,
  /** The record of an event that another device waits for has been issued. */
  announced: 5,
  /** As `announced`, and the device has reached the event. */
  reached: 6,
} as const;

/**
 * Words per stream: launches issued, markers issued, 1 while it is being captured, the failure of
 * its creation or 0.
 */
export const ISSUED_STRIDE = 4;
export const ISSUED_LAUNCHES = 0;
export const ISSUED_MARKERS = 1;
export const ISSUED_CAPTURING = 2;
export const ISSUED_UNMADE = 3;

export interface SharedBuffers {
  /** State words, tables and the ring. */
  control: SharedArrayBuffer;
  /** A SharedArrayBuffer that is page-locked, or a view of the driver's own memory. */
  pinned: ArrayBufferLike;
  /** Where the page-aligned part of `pinned` begins, in bytes. */
  pinnedOffset: number;
}

/** The state words and the handle table, which other devices' decoders read, too. */
export interface SharedTables {
  readonly control: Int32Array;
  /** The driver's handle, the device address or the host address of each handle. */
  readonly values: Float64Array;
  /** One of {@link HANDLE} for each handle. */
  readonly status: Int32Array;
  /**
   * The failure that poisons the handle, 0 for none, {@link FOREIGN} for a handle of another
   * device.
   */
  readonly failure: Int32Array;
}

/** One thread's typed views of the shared memory. */
export interface SharedState extends SharedTables {
  readonly buffers: SharedBuffers;
  readonly issued: Int32Array;
  /** The driver's handle of the stream in each slot. */
  readonly streams: Float64Array;
  readonly ring: Int32Array;
  readonly slots: Int32Array;
  readonly staging: Uint8Array;
}

export function createShared(pinned: {
  buffer: ArrayBufferLike;
  byteOffset: number;
}): SharedBuffers {
  return {
    control: new SharedArrayBuffer(CONTROL_BYTES),
    pinned: pinned.buffer,
    pinnedOffset: pinned.byteOffset,
  };
}

export function viewTables(control: SharedArrayBuffer): SharedTables {
  return {
    control: new Int32Array(control, 0, CONTROL_WORDS),
    values: new Float64Array(control, VALUES_OFFSET, MAX_HANDLES),
    status: new Int32Array(control, STATUS_OFFSET, MAX_HANDLES),
    failure: new Int32Array(control, FAILURE_OFFSET, MAX_HANDLES),
  };
}

export function viewShared(buffers: SharedBuffers): SharedState {
  return {
    buffers,
    ...viewTables(buffers.control),
    issued: new Int32Array(buffers.control, ISSUED_OFFSET, MAX_SLOTS * ISSUED_STRIDE),
    streams: new Float64Array(buffers.control, STREAMS_OFFSET, MAX_SLOTS),
    ring: new Int32Array(buffers.control, RING_OFFSET, RING_WORDS),
    slots: new Int32Array(buffers.pinned, buffers.pinnedOffset, MAX_SLOTS * SLOT_WORDS),
    staging: new Uint8Array(
      buffers.pinned,
      buffers.pinnedOffset + SLOTS_BYTES,
      STAGING_SEGMENTS * STAGING_SEGMENT_BYTES,
    ),
  };
}

/** Whether the stream in `slot` is being captured. */
export function isCapturing({ issued }: SharedState, slot: number): boolean {
  return slot >= 0 && issued[slot * ISSUED_STRIDE + ISSUED_CAPTURING] === 1;
}

/** The failure that kept the stream in `slot` from being created; 0 where it was created. */
export function unmadeBy({ issued }: SharedState, slot: number): number {
  return slot < 0 ? 0 : issued[slot * ISSUED_STRIDE + ISSUED_UNMADE]!;
}

/** Whether the word `lost` means more than an orderly end. */
export function isFault(lost: number): boolean {
  return lost !== 0 && lost !== CLOSED;
}

/** Wakes the JavaScript thread, which then reads the slots and messages. */
export function wakeJs(control: Int32Array): void {
  Atomics.add(control, WORD.wake, 1);
  // A thread that naps reads everything when it wakes: its event loop need not be notified, too.
  if (Atomics.exchange(control, WORD.nap, 0) === 1) Atomics.notify(control, WORD.nap);
  else Atomics.notify(control, WORD.wake);
}
