import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';

import { afterEach, expect, test } from 'vitest';

import { Counts } from './counts.js';
import type { Finder } from './finder.js';
import { HttpThreads, SHARES_PORTS } from './http-threads.js';
import type { HttpThreadsOptions } from './http-threads.js';

/** Answers with what was sent, once it is released. */
class Echo implements Finder {
  readonly counts = new Counts();
  readonly asked: string[] = [];
  private readonly held: (() => void)[] = [];
  private open: boolean;

  constructor(open = true) {
    this.open = open;
  }

  async find(file: Uint8Array, signal: AbortSignal): Promise<string> {
    const text = Buffer.from(file).toString();
    this.asked.push(text);
    if (text === 'bad') throw Object.assign(new Error('it is bad'), { statusCode: 422 });
    if (text === 'full')
      throw Object.assign(new Error('it is full'), { statusCode: 503, retryAfter: 2500 });
    if (text === 'broken') throw new Error('secret');
    if (!this.open) {
      await new Promise<void>((resolve, reject) => {
        this.held.push(resolve);
        signal.addEventListener('abort', () => {
          this.asked.push(`${text} is gone`);
          reject(signal.reason as Error);
        });
      });
    }
    return JSON.stringify({ text });
  }

  statistics(): ReturnType<Finder['statistics']> {
    const batcher = {
      queued: 0,
      running: 0,
      taken: 0,
      fulfilled: 0,
      failed: 0,
      aborted: 0,
      refused: 0,
      batches: 0,
      items: 0,
    };
    return Promise.resolve({ counted: [this.counts.take()], batcher });
  }

  letGo(): void {
    this.open = true;
    for (const resolve of this.held.splice(0)) resolve();
  }
}

const SERVER = { task: 'text', maxInFlight: 32, description: 'an echo' };
let threads: HttpThreads | undefined;
let finder: Echo;
afterEach(async () => {
  finder.letGo();
  await threads?.close();
  threads = undefined;
  finder.counts.close();
});

async function started(echo: Echo, options: Partial<HttpThreadsOptions> = {}): Promise<string> {
  finder = echo;
  threads = await HttpThreads.start(echo, {
    host: '127.0.0.1',
    port: 0,
    server: SERVER,
    threads: 1,
    ...options,
  });
  return threads.origin;
}

function post(origin: string, body: string, options: RequestInit = {}): Promise<Response> {
  // A connection of its own each: connections are what threads share.
  return fetch(`${origin}/text`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'image/png', connection: 'close' },
    ...options,
  });
}
const metrics = async (origin: string): Promise<string> =>
  (await fetch(`${origin}/metrics`)).text();

test('requests run on the finder’s thread, and each has its own answer or error', async () => {
  const origin = await started(new Echo());
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, i) => (await post(origin, `${i}`)).json()),
  );
  expect(answers).toEqual(Array.from({ length: 20 }, (_, i) => ({ text: `${i}` })));
  const failed = await Promise.all(
    ['bad', 'full', 'broken'].map(async (text) => {
      const answer = await post(origin, text);
      return [answer.status, answer.headers.get('retry-after'), await answer.json()];
    }),
  );
  expect(failed).toEqual([
    [422, null, { error: 'it is bad' }],
    [503, '3', { error: 'too many requests are under way' }],
    [500, null, { error: 'the model failed' }],
  ]);
  expect(await (await fetch(`${origin}/healthz`)).json()).toEqual({
    status: 'ok',
    runsOn: 'an echo',
  });
});

test('a client that goes away is known to the finder, and the others are answered', async () => {
  const origin = await started(new Echo(false));
  const controller = new AbortController();
  const gone = post(origin, 'a', { signal: controller.signal }).catch(
    (error: unknown) => (error as Error).name,
  );
  const other = post(origin, 'b');
  await expect.poll(() => finder.asked).toHaveLength(2);
  controller.abort();
  expect(await gone).toBe('AbortError');
  await expect.poll(() => finder.asked).toContain('a is gone');
  await expect.poll(() => metrics(origin)).toContain('in_flight 1\n');
  finder.letGo();
  expect(await (await other).json()).toEqual({ text: 'b' });
});

test('closing answers accepted requests, and accepts no more', async () => {
  const origin = await started(new Echo(false));
  const taken = post(origin, 'a');
  await expect.poll(() => finder.asked).toEqual(['a']);
  const closed = threads!.close();
  await expect
    .poll(() =>
      post(origin, 'b').then(
        () => 'taken',
        () => 'refused',
      ),
    )
    .toBe('refused');
  finder.letGo();
  expect(await (await taken).json()).toEqual({ text: 'a' });
  await closed;
  threads = undefined;
});

test.skipIf(!SHARES_PORTS)(
  'several threads share a port, the limit of requests, and the metrics',
  async () => {
    const origin = await started(new Echo(false), {
      threads: 3,
      server: { ...SERVER, maxInFlight: 24 },
    });
    const answers = Array.from({ length: 40 }, async (_, i) => (await post(origin, `${i}`)).status);
    // Those that are refused have their answers before the others.
    await expect.poll(() => metrics(origin)).toMatch(/\{status="503"\} 16\n/);
    expect(finder.asked).toHaveLength(24);
    expect(await metrics(origin)).toContain('in_flight 24\n');
    finder.letGo();
    expect((await Promise.all(answers)).sort()).toEqual([
      ...Array.from({ length: 24 }, () => 200),
      ...Array.from({ length: 16 }, () => 503),
    ]);
    await expect.poll(() => metrics(origin)).toMatch(/\{status="200"\} 24\n/);
    await expect.poll(() => metrics(origin)).toContain('in_flight 0\n');
    // Not with another server.
    await expect(
      HttpThreads.start(finder, {
        host: '127.0.0.1',
        port: Number(new URL(origin).port),
        server: SERVER,
        threads: 2,
      }),
    ).rejects.toThrow(/EADDRINUSE/);
  },
);

test('a failed start rejects with the reason, and leaves no thread', async () => {
  finder = new Echo();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await expect(
    HttpThreads.start(finder, { host: '127.0.0.1', port, server: SERVER, threads: 1 }),
  ).rejects.toThrow(/EADDRINUSE/);
  taken.close();
  for (const threads of [0, -1, 1.5, NaN])
    await expect(
      HttpThreads.start(finder, { host: '127.0.0.1', port: 0, server: SERVER, threads }),
    ).rejects.toThrow(`expected 1 or more, got ${threads}`);
  if (!SHARES_PORTS)
    await expect(
      HttpThreads.start(finder, { host: '127.0.0.1', port: 0, server: SERVER, threads: 2 }),
    ).rejects.toThrow(/several share a port on Linux with Node 22\.12, 23\.1 or later; got 2/);
});
