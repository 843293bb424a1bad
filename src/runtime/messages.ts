/**
 * What is posted between the JS thread and its workers. Nothing on the hot path is a message.
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

/** Which provider to open, as plain data that a worker can be started with. */
export interface ProviderConfig {
  provider: 'libcuda' | 'cpu';
  /** ordinal among the provider's devices */
  ordinal: number;
  /** libcuda's path, and koffi's: a worker made from text has no place to resolve modules from */
  libraryPath?: string | undefined;
  koffiPath?: string | undefined;
  /** bytes of the CPU device's memory */
  memoryBytes?: number | undefined;
  /** threads that run a CPU device's blocks; by default one per core */
  workers?: number | undefined;
  /** milliseconds after which a CPU device ends a grid that hangs */
  stallLimit?: number | undefined;
  /** what a CPU device looks for */
  check?: boolean | CheckOptions | undefined;
  /** the order of a CPU device's work */
  schedule?: { seed: number } | undefined;
  /**
   * what to do without although the platform has it, for tests of the ways round; see
   * `thread/fallbacks.ts`
   */
  without?: readonly string[];
  /** memory of an earlier open that lies ready for slots and staging: its address */
  hostMemory?: number | undefined;
  /** counts unloads, for all threads of the process */
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
  /** device address of slot 0 */
  slotsAddress: number;
  /** host address of the staging area */
  stagingAddress: number;
  pinnedOffset: number;
  /**
   * Whether slots and staging are page-locked by registration; where not, they lie in memory that
   * the driver allocated.
   */
  registered: boolean;
  /**
   * That memory, where it is JavaScript's (the CPU device's is); a GPU's driver is asked for a view
   * of it.
   */
  hostMemory: ArrayBufferLike | undefined;
  leastPriority: number;
  greatestPriority: number;
  /** Whether the runtime thread's driver works round something that the platform lacks. */
  mended: boolean;
  /** Whether the platform has stream memory operations. */
  memoryOperations: boolean;
  /** Whether stream-ordered memory comes from pools. */
  pools: boolean;
  /**
   * A CPU device's thread has posted its SharedContext there, for whoever wants to copy from or to
   * it.
   */
  sharing?: MessagePort;
}

export interface WorkerStart {
  role: 'runtime' | 'calls' | 'enumerate' | 'copier';
  config: ProviderConfig;
  /** Only for the runtime thread. */
  buffers?: SharedBuffers;
  /** Only for the second worker. */
  context?: number;
  /** Only for those who help with copies: see `copy-crew.ts`. */
  copying?: SharedArrayBuffer;
}

/** What a thread is given beside that. */
export interface ThreadStart extends WorkerStart {
  port: MessagePort;
  /**
   * One word. While it is not zero the thread must not be ended: it is loading libraries. It makes
   * it zero.
   */
  loading: Int32Array;
}

export interface CallMessage {
  kind: 'call';
  id: number;
  name: string;
  args: readonly unknown[];
}

/** What all decoders of a device are told beside the ring. */
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
