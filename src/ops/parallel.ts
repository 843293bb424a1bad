/**
 * Branches that run beside one another: on streams of their own, which fork and join on the device.
 */
import type { Stream } from '../core/index.js';
import { allKnown } from './collect.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';
import { NextIdle } from './scheduling.js';

/** Times that a policy is asked for a stream that no other branch has. */
const TRIES = 8;

export class Parallel implements Node<unknown[]> {
  readonly device: Node<unknown>['device'];
  private readonly branches: readonly Node<unknown>[];

  constructor(branches: readonly Node<unknown>[]) {
    this.device = branches.find((branch) => branch.device !== undefined)?.device;
    this.branches = branches;
  }

  submit(run: Run): Submitted<unknown[]> {
    const { branches } = this;
    const origin = run.stream;
    const streams = branches.map(() => origin);
    const taken = [origin];
    let free = true;
    // The first branch stays where the run is.
    for (let i = 1; i < branches.length; i++) {
      const found: Stream | undefined = free ? another(run, taken) : undefined;
      free = found !== undefined;
      if (found !== undefined) taken.push(found);
      // More branches than streams: as many on each.
      streams[i] = found ?? taken[i % taken.length]!;
    }
    // All begin at the same place: what the first one queues is not waited for by the others.
    const forked = new Set(streams.slice(1).filter((stream) => stream !== origin));
    for (const stream of forked) stream.wait(origin);
    const values: Submitted<unknown>[] = [];
    let later = false;
    try {
      branches.forEach((branch, i) => {
        run.stream = streams[i]!;
        const { mark } = run;
        const given = branch.submit(run);
        const value = run.mark === mark ? given : run.endStep(given, mark);
        values.push(value);
        later ||= value instanceof Later;
      });
    } finally {
      run.stream = origin;
      // Also where a branch threw: what the others have queued is behind nothing else.
      for (const stream of forked) origin.wait(stream);
    }
    if (!later) return values;
    return run.goOn(allKnown(run, values), (known) => {
      // What a branch queued once it knew its value.
      for (const stream of forked) origin.wait(stream);
      return known;
    });
  }

  describe(depth: number): string {
    return `parallel(${depth <= 0 ? '…' : this.branches.map((branch) => branch.describe(depth - 1)).join(', ')})`;
  }
}

/** A stream that no branch has yet; undefined where the policy seems to have no more. */
function another(run: Run, taken: readonly Stream[]): Stream | undefined {
  for (let i = 0; i < TRIES; i++) {
    const next =
      run.policy instanceof NextIdle ? run.policy.otherStream() : run.policy.nextStream();
    // In the body of a conditional node: what the capture around it has cannot join it.
    if (next.device !== run.device || (run.recording && isElsewhere(next, run.stream))) continue;
    if (!taken.includes(next)) return next;
  }
  return undefined;
}

/** Whether it is part of another capture than `stream`, or of the one around that. */
function isElsewhere({ capturing }: Stream, { captureScope }: Stream): boolean {
  if (capturing === undefined) return false;
  return capturing.outside ? capturing.isAround : capturing !== captureScope;
}
