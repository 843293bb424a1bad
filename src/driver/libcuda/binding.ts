/**
 * The common ground of the groups of calls (`device-calls.ts`, `memory-calls.ts` and the others):
 * one loaded libcuda.
 */
import type { DriverCalls } from './driver-call.js';
import type { Koffi } from '../../native/koffi.js';
import type { NativeMemory } from '../../native/native-memory.js';
import type { PointerCalls } from './node-ffi.js';

export interface Binding {
  readonly koffi: Koffi;
  readonly calls: DriverCalls;
  /** Some of the calls through `node:ffi`, where Node has it. */
  readonly pointerCalls: Partial<PointerCalls>;
  /** Results and structures of the current call; {@link SCRATCH_SIZE} bytes. */
  readonly scratch: NativeMemory;
  /**
   * Incremented whenever a module or library is unloaded, by any thread: the driver may then reuse
   * function handles.
   */
  readonly unloads: Int32Array;
}
