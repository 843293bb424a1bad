// The target of an access: a checked address, and the space that the instruction names.

/** A place in memory that has been checked: an i32 local plus a constant. */
export interface Place {
  local: number;
  offset: number;
}

/** `cluster`: the shared memory of all blocks of the cluster. */
export type AccessSpace = 'global' | 'shared' | 'cluster' | 'generic' | 'local' | 'const' | 'param';
