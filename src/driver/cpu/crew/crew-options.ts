/**
 * The threads of a crew, as its user starts them.
 */
import type { MemberMessage, MemberStart } from './control.js';

/** A started thread. */
export interface Member {
  post(message: MemberMessage): void;
  /** Ends the thread wherever it is. */
  end(): void;
}

/**
 * How a device gets threads. This folder starts none itself, since it also runs where there is no
 * Node.
 */
export interface CrewOptions {
  /** Threads that run blocks, including the device's own. */
  readonly workers: number;
  readonly start: (start: MemberStart) => Member;
  /** Processors of the machine. Default: the number of workers. */
  readonly processors?: number;
  /**
   * Keeps threads, by their numbers, off the processor that the calling one is on; see
   * `../../../runtime/thread/keep-apart.ts`.
   */
  readonly keepApart?: (threads: Int32Array) => void;
  /** Opens every grid to all threads at once, for tests. @internal */
  readonly eager?: boolean;
}
