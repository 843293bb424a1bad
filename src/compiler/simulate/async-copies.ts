/**
 * Asynchronous copies from tensors to shared memory. No thread may read what such a copy writes
 * before the thread that began it has waited for it.
 */
import { Failure } from './failure.js';
import type { Memory } from './memory.js';

interface Copy {
  readonly to: Memory;
  readonly index: number;
  readonly count: number;
}

/** `gpu.async` of one thread, for the generated code. */
export class AsyncCopies {
  private begun: Copy[] = [];
  private readonly groups: Copy[][] = [];

  copy(
    to: Memory,
    index: number,
    from: Memory,
    fromIndex: number,
    count: number,
    given: number,
    site: number,
  ): void {
    const wanted = Math.min(Math.max(given, 0), count);
    for (const [what, at] of [
      ['shared memory', index],
      ['the tensor', wanted === 0 ? 0 : fromIndex],
    ] as const) {
      if (at % count === 0) continue;
      throw new Failure(
        'alignment',
        `an asynchronous copy of ${count} elements begins at element ${at} of ${what}`,
        'Both places have to be multiples of the copied size: give rows lengths that are ' +
          `multiples of ${count}.`,
        site,
      );
    }
    to.copyFrom(index, from, fromIndex, count, wanted, site);
    this.begun.push({ to, index, count });
  }

  commit(): void {
    this.groups.push(this.begun);
    this.begun = [];
  }

  /** With `pending` 0 it also waits for copies that were not committed: cp.async.wait_all. */
  wait(pending: number): void {
    if (pending === 0) this.commit();
    while (this.groups.length > pending)
      for (const { to, index, count } of this.groups.shift()!) to.arrived(index, count);
  }
}
