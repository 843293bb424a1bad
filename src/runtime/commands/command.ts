/**
 * What a command is: one row that says how its words lie in the ring, which memory they name, how
 * the decoder schedules it, how it is carried out, and how traces and errors describe it.
 *
 * Every property is required, so that a row which leaves one out does not compile. The table of all
 * rows is `commands.ts`; the decoder reads what its fast paths need from arrays that are made of it
 * there.
 */
import type { Driver } from '../../driver/driver.js';
import type { Announcements } from '../announcements.js';
import type { Conditionals } from '../conditionals.js';
import type { Fences } from '../decoder/fences.js';
import type { LaunchLimit } from '../decoder/launch-limit.js';
import type { Operands } from '../decoder/operands.js';
import type { SetAside } from '../decoder/set-aside.js';
import type { Shortages } from '../decoder/shortages.js';
import type { Wait } from '../decoder/wait.js';
import type { SharedState } from '../layout.js';
import type { LibraryCalls } from '../library-calls.js';
import type { Peers } from '../peers.js';
import type { PrintedText } from '../printed-text.js';
import { HANDLE_MASK } from './record.js';
import type { CopyDirection, OperationDetails } from './trace.js';

/** What a command may use of the decoder that carries it out. */
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
  readonly text: PrintedText | undefined;
  /** Carries out the message that waits in the thread's port. */
  call(): void;
  /** Publishes how many streams wait or owe text. */
  tellParked(): void;
}

/** Where the words of a body begin: index of each, by name. A 64-bit integer takes two words. */
export type Words = Readonly<Record<string, number>>;

/** Reads something from the body of a record. */
export type Read<T> = (memory: Int32Array, body: number) => T;

/** Carries out a command. `body` is the index of its body, `stream` the slot of its stream. */
export type Execute = (
  decoder: Execution,
  memory: Int32Array,
  body: number,
  stream: number,
) => void;

/** Where the JS thread may carry out the command itself while the runtime thread sleeps. */
export type Visit =
  /** Nowhere: it allocates, loads, captures, waits, or its state lives on the runtime thread. */
  | 'never'
  | 'always'
  /** Where the stream's launches are below their limit. */
  | 'below the limit'
  /** Where its record has {@link FLAG_SHORT}. */
  | 'where short';

/**
 * What becomes of a command whose stream could not be made. Nothing of it may reach the driver, for
 * which stream 0 is the default stream.
 */
export type WithoutStream =
  /** Its operation fails. */
  | 'fails'
  /** Nothing happens. */
  | 'is skipped'
  /** It is carried out: it makes no call about its stream. */
  | 'is executed'
  /** It is treated apart. Returns whether its operation fails. */
  | ((decoder: Execution, memory: Int32Array, body: number, stream: number) => boolean);

export interface Command<N extends number = number, W extends Words = Words> {
  /** Its number in the header: 1 to 255. A header of zero is a record that is not there yet. */
  readonly op: N;
  /** The driver call, as errors name it; empty where a failure names none. */
  readonly call: string;
  /** The words of its body. */
  readonly words: W;
  /** The memory that it uses: handle | access << {@link ACCESS_SHIFT} of each operand. */
  readonly operands: Read<number[]>;
  /** The word with the handle of what it makes, which its failure leaves undefined. */
  readonly makes: number | undefined;
  /** How a trace describes it; undefined for a command that is no operation of a user. */
  readonly trace: Read<OperationDetails> | undefined;
  /**
   * What the error of a lost device calls it; undefined where it does not occupy the device. The
   * name of a kernel follows where {@link trace} gives one.
   */
  readonly inFlight: string | undefined;
  /** Which way, and how much, a copy copies: statistics count it. */
  readonly copies:
    { readonly direction: Read<CopyDirection>; readonly bytes: Read<number> } | undefined;
  /** Whether it takes time on its stream, which a recorded trace then measures. */
  readonly takesTime: boolean;
  readonly visit: Visit;
  /**
   * Places in the stream's queue of launches that it takes. `asked`: the command counts them
   * itself, and the decoder asks {@link LibraryCalls.launches} for their number in advance.
   */
  readonly launches: 0 | 1 | 'asked';
  /** Whether it is carried out although its operation has failed already. */
  readonly runsAfterFailure: boolean;
  readonly withoutStream: WithoutStream;
  /**
   * What it has to wait for before it is carried out. `resumed`: it waited before, and its record
   * holds what {@link SetAside} wrote there.
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

/** Operands that stand in the words `first`, and `second` where there are two. */
export function operandsAt(first: number, second?: number): Read<number[]> {
  return second === undefined
    ? (memory, body) => [memory[body + first]!]
    : (memory, body) => [memory[body + first]!, memory[body + second]!];
}

/** Operands of `stride` words each, behind the word that counts them in its lower 16 bits. */
export function operandsBehind(count: number, stride: number): Read<number[]> {
  return (memory, body) =>
    Array.from(
      { length: memory[body + count]! & 0xffff },
      (_, i) => memory[body + count + 1 + i * stride]!,
    );
}

/** The handles of operands, without their accesses. */
export function handlesOf(operands: readonly number[]): number[] {
  return operands.map((word) => word & HANDLE_MASK);
}
