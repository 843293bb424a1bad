/**
 * The places in the program where operations were made, for reports of checked devices about
 * memory. Memory is allocated when an operation runs, and then the call that made the operation is
 * no longer on the stack.
 */
let wanted = false;
let current: string | undefined = undefined;

/** Called when a checked device is opened: from now on operations record their places. */
export function recordPlaces(): void {
  wanted = true;
}

export const recordsPlaces = (): boolean => wanted;

/** Runs `queue`, whose allocations belong to an operation that was made at `place`. */
export function atPlace<T>(place: string, queue: () => T): T {
  const before = current;
  current = place;
  try {
    return queue();
  } finally {
    current = before;
  }
}

/** The place of the operation that is being queued; undefined where there is none. */
export const placeOfOperation = (): string | undefined => current;
