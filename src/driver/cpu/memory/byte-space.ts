/**
 * Memory that a copy can name: a device's, or one page-locked host buffer. Both are
 * SharedArrayBuffers seen as bytes; an address less the space's origin is the index of its byte.
 */
export interface SpaceWatch {
  wrote(at: number, bytes: number): void;
  /** Is called when a value that others may wait for was written. */
  signalled(at: number, bytes: number): void;
  read(at: number, bytes: number): void;
  copied(to: number, from: number, bytes: number): void;
}

export interface ByteSpace {
  readonly kind: 'device' | 'host';
  /** The address of byte 0. */
  readonly origin: number;
  /** The view is replaced when device memory grows: read it anew for every step of work. */
  bytes: Uint8Array;
  /** The same memory as 32-bit words, for stream memory operations. */
  words: Int32Array;
  /** Observes the host's work on the memory, where it is that of a checked device. */
  readonly watch?: SpaceWatch | undefined;
  fill(at: number, byte: number, bytes: number): void;
  /** As memmove, within this space. */
  move(to: number, from: number, bytes: number): void;
}

/** Below this many bytes a loop is faster than making the view that `set` needs. */
const LOOP_BYTES = 48;

export function copyBytes(
  to: ByteSpace,
  toAt: number,
  from: ByteSpace,
  fromAt: number,
  bytes: number,
): void {
  if (to.watch !== undefined && to === from) {
    to.watch.copied(toAt, fromAt, bytes);
  } else {
    to.watch?.wrote(toAt, bytes);
    from.watch?.read(fromAt, bytes);
  }
  if (to === from) {
    to.move(toAt, fromAt, bytes);
  } else if (bytes <= LOOP_BYTES) {
    const source = from.bytes;
    const destination = to.bytes;
    for (let i = 0; i < bytes; i++) destination[toAt + i] = source[fromAt + i]!;
  } else {
    to.bytes.set(from.bytes.subarray(fromAt, fromAt + bytes), toAt);
  }
}

/**
 * Fills `bytes` bytes with elements (1, 2 or 4 bytes wide, naturally aligned) that contain `value`.
 */
export function fillElements(
  space: ByteSpace,
  at: number,
  elementBytes: number,
  value: number,
  bytes: number,
): void {
  space.watch?.wrote(at, bytes);
  const low = value & 0xff;
  const uniform =
    elementBytes === 1 ||
    (elementBytes === 2
      ? (value & 0xffff) === low * 0x101
      : (value | 0) === (Math.imul(low, 0x1010101) | 0));
  if (uniform) {
    space.fill(at, low, bytes);
    return;
  }
  // The pattern is written once and then doubled: memory.copy is as fast as the memory.
  const first = Math.min(bytes, 64);
  for (let i = 0; i < first; i++) space.bytes[at + i] = value >>> (8 * (i & (elementBytes - 1)));
  for (let done = first; done < bytes; done *= 2) {
    space.move(at + done, at, Math.min(done, bytes - done));
  }
}
