/** The work that was queued on a device when it was lost, as the error lists it. */

/** The unfinished work of one stream, the oldest first. */
export interface InFlight {
  /** The stream's label, or its number. */
  readonly stream: string;
  /** Kernels by name, with the labels of their buffers. Repeated operations are counted. */
  readonly operations: readonly string[];
}
