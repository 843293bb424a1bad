/**
 * Where operations were made, for what devices that are checked say of memory: it is allocated when
 * an operation is run, and by then the call that made the operation is no longer on the stack.
 */
let wanted = false;
let current: string | undefined = undefined;

/** A device that is checked has been opened: from now on operations remember their places. */
export function wantPlaces(): void {
  wanted = true;
}

export const placesAreWanted = (): boolean => wanted;

/** Runs `queue`, whose allocations are those of an operation that was made at `place`. */
export function atPlace<T>(place: string, queue: () => T): T {
  const before = current;
  current = place;
  try {
    return queue();
  } finally {
    current = before;
  }
}

/** Undefined where no operation is being queued. */
export const placeOfOperation = (): string | undefined => current;
