/** Memory for files, of one lane: one that was handed over with each took longer, and left garbage. */

/** Bytes: at least, and at most while nothing is decoded. */
const LEAST_BYTES = 2 ** 16;
const MOST_KEPT_BYTES = 2 ** 22;
/** Files begin at multiples of this. */
const ALIGNMENT = 64;

export class FileMemory {
  private readonly locate: (memory: SharedArrayBuffer) => Promise<number>;
  private memory: Uint8Array | undefined = undefined;
  /** Where it lies. */
  private address = 0;

  constructor(locate: (memory: SharedArrayBuffer) => Promise<number>) {
    this.locate = locate;
  }

  /** Copies the files to it, in the place of those before. Gives where each lies. */
  async put(files: readonly Uint8Array[]): Promise<number[]> {
    let bytes = 0;
    const offsets = files.map((file) => {
      const offset = bytes;
      bytes += Math.ceil(file.length / ALIGNMENT) * ALIGNMENT;
      return offset;
    });
    if (this.memory === undefined || this.memory.length < bytes) {
      const memory = new SharedArrayBuffer(2 ** Math.ceil(Math.log2(Math.max(bytes, LEAST_BYTES))));
      this.address = await this.locate(memory);
      this.memory = new Uint8Array(memory);
    }
    const { memory, address } = this;
    files.forEach((file, i) => { memory.set(file, offsets[i]); });
    return offsets.map((offset) => address + offset);
  }

  /** What was needed for a large file is not kept. */
  shrink(): void {
    if (this.memory !== undefined && this.memory.length > MOST_KEPT_BYTES) this.memory = undefined;
  }
}
