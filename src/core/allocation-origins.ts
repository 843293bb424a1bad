/** Where in the program allocations were made, for the reports of a checked device. */
import type { CheckMemory } from '../ground/check-report.js';
import { callersOf, stackHere } from './call-stack.js';
import { placeOfOperation } from './operation-places.js';

/** The most allocations whose place in the program is recorded. */
const MOST_ORIGINS = 65536;

/** The description and the call stack of an allocation. */
export interface Origin {
  readonly label: string;
  readonly stack: string;
}

/**
 * The operation and the handle of an allocation. An operation may make several allocations with a
 * handle each; a call that allocates has the handle 0.
 */
export type OriginKey = Pick<CheckMemory, 'root' | 'handle'>;

export class AllocationOrigins {
  private readonly origins = new Map<string, Origin>();

  /** Records that the running code makes the allocation. */
  record(memory: OriginKey, label: string): void {
    this.origins.set(textOf(memory), {
      label,
      stack: placeOfOperation() ?? callersOf(stackHere()),
    });
    if (this.origins.size > MOST_ORIGINS) this.origins.delete(this.origins.keys().next().value!);
  }

  of(memory: OriginKey): Origin | undefined {
    return this.origins.get(textOf(memory)) ?? this.origins.get(textOf({ ...memory, handle: 0 }));
  }
}

const textOf = ({ root, handle }: OriginKey): string => `${root} ${handle}`;
