/** A lane's memory for files: passing a new memory with each file took longer, and made garbage. */
import { capacityFor, placesOf } from '../../../native/memory-places.js';
import { MOST_KEPT_BYTES } from './thread/messages.js';
import type { SharedFile } from './thread/messages.js';
import { isSharedArrayBuffer } from '../../../ground/other-realms.js';

export class FileMemory {
  private readonly locate: (memory: SharedArrayBuffer) => Promise<number>;
  private memory: Uint8Array | undefined = undefined;
  /** Its address. */
  private address = 0;

  constructor(locate: (memory: SharedArrayBuffer) => Promise<number>) {
    this.locate = locate;
  }

  /**
   * Copies the files to it, over those before, and gives the address of each. A file in shared
   * memory is copied by the thread that decodes it: copying bytes that another processor has
   * written takes as long as all other work on a file here (59 KB: 8 µs of 18).
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

  /** Frees memory that was needed for a large file. */
  shrink(): void {
    if (this.memory !== undefined && this.memory.length > MOST_KEPT_BYTES) this.memory = undefined;
  }
}

function sharedFile({ buffer, byteOffset }: Uint8Array): SharedFile | undefined {
  return isSharedArrayBuffer(buffer) ? { memory: buffer, offset: byteOffset } : undefined;
}
