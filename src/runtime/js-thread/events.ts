/** The events that a runtime reports to the library, and the questions that it has to answer. */
import type { CheckMemory, CheckReport } from '../../ground/check-report.js';
import type { CudaError } from '../../ground/errors.js';
import type { RoomStep } from '../decoder/host.js';

export interface RuntimeEvents {
  /** An operation has failed that no code awaits. */
  error(error: CudaError): void;
  /** A kernel has printed text. */
  print(text: string): void;
  /** The checking device has a report. */
  check(report: CheckReport): void;
  /**
   * Returns the label of the allocation that operation `root` made, and where it was made; on a
   * checked device.
   */
  origin(memory: CheckMemory): { label: string; stack: string } | undefined;
  /** The device met a fault. */
  lost(error: CudaError): void;
  /** Returns the labels of allocations, by handle. It is called when the device is lost. */
  labels(): ReadonlyMap<number, string>;
  /**
   * Makes room for an allocation of a stream (its slot) that found too little memory. The
   * allocation is tried again when the promise settles.
   */
  short(step: RoomStep, stream: number): Promise<void>;
  /** The device has been idle for some time. */
  idle(): Promise<void>;
}
