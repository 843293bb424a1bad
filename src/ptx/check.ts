// The contract between code compiled with `check` and the functions that it imports. Such code
// reports every access, fence, arrival and frame through these functions; the checker that supplies
// them (`src/driver/cpu`) decides what they mean.

/**
 * One word that describes an access: what it does, how strong it is, and which space the
 * instruction names.
 */
export const ACCESS = {
  read: 1,
  write: 2,
  /** A read and a write in one, by atom, red and mbarrier. */
  atomic: 4,
  /** Strong in the sense of the memory model: volatile, relaxed, acquire, release or atomic. */
  strong: 8,
  acquire: 16,
  release: 32,
  /** The scope is the block only. */
  block: 64,
  /** The value that is read is only stored elsewhere. */
  copy: 128,
  /** A store of registers: it is executed before the code reports anything else. */
  store: 256,
  /** An mbarrier: what a thread knows is passed on by it thread by thread. */
  barrier: 512,
  /** One of {@link IN_FLIGHT}, two bits: the access goes on until its thread waits for it. */
  inFlightShift: 10,
  spaceShift: 12,
} as const;

/** Asynchronous operations that are waited for in groups. */
export const IN_FLIGHT = {
  /** cp.async */
  copy: 1,
  /** Bulk copies from shared memory. */
  bulk: 2,
  /** wgmma: accesses of the whole warp group. */
  product: 3,
} as const;

/** What happens to a thread's groups of such operations; a number from 0 up is a wait. */
export const GROUP_EVENT = {
  /** Its operations so far are a group. */
  committed: -1,
  /** They are complete when something else is that other threads wait for. */
  handedOver: -2,
  /** With the number of a wait: only what the operations read. */
  reads: 256,
} as const;

/** Spaces by their numbers above {@link ACCESS.spaceShift}. */
export const ACCESS_SPACES = [
  'generic',
  'global',
  'shared',
  'local',
  'const',
  'param',
  'cluster',
] as const;

/** What a thread arrives at. */
export const ARRIVAL = {
  /** barrier.cluster.wait, which does not wait for threads that have exited. */
  cluster: 0,
  /**
   * bar and barrier.aligned: all threads of a warp execute the same one. a: barrier, b: threads or
   * 0.
   */
  alignedBarrier: 1,
  barrier: 2,
  /** bar.arrive, which does not wait. */
  arrive: 3,
  /** bar.warp.sync; a: mask. */
  warpBarrier: 4,
  /** shfl.sync, vote.sync, match.sync, redux.sync, elect.sync; a: mask, b: see {@link SHUFFLE}. */
  warpOperation: 5,
  /** Waits, and names no threads: activemask, and the warp operations without .sync. */
  gathering: 6,
} as const;

/**
 * What a shuffle that names its source lane reports besides its mask: the lane in the low bits, and
 * its control word.
 */
export const SHUFFLE = {
  named: 2 ** 18,
  /** The bit at which the control word begins. */
  control: 5,
} as const;

/** A variable at its place in the shared window, a frame or the module's data. */
export interface PlacedVariable {
  name: string;
  offset: number;
  size: number;
}

/** A line of the program from which the PTX was compiled. */
export interface SourceLine {
  file: string;
  line: number;
}

/** What a checker needs of a kernel that is compiled with `check`. */
export interface KernelCheck {
  /**
   * Static shared bytes with the gaps between variables. `sharedBytes` of the kernel counts the
   * variables only.
   */
  sharedBytes: number;
  shared: PlacedVariable[];
  /** Where dynamic shared memory begins in the window. */
  dynamicShared: number;
  /**
   * The address of the first frame in a block whose scratch memory begins at the address. Frames
   * are adjacent, `frameBytes` each.
   */
  frames(scratch: number, threads: number): number;
  frameBytes: number;
  frame: PlacedVariable[];
  /** Bytes of the stack of called functions, which lies after the frames. */
  stackBytes: number;
}

/** What a checker needs of a module that is compiled with `check`. */
export interface ModuleCheck {
  /** Frames of functions that are called and not inlined, by the number that `check_frame` gets. */
  frames: { name: string; bytes: number; variables: PlacedVariable[] }[];
  /** The PTX text. */
  text: string;
  /** Source lines by line of PTX, from the .loc directives. */
  lines: ReadonlyMap<number, SourceLine>;
}

/**
 * Bytes after each variable that belong to no variable, so that an access past its end is found.
 */
export const CHECK_GAP = 64;
