/**
 * The messages between the JavaScript thread and its workers. Nothing on the hot path is a message.
 */
import type { MessagePort } from 'node:worker_threads';

import type { CheckOptions, CheckReport } from '../ground/check-report.js';
import type { ConditionalNodes } from './conditionals.js';
import type { RoomStep } from './decoder/host.js';
import type { LibraryStart } from './library-calls.js';
import type { PeerStart } from './peers.js';
import type { DeviceAttributes } from './procedures.js';
import type { Failure } from './failure.js';
import type { SharedBuffers } from './layout.js';

/** The provider to open, as plain data that a worker can be started with. */
export interface ProviderConfig {
  provider: 'libcuda' | 'cpu';
  /** The ordinal among the provider's devices. */
  ordinal: number;
  /**
   * The path of libcuda; the next is koffi's. A worker made from text has no place to resolve
   * modules from.
   */
  libraryPath?: string | undefined;
  koffiPath?: string | undefined;
  /** Bytes of the CPU device's memory. */
  memoryBytes?: number | undefined;
  /** Number of threads that run a CPU device's blocks; by default one per core. */
  workers?: number | undefined;
  /** Milliseconds after which a CPU device ends a grid that hangs. */
  stallLimit?: number | undefined;
  /** 90 for 9.0 */
  computeCapability?: number | undefined;
  /** What a CPU device checks. */
  check?: boolean | CheckOptions | undefined;
  /** The order of a CPU device's work. */
  schedule?: { seed: number } | undefined;
  /**
   * Features that are not used although the platform has them, for tests of the fallbacks; see
   * `thread/fallbacks.ts`.
   */
  without?: readonly string[];
  /** The address of memory of an earlier open that is reused for slots and staging. */
  hostMemory?: number | undefined;
  /** Counts unloads, for all threads of the process. */
  unloads?: SharedArrayBuffer;
}

export interface EnumeratedDevice {
  name: string;
  computeCapability: readonly [number, number];
  totalMemory: number;
}

export interface OpenReply {
  name: string;
  uuid: Uint8Array;
  pciBusId: string;
  totalMemory: number;
  driverVersion: number;
  conditionalNodes: ConditionalNodes;
  attributes: DeviceAttributes;
  device: number;
  context: number;
  /** The device address of slot 0. */
  slotsAddress: number;
  /** The host address of the staging area. */
  stagingAddress: number;
  pinnedOffset: number;
  /**
   * Whether slots and staging are page-locked by registration; if not, they lie in memory that the
   * driver allocated.
   */
  registered: boolean;
  /**
   * That memory, where it is JavaScript's (the CPU device's is). For a GPU, each thread gets a view
   * of it from the driver.
   */
  hostMemory: ArrayBufferLike | undefined;
  leastPriority: number;
  greatestPriority: number;
  /** Whether the runtime thread's driver replaces calls that the platform does not support. */
  patched: boolean;
  /** Whether the platform has stream memory operations. */
  memoryOperations: boolean;
  /** Whether stream-ordered memory comes from pools. */
  pools: boolean;
  /**
   * The port in which a CPU device's thread has posted its SharedContext, for devices that copy
   * from or to it.
   */
  sharing?: MessagePort;
}

export interface WorkerStart {
  role: 'runtime' | 'calls' | 'enumerate' | 'copier';
  config: ProviderConfig;
  /** Only the runtime thread has this. */
  buffers?: SharedBuffers;
  /** Only the second worker has this. */
  context?: number;
  /** Only the copy crew's threads have this: see `copy-crew.ts`. */
  copying?: SharedArrayBuffer;
}

/** The data that a thread is started with, besides that. */
export interface ThreadStart extends WorkerStart {
  port: MessagePort;
  /**
   * One word. While it is not zero the thread is loading libraries and must not be ended. The
   * thread sets it to zero.
   */
  loading: Int32Array;
}

export interface CallMessage {
  kind: 'call';
  id: number;
  name: string;
  args: readonly unknown[];
}

/** A message to all decoders of a device, apart from the ring. */
export type DecoderMessage =
  | { kind: 'peer'; start: PeerStart }
  | { kind: 'peer-gone'; index: number }
  | { kind: 'library'; start: LibraryStart }
  | { kind: 'library-gone'; number: number };

export type ToThread = CallMessage | DecoderMessage;

export type FromThread =
  | { kind: 'opened'; reply: OpenReply }
  | { kind: 'open-failed'; error: Omit<Failure, 'id' | 'root' | 'stream'> }
  | { kind: 'reply'; id: number; value: unknown }
  | { kind: 'reply-failed'; id: number; error: Omit<Failure, 'id' | 'root' | 'stream'> }
  | { kind: 'failed'; failure: Failure }
  | { kind: 'lost'; failure: Failure }
  | { kind: 'short'; step: RoomStep; stream: number }
  | { kind: 'idle' }
  | { kind: 'enumerated'; devices: EnumeratedDevice[] }
  | { kind: 'print'; text: string }
  | { kind: 'optimises'; ms: number }
  | { kind: 'check'; report: CheckReport };
