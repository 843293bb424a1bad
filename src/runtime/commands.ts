/**
 * The commands that travel through the ring: their numbers and the meaning of each word.
 *
 * Every record begins with the same four words. Addresses travel as a handle and a byte offset (the
 * handle's address is often not yet known when the record is written); byte counts and offsets are
 * 64-bit integers in two words, low half first (marked i64 below).
 */

/** Word 0: opcode in bits 0–7, flags in bits 8–15, length of the record in words in bits 16–31. */
export const RECORD_HEAD = 0;
/** Word 1: the operation (root) that the command belongs to. */
export const RECORD_ROOT = 1;
/** Word 2: slot number of the stream, or -1. */
export const RECORD_STREAM = 2;
/** Word 3: handle of an event to record on the stream after the command, 0 for none. */
export const RECORD_EVENT = 3;
/** Where a command's own words begin. */
export const RECORD_BODY = 4;

/** The command runs although its stream is held: it is part of the transfer that holds it. */
export const FLAG_BYPASS = 1;
/**
 * A fence for one of many short awaits in a row: what comes next is best carried out by whoever
 * awaits.
 */
export const FLAG_HOT = 2;
/**
 * A graph of few nodes for a stream that is idle: launching it takes no longer than launching a few
 * kernels.
 */
export const FLAG_SHORT = 4;
/** As few: launching them takes about ten microseconds (measured on an H200). */
export const SHORT_GRAPH_NODES = 128;

/** Access of one operand, in bits 24 and up of the word that names its handle. */
export const ACCESS_READ = 1;
export const ACCESS_WRITE = 2;
/**
 * Every byte of the allocation is written, so that an earlier failure of its contents is forgotten.
 */
export const ACCESS_WHOLE = 4;
export const HANDLE_MASK = 0xffffff;
export const ACCESS_SHIFT = 24;

export const OP = {
  /**
   * The usual launch, kept within one cache line: function, grid x, block x, shared bytes,
   * references | parameter bytes << 16; then one word for each reference (handle | access << 20 |
   * parameter word << 23); then parameters.
   */
  launchLine: 1,
  /** As launchLine, with grid x, y, z and block x, y, z. */
  launchGrid: 35,
  /**
   * function, grid×3, block×3, shared bytes, references | parameter bytes << 16; then (handle |
   * access, parameter word) pairs; then parameters.
   */
  launch: 26,
  /**
   * Fills the end of the ring; nothing to do. Not zero: a header of zero is a record that is not
   * there yet.
   */
  pad: 27,
  /** As launch, with {@link LAUNCH_EX} words between the shared bytes and the references. */
  launchEx: 2,
  /** slot, value */
  fence: 3,
  /** dst, dst offset (i64), src, src offset (i64), bytes (i64), kind */
  copy: 4,
  /** dst, dst offset (i64), element bits, value, count or width (i64), height (0 for 1-D), pitch */
  memset: 5,
  /** handle, pool handle (0: the device's own), bytes (i64) */
  alloc: 6,
  /** handle */
  free: 7,
  /** handle of the event; recorded through word 3 */
  record: 8,
  /** event, 0 (the decoder's: which record of the event is meant, where records are set aside) */
  wait: 9,
  /** slot, flags, priority */
  streamCreate: 10,
  streamDestroy: 11,
  /** event, flags */
  eventCreate: 12,
  /** event */
  eventDestroy: 13,
  /** slot whose hold word releases the stream, value */
  hold: 14,
  /** executable graph, references; then (handle | access) of each */
  graphLaunch: 15,
  captureBegin: 16,
  /** handle that takes the graph, number of the capture */
  captureEnd: 17,
  /** a message with a procedure's name and arguments waits in the port */
  call: 18,
  /** dst, dst offset, dst pitch, src, src offset, src pitch, width, height, kind (offsets i64) */
  copy2D: 19,
  /** handle, offset (i64), bytes (i64), device (-1: host) */
  prefetch: 20,
  /**
   * 1 where the stream has become part of a capture by waiting, 0 where it is no longer; number of
   * the capture
   */
  captureJoin: 21,
  /** handle, failure: the JS thread could not bring the contents that it promised */
  poison: 25,
  /**
   * slot, value: what waits behind that hold may go on, and what was sent past it has gone first
   */
  release: 28,
  /** a kernel that prints was launched on the stream */
  printed: 29,
  /** number of the device, event there, number of the wait */
  peerWait: 30,
  /**
   * dst, dst offset (i64), dst pitch, dst rows of a slice, src, src offset (i64), src pitch, src
   * rows, width, height, depth, kind
   */
  copy3D: 31,
  /** handle, offset (i64), value (i64), 32 or 64 */
  writeValue: 32,
  /** handle, offset (i64), value (i64), 32 or 64, condition (CU_STREAM_WAIT_VALUE_*) */
  waitValue: 33,
  /**
   * event that another device waits for, 1 where it has to be told when this device has reached it
   */
  announce: 34,
  /**
   * handle of what decides a conditional node of the graph that the stream is recorded in, its
   * value at the beginning of a launch
   */
  conditionCreate: 36,
  /** handle of the condition, CU_GRAPH_COND_TYPE_*, number of bodies */
  conditionalNode: 37,
  /** condition, number of the body that what comes next on the stream is recorded in */
  bodyBegin: 38,
  /** condition, number of the body, number of its capture */
  bodyEnd: 39,
  /** handle of the condition: no command names it any more */
  conditionForget: 40,
  /**
   * number of the function, references | words of arguments << 16; then (handle | access, argument
   * word) pairs; then the arguments
   */
  libraryCall: 41,
} as const;

/**
 * Of the words before the references of {@link OP.launchLine} and {@link OP.launchGrid} the last:
 * references | parameter bytes << 16.
 */
export const LINE_PACKED = 4;
export const GRID_PACKED = 8;
/** In their references: bits of the handle, of the access, and of the parameter's word. */
export const LINE_ACCESS_SHIFT = 20;
export const LINE_WORD_SHIFT = 23;
export const LINE_HANDLE_MASK = 0xfffff;
export const LINE_MAX_WORD = 0x1ff;

/** The extra words of a launch with attributes. */
export const LAUNCH_EX = {
  flags: 0,
  clusterX: 1,
  clusterY: 2,
  clusterZ: 3,
  priority: 4,
  words: 5,
} as const;
export const LAUNCH_COOPERATIVE = 1;
export const LAUNCH_CLUSTER = 2;
export const LAUNCH_PROGRAMMATIC = 4;
export const LAUNCH_PRIORITY = 8;

export const COPY_HOST_TO_DEVICE = 0;
export const COPY_DEVICE_TO_HOST = 1;
export const COPY_DEVICE_TO_DEVICE = 2;
/** Between two contexts. */
export const COPY_PEER = 3;
/**
 * Added to the kind of a {@link OP.copy3D}: that end is an array, whose offset counts as if it were
 * dense.
 */
export const COPY_TO_ARRAY = 4;
export const COPY_FROM_ARRAY = 8;

/** Names of the driver calls, for errors. */
export const OP_CALLS: Readonly<Record<number, string>> = {
  [OP.launchLine]: 'cuLaunchKernel',
  [OP.launchGrid]: 'cuLaunchKernel',
  [OP.launch]: 'cuLaunchKernel',
  [OP.launchEx]: 'cuLaunchKernelEx',
  [OP.fence]: 'cuStreamWriteValue32',
  [OP.copy]: 'cuMemcpyAsync',
  [OP.copy2D]: 'cuMemcpy2DAsync',
  [OP.prefetch]: 'cuMemPrefetchAsync',
  [OP.memset]: 'cuMemsetAsync',
  [OP.alloc]: 'cuMemAllocAsync',
  [OP.free]: 'cuMemFreeAsync',
  [OP.record]: 'cuEventRecord',
  [OP.wait]: 'cuStreamWaitEvent',
  [OP.captureBegin]: 'cuStreamBeginCapture',
  [OP.captureEnd]: 'cuStreamEndCapture',
  [OP.conditionCreate]: 'cuGraphConditionalHandleCreate',
  [OP.conditionalNode]: 'cuGraphAddNode',
  [OP.bodyBegin]: 'cuStreamBeginCaptureToGraph',
  [OP.bodyEnd]: 'cuStreamEndCapture',
  [OP.graphLaunch]: 'cuGraphLaunch',
  [OP.peerWait]: 'cuStreamWaitEvent',
  [OP.copy3D]: 'cuMemcpy3DAsync',
  [OP.writeValue]: 'cuStreamWriteValue',
  [OP.waitValue]: 'cuStreamWaitValue',
};
