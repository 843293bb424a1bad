/**
 * What an embedded driver gets from outside: the compiler, the clock, threads, and settings.
 */
import type { CheckReport } from '../../ground/check-report.js';
import type { CheckSettings } from './check/settings.js';
import type { CrewOptions } from './crew/crew-options.js';
import type { Compile } from './kernels/compile.js';

export interface MachineServices {
  print: (text: string) => void;
  compile: Compile;
  /** Returns milliseconds. */
  now: () => number;
  /** Milliseconds without any progress after which a grid counts as hanging. */
  stallLimit: number;
  /** Threads that run blocks; without them the device's own thread does it alone. */
  crew: CrewOptions | undefined;
  writeText: (path: string, text: string) => void;
  /** Requests large pages from the system for device memory. */
  askForLargePages: ((memory: Uint8Array) => void) | undefined;
  /** Number of threads that a kernel is launched with before it is compiled for vector lanes. */
  threadsBeforeLanes: number;
  /** What is checked, on a device that is checked; `report` is called with the reports. */
  check: CheckSettings | undefined;
  report: (report: CheckReport) => void;
  /**
   * Is called where V8 may optimise code in the background for this many milliseconds: the process
   * does not end before.
   */
  optimises: (ms: number) => void;
  /** The seed of a device whose order of work is explored. */
  seed: number | undefined;
}
