/**
 * The work of other streams that a piece of work comes after, by the order that the program has
 * set: waits for events, the legacy stream's rule, and the ends of work that the host has seen
 * before it queued more. It is no order that work happened to be over.
 */
import type { Stream } from './stream.js';

/** Up to which number each stream's work is known to be over. */
export type Passed = Map<Stream, number>;

function join(into: Passed, from: ReadonlyMap<Stream, number>): void {
  for (const [stream, sequence] of from)
    if (sequence > (into.get(stream) ?? 0)) into.set(stream, sequence);
}

export class StreamOrder {
  private readonly passed = new Map<Stream, Passed>();
  private readonly host: Passed = new Map();
  private hostChanges = 0;
  private readonly hostSeen = new Map<Stream, number>();
  /** The knowledge of queued operations, which they have when they begin. */
  private readonly ahead = new Map<Stream, { sequence: number; passed: Passed }[]>();

  of(stream: Stream): Passed {
    let known = this.passed.get(stream);
    if (known === undefined) {
      known = new Map();
      this.passed.set(stream, known);
    }
    return known;
  }

  /**
   * Records that an operation is queued, as number `sequence`; `after` are streams whose whole work
   * so far comes first.
   */
  queued(stream: Stream, sequence: number, after: Iterable<Stream>): void {
    const passed: Passed = new Map();
    for (const other of after) passed.set(other, other.submitted);
    if (this.hostSeen.get(stream) !== this.hostChanges) {
      this.hostSeen.set(stream, this.hostChanges);
      join(passed, this.host);
    }
    if (passed.size === 0) return;
    const list = this.ahead.get(stream);
    if (list === undefined) this.ahead.set(stream, [{ sequence, passed }]);
    else list.push({ sequence, passed });
  }

  /** The stream begins the operation after its last completed one. */
  begins(stream: Stream): void {
    const list = this.ahead.get(stream);
    while (list !== undefined && list.length > 0 && list[0]!.sequence <= stream.completed + 1)
      join(this.of(stream), list.shift()!.passed);
  }

  /** `stream` has waited for operation `sequence` of `other`. */
  waited(stream: Stream, other: Stream, sequence: number): void {
    const known = this.of(stream);
    join(known, this.of(other));
    if (sequence > (known.get(other) ?? 0)) known.set(other, sequence);
  }

  /** The host may have seen that `stream` has passed operation `sequence`. */
  observed(stream: Stream, sequence: number): void {
    join(this.host, this.of(stream));
    if (sequence > (this.host.get(stream) ?? 0)) this.host.set(stream, sequence);
    this.hostChanges++;
  }

  /** The stream has waited for a value, which any stream may have written. */
  waitedForValue(stream: Stream, all: Iterable<Stream>): void {
    for (const other of all) if (other !== stream) this.waited(stream, other, other.completed + 1);
  }

  knows(stream: Stream, other: Stream, sequence: number): boolean {
    return stream === other || (this.passed.get(stream)?.get(other) ?? 0) >= sequence;
  }
}
