/**
 * The communication between a member and the owner of its crew while kernels run: calls of the host
 * that only the owner can execute (malloc, free, a failed assertion), and printed text. A printed
 * text stays whole; texts of different members come in any order, all of a grid's before the grid
 * ends.
 */
import { setCondition } from '../streams/condition.js';
import { printf } from '../kernels/device-text.js';
import {
  CALL_STATE,
  HOST_CALLS,
  MEMBER,
  RING_BYTES,
  TEXT_BYTES,
  WORD,
  memberAt,
  ring,
  ringOf,
  textOf,
} from './control.js';

/** Set in the length of a piece that is not the last of its text. */
const CONTINUED = 0x80000000;
const PIECE_BYTES = RING_BYTES / 4;

type HostFunction = (...args: never[]) => unknown;

/** Combines two 32-bit arguments of a call into one of 64 bits. */
const pair = (low: number, high: number): bigint => (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
export const halvesOf = (value: bigint): number[] => [
  Number(value & 0xffffffffn),
  Number(BigInt.asUintN(32, value >> 32n)),
];

export class Mailbox {
  private readonly words: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly member: number;
  private readonly at: number;
  /** The owner's pieces of a text that is not complete. */
  private begun: Uint8Array[] = [];

  constructor(words: Int32Array, member: number) {
    this.words = words;
    this.bytes = new Uint8Array(words.buffer);
    this.member = member;
    this.at = memberAt(member);
  }

  // The member's side

  /** Returns the functions that a module imports from the host. */
  hostFunctions(
    memory: WebAssembly.Memory,
    module: number,
    names: readonly string[],
  ): Record<string, HostFunction> {
    const all: Record<string, HostFunction> = {
      host_vprintf: (format: number, args: number): number => {
        const { text, conversions } = printf(memory, format, args);
        this.print(text);
        return conversions;
      },
      host_malloc: (bytes: bigint): bigint => this.ask('host_malloc', module, bytes),
      host_free: (address: bigint): void => void this.ask('host_free', module, address),
      host_set_conditional: (handle: bigint, value: number): void => {
        setCondition(memory, handle, value);
      },
      host_assert: (
        message: number,
        file: number,
        line: number,
        name: number,
        ctx: number,
        thread: number,
      ): void =>
        void this.ask(
          'host_assert',
          module,
          pair(message, file),
          pair(line, name),
          pair(ctx, thread),
        ),
    };
    return Object.fromEntries(names.map((name) => [name, all[name]!]));
  }

  private ask(name: (typeof HOST_CALLS)[number], module: number, ...args: bigint[]): bigint {
    const { words, at } = this;
    words[at + MEMBER.name] = HOST_CALLS.indexOf(name);
    words[at + MEMBER.module] = module;
    args.forEach((value, index) => this.setLong(at + MEMBER.args + 2 * index, value));
    Atomics.store(words, at + MEMBER.call, CALL_STATE.asked);
    Atomics.add(words, WORD.calls, 1);
    ring(words, WORD.news);
    while (Atomics.load(words, at + MEMBER.call) === CALL_STATE.asked)
      Atomics.wait(words, at + MEMBER.call, CALL_STATE.asked);
    Atomics.store(words, at + MEMBER.call, CALL_STATE.none);
    return this.long(at + MEMBER.result);
  }

  private print(text: string): void {
    const bytes = new TextEncoder().encode(text);
    for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
      const piece = bytes.subarray(from, from + PIECE_BYTES);
      this.append(piece, from + PIECE_BYTES < bytes.length);
    }
  }

  /** Waits where the ring is full. */
  private append(piece: Uint8Array, continued: boolean): void {
    const { words, at } = this;
    const written = words[at + MEMBER.written]!;
    for (;;) {
      const read = Atomics.load(words, at + MEMBER.read);
      if (((written - read) >>> 0) + 4 + piece.length <= RING_BYTES) break;
      Atomics.add(words, WORD.calls, 1);
      ring(words, WORD.news);
      Atomics.wait(words, at + MEMBER.read, read);
      Atomics.sub(words, WORD.calls, 1);
    }
    this.copyIn(
      written,
      Uint8Array.of(
        piece.length,
        piece.length >>> 8,
        piece.length >>> 16,
        (piece.length | (continued ? CONTINUED : 0)) >>> 24,
      ),
    );
    this.copyIn(written + 4, piece);
    Atomics.store(words, at + MEMBER.written, (written + 4 + piece.length) | 0);
  }

  private copyIn(position: number, bytes: Uint8Array): void {
    const start = (position >>> 0) % RING_BYTES;
    const first = Math.min(bytes.length, RING_BYTES - start);
    const base = ringOf(this.member);
    this.bytes.set(bytes.subarray(0, first), base + start);
    this.bytes.set(bytes.subarray(first), base);
  }

  /** Writes a message for the owner, truncated to the available room. */
  write(message: string): void {
    const target = new Uint8Array(TEXT_BYTES);
    const { written } = new TextEncoder().encodeInto(message, target);
    this.bytes.set(target, textOf(this.member));
    this.words[this.at + MEMBER.textBytes] = written;
  }

  // The owner's side

  get message(): string {
    const start = textOf(this.member);
    return new TextDecoder().decode(
      this.bytes.slice(start, start + this.words[this.at + MEMBER.textBytes]!),
    );
  }

  /** Executes the call that the member waits for, if it waits for one. */
  answer(execute: (name: string, module: number, args: readonly bigint[]) => bigint): void {
    const { words, at } = this;
    if (Atomics.load(words, at + MEMBER.call) !== CALL_STATE.asked) return;
    Atomics.sub(words, WORD.calls, 1);
    const args = [0, 1, 2, 3].map((index) => this.long(at + MEMBER.args + 2 * index));
    this.setLong(
      at + MEMBER.result,
      execute(HOST_CALLS[words[at + MEMBER.name]!]!, words[at + MEMBER.module]!, args),
    );
    Atomics.store(words, at + MEMBER.call, CALL_STATE.answered);
    Atomics.notify(words, at + MEMBER.call);
  }

  /** Passes on the printed text. */
  readTexts(print: (text: string) => void): void {
    const { words, at } = this;
    let read = words[at + MEMBER.read]!;
    const written = Atomics.load(words, at + MEMBER.written);
    if (read === written) return;
    while (read !== written) {
      const head = this.copyOut(read, 4);
      const length = head[0]! | (head[1]! << 8) | (head[2]! << 16);
      this.begun.push(this.copyOut(read + 4, length));
      read = (read + 4 + length) | 0;
      if (head[3]! >= 0x80) continue;
      const decoder = new TextDecoder();
      print(
        this.begun
          .map((piece, index) => decoder.decode(piece, { stream: index + 1 < this.begun.length }))
          .join(''),
      );
      this.begun = [];
    }
    Atomics.store(words, at + MEMBER.read, read);
    Atomics.notify(words, at + MEMBER.read);
  }

  private copyOut(position: number, length: number): Uint8Array {
    const start = (position >>> 0) % RING_BYTES;
    const base = ringOf(this.member);
    const out = new Uint8Array(length);
    const first = Math.min(length, RING_BYTES - start);
    out.set(this.bytes.subarray(base + start, base + start + first));
    out.set(this.bytes.subarray(base, base + length - first), first);
    return out;
  }

  private long(at: number): bigint {
    return (BigInt(this.words[at + 1]!) << 32n) | BigInt(this.words[at]! >>> 0);
  }

  private setLong(at: number, value: bigint): void {
    this.words[at] = Number(BigInt.asIntN(32, value));
    this.words[at + 1] = Number(BigInt.asIntN(32, value >> 32n));
  }
}
