/**
 * Sample kernels that a device does not run yet, and why. Their cases are there and are tried: one
 * that runs fails the suite until its row is taken out. The list is to become empty.
 */
export interface Uncovered {
  kernel: string;
  devices: readonly ('cpu' | 'cuda')[];
  reason: string;
  /** In the error's message. */
  says: RegExp;
}

export const UNCOVERED: readonly Uncovered[] = [];
