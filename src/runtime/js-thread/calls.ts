/**
 * Calls of procedures, which may wait. On a GPU they run on a second worker, on a CPU device on the
 * runtime thread, and in inline mode on the calling thread.
 */
import { CudaArgumentError } from '../../ground/errors.js';
import type { CudaError } from '../../ground/errors.js';
import { OP } from '../commands.js';
import type { Completion } from '../completion.js';
import { errorFromFailure } from '../error-of-failure.js';
import { describeFailure } from '../failure.js';
import type { FromThread, OpenReply, ProviderConfig } from '../messages.js';
import type { ProcedureArguments, ProcedureName, ProcedureResult } from '../procedures.js';
import type { RingWriter } from '../ring-writer.js';
import { ThreadWorker } from '../workers.js';
import type { Local } from './local.js';

/** The interface of the runtime that the calls belong to. */
export interface CallsHost {
  readonly config: ProviderConfig;
  readonly info: OpenReply;
  readonly ring: RingWriter;
  readonly completion: Completion;
  readonly thread: ThreadWorker | undefined;
  readonly local: Local | undefined;
  /** The error of a lost or closed device. */
  lost(): CudaError | undefined;
  /** Wakes the runtime thread if it sleeps. */
  wakeNow(): void;
  /** Makes the device's context current on this thread. */
  makeCurrent(driver: Local['decoder']['driver']): void;
  onMessage(message: FromThread): void;
  /** Is called when the second worker has ended. */
  onDeath(reason: Error): void;
}

interface Reply {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly worker: ThreadWorker;
}

export class ProcedureCalls {
  private readonly host: CallsHost;
  private second: ThreadWorker | undefined = undefined;
  private readonly replies = new Map<number, Reply>();
  private lastId = 0;

  constructor(host: CallsHost) {
    this.host = host;
  }

  /** Runs a procedure where waiting blocks no other work. */
  call<N extends ProcedureName>(
    name: N,
    args: ProcedureArguments<N>,
  ): Promise<Awaited<ProcedureResult<N>>> {
    const lost = this.host.lost();
    if (lost !== undefined) return Promise.reject(lost);
    const { local } = this.host;
    if (local !== undefined) {
      try {
        return Promise.resolve(this.callHere(local, name, args) as Awaited<ProcedureResult<N>>);
      } catch (error) {
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- an Error
        return Promise.reject(error);
      }
    }
    return new Promise<unknown>((resolve, reject) => {
      this.send(name, args, resolve, reject);
    }) as Promise<Awaited<ProcedureResult<N>>>;
  }

  /** As {@link call}, but blocks this thread until it is done. */
  callBlocking<N extends ProcedureName>(
    name: N,
    args: ProcedureArguments<N>,
  ): Awaited<ProcedureResult<N>> {
    const lost = this.host.lost();
    if (lost !== undefined) throw lost;
    const { local } = this.host;
    if (local !== undefined) return this.callHere(local, name, args) as Awaited<ProcedureResult<N>>;
    let outcome: { value: unknown } | { error: unknown } | undefined;
    const worker = this.send(
      name,
      args,
      (value) => {
        outcome = { value };
      },
      (error) => {
        outcome = { error };
      },
    );
    this.host.completion.blockUntil(() => {
      if (outcome === undefined) worker.drain();
      return outcome !== undefined;
    });
    if ('error' in outcome!) throw outcome.error;
    return outcome!.value as Awaited<ProcedureResult<N>>;
  }

  /** Starts the thread that executes calls, before a {@link call} that comes soon. */
  expect(): void {
    const { local, config } = this.host;
    if (this.host.lost() === undefined && local === undefined && config.provider !== 'cpu')
      this.secondWorker();
  }

  /** Is called when a procedure has ended. */
  onReply(message: Extract<FromThread, { kind: 'reply' | 'reply-failed' }>): void {
    const reply = this.replies.get(message.id);
    if (reply === undefined) return;
    this.replies.delete(message.id);
    reply.worker.unref();
    if (message.kind === 'reply') reply.resolve(message.value);
    else reply.reject(errorFromFailure(message.error, undefined));
  }

  /** Rejects all calls that are under way. */
  rejectAll(error: CudaError): void {
    for (const { worker, reject } of this.replies.values()) {
      worker.unref();
      reject(error);
    }
    this.replies.clear();
  }

  /** Whether the second worker is inside a call, as far as its messages were read. */
  isCalling(): boolean {
    return (
      this.second !== undefined &&
      [...this.replies.values()].some(({ worker }) => worker === this.second)
    );
  }

  /** Reads the messages that the second worker has posted. */
  drain(): void {
    this.second?.drain();
  }

  /** Ends the second worker, if there is one. */
  end(): Promise<void> | undefined {
    return this.second?.end();
  }

  private callHere(local: Local, name: ProcedureName, args: readonly unknown[]): unknown {
    const { decoder, runProcedure } = local;
    this.host.makeCurrent(decoder.driver);
    decoder.drain();
    try {
      return runProcedure(decoder.driver, name, args);
    } catch (error) {
      throw errorFromFailure(describeFailure(error, name), undefined);
    }
  }

  /** Sends a procedure to the worker that runs it. Returns that worker. */
  private send(
    name: ProcedureName,
    args: readonly unknown[],
    resolve: (value: unknown) => void,
    reject: (reason: unknown) => void,
  ): ThreadWorker {
    const { config, thread, ring } = this.host;
    const onRing = config.provider === 'cpu';
    const worker = onRing ? thread! : this.secondWorker();
    const id = ++this.lastId;
    this.replies.set(id, { resolve, reject, worker });
    worker.ref();
    try {
      worker.post({ kind: 'call', id, name, args });
    } catch (error) {
      // A call that cannot be posted would keep the process alive for ever.
      this.replies.delete(id);
      worker.unref();
      reject(
        new CudaArgumentError(
          name,
          `${name}: an argument cannot be sent to the device's thread: ${String(error)}`,
          { cause: error },
        ),
      );
      return worker;
    }
    if (onRing) {
      ring.begin(OP.call, 0, 4, 0, -1, 0);
      ring.commit();
      this.host.wakeNow();
    }
    return worker;
  }

  private secondWorker(): ThreadWorker {
    const { config, info } = this.host;
    this.second ??= new ThreadWorker(
      { role: 'calls', config, context: info.context },
      (message) => this.host.onMessage(message),
      (reason) => this.host.onDeath(reason),
    );
    return this.second;
  }
}
