/**
 * Other devices whose events and memory commands may name, and the libraries whose functions they
 * may call. They are announced to the decoders of this device by messages, apart from the ring.
 */
import { receiveMessageOnPort } from 'node:worker_threads';

import type { SharedContext } from '../../driver/driver.js';
import { CudaError } from '../../ground/errors.js';
import type { LibraryFunction, LibraryStatuses } from '../../native/library-call.js';
import { OP } from '../commands.js';
import type { Decoder } from '../decoder.js';
import type { HandleAllocator } from '../handles.js';
import { FOREIGN, MAX_HANDLES } from '../layout.js';
import type { SharedState } from '../layout.js';
import type { DecoderMessage, OpenReply, ProviderConfig } from '../messages.js';
import type { PeerStart } from '../peers.js';
import type { RingWriter } from '../ring-writer.js';
import type { ThreadWorker } from '../workers.js';
import type { OperationFailures } from './failures.js';
import type { Local } from './local.js';

/** The interface of the runtime that this belongs to. */
export interface DevicesHost {
  readonly config: ProviderConfig;
  readonly info: OpenReply;
  readonly shared: SharedState;
  readonly ring: RingWriter;
  readonly handles: HandleAllocator;
  readonly failures: OperationFailures;
  readonly thread: ThreadWorker | undefined;
  readonly local: Local | undefined;
  /** The decoders of this thread. */
  decoders(): readonly (Decoder | undefined)[];
  /** The error of a lost or closed device. */
  lost(): CudaError | undefined;
}

export class OtherDevices {
  private readonly host: DevicesHost;
  /** The numbers that commands use for each other device. */
  private readonly indices = new Map<OtherDevices, number>();
  /** Devices whose commands may name this one. */
  private readonly knownTo = new Set<OtherDevices>();
  private context: SharedContext | undefined = undefined;
  private libraryFunctions = 0;

  constructor(host: DevicesHost) {
    this.host = host;
  }

  /**
   * Returns the number that commands of this device use for `other`; announces the device here
   * first.
   */
  indexOf(other: OtherDevices): number {
    const known = this.indices.get(other);
    if (known !== undefined) return known;
    const { config, failures } = this.host;
    const index = failures.others.length;
    const same = config.provider === other.host.config.provider;
    const start: PeerStart = {
      index,
      control: other.host.shared.buffers.control,
      context: same ? other.sharedContext() : undefined,
      sharesEvents: same && config.provider === 'libcuda',
    };
    failures.others.push(other.host.failures);
    this.indices.set(other, index);
    other.knownTo.add(this);
    other.host.failures.knownTo.add(failures);
    this.postToDecoders({ kind: 'peer', start });
    return index;
  }

  /**
   * Returns a handle here for memory of another device. The memory's address, and the failure that
   * made it undefined, are looked up there.
   */
  adopt(other: OtherDevices, handle: number): number {
    const { handles, shared } = this.host;
    const alias = handles.adopt(this.indexOf(other) * MAX_HANDLES + handle);
    shared.failure[alias] = FOREIGN;
    return alias;
  }

  /**
   * Announces functions of a library to the runtime thread. Returns the number that commands use
   * for the first one.
   */
  addLibrary(statuses: LibraryStatuses, functions: readonly LibraryFunction[]): number {
    const first = this.libraryFunctions;
    this.libraryFunctions += functions.length;
    this.postToDecoders({ kind: 'library', start: { first, statuses, functions } });
    return first;
  }

  /** No further command names the function. */
  dropLibrary(number: number): void {
    if (this.host.lost() === undefined) this.postToDecoders({ kind: 'library-gone', number });
  }

  /** Ends this device with `error`: other devices drop it. */
  end(error: CudaError): void {
    for (const other of this.knownTo) other.forget(this, error);
    for (const other of this.indices.keys()) {
      other.knownTo.delete(this);
      other.host.failures.knownTo.delete(this.host.failures);
    }
    this.indices.clear();
    this.host.info.sharing?.close();
    this.context = undefined;
  }

  private forget(other: OtherDevices, error: CudaError): void {
    const index = this.indices.get(other);
    if (index === undefined) return;
    this.indices.delete(other);
    this.host.failures.others[index] = error;
    if (this.host.lost() === undefined) this.postToDecoders({ kind: 'peer-gone', index });
  }

  private postToDecoders(message: DecoderMessage): void {
    for (const decoder of this.host.decoders()) decoder?.hear(message);
    const { thread, ring } = this.host;
    if (thread === undefined) return;
    thread.post(message);
    ring.begin(OP.call, 0, 4, 0, -1, 0);
    ring.commit();
  }

  private sharedContext(): SharedContext {
    const { config, info, local } = this.host;
    if (config.provider === 'libcuda') return { context: info.context };
    if (local !== undefined) return local.decoder.driver.shareContext(info.context);
    this.context ??= (receiveMessageOnPort(info.sharing!) as { message: SharedContext } | undefined)
      ?.message;
    if (this.context === undefined)
      throw new CudaError('ERR_CUDA_INTERNAL', `${info.name} has not shared its memory`);
    return this.context;
  }
}
