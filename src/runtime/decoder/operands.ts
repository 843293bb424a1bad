/** Resolves the handles of a record to the addresses that the driver takes. */
import type { Conditionals } from '../conditionals.js';
import {
  LINE_ACCESS_SHIFT,
  LINE_HANDLE_MASK,
  LINE_WORD_SHIFT,
} from '../commands/line-references.js';
import { ACCESS_SHIFT, ACCESS_WHOLE, HANDLE_MASK } from '../commands/record.js';
import { PoisonedError } from '../failure.js';
import { CONDITION, FOREIGN, HANDLE } from '../layout.js';
import type { SharedState } from '../layout.js';
import type { Peers } from '../peers.js';

const TWO32 = 4294967296;

export class Operands {
  /**
   * Whether the current command is captured into a graph: then the present contents of its operands
   * do not matter.
   */
  recording = false;
  private readonly shared: SharedState;
  private readonly peers: Peers;
  private readonly conditionals: Conditionals;

  constructor(shared: SharedState, peers: Peers, conditionals: Conditionals) {
    this.shared = shared;
    this.peers = peers;
    this.conditionals = conditionals;
  }

  /**
   * Returns the address of an operand.
   * @throws PoisonedError where an earlier failure made its contents undefined
   */
  address(word: number): number {
    const { failure, status, values } = this.shared;
    const handle = word & HANDLE_MASK;
    const poison = failure[handle]!;
    if (poison !== 0) {
      if (poison === FOREIGN) return this.peers.address(values[handle]!, this.recording);
      if (this.recording && status[handle] !== HANDLE.failed) return values[handle]!;
      if (((word >>> ACCESS_SHIFT) & ACCESS_WHOLE) === 0 || status[handle] === HANDLE.failed)
        throw new PoisonedError(poison);
      failure[handle] = 0;
    }
    return values[handle]!;
  }

  /** Returns the context of an operand of a copy between devices. */
  context(word: number): ReturnType<Peers['context']> {
    const { failure, values } = this.shared;
    const handle = word & HANDLE_MASK;
    return this.peers.context(failure[handle] === FOREIGN ? values[handle]! : undefined);
  }

  /**
   * Returns the first of these operands that does not exist yet, or 0. While a stream is captured
   * it cannot wait for work outside of the capture, and the graph consists of addresses.
   */
  firstPending(words: readonly number[]): number {
    const { status } = this.shared;
    for (const word of words)
      if (status[word & HANDLE_MASK] === HANDLE.pending) return word & HANDLE_MASK;
    return 0;
  }

  /**
   * Replaces the operands of a launch by addresses, in place: references of one word each after the
   * word at `packed`. Returns the index of the first parameter word.
   */
  resolveLine(memory: Int32Array, packed: number): number {
    const refs = packed + 1;
    const params = refs + (memory[packed]! & 0xffff);
    for (let ref = refs; ref < params; ref++) {
      const word = memory[ref]!;
      const access = (word >>> LINE_ACCESS_SHIFT) & 7;
      this.resolve(
        memory,
        params + (word >>> LINE_WORD_SHIFT),
        (word & LINE_HANDLE_MASK) | (access << ACCESS_SHIFT),
      );
    }
    return params;
  }

  /** As {@link resolveLine}, for `count` references of two words each from `refs` on. */
  resolvePairs(memory: Int32Array, refs: number, count: number): number {
    const params = refs + count * 2;
    for (let ref = refs; ref < params; ref += 2)
      this.resolve(memory, params + memory[ref + 1]!, memory[ref]!);
    return params;
  }

  /** Adds an operand's address to the offset in its parameter. A condition is passed unchanged. */
  private resolve(memory: Int32Array, place: number, operand: number): void {
    if (this.shared.failure[operand & HANDLE_MASK] === CONDITION) {
      const bits = this.conditionals.bits(operand & HANDLE_MASK);
      memory[place] = Number(BigInt.asIntN(32, bits));
      memory[place + 1] = Number(BigInt.asIntN(32, bits >> 32n));
      return;
    }
    const address = this.address(operand) + (memory[place]! >>> 0) + memory[place + 1]! * TWO32;
    memory[place] = address | 0;
    memory[place + 1] = (address / TWO32) | 0;
  }
}
