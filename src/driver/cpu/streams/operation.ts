/**
 * One piece of device work, which a stream queues or a node of a graph contains. Work is done in
 * steps of bounded size and keeps its own state between them, so that one thread can run many
 * streams and stop at any time.
 */
import { CUgraphExecUpdateResult } from '../../flags.js';
import type { Graph } from './graph.js';

const NO_BODIES: readonly Graph[] = [];

/** The result of a step. */
export const STEP = {
  /** The operation has ended. */
  done: 0,
  /** A full step was made; it is the next stream's turn. */
  more: 1,
  /**
   * The time slice ended inside the step: the same operation continues first at the next poll,
   * whatever its time slice is.
   */
  paused: 2,
  /**
   * It waits for another stream, for the host, or for blocks that other threads run. No work was
   * done.
   */
  blocked: 3,
  /** A kernel faulted; its context is lost and its streams are empty. */
  fault: 4,
} as const;

/** Threads whose news can be waited for. */
export interface Resting {
  /** Sleeps until there is news, for at most this many milliseconds. */
  rest(milliseconds: number): void;
}

/** The time at which the current call of `poll` should return. */
export class Slice {
  readonly now: () => number;
  deadline = 0;
  /** The time of the last reading. */
  time = 0;
  /** When an operation last ended, or a grid made progress. */
  moved = 0;
  /** The threads whose work a blocked operation waits for. */
  crew: Resting | undefined = undefined;

  constructor(now: () => number) {
    this.now = now;
  }

  begin(milliseconds: number): void {
    this.time = this.now();
    this.deadline = this.time + milliseconds;
    this.crew = undefined;
  }

  /**
   * Sleeps until the other threads have news, or time is up: no work can be done here. Returns
   * false where no other thread works.
   */
  rest(): boolean {
    const { crew } = this;
    this.crew = undefined;
    crew?.rest(this.deadline - this.now());
    return crew !== undefined;
  }

  expired(): boolean {
    this.time = this.now();
    return this.time >= this.deadline;
  }
}

export abstract class Operation {
  /** The next one in its stream's queue. */
  next: Operation | undefined = undefined;

  /** The CUgraphNodeType of a captured one. */
  abstract readonly nodeType: number;

  abstract step(slice: Slice): number;

  /**
   * Whether the host can see that the stream reached this point, or the stream has waited for the
   * effect of any work.
   */
  get meets(): 'host' | 'any' | undefined {
    return undefined;
  }

  /** The graphs that a conditional node chooses from. */
  get bodies(): readonly Graph[] {
    return NO_BODIES;
  }

  /** The graph that it is part of is being launched: conditions get their initial values. */
  launchBegins(): void {}

  /** Prepares another run from the beginning: a graph runs the same operations many times. */
  restart(): void {}

  /** Makes an operation with the same parameters, for another graph or another run. */
  abstract copy(): Operation;

  /** Describes it in one line, for a drawing of the graph. */
  abstract describe(): string;

  /**
   * Returns a CUgraphExecUpdateResult: whether an executable graph may use this in the place of
   * `old`, which is of the same type.
   */
  replaces(_old: Operation): number {
    return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS;
  }

  /** The queue is done with it: it may be reused for another call. */
  release(): void {}
}
