/**
 * Slots and staging of GPUs that were closed, where they lie in memory that the driver allocated.
 * JavaScript may keep views of that memory for ever, so it is never freed: the next open of the
 * device uses it.
 */

/** Addresses by the device's ordinal. */
const spare = new Map<number, number[]>();

export const spareHostMemory = {
  take(ordinal: number): number | undefined {
    return spare.get(ordinal)?.pop();
  },

  keep(ordinal: number, address: number): void {
    const addresses = spare.get(ordinal) ?? [];
    spare.set(ordinal, addresses);
    addresses.push(address);
  },
};
