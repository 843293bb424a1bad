/**
 * Sample kernels that a device does not run yet, and why. Their cases are there and are tried: one that runs fails the
 * suite until its row is taken out. The list is to become empty.
 */
export interface Uncovered {
  kernel: string;
  devices: readonly ('cpu' | 'cuda')[];
  reason: string;
  /** In the error's message. */
  says: RegExp;
}

const MATRIX = 'matrix instructions are not compiled yet';

export const UNCOVERED: readonly Uncovered[] = [
  { kernel: 'wmma_gemm', devices: ['cpu'], reason: MATRIX, says: /wmma/ },
  { kernel: 'mma_ptx', devices: ['cpu'], reason: MATRIX, says: /mma/ },
  { kernel: 'tex_sample', devices: ['cpu'], reason: 'textures are not compiled yet', says: /tex/ },
  { kernel: 'surf_rw', devices: ['cpu'], reason: 'surfaces are not compiled yet', says: /suld|sust/ },
  { kernel: 'tex_sample', devices: ['cuda'], reason: 'the library makes no texture objects yet', says: /no texture objects/ },
  { kernel: 'surf_rw', devices: ['cuda'], reason: 'the library makes no surface objects yet', says: /no surface objects/ },
];
