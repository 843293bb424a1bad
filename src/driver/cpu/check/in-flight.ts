// Accesses of asynchronous operations. The CPU device makes them at once; on a GPU they may be made
// at any time until the thread waits for the group of the operation. So they are recorded twice,
// when they are issued and when they are waited for: an access of another thread that is ordered
// after the one and not after the other is a race. Until then the thread's own accesses conflict
// with them, too.
import { ACCESS, GROUP_EVENT, IN_FLIGHT } from '../../../ptx/index.js';
import { groupOf } from './block-watch.js';
import type { BlockWatch } from './block-watch.js';
import type { Earlier } from './race-check.js';
import { actionOf } from './reports.js';

/** An access, as code reports it. */
interface Access {
  readonly address: number;
  readonly bytes: number;
  readonly flags: number;
  readonly line: number;
}

/** Which asynchronous operations an access is part of: a number of `IN_FLIGHT`, or 0. */
const operationsOf = (flags: number): number => (flags >>> ACCESS.inFlightShift) & 3;

const isRead = ({ flags }: Access): boolean => (flags & (ACCESS.write | ACCESS.atomic)) === 0;

/** The accesses in flight of one thread. */
export class InFlight {
  /** By operations: the groups that are committed, the oldest first, and the open one. */
  private readonly groups: ({ committed: Access[][]; open: Access[] } | undefined)[] = [];

  private of(operations: number): { committed: Access[][]; open: Access[] } {
    return (this.groups[operations] ??= { committed: [], open: [] });
  }

  add(access: Access): void {
    this.of(operationsOf(access.flags)).open.push(access);
  }

  /** Applies an event, and returns the accesses that are complete by it. */
  apply(operations: number, event: number): readonly Access[] {
    const groups = this.of(operations);
    if (event === GROUP_EVENT.committed) {
      groups.committed.push(groups.open);
      groups.open = [];
      return [];
    }
    if (event === GROUP_EVENT.handedOver) {
      groups.committed = [];
      groups.open = [];
      return [];
    }
    const left = event & ~GROUP_EVENT.reads;
    const count = Math.max(groups.committed.length - left, 0);
    if ((event & GROUP_EVENT.reads) === 0) return groups.committed.splice(0, count).flat();
    const complete = groups.committed.slice(0, count);
    // The groups stay, with what they write.
    complete.forEach((group, index) => {
      groups.committed[index] = group.filter((access) => !isRead(access));
    });
    return complete.flat().filter(isRead);
  }

  /** The access in flight that one of the same thread meets, one of the two a write. */
  conflict(address: number, bytes: number, writes: boolean): Access | undefined {
    for (const groups of this.groups) {
      if (groups === undefined) continue;
      for (const group of groups.committed) {
        const found = conflictIn(group, address, bytes, writes);
        if (found) return found;
      }
      const found = conflictIn(groups.open, address, bytes, writes);
      if (found) return found;
    }
    return undefined;
  }
}

/** The first of the accesses that another one meets, one of the two a write. */
function conflictIn(
  group: readonly Access[],
  address: number,
  bytes: number,
  writes: boolean,
): Access | undefined {
  for (const access of group)
    if (
      address < access.address + access.bytes &&
      access.address < address + bytes &&
      (writes || !isRead(access))
    )
      return access;
  return undefined;
}

/**
 * The products of a warp group. A thread that has waited for one knows that it is complete in all
 * of the group, since it waits until all four warps have arrived at it.
 */
export class ProductsInFlight {
  /** By number: the accesses of a group of products; undefined once it is complete. */
  private readonly groups: (Access[] | undefined)[] = [];
  /** By thread of the warp group: the groups that it has committed. */
  private readonly committed = new Uint32Array(128);

  add(thread: number, access: Access): void {
    const group = this.committed[thread & 127]!;
    if (group in this.groups) this.groups[group]?.push(access);
    else this.groups[group] = [access];
  }

  apply(thread: number, event: number): readonly Access[] {
    if (event < 0) {
      this.committed[thread & 127]!++;
      return [];
    }
    const complete: Access[] = [];
    for (let group = this.committed[thread & 127]! - event - 1; group >= 0; group--) {
      const accesses = this.groups[group];
      if (accesses === undefined && group in this.groups) break;
      if (accesses !== undefined) complete.push(...accesses);
      this.groups[group] = undefined;
    }
    return complete;
  }
}

/**
 * Takes up an access of an asynchronous operation. For another one, returns the access of the
 * thread's own operations that it meets.
 */
export function ownConflict(
  watch: BlockWatch,
  thread: number,
  address: number,
  bytes: number,
  flags: number,
  line: number,
): Earlier | undefined {
  const operations = operationsOf(flags);
  if (operations === IN_FLIGHT.product) {
    const products = (watch.products[thread >> 7] ??= new ProductsInFlight());
    products.add(thread, { address, bytes, flags, line });
    return undefined;
  }
  if (operations !== 0) {
    (watch.inFlight[thread] ??= new InFlight()).add({ address, bytes, flags, line });
    return undefined;
  }
  const writes = (flags & (ACCESS.write | ACCESS.atomic)) !== 0;
  const found = watch.inFlight[thread]?.conflict(address, bytes, writes);
  return (
    found && {
      work: watch.launch,
      block: watch.number,
      thread,
      line: found.line,
      action: actionOf(found.flags),
      onlyWrites: false,
    }
  );
}

/** As whose an access is recorded. */
export const recordedAs = ({ threads }: BlockWatch, thread: number, flags: number): number =>
  operationsOf(flags) === IN_FLIGHT.product ? groupOf(thread, threads) : thread;

/**
 * A thread has committed a group of operations, or waited for some: returns the accesses that are
 * complete by it.
 */
export function groupEvent(
  watch: BlockWatch,
  thread: number,
  operations: number,
  event: number,
): readonly Access[] {
  return (
    (operations === IN_FLIGHT.product
      ? watch.products[thread >> 7]?.apply(thread, event)
      : watch.inFlight[thread]?.apply(operations, event)) ?? []
  );
}
