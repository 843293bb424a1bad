// The contract between code compiled with `check` and whoever watches it. Such code tells of every
// access, fence, arrival and frame through imported functions; what these mean is not known here.

/**
 * How an access is described in one word: what it does, how strong it is, and which space the
 * instruction names.
 */
export const ACCESS = {
  read: 1,
  write: 2,
  /** Read and write in one, by atom, red and mbarrier. */
  atomic: 4,
  /** Strong in the sense of the memory model: volatile, relaxed, acquire, release or atomic. */
  strong: 8,
  acquire: 16,
  release: 32,
  /** Its scope is the block only. */
  block: 64,
  /** What it reads is only put elsewhere. */
  copy: 128,
  /** A store of registers: it is carried out before the code tells of anything else. */
  store: 256,
  spaceShift: 9,
} as const;

/** Spaces by their number above {@link ACCESS.spaceShift}. */
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
  /** barrier.cluster.wait, which those who have exited are not waited for at. */
  cluster: 0,
  /**
   * bar and barrier.aligned: all threads of a warp execute the same one. a: barrier, b: threads or
   * 0
   */
  alignedBarrier: 1,
  barrier: 2,
  /** bar.arrive, which does not wait. */
  arrive: 3,
  /** bar.warp.sync; a: mask */
  warpBarrier: 4,
  /** shfl.sync, vote.sync, match.sync, redux.sync, elect.sync; a: mask, b: see {@link SHUFFLE} */
  warpOperation: 5,
  /** Waits, and names nobody: activemask and the warp operations without .sync. */
  gathering: 6,
} as const;

/**
 * What a shuffle that names its source tells beside its mask: the lane in the low bits, and its
 * control word.
 */
export const SHUFFLE = {
  named: 2 ** 18,
  /** Where the control word begins. */
  control: 5,
} as const;

/** A variable at its place in the shared window, a frame or the module's data. */
export interface PlacedVariable {
  name: string;
  offset: number;
  size: number;
}

/** A line of the program that the PTX was made from. */
export interface SourceLine {
  file: string;
  line: number;
}

/** What a watcher needs to know of a kernel compiled with `check`. */
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
   * Where frames begin in a block whose scratch memory begins at the address, one after the other,
   * `frameBytes` each.
   */
  frames(scratch: number, threads: number): number;
  frameBytes: number;
  frame: PlacedVariable[];
  /** Bytes of the stack of called functions behind the frames. */
  stackBytes: number;
}

/** What a watcher needs to know of a module compiled with `check`. */
export interface ModuleCheck {
  /** Frames of functions that are really called, by the number that `check_frame` is given. */
  frames: { name: string; bytes: number; variables: PlacedVariable[] }[];
  /** The PTX. */
  text: string;
  /** By line of PTX, from its .loc directives. */
  lines: ReadonlyMap<number, SourceLine>;
}

/** Bytes that no variable owns behind each one, so that what runs past its end is found. */
export const CHECK_GAP = 64;
