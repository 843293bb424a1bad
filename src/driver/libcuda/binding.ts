/**
 * What the groups of calls (`device-calls.ts`, `memory-calls.ts` and the others) stand on: one
 * loaded libcuda.
 */
import type { DriverCalls } from './driver-call.js';
import type { Koffi } from '../../native/koffi.js';
import type { NativeMemory } from '../../native/native-memory.js';
import type { PointerCalls } from './node-ffi.js';

export interface Binding {
  readonly koffi: Koffi;
  readonly calls: DriverCalls;
  /** Some of the calls by a shorter way, where Node has one. */
  readonly pointerCalls: Partial<PointerCalls>;
  /** Answers and structures of the call in progress; {@link SCRATCH_SIZE} bytes. */
  readonly scratch: NativeMemory;
  /**
   * Grows whenever a module or library is unloaded, by whichever thread: function handles may then
   * come back with another meaning.
   */
  readonly unloads: Int32Array;
}
