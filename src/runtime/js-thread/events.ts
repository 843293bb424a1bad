/**
 * What a runtime reports to the library, and asks it.
 */
import type { CheckMemory, CheckReport } from '../../ground/check-report.js';
import type { CudaError } from '../../ground/errors.js';
import type { RoomStep } from '../decoder/host.js';

export interface RuntimeEvents {
  /** An operation has failed that nothing awaits. */
  error(error: CudaError): void;
  /** A kernel has printed text. */
  print(text: string): void;
  /** The checking device has found something. */
  check(report: CheckReport): void;
  /**
   * Label of the allocation that operation `root` made, and where it was made; on a device that is
   * checked.
   */
  origin(memory: CheckMemory): { label: string; stack: string } | undefined;
  /** The device met a fault. */
  lost(error: CudaError): void;
  /** Labels of what is allocated, by handle; asked for when the device is lost. */
  labels(): ReadonlyMap<number, string>;
  /**
   * An allocation of a stream (its slot) found too little memory; it is tried again when the
   * promise settles.
   */
  short(step: RoomStep, stream: number): Promise<void>;
  /** The device has been idle for some time. */
  idle(): Promise<void>;
}
