/**
 * Requests to a server: as many clients as wait for their answers, or as many a second as are asked for, whatever it answers.
 *
 * They are sent by several processes. One is busy with some 4000 requests a second itself, and what its own garbage collector
 * holds up, 20 to 40 ms of requests then sent at once, would count as the server's.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

/** A request that has no answer by then hangs. */
export const HUNG_MS = 30_000;

/** What became of one request. */
export interface Answer {
  /** Of HTTP; undefined where the connection broke or nothing came in {@link HUNG_MS}. */
  readonly status: number | undefined;
  /** From when it was to be sent to the end of its answer. */
  readonly ms: number;
  readonly problem?: string;
}

export interface Target {
  readonly url: string;
  readonly type: string;
  readonly body: Uint8Array;
}

/** What one process is to send: as so many clients, or so many requests a second, for so long. */
interface Order {
  readonly kind: 'closed' | 'open';
  readonly rate: number;
  readonly ms: number;
}

/** Of the cores the server has the others. */
const PROCESSES = Math.max(1, Math.floor(availableParallelism() / 4));
/** Of Node: a young generation as the example's threads of HTTP have it, see http-threads.ts. */
const FLAGS: readonly string[] = ['--max-semi-space-size=2'];
/** The first argument of such a process. */
const SENDER = 'sender';

export class Load {
  private readonly senders: readonly ChildProcess[];

  private constructor(senders: readonly ChildProcess[]) {
    this.senders = senders;
  }

  static async start(target: Target): Promise<Load> {
    const senders = Array.from({ length: PROCESSES }, async (_, index) => {
      const sender = fork(fileURLToPath(import.meta.url), [SENDER, `${index}`], { serialization: 'advanced', execArgv: [...process.execArgv, ...FLAGS] });
      // What is sent before it listens is lost.
      await once(sender, 'message');
      sender.send(target);
      return sender;
    });
    return new Load(await Promise.all(senders));
  }

  async close(): Promise<void> {
    await Promise.all(this.senders.map((sender) => {
      const exit = once(sender, 'exit');
      sender.disconnect();
      return exit;
    }));
  }

  /** `clients` that each send the next request when they have the answer to the last. Closed loop. */
  closed(clients: number, ms: number): Promise<Answer[]> {
    // Whole numbers, of which the sum is right.
    return this.all((index) => ({ kind: 'closed', rate: Math.floor((clients + index) / PROCESSES), ms }));
  }

  /** So many requests a second, at random times (a Poisson process, as several together are one), without regard to answers. Open loop. */
  open(perSecond: number, ms: number): Promise<Answer[]> {
    return this.all(() => ({ kind: 'open', rate: perSecond / PROCESSES, ms }));
  }

  private async all(order: (index: number) => Order): Promise<Answer[]> {
    const answers = await Promise.all(this.senders.map(async (sender, index) => {
      const over = new AbortController();
      const answered = once(sender, 'message', over) as Promise<[Answer[]]>;
      const ended = once(sender, 'exit', over).then(([code]) => { throw new Error(`a process that sends requests ended with ${code}`); });
      sender.send(order(index));
      const [found] = await Promise.race([answered, ended]);
      over.abort();
      return found;
    }));
    return answers.flat();
  }
}

/** One process's part. */
class Sender {
  private readonly target: Target;
  private readonly random: () => number;
  private readonly agent = new Agent({ keepAlive: true, maxFreeSockets: 4096 });

  constructor(target: Target, index: number) {
    this.target = target;
    this.random = uniform(Math.imul(index + 1, 0x9e3779b1));
  }

  /** One request, whose time counts from `since`. */
  private send(since = performance.now()): Promise<Answer> {
    const { url, type, body } = this.target;
    return new Promise((resolve) => {
      const end = (status: number | undefined, problem?: string): void => {
        clearTimeout(hung);
        resolve({ status, ms: performance.now() - since, ...(problem === undefined ? {} : { problem }) });
      };
      const sent = request(url, { method: 'POST', agent: this.agent, headers: { 'content-type': type, 'content-length': body.length } }, (answer) => {
        answer.on('end', () => end(answer.statusCode)).on('error', (error) => end(undefined, error.message)).resume();
      });
      const hung = setTimeout(() => {
        end(undefined, `no answer in ${HUNG_MS} ms`);
        sent.destroy();
      }, HUNG_MS);
      sent.on('error', (error) => end(undefined, error.message));
      sent.end(body);
    });
  }

  carryOut({ kind, rate, ms }: Order): Promise<Answer[]> {
    return kind === 'closed' ? this.closed(rate, ms) : this.open(rate, ms);
  }

  private async closed(clients: number, ms: number): Promise<Answer[]> {
    const answers: Answer[] = [];
    const until = performance.now() + ms;
    await Promise.all(Array.from({ length: clients }, async () => {
      while (performance.now() < until) answers.push(await this.send());
    }));
    return answers;
  }

  private async open(perSecond: number, ms: number): Promise<Answer[]> {
    const answers: Promise<Answer>[] = [];
    const start = performance.now();
    const interval = (): number => (-Math.log(1 - this.random()) / perSecond) * 1000;
    let next = start + interval();
    while (next < start + ms) {
      for (const now = performance.now(); next <= now && next < start + ms; next += interval()) answers.push(this.send(next));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return Promise.all(answers);
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
    else void sender!.carryOut(message).then((answers) => process.send!(answers));
  });
  process.send!('listening');
}
