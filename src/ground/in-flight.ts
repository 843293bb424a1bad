/** What was under way on a device that was lost, as its error lists it. */

/** Work of one stream, the oldest first. */
export interface InFlight {
  /** The stream's label, or its number. */
  readonly stream: string;
  /** Kernels by their names, with the labels of their buffers; what repeats is counted. */
  readonly operations: readonly string[];
}
