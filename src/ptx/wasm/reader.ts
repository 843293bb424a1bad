// Reads the instructions of a function's bytes.

import { immediateOf, nameOf } from './opcodes.js';
import type { Opcode } from './opcodes.js';

export class Reader {
  bytes: Uint8Array;
  at: number;
  /** Where the code ends: bytes from there on are read as zeros, and `at` lies after it then. */
  end: number;

  constructor(bytes: Uint8Array, at: number, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  byte(): number {
    const at = this.at++;
    return at < this.end ? this.bytes[at]! : 0;
  }

  /** Reads an unsigned LEB128 of 32 bits. It skips the bytes of signed and longer ones. */
  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      if (shift < 32) value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }

  /** Reads an opcode; one after a prefix is `prefix << 16 | code`. */
  opcode(): number {
    const code = this.byte();
    return code >= 0xfc ? (code << 16) | this.number() : code;
  }

  /** Skips the immediates of an opcode. */
  skipImmediates(opcode: number): void {
    const name = nameOf(opcode);
    if (name !== undefined) this.skipImmediatesOf(name);
  }

  /** The same of an instruction whose name is known. */
  skipImmediatesOf(name: Opcode): void {
    switch (immediateOf(name)) {
      case 'block':
      case 'label':
      case 'function':
      case 'local':
      case 'global':
      case 'integer':
        this.number();
        return;
      case 'labels':
        for (let left = this.number() + 1; left > 0 && this.at <= this.end; left--) this.number();
        return;
      case 'access':
        this.number();
        this.number();
        return;
      case 'access lane':
        this.number();
        this.number();
        this.at++;
        return;
      case 'lane':
      case 'memory':
        this.at++;
        return;
      case 'memories':
        this.at += 2;
        return;
      case 'f32':
        this.at += 4;
        return;
      case 'f64':
        this.at += 8;
        return;
      case 'bytes':
        this.at += 16;
    }
  }
}
