// How long an engine's optimising compiler takes for a module's largest function, estimated from the function's bytes.
// V8 keeps, for each block of a function, sets of all its values, so that the time grows with their product.

import { operands, vectorOperands } from './immediates.js';

/**
 * Fitted to Node 20 on a shared machine, where Node 26 takes half: 0.24 s for a kernel of 2000 instructions in lanes, 1.6 s for
 * one of 30,000 thread by thread, 16 s for 40,000 branches among 200 labels, and 110 s for 160,000 among 400.
 */
const MS_PER_OPERATION = 5e-3;
const MS_PER_BLOCK_AND_VALUE = 0.6e-6;
/** Modules of fewer bytes are not looked at. */
const SMALL_MODULE = 32 * 1024;
const CODE_SECTION = 10;

/** Milliseconds, roughly; 0 for a module that is small. */
export function optimisingMs(wasm: Uint8Array): number {
  if (wasm.length < SMALL_MODULE) return 0;
  const reader = new Reader(wasm, 8);
  while (reader.at < wasm.length) {
    const section = reader.byte();
    const end = reader.number() + reader.at;
    if (section === CODE_SECTION) {
      let most = 0;
      for (let left = reader.number(); left > 0; left--) most = Math.max(most, functionMs(reader));
      return most;
    }
    reader.at = end;
  }
  return 0;
}

function functionMs(reader: Reader): number {
  const end = reader.number() + reader.at;
  for (let runs = reader.number(); runs > 0; runs--) {
    reader.number();
    reader.byte();
  }
  let operations = 0;
  let blocks = 0;
  let values = 0;
  while (reader.at < end) {
    operations++;
    const opcode = reader.byte();
    if (opcode >= 0x28) values++;
    if (opcode >= 0x02 && opcode <= 0x0d && opcode !== 0x0b) blocks++;
    else if (opcode === 0x0e) blocks += reader.skipTargets();
    reader.skipImmediates(opcode);
  }
  reader.at = end;
  return operations * MS_PER_OPERATION + blocks * values * MS_PER_BLOCK_AND_VALUE;
}

class Reader {
  private readonly bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.bytes = bytes;
    this.at = at;
  }

  byte(): number {
    return this.bytes[this.at++]!;
  }

  /** An unsigned LEB128 of 32 bits. Of signed and longer ones it passes over the bytes. */
  number(): number {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++]!;
      if (shift < 32) value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
    }
  }

  /** Those of a br_table. Returns how many there are. */
  skipTargets(): number {
    const count = this.number() + 1;
    for (let left = count; left > 0; left--) this.number();
    return count;
  }

  skipImmediates(opcode: number): void {
    switch (opcode) {
      case 0xfc: {
        const operation = this.number();
        this.at += operation === 0x0a ? 2 : operation === 0x0b ? 1 : 0;
        return;
      }
      case 0xfd: {
        const { numbers, bytes } = vectorOperands(this.number());
        this.skip(numbers, bytes);
        return;
      }
      case 0xfe:
        if (this.number() === 0x03) this.at++;
        else this.skip(2, 0);
        return;
      default: {
        const { numbers, bytes } = operands(opcode);
        this.skip(numbers, bytes);
      }
    }
  }

  private skip(numbers: number, bytes: number): void {
    for (let left = numbers; left > 0; left--) this.number();
    this.at += bytes;
  }
}
