/**
 * Records that wait outside of the ring, in order: those that found it full, and those of a parked stream. They lie one
 * behind the other in large blocks; an array for each would keep the garbage collector busy for milliseconds.
 */
const BLOCK_WORDS = 1 << 14;

interface Block {
  readonly words: Int32Array;
  used: number;
  read: number;
}

export class RecordQueue {
  private readonly blocks: Block[] = [];
  private spare: Block | undefined;
  private count = 0;

  /** Records in the queue. */
  get length(): number {
    return this.count;
  }

  /** Appends the record of `words` words that begins at `at`. Its first word is given apart. */
  push(memory: Int32Array, at: number, words: number, header: number): void {
    let block = this.blocks[this.blocks.length - 1];
    if (block === undefined || block.used + words > block.words.length) {
      if (this.spare !== undefined && words <= this.spare.words.length) block = this.spare;
      else block = { words: new Int32Array(Math.max(BLOCK_WORDS, words)), used: 0, read: 0 };
      this.spare = undefined;
      this.blocks.push(block);
    }
    const target = block.words;
    const start = block.used;
    target[start] = header;
    for (let i = 1; i < words; i++) target[start + i] = memory[at + i]!;
    block.used += words;
    this.count++;
  }

  /** The block that holds the first record, and where in it the record begins. */
  get memory(): Int32Array {
    return this.blocks[0]!.words;
  }

  get at(): number {
    return this.blocks[0]!.read;
  }

  /** Removes the first record. Its words stay as they are until the next push. */
  shift(): void {
    const block = this.blocks[0]!;
    block.read += block.words[block.read]! >>> 16;
    this.count--;
    if (block.read < block.used) return;
    this.blocks.shift();
    block.read = 0;
    block.used = 0;
    this.spare = block;
  }
}
