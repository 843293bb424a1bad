/**
 * The descriptor of a command: one row with the layout of its words in the ring, the memory that
 * they name, how the decoder schedules and executes it, and how traces and errors describe it.
 *
 * Every property is required, so that a row without one does not compile. The table of all rows is
 * `commands.ts`, which makes from them the arrays that the decoder's fast paths read.
 */
import type { Driver } from '../../driver/driver.js';
import type { Announcements } from '../announcements.js';
import type { Conditionals } from '../conditionals.js';
import type { Fences } from '../decoder/fences.js';
import type { LaunchLimit } from '../decoder/launch-limit.js';
import type { Operands } from '../decoder/operands.js';
import type { SetAside } from '../decoder/set-aside.js';
import type { TensorMaps } from '../decoder/tensor-maps.js';
import type { Shortages } from '../decoder/shortages.js';
import type { Wait } from '../decoder/wait.js';
import type { SharedState } from '../layout.js';
import type { LibraryCalls } from '../library-calls.js';
import type { Peers } from '../peers.js';
import type { PrintedText } from '../printed-text.js';
import { HANDLE_MASK } from './record.js';
import type { CopyDirection, OperationDetails } from './trace.js';

/** The parts of the decoder that a command's execution may use. */
export interface Execution {
  readonly driver: Driver;
  readonly shared: SharedState;
  readonly operands: Operands;
  readonly limit: LaunchLimit;
  readonly fences: Fences;
  readonly aside: SetAside;
  readonly shortages: Shortages;
  readonly conditionals: Conditionals;
  readonly libraries: LibraryCalls;
  readonly peers: Peers;
  readonly announcements: Announcements;
  readonly maps: TensorMaps;
  readonly text: PrintedText | undefined;
  /** Handles the message that waits in the thread's port. */
  call(): void;
  /** Publishes the number of streams that wait or have unprinted text. */
  publishParked(): void;
}

/** The index of each word of a body, by name. A 64-bit integer takes two words. */
export type Words = Readonly<Record<string, number>>;

/** Reads something from the body of a record. */
export type Read<T> = (memory: Int32Array, body: number) => T;

/** Executes a command. `body` is the index of its body, `stream` the slot of its stream. */
export type Execute = (
  decoder: Execution,
  memory: Int32Array,
  body: number,
  stream: number,
) => void;

/** Where the JavaScript thread may execute the command itself while the runtime thread sleeps. */
export type Visit =
  /** Never: it allocates, loads, captures, waits, or its state is on the runtime thread. */
  | 'never'
  | 'always'
  /** Where the stream's launches are below their limit. */
  | 'below the limit'
  /** Where its record has {@link FLAG_SHORT}. */
  | 'where short';

/**
 * How a command is handled whose stream could not be created. It must not make a call with that
 * stream, since stream 0 is the driver's default stream.
 */
export type WithoutStream =
  /** Its operation fails. */
  | 'fails'
  /** It has no effect. */
  | 'is skipped'
  /** It is executed: it makes no call with its stream. */
  | 'is executed'
  /** A function of its own handles it, and returns whether its operation fails. */
  | ((decoder: Execution, memory: Int32Array, body: number, stream: number) => boolean);

export interface Command<N extends number = number, W extends Words = Words> {
  /** Its number in the header: 1 to 255. A header of zero is a record that has not been written. */
  readonly op: N;
  /** The driver call, as errors name it; empty where failures name none. */
  readonly call: string;
  /** The words of its body. */
  readonly words: W;
  /** The number of words of its body, the least where it differs from record to record. */
  readonly length: number;
  /** Returns the memory that it uses: handle | access << {@link ACCESS_SHIFT} of each operand. */
  readonly operands: Read<number[]>;
  /** The word with the handle of the object that it makes, which is undefined if it fails. */
  readonly makes: number | undefined;
  /** Describes it for a trace; undefined for a command that is no operation of a user. */
  readonly trace: Read<OperationDetails> | undefined;
  /**
   * Its name in the error of a lost device; undefined where it does not occupy the device. The name
   * of a kernel follows where {@link trace} returns one.
   */
  readonly inFlight: string | undefined;
  /** The direction and the bytes of a copy, for statistics. */
  readonly copies:
    { readonly direction: Read<CopyDirection>; readonly bytes: Read<number> } | undefined;
  /** Whether it takes time on its stream, which a recorded trace measures. */
  readonly takesTime: boolean;
  readonly visit: Visit;
  /**
   * The number of places that it takes in the stream's queue of launches. `asked`: the command
   * counts them itself, and the decoder gets their number in advance from
   * {@link LibraryCalls.launches}.
   */
  readonly launches: 0 | 1 | 'asked';
  /** Whether it is executed although its operation has failed already. */
  readonly runsAfterFailure: boolean;
  readonly withoutStream: WithoutStream;
  /**
   * Returns what it has to wait for before it is executed. `resumed`: it has waited before, and its
   * record contains the words that {@link SetAside} wrote there.
   */
  readonly mustWait:
    | ((
        decoder: Execution,
        memory: Int32Array,
        body: number,
        stream: number,
        resumed: boolean,
      ) => Wait | undefined)
    | undefined;
  readonly execute: Execute;
}

/** Declares a command; its number and its words keep their literal types. */
export function command<const N extends number, const W extends Words>(
  row: Command<N, W>,
): Command<N, W> {
  return row;
}

/** Operands of a command that uses no memory. */
export const noOperands: Read<number[]> = () => [];

/** Returns the operands in the words `first`, and `second` where there are two. */
export function operandsAt(first: number, second?: number): Read<number[]> {
  return second === undefined
    ? (memory, body) => [memory[body + first]!]
    : (memory, body) => [memory[body + first]!, memory[body + second]!];
}

/**
 * Returns operands of `stride` words each, which follow the word that counts them in its lower 16
 * bits.
 */
export function operandsAfter(count: number, stride: number): Read<number[]> {
  return (memory, body) =>
    Array.from(
      { length: memory[body + count]! & 0xffff },
      (_, i) => memory[body + count + 1 + i * stride]!,
    );
}

/** Returns the handles of operands, without their accesses. */
export function handlesOf(operands: readonly number[]): number[] {
  return operands.map((word) => word & HANDLE_MASK);
}
