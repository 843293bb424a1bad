/**
 * Branches that run at the same time, on streams of their own, which fork and join on the device.
 */
import type { Stream } from '../core/index.js';
import { allKnown } from './collect.js';
import { Later } from './node.js';
import type { Node, Submitted } from './node.js';
import type { Run } from './run.js';
import { NextIdle } from './scheduling.js';

/** How often a policy is called for a stream that no other branch has. */
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
    // The first branch stays on the stream of the run.
    for (let i = 1; i < branches.length; i++) {
      const found: Stream | undefined = free ? another(run, taken) : undefined;
      free = found !== undefined;
      if (found !== undefined) taken.push(found);
      // With more branches than streams, each stream has equally many.
      streams[i] = found ?? taken[i % taken.length]!;
    }
    // All branches begin at the same point: no branch waits for the work of the first.
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
      // The join is also needed where a branch threw: the work of the other branches is ordered by
      // nothing else.
      for (const stream of forked) origin.wait(stream);
    }
    if (!later) return values;
    return run.goOn(allKnown(run, values), (known) => {
      // This orders the work that a branch queued after its value was known.
      for (const stream of forked) origin.wait(stream);
      return known;
    });
  }

  describe(depth: number): string {
    const branches = this.branches.map((branch) => (depth <= 0 ? '' : branch.describe(depth - 1)));
    return `parallel(${depth <= 0 ? '…' : branches.join(', ')})`;
  }
}

/** A stream that no branch has yet; undefined where the policy seems to have no more. */
function another(run: Run, taken: readonly Stream[]): Stream | undefined {
  for (let i = 0; i < TRIES; i++) {
    const next =
      run.policy instanceof NextIdle ? run.policy.otherStream() : run.policy.nextStream();
    // In the body of a conditional node, streams of the capture around it cannot join.
    if (next.device !== run.device || (run.recording && isOtherCapture(next, run.stream))) continue;
    if (!taken.includes(next)) return next;
  }
  return undefined;
}

/** Whether the stream is part of another capture than `stream`, or of the one around that. */
function isOtherCapture({ capturing }: Stream, { captureScope }: Stream): boolean {
  if (capturing === undefined) return false;
  return capturing.outside ? capturing.isAround : capturing !== captureScope;
}
