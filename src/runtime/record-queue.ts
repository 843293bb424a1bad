/**
 * Records that wait outside of the ring, in order: those for which the ring was full, and those of
 * a parked stream. They are stored one after the other in large blocks; an array for each, or new
 * blocks for each burst, would keep the garbage collector busy for milliseconds.
 */
const BLOCK_WORDS = 1 << 14;
/** Number of empty blocks that are kept for all queues of this thread: two megabytes. */
const SPARE_BLOCKS = 32;

interface Block {
  readonly words: Int32Array;
  /** The same words as 32-bit floats. */
  readonly floats: Float32Array;
  used: number;
  read: number;
}

const spare: Block[] = [];

function takeBlock(words: number): Block {
  const kept = words <= BLOCK_WORDS ? spare.pop() : undefined;
  if (kept !== undefined) return kept;
  const memory = new Int32Array(Math.max(BLOCK_WORDS, words));
  return { words: memory, floats: new Float32Array(memory.buffer), used: 0, read: 0 };
}

function giveBack(block: Block): void {
  if (spare.length >= SPARE_BLOCKS || block.words.length > BLOCK_WORDS) return;
  block.read = 0;
  block.used = 0;
  spare.push(block);
}

export class RecordQueue {
  private readonly blocks: Block[] = [];
  /** The block that is being filled. */
  private last: Block | undefined = undefined;
  private count = 0;

  /** Records in the queue. */
  get length(): number {
    return this.count;
  }

  /**
   * Returns a block with room for a record of `words` words, from `used` on, until the next call of
   * the queue.
   */
  reserve(words: number): Readonly<Block> {
    const { last } = this;
    if (last !== undefined && last.used + words <= last.words.length) return last;
    // The first block contains records as long as there are any.
    if (last?.used === 0) this.blocks.pop();
    const block = takeBlock(words);
    this.blocks.push(block);
    this.last = block;
    return block;
  }

  /**
   * Appends the record that has been written at the place that {@link reserve} returned, except for
   * its first word.
   */
  append(words: number, header: number): void {
    const block = this.last!;
    block.words[block.used] = header;
    block.used += words;
    this.count++;
  }

  /**
   * Appends a copy of the record of `words` words that begins at `at`. Its first word is passed
   * separately.
   */
  push(memory: Int32Array, at: number, words: number, header: number): void {
    const { words: target, used: start } = this.reserve(words);
    for (let i = 1; i < words; i++) target[start + i] = memory[at + i]!;
    this.append(words, header);
  }

  /** The block that contains the first record; `at` is where it begins. */
  get memory(): Int32Array {
    return this.blocks[0]!.words;
  }

  get at(): number {
    return this.blocks[0]!.read;
  }

  /** Removes the first record. Its words stay unchanged until a record is added to any queue. */
  shift(): void {
    const block = this.blocks[0]!;
    block.read += block.words[block.read]! >>> 16;
    this.count--;
    if (block.read < block.used) return;
    this.blocks.shift();
    if (block === this.last) this.last = undefined;
    giveBack(block);
  }
}
