/**
 * Requests to a server: from a number of clients that wait for their answers, or a number per
 * second, whatever the answers.
 *
 * Several processes send them over sockets: a delay of a sender counts as the server's. (With
 * `node:http` a request took three times as much processor time, and the requests of a garbage
 * collection's 20 to 40 ms were then sent at once.)
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type Socket, connect } from 'node:net';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

/** A request without an answer after this time hangs. */
export const HUNG_MS = 30_000;

/** The outcome of one request. */
export interface Answer {
  /**
   * The HTTP status; undefined where the connection broke or no answer came within {@link HUNG_MS}.
   */
  readonly status: number | undefined;
  /** From its scheduled time to the end of its answer. */
  readonly ms: number;
  readonly problem?: string;
}

export interface Target {
  readonly url: string;
  readonly type: string;
  readonly body: Uint8Array;
}

/** The part of one process: the number of clients, or of requests per second, and the duration. */
interface Order {
  readonly kind: 'closed' | 'open';
  readonly rate: number;
  readonly ms: number;
}

/** The server has the other cores. */
const PROCESSES = Math.max(1, Math.floor(availableParallelism() / 4));
/** A server may close a connection that has been idle for five seconds. */
const MOST_IDLE_MS = 3000;
const READ_BYTES = 1 << 16;
/** The first argument of a sending process. */
const SENDER = 'sender';

export class Load {
  private readonly senders: readonly ChildProcess[];

  private constructor(senders: readonly ChildProcess[]) {
    this.senders = senders;
  }

  static async start(target: Target): Promise<Load> {
    const senders = Array.from({ length: PROCESSES }, async (_, index) => {
      const sender = fork(fileURLToPath(import.meta.url), [SENDER, `${index}`], {
        serialization: 'advanced',
      });
      // A message that is sent before it listens is lost.
      await once(sender, 'message');
      sender.send(target);
      return sender;
    });
    return new Load(await Promise.all(senders));
  }

  async close(): Promise<void> {
    await Promise.all(
      this.senders.map((sender) => {
        const exit = once(sender, 'exit');
        sender.disconnect();
        return exit;
      }),
    );
  }

  /** A closed loop: each of `clients` sends its next request after the answer to the last. */
  closed(clients: number, ms: number): Promise<Answer[]> {
    // Whole numbers with the right sum.
    return this.all((index) => ({
      kind: 'closed',
      rate: Math.floor((clients + index) / PROCESSES),
      ms,
    }));
  }

  /**
   * An open loop: a rate of requests at random times (a Poisson process, as several together are
   * one), without regard to answers.
   */
  open(perSecond: number, ms: number): Promise<Answer[]> {
    return this.all(() => ({ kind: 'open', rate: perSecond / PROCESSES, ms }));
  }

  private async all(order: (index: number) => Order): Promise<Answer[]> {
    const answers = await Promise.all(
      this.senders.map(async (sender, index) => {
        const over = new AbortController();
        const answered = once(sender, 'message', over) as Promise<[Answered]>;
        const ended = once(sender, 'exit', over).then(([code]) => {
          throw new Error(`a process that sends requests ended with ${code}`);
        });
        sender.send(order(index));
        const [found] = await Promise.race([answered, ended]);
        over.abort();
        let without = 0;
        return found.statuses.map((status, i): Answer =>
          status === 0
            ? { status: undefined, ms: found.times[i]!, problem: found.problems[without++]! }
            : { status, ms: found.times[i]! },
        );
      }),
    );
    return answers.flat();
  }
}

/**
 * One process's part. Nothing is allocated for a request: garbage collections and other delays of
 * the sending process would count as the server's.
 */
class Sender {
  private readonly place: Place;
  private readonly request: Buffer;
  private readonly random: () => number;
  /** The most recently used connection is last: a server closes idle ones. */
  private readonly idle: Connection[] = [];
  private readonly busy = new Set<Connection>();
  private answered = new Answered();
  /** Called when a request ends. */
  private onEnd: () => void = nothing;

  constructor({ url, type, body }: Target, index: number) {
    const { hostname, port, pathname } = new URL(url);
    this.place = { host: hostname, port: Number(port) };
    this.request = Buffer.concat([
      Buffer.from(
        `POST ${pathname} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: ` +
          `${type}\r\ncontent-length: ${body.length}\r\n\r\n`,
      ),
      body,
    ]);
    this.random = uniform(Math.imul(index + 1, 0x9e3779b1));
    setInterval(() => {
      this.endHung();
    }, HUNG_MS / 30).unref();
  }

  async carryOut({ kind, rate, ms }: Order): Promise<Answered> {
    this.answered = new Answered();
    await (kind === 'closed' ? this.closed(rate, ms) : this.open(rate, ms));
    return this.answered;
  }

  /** One request, whose time counts from `since`. */
  private send(since: number): void {
    const now = performance.now();
    let connection = this.idle.pop();
    while (connection?.isOpen === false) connection = this.idle.pop();
    // The ones before it have been idle for longer.
    if (connection !== undefined && now - connection.usedAt > MOST_IDLE_MS) {
      for (const old of [connection, ...this.idle.splice(0)]) old.close();
      connection = undefined;
    }
    connection ??= new Connection(this.place, (ended, status, problem) => {
      this.ended(ended, status, problem);
    });
    this.busy.add(connection);
    connection.send(this.request, since);
  }

  private ended(connection: Connection, status: number | undefined, problem?: string): void {
    this.busy.delete(connection);
    if (connection.isOpen) this.idle.push(connection);
    this.answered.add(status, performance.now() - connection.since, problem);
    this.onEnd();
  }

  private endHung(): void {
    const before = performance.now() - HUNG_MS;
    for (const connection of this.busy)
      if (connection.since < before) connection.fail(`no answer in ${HUNG_MS} ms`);
  }

  private closed(clients: number, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const until = performance.now() + ms;
      let under = clients;
      if (under === 0) resolve();
      this.onEnd = () => {
        const now = performance.now();
        if (now < until) this.send(now);
        else if (--under === 0) resolve();
      };
      for (let i = 0; i < clients; i++) this.send(performance.now());
    });
  }

  private async open(perSecond: number, ms: number): Promise<void> {
    const start = performance.now();
    const interval = (): number => (-Math.log(1 - this.random()) / perSecond) * 1000;
    this.onEnd = nothing;
    let next = start + interval();
    while (next < start + ms) {
      for (const now = performance.now(); next <= now && next < start + ms; next += interval())
        this.send(next);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    if (this.busy.size === 0) return;
    await new Promise<void>((resolve) => {
      this.onEnd = () => {
        if (this.busy.size === 0) resolve();
      };
    });
  }
}

function nothing(): void {
  // An open load sends nothing more here.
}

/** The outcomes of a process's requests, as it reports them. */
class Answered {
  /** 0 for a request that had no answer. */
  readonly statuses: number[] = [];
  readonly times: number[] = [];
  /** The problems of requests without answers, in order. */
  readonly problems: string[] = [];

  add(status: number | undefined, ms: number, problem: string | undefined): void {
    this.statuses.push(status ?? 0);
    this.times.push(ms);
    if (status === undefined) this.problems.push(problem ?? 'no answer');
  }
}

/** Where a server listens. */
interface Place {
  readonly host: string;
  readonly port: number;
}

/** A connection for one request at a time, with the part of HTTP that the server uses. */
class Connection {
  /** State of the current or last request. */
  since = 0;
  usedAt = 0;
  isOpen = true;
  private isBusy = false;
  private readonly socket: Socket;
  private readonly onEnd: (
    connection: Connection,
    status: number | undefined,
    problem?: string,
  ) => void;
  /** The part of an answer's head that has arrived. */
  private head: Buffer | undefined = undefined;
  private status = 0;
  /** Bytes of the answer's body that are still to come. */
  private left = 0;

  constructor(place: Place, onEnd: Connection['onEnd']) {
    this.onEnd = onEnd;
    const buffer = Buffer.alloc(READ_BYTES);
    const callback = (bytes: number): boolean => {
      this.read(buffer.subarray(0, bytes));
      return true;
    };
    this.socket = connect({ ...place, noDelay: true, onread: { buffer, callback } });
    this.socket
      .on('error', (error) => {
        this.fail(error.message);
      })
      .on('close', () => {
        this.fail('the connection was closed');
      });
  }

  send(request: Buffer, since: number): void {
    this.since = since;
    this.isBusy = true;
    this.socket.write(request);
  }

  close(): void {
    this.isOpen = false;
    this.socket.destroy();
  }

  fail(problem: string): void {
    this.close();
    if (this.isBusy) this.end(undefined, problem);
  }

  private end(status: number | undefined, problem?: string): void {
    this.isBusy = false;
    this.usedAt = performance.now();
    this.onEnd(this, status, problem);
  }

  private read(bytes: Buffer): void {
    if (!this.isBusy) {
      this.fail('an answer to nothing');
      return;
    }
    if (this.left > 0) this.readBody(bytes.length);
    else this.readHead(this.head === undefined ? bytes : Buffer.concat([this.head, bytes]));
  }

  private readHead(bytes: Buffer): void {
    const end = bytes.indexOf('\r\n\r\n');
    if (end === -1) {
      // The next read reuses the buffer.
      this.head = Buffer.from(bytes);
      return;
    }
    this.head = undefined;
    const head = bytes.toString('latin1', 0, end).toLowerCase();
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    this.status = Number(head.slice(9, 12));
    if (length === undefined || !(this.status >= 200)) {
      this.fail(`an answer of another kind: ${head}`);
      return;
    }
    if (head.includes('\r\nconnection: close')) this.isOpen = false;
    this.left = Number(length);
    this.readBody(bytes.length - end - 4);
  }

  private readBody(bytes: number): void {
    this.left -= bytes;
    if (this.left < 0) this.fail('more than an answer');
    else if (this.left === 0) this.end(this.status);
  }
}

/** Numbers from 0 to below 1, the same in each run: an LCG, as arrival times need no better. */
function uniform(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === SENDER) {
  let sender: Sender | undefined;
  process.on('disconnect', () => process.exit());
  process.on('message', (message: Target | Order) => {
    if ('url' in message) sender = new Sender(message, Number(process.argv[3]));
    else
      void sender!
        .carryOut(message)
        .then(({ statuses, times, problems }) => process.send!({ statuses, times, problems }));
  });
  process.send!('listening');
}
