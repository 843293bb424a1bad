/**
 * Memory for files, of one lane: one that was handed over with each took longer, and left garbage.
 */
import { capacityFor, placesOf } from '../../../native/memory-places.js';
import { MOST_KEPT_BYTES } from './thread/messages.js';
import type { SharedFile } from './thread/messages.js';
import { isSharedArrayBuffer } from '../../../ground/other-realms.js';

export class FileMemory {
  private readonly locate: (memory: SharedArrayBuffer) => Promise<number>;
  private memory: Uint8Array | undefined = undefined;
  /** Where it lies. */
  private address = 0;

  constructor(locate: (memory: SharedArrayBuffer) => Promise<number>) {
    this.locate = locate;
  }

  /**
   * Copies the files to it, in the place of those before. Gives where each lies. What lies in
   * memory that threads share is copied by the thread that decodes it: bytes that another processor
   * has written take as long to copy as all else that is done with a file here (59 KB: 8 µs of 18).
   */
  async put(files: readonly Uint8Array[]): Promise<(number | SharedFile)[]> {
    const shared = files.map(sharedFile);
    const { offsets, bytes } = placesOf(
      files.map(({ length }, i) => (shared[i] === undefined ? length : 0)),
    );
    if (bytes > 0 && (this.memory === undefined || this.memory.length < bytes)) {
      const memory = new SharedArrayBuffer(capacityFor(bytes));
      this.address = await this.locate(memory);
      this.memory = new Uint8Array(memory);
    }
    const { memory, address } = this;
    return files.map((file, i) => {
      const there = shared[i];
      if (there !== undefined) return there;
      memory!.set(file, offsets[i]);
      return address + offsets[i]!;
    });
  }

  /** What was needed for a large file is not kept. */
  shrink(): void {
    if (this.memory !== undefined && this.memory.length > MOST_KEPT_BYTES) this.memory = undefined;
  }
}

function sharedFile({ buffer, byteOffset }: Uint8Array): SharedFile | undefined {
  return isSharedArrayBuffer(buffer) ? { memory: buffer, offset: byteOffset } : undefined;
}
