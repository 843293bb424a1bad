/**
 * A finder on another thread, which reads files in place. The calls and answers of one turn of an
 * event loop are one message, since each message wakes the other thread.
 */
import { setImmediate } from 'node:timers';
import type { MessagePort } from 'node:worker_threads';

import type { Counted, Counts } from './counts.js';
import type { Finder, Statistics } from './finder.js';

/** To the thread of the device. */
type Question =
  | {
      readonly kind: 'find';
      readonly ids: readonly number[];
      readonly lengths: readonly number[];
      readonly memories: readonly SharedArrayBuffer[];
    }
  | { readonly kind: 'abort'; readonly id: number }
  | { readonly kind: 'statistics'; readonly id: number; readonly own: Counted }
  | { readonly kind: 'counted'; readonly counted: Counted };

/** From it. */
type Answer =
  | { readonly kind: 'found'; readonly ids: readonly number[]; readonly found: readonly string[] }
  | { readonly kind: 'failed'; readonly id: number; readonly failure: Failure }
  | { readonly kind: 'statistics'; readonly id: number; readonly statistics: Statistics }
  | { readonly kind: 'count' };

/**
 * The part of an error that a server uses: errors without a status would differ on the other side.
 */
interface Failure {
  readonly message: string;
  readonly statusCode?: number;
  readonly retryAfter?: number;
}

class FindingError extends Error {
  override name = 'FindingError';
  readonly statusCode: number | undefined;
  readonly retryAfter: number | undefined;

  constructor({ message, statusCode, retryAfter }: Failure) {
    super(message);
    this.statusCode = statusCode;
    this.retryAfter = retryAfter;
  }
}

/** What waits for the end of the event loop's turn. */
class Outbox<T> {
  private readonly send: (all: readonly T[]) => void;
  private waiting: T[] = [];

  constructor(send: (all: readonly T[]) => void) {
    this.send = send;
  }

  add(one: T): void {
    if (this.waiting.push(one) === 1) setImmediate(() => this.send(this.waiting.splice(0)));
  }
}

/** Settles the promise of one question. */
interface Asked<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

export class RemoteFinder implements Finder {
  readonly counts: Counts;
  private readonly port: MessagePort;
  private readonly files = new Outbox<{ id: number; file: Uint8Array<SharedArrayBuffer> }>(
    (all) => {
      // A client may have gone in the turn in which it came.
      const asked = all.filter(({ id }) => this.finds.has(id));
      this.ask({
        kind: 'find',
        ids: asked.map(({ id }) => id),
        lengths: asked.map(({ file }) => file.length),
        memories: asked.map(({ file }) => file.buffer),
      });
    },
  );
  private readonly finds = new Map<number, Asked<string>>();
  private readonly looks = new Map<number, Asked<Statistics>>();
  private lastId = 0;

  /** @param port to one that a {@link FinderService} serves */
  constructor(port: MessagePort, counts: Counts) {
    this.port = port;
    this.counts = counts;
    port.on('message', (answer: Answer) => this.take(answer));
  }

  find(file: Uint8Array<SharedArrayBuffer>, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const id = ++this.lastId;
      const abort = (): void => {
        this.finds.delete(id);
        this.ask({ kind: 'abort', id });
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', abort, { once: true });
      const answered =
        <T>(settle: (value: T) => void) =>
        (value: T): void => {
          signal.removeEventListener('abort', abort);
          settle(value);
        };
      this.finds.set(id, { resolve: answered(resolve), reject: answered(reject) });
      this.files.add({ id, file });
    });
  }

  statistics(): Promise<Statistics> {
    return new Promise((resolve, reject) => {
      const id = ++this.lastId;
      this.looks.set(id, { resolve, reject });
      this.ask({ kind: 'statistics', id, own: this.counts.take() });
    });
  }

  /** Resolves when no call is pending. */
  close(): void {
    this.counts.close();
    this.port.close();
  }

  private ask(question: Question): void {
    this.port.postMessage(question);
  }

  private take(answer: Answer): void {
    switch (answer.kind) {
      case 'found':
        answer.ids.forEach((id, i) => take(this.finds, id)?.resolve(answer.found[i]!));
        break;
      case 'failed':
        take(this.finds, answer.id)?.reject(new FindingError(answer.failure));
        break;
      case 'statistics':
        take(this.looks, answer.id)?.resolve(answer.statistics);
        break;
      case 'count':
        this.ask({ kind: 'counted', counted: this.counts.take() });
    }
  }
}

function take<T>(asked: Map<number, T>, id: number): T | undefined {
  const found = asked.get(id);
  asked.delete(id);
  return found;
}

/** The ports of one finder, on the thread of its device. */
export class FinderService {
  private readonly finder: Finder;
  private readonly ports = new Map<MessagePort, () => Promise<Counted>>();

  constructor(finder: Finder) {
    this.finder = finder;
  }

  /**
   * Answers the calls of a {@link RemoteFinder} at the other end of the port, until that is closed.
   */
  serve(port: MessagePort): void {
    const answer = (message: Answer): void => port.postMessage(message);
    const requests = new Map<number, AbortController>();
    const found = new Outbox<{ id: number; json: string }>((all) =>
      answer({ kind: 'found', ids: all.map(({ id }) => id), found: all.map(({ json }) => json) }),
    );
    const find = async (id: number, file: Uint8Array<SharedArrayBuffer>): Promise<void> => {
      const controller = new AbortController();
      requests.set(id, controller);
      try {
        found.add({ id, json: await this.finder.find(file, controller.signal) });
      } catch (error) {
        if (!controller.signal.aborted) answer({ kind: 'failed', id, failure: failureOf(error) });
      } finally {
        requests.delete(id);
      }
    };
    /** The pending calls, each with an answer of its own. */
    const counted: ((counted: Counted) => void)[] = [];
    this.ports.set(
      port,
      () =>
        new Promise((resolve) => {
          counted.push(resolve);
          answer({ kind: 'count' });
        }),
    );
    port.on('close', () => {
      this.ports.delete(port);
      for (const resolve of counted) resolve({ statuses: [], seconds: 0, loopDelay: 0 });
      for (const each of requests.values()) each.abort();
    });
    port.on('message', (question: Question) => {
      switch (question.kind) {
        case 'find':
          question.ids.forEach(
            (id, i) => void find(id, new Uint8Array(question.memories[i]!, 0, question.lengths[i])),
          );
          break;
        case 'abort':
          requests.get(question.id)?.abort();
          break;
        case 'statistics':
          void this.statistics(port, question.own).then((statistics) =>
            answer({ kind: 'statistics', id: question.id, statistics }),
          );
          break;
        case 'counted':
          counted.shift()?.(question.counted);
      }
    });
  }

  /** Counts of all threads; `own` is that of the calling one. */
  private async statistics(asking: MessagePort, own: Counted): Promise<Statistics> {
    const others = [...this.ports].filter(([port]) => port !== asking).map(([, count]) => count());
    const { counted, batcher } = await this.finder.statistics();
    return { counted: [own, ...counted, ...(await Promise.all(others))], batcher };
  }
}

function failureOf(error: unknown): Failure {
  const { message, statusCode, retryAfter } = error as Error & Partial<Failure>;
  return {
    message,
    ...(statusCode === undefined ? {} : { statusCode }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  };
}
