/**
 * One piece of device work: what a stream queues and what a node of a graph holds. Work is done in
 * steps of bounded size and keeps its own state between them, so that one thread can run many
 * streams and stop at any time.
 */
import { CUgraphExecUpdateResult } from '../../flags.js';
import type { Graph } from '../graphs/graph.js';

const NO_BODIES: readonly Graph[] = [];

/** What a step came to. */
export const STEP = {
  /** The operation has ended. */
  done: 0,
  /** A full step was made; the next stream's turn. */
  more: 1,
  /**
   * Time ran out inside the step: the same operation goes on first at the next poll, whatever the
   * time was.
   */
  paused: 2,
  /**
   * It waits for another stream, for the host, or for blocks that other threads run. Nothing was
   * done.
   */
  blocked: 3,
  /** A kernel faulted; its context is lost and its streams are empty. */
  fault: 4,
} as const;

/** Threads whose next news can be waited for. */
export interface Resting {
  /** Sleeps until there is news, for so many milliseconds at most. */
  rest(milliseconds: number): void;
}

/** When the current call of `poll` should return. */
export class Slice {
  readonly now: () => number;
  deadline = 0;
  /** The time at the last look. */
  time = 0;
  /** When an operation last ended, or a grid got any further. */
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
   * Nothing can be done here: sleeps until the other threads have news, or time is up. False where
   * nobody works.
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

  /** The CUgraphNodeType that a captured one becomes. */
  abstract readonly nodeType: number;

  abstract step(slice: Slice): number;

  /**
   * Whether the host can see that the stream got here, or it has waited for what anybody may have
   * done.
   */
  get meets(): 'host' | 'anybody' | undefined {
    return undefined;
  }

  /** The graphs that a conditional node chooses from. */
  get bodies(): readonly Graph[] {
    return NO_BODIES;
  }

  /** The graph that it is part of is being launched: conditions take their first values. */
  launchBegins(): void {}

  /** Prepares another run from the beginning: a graph runs the same operations many times. */
  restart(): void {}

  /** An operation of its own with the same parameters, for another graph or another run. */
  abstract copy(): Operation;

  /** Says in one line what it does, for a picture of the graph. */
  abstract describe(): string;

  /**
   * A CUgraphExecUpdateResult: whether an executable graph may take this in the place of `old`,
   * which is of the same type.
   */
  replaces(_old: Operation): number {
    return CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_SUCCESS;
  }

  /** The queue is done with it: it may be used for another call. */
  release(): void {}
}
