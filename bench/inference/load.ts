/** Requests to a server: as many clients as wait for their answers, or as many a second as are asked for, whatever it answers. */
import { Agent, request } from 'node:http';
import { performance } from 'node:perf_hooks';

/** A request that has no answer by then hangs. */
const HUNG_MS = 30_000;

/** What became of one request. */
export interface Answer {
  /** Of HTTP; undefined where the connection broke or nothing came in {@link HUNG_MS}. */
  readonly status: number | undefined;
  /** From when it was to be sent to the end of its answer. */
  readonly ms: number;
  readonly problem?: string;
}

export interface Target {
  readonly url: URL;
  readonly type: string;
  readonly body: Uint8Array;
}

export class Load {
  private readonly target: Target;
  private readonly agent = new Agent({ keepAlive: true, maxFreeSockets: 4096 });

  constructor(target: Target) {
    this.target = target;
  }

  close(): void {
    this.agent.destroy();
  }

  /** One request, whose time counts from `since`. */
  send(since = performance.now()): Promise<Answer> {
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

  /** `clients` that each send the next request when they have the answer to the last. Closed loop. */
  async closed(clients: number, ms: number): Promise<Answer[]> {
    const answers: Answer[] = [];
    const until = performance.now() + ms;
    await Promise.all(Array.from({ length: clients }, async () => {
      while (performance.now() < until) answers.push(await this.send());
    }));
    return answers;
  }

  /** So many requests a second, at random times (a Poisson process), without regard to answers. Open loop. */
  async open(perSecond: number, ms: number): Promise<Answer[]> {
    const random = uniform(1);
    const answers: Promise<Answer>[] = [];
    const start = performance.now();
    let next = start;
    while (next < start + ms) {
      for (const now = performance.now(); next <= now && next < start + ms; next -= (Math.log(1 - random()) / perSecond) * 1000) answers.push(this.send(next));
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
