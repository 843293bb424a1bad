import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { MessageChannel } from 'node:worker_threads';
import type { FastifyInstance } from 'fastify';
import sharp from 'sharp';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { Device } from 'async-cuda';

import type { DevicePhotograph, Finding } from '../../demo/inference/photograph.js';
import { Counts } from './counts.js';
import { PhotographFinder } from './finder.js';
import type { Finder, PhotographFinderOptions } from './finder.js';
import { FinderService, RemoteFinder } from './remote-finder.js';
import { buildServer } from './server.js';
import { someOf } from '../../test/random-runs.js';

const device = await Device.open('cpu');
afterAll(() => device.close());
const cafe = await readFile(new URL('../../demo/inference/photographs/cafe.jpg', import.meta.url));

/** A model that reads the photograph's red value at the top left, when it is let go. */
class HeldModel {
  readonly batches: number[] = [];
  private readonly held: (() => void)[] = [];
  private open = false;

  readonly find = async (photographs: readonly DevicePhotograph[]): Promise<Finding[][]> => {
    this.batches.push(photographs.length);
    if (!this.open) await new Promise<void>((resolve) => this.held.push(resolve));
    const pixels = await Promise.all(photographs.map((each) => each.read()));
    return pixels.map((values) => [
      { label: String((values as Uint8Array)[0]! % 10), score: 1, corners: [] },
    ]);
  };

  letGo(): void {
    this.open = true;
    for (const each of this.held.splice(0)) each();
  }
}

/** Resources that are closed after a test, the last one first. */
const opened: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/**
 * Waits until the check passes. Decoders and their threads start with the first photograph, which
 * takes a while.
 */
function eventually(check: () => unknown): Promise<unknown> {
  return vi.waitFor(check, { timeout: 20_000, interval: 10 });
}

const WHERE = ['of the same thread', 'of another thread'] as const;

interface Started {
  readonly find?: PhotographFinderOptions['find'];
  readonly batching?: PhotographFinderOptions['batching'];
  readonly maxInFlight?: number;
  readonly bodyLimit?: number;
  readonly requestTimeout?: number;
  readonly mostReceiving?: number;
  readonly mostPixelsUnderWay?: number;
}

/** A server whose finder is called directly, or as one of another thread. */
function build(
  where: (typeof WHERE)[number],
  {
    find = () => Promise.reject(new Error('no model')),
    batching = { maxBatchSize: 4, maxQueueDelay: 5 },
    maxInFlight = 32,
    bodyLimit = 2 ** 24,
    mostPixelsUnderWay,
    ...limits
  }: Started,
): FastifyInstance {
  const own = new PhotographFinder({
    device,
    task: 'text',
    find,
    batching,
    ...(mostPixelsUnderWay === undefined ? {} : { mostPixelsUnderWay }),
  });
  opened.push(() => own.close());
  let finder: Finder = own;
  if (where === 'of another thread') {
    const { port1, port2 } = new MessageChannel();
    new FinderService(own).serve(port1);
    const remote = new RemoteFinder(port2, new Counts(own.counts.shared));
    opened.push(() => remote.close());
    finder = remote;
  }
  const app = buildServer({
    finder,
    task: 'text',
    maxInFlight,
    bodyLimit,
    description: 'a model held',
    ...limits,
  });
  opened.push(() => app.close());
  return app;
}

const png = (red: number): Promise<Buffer> =>
  sharp({ create: { width: 3, height: 2, channels: 3, background: { r: red, g: 0, b: 0 } } })
    .png()
    .toBuffer();

function post(
  origin: string,
  body: Uint8Array,
  { type = 'image/png', signal }: { type?: string; signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(`${origin}/text`, {
    method: 'POST',
    body: body as never,
    headers: { 'content-type': type },
    ...(signal === undefined ? {} : { signal }),
  });
}

someOf(1, describe)(WHERE)('with a finder %s', (where) => {
  let app: FastifyInstance;

  function started(model: HeldModel, options: Started = {}): Promise<string> {
    app = build(where, { find: model.find, ...options });
    opened.push(() => model.letGo());
    return app.listen({ host: '127.0.0.1', port: 0 });
  }

  test('each of many requests gets its own answer, from batches', async () => {
    const model = new HeldModel();
    const origin = await started(model);
    const answers = Array.from({ length: 10 }, async (_, i) =>
      (await post(origin, await png(i))).json(),
    );
    await eventually(() => expect(model.batches.length).toBeGreaterThan(0));
    model.letGo();
    const labels = (await Promise.all(answers)) as {
      width: number;
      height: number;
      text: Finding[];
    }[];
    expect(labels.map(({ text }) => text[0]!.label)).toEqual([
      '0',
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
      '7',
      '8',
      '9',
    ]);
    expect(labels[0]).toMatchObject({ width: 3, height: 2 });
    expect(Math.max(...model.batches)).toBeLessThanOrEqual(4);
    expect(model.batches.length).toBeLessThan(10);
  });

  test('a photograph in JPEG has its pixels', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model);
    const answer = await post(origin, cafe, { type: 'image/jpeg' });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ width: 720, height: 480 });
  });

  test(
    'a client that goes away leaves the queue, and the others are answered',
    { tags: 'thorough' },
    async () => {
      const model = new HeldModel();
      const origin = await started(model, {
        batching: { maxBatchSize: 2, maxQueueDelay: 1, maxConcurrentBatches: 1 },
      });
      const first = [post(origin, await png(1)), post(origin, await png(2))];
      await eventually(() => expect(model.batches.reduce((a, b) => a + b, 0)).toBeGreaterThan(0));
      const running = model.batches.reduce((a, b) => a + b, 0);
      const controller = new AbortController();
      const gone = post(origin, await png(3), { signal: controller.signal }).catch(
        (error: unknown) => (error as Error).name,
      );
      const queued = async (): Promise<number> =>
        Number(
          /photographs_queue_length (\d+)/.exec(
            await (await fetch(`${origin}/metrics`)).text(),
          )![1],
        );
      await eventually(async () => expect(await queued()).toBe(3 - running));
      controller.abort();
      expect(await gone).toBe('AbortError');
      await eventually(async () => expect(await queued()).toBe(2 - running));
      model.letGo();
      expect((await Promise.all(first)).map(({ status }) => status)).toEqual([200, 200]);
      expect(model.batches.reduce((a, b) => a + b)).toBe(2);
    },
  );

  test(
    'a client that goes away while its batch is running takes nothing from the others of it',
    { tags: 'thorough' },
    async () => {
      const model = new HeldModel();
      const { buffers: before } = (await device.core.stats()).live;
      const origin = await started(model, { batching: { maxBatchSize: 2, maxQueueDelay: 1000 } });
      const controller = new AbortController();
      const gone = post(origin, await png(3), { signal: controller.signal }).catch(
        (error: unknown) => (error as Error).name,
      );
      const other = post(origin, await png(4));
      await eventually(() => expect(model.batches).toEqual([2]));
      controller.abort();
      expect(await gone).toBe('AbortError');
      await eventually(async () =>
        expect(await (await fetch(`${origin}/metrics`)).text()).toContain('in_flight 1\n'),
      );
      model.letGo();
      expect(((await (await other).json()) as { text: Finding[] }).text[0]!.label).toBe('4');
      // Photographs are given back, those of clients that have gone too.
      await eventually(async () => expect((await device.core.stats()).live.buffers).toBe(before));
    },
  );

  test('requests beyond the queue’s room get 503 and Retry-After, and succeed later', async () => {
    const model = new HeldModel();
    const origin = await started(model, {
      batching: { maxBatchSize: 1, maxQueueSize: 1, maxConcurrentBatches: 1 },
      maxInFlight: 3,
    });
    const body = await png(7);
    const answers = Array.from({ length: 6 }, () => post(origin, body));
    const refused = await Promise.race(answers);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    await eventually(async () =>
      expect(await (await fetch(`${origin}/metrics`)).text()).toMatch(
        /photographs_responses_total\{status="503"\} [4-5]\n/,
      ),
    );
    model.letGo();
    const statuses = (await Promise.all(answers)).map(({ status }) => status).sort();
    expect(statuses).toEqual(expect.arrayContaining([200, 503]));
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true);
    expect((await post(origin, body)).status).toBe(200);
  });

  test.each([
    [
      'what is no image',
      Buffer.from('not an image at all'),
      'image/png',
      422,
      /^not an image that can be read/,
    ],
    [
      'an image that is cut short',
      cafe.subarray(0, 2000),
      'image/jpeg',
      422,
      /^not an image that can be read/,
    ],
    ['another type', Buffer.from('{}'), 'image/gif', 415, /Unsupported Media Type/],
    ['an empty body', Buffer.alloc(0), 'image/png', 422, /^not an image that can be read/],
  ])('%s is refused', async (_, body, type, status, message) => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model);
    const answer = await post(origin, body, { type });
    expect(answer.status).toBe(status);
    expect(((await answer.json()) as { error: string }).error).toMatch(message);
    expect(model.batches).toEqual([]);
  });

  test('a model that fails is a 500 for each request, without its message', async () => {
    app = build(where, {
      find: () => Promise.reject(new Error('secret')),
      batching: { maxBatchSize: 2, maxQueueDelay: 50 },
    });
    const origin = await app.listen({ host: '127.0.0.1', port: 0 });
    const body = await png(1);
    const answers = await Promise.all([post(origin, body), post(origin, body)]);
    expect(answers.map(({ status }) => status)).toEqual([500, 500]);
    expect(await answers[0]!.json()).toEqual({ error: 'the model failed' });
  });

  test('closing answers accepted requests, and accepts no more', async () => {
    const model = new HeldModel();
    const origin = await started(model);
    const taken = post(origin, await png(5));
    await eventually(() => expect(model.batches).toEqual([1]));
    const closed = app.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await expect(post(origin, await png(6))).rejects.toThrow();
    model.letGo();
    expect((await taken).status).toBe(200);
    await closed;
  });

  test('reports its health and its metrics', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model);
    await post(origin, await png(1));
    expect(await (await fetch(`${origin}/healthz`)).json()).toEqual({
      status: 'ok',
      runsOn: 'a model held',
    });
    const text = await (await fetch(`${origin}/metrics`)).text();
    expect(text).toContain(
      '# TYPE photographs_responses_total counter\nphotographs_responses_total{status="200"} 1\n',
    );
    expect(text).toContain('photographs_batched_total 1\n');
    expect(
      text
        .split('\n')
        .every((line) =>
          /^(# TYPE \w+ (gauge|counter)|\w+(\{\w+="\d+"\})? [\d.e+-]+|)$/.test(line),
        ),
    ).toBe(true);
  });

  test(
    'bodies of known and unknown lengths are read whole, also at once',
    { tags: 'thorough' },
    async () => {
      const model = new HeldModel();
      model.letGo();
      const origin = await started(model, { bodyLimit: 2 ** 21 });
      // Noise does not get smaller.
      const noise = await sharp({
        create: {
          width: 700,
          height: 700,
          channels: 3,
          background: 'black',
          noise: { type: 'gaussian', mean: 128, sigma: 60 },
        },
      })
        .png()
        .toBuffer();
      expect(noise.length).toBeGreaterThan(2 ** 20);
      const large = await sharp(noise)
        .composite([{ input: await png(4), left: 0, top: 0 }])
        .removeAlpha()
        .png()
        .toBuffer();
      const pieces = (bytes: Uint8Array): ReadableStream =>
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < bytes.length; at += 50_000)
              controller.enqueue(bytes.subarray(at, at + 50_000));
            controller.close();
          },
        });
      const send = async (bytes: Uint8Array, whole: boolean): Promise<string> => {
        const answer = await fetch(`${origin}/text`, {
          method: 'POST',
          body: whole ? bytes : pieces(bytes),
          headers: { 'content-type': 'image/png' },
          ...(whole ? {} : { duplex: 'half' }),
        } as RequestInit);
        expect(answer.status).toBe(200);
        return ((await answer.json()) as { text: Finding[] }).text[0]!.label;
      };
      for (const whole of [true, false]) {
        expect(await send(large, whole)).toBe('4');
        expect(await send(await png(5), whole)).toBe('5');
        expect(
          await Promise.all([
            send(large, whole),
            send(await png(6), whole),
            send(large, !whole),
            send(await png(7), !whole),
          ]),
        ).toEqual(['4', '6', '4', '7']);
      }
      for (const body of [new Uint8Array(2 ** 21 + 1), pieces(new Uint8Array(2 ** 21 + 1))]) {
        const answer = await fetch(`${origin}/text`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'image/png', connection: 'close' },
          duplex: 'half',
        } as RequestInit);
        expect([answer.status, await answer.json()]).toEqual([
          413,
          { error: 'the body is larger than 2097152 bytes' },
        ]);
      }
    },
  );

  /** Connections that send the beginning of a request, and then nothing. */
  async function slow(count: number, beginning: string): Promise<Socket[]> {
    const { port } = app.server.address() as AddressInfo;
    return Promise.all(
      Array.from({ length: count }, async () => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined).resume();
        opened.push(() => socket.destroy());
        await new Promise((resolve) => socket.once('connect', resolve));
        socket.write(beginning);
        return socket;
      }),
    );
  }

  const HEAD = 'POST /text HTTP/1.1\r\nhost: x\r\ncontent-type: image/png\r\n';
  const BEGUN = `${HEAD}content-length: 100000\r\n\r\nabc`;

  test('connections that end within a body leave no memory', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model, { maxInFlight: 1 });
    for (const socket of await slow(3, BEGUN)) socket.destroy();
    expect((await post(origin, await png(1))).status).toBe(200);
    await eventually(async () =>
      expect(await (await fetch(`${origin}/metrics`)).text()).toContain('in_flight 0\n'),
    );
  });

  test('clients that stop within a body take no places, and time out', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model, { maxInFlight: 2, requestTimeout: 500 });
    const begun = performance.now();
    const sockets = [
      ...(await slow(20, BEGUN)),
      ...(await slow(5, `${HEAD}transfer-encoding: chunked\r\n\r\n5\r\nabc`)),
      ...(await slow(5, HEAD)),
    ];
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    expect((await post(origin, await png(1))).status).toBe(200);
    await Promise.all(closed);
    // The time limit and the interval at which Node looks, with room for a busy machine.
    expect(performance.now() - begun).toBeLessThan(15_000);
  });

  test('bodies beyond the memory for bodies are refused until slow ones time out', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model, { mostReceiving: 2 ** 18 });
    const [first] = await slow(1, BEGUN);
    const closed = new Promise((resolve) => first!.once('close', resolve));
    await slow(1, BEGUN);
    const statuses: number[] = [];
    await eventually(async () =>
      expect(statuses.push((await post(origin, await png(1))).status) > 0 && statuses.at(-1)).toBe(
        200,
      ),
    );
    await closed;
    expect(statuses).toContain(503);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
  });

  test('closing does not wait for requests that never come whole', async () => {
    const model = new HeldModel();
    await started(model, { requestTimeout: 300 });
    const sockets = await slow(3, BEGUN);
    const closed = sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    await app.close();
    await Promise.all(closed);
  });

  test.each(['null', '{"a":1}', '{"length":1e9}', '"x"', '[]', ''])(
    'JSON (%s) is of another type, and the server goes on',
    async (json) => {
      const model = new HeldModel();
      model.letGo();
      const origin = await started(model);
      for (const type of ['application/json', 'text/plain', 'application/json; charset=utf-8']) {
        expect((await post(origin, Buffer.from(json), { type })).status).toBe(415);
      }
      expect((await fetch(`${origin}/text`, { method: 'POST' })).status).toBe(415);
      expect((await post(origin, await png(1))).status).toBe(200);
    },
  );

  test.each([
    [
      'SVG',
      Buffer.from(
        '<svg xmlns="http://www.w3.org/2000/svg" width="30000" height="1500"><rect width="1" ' +
          'height="1"/></svg>',
      ),
    ],
    ['GIF', Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')],
  ])('%s in the name of PNG is refused, unread', async (_, body) => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model);
    const answer = await post(origin, body);
    expect([answer.status, await answer.json()]).toEqual([
      422,
      { error: 'not an image that can be read: neither a JPEG nor a PNG file' },
    ]);
  });

  test('photographs beyond the pixel limit get 503, and succeed later', async () => {
    const model = new HeldModel();
    const origin = await started(model, { mostPixelsUnderWay: 2_000_000 });
    const large = await sharp({
      create: { width: 1500, height: 1000, channels: 3, background: 'red' },
    })
      .png()
      .toBuffer();
    const first = post(origin, large);
    await eventually(() => expect(model.batches).toEqual([1]));
    const refused = await post(origin, large);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
    expect(refused.headers.get('content-type')).toContain('json');
    const small = post(origin, await png(1));
    model.letGo();
    expect([
      (await first).status,
      (await small).status,
      (await post(origin, large)).status,
    ]).toEqual([200, 200, 200]);
  });

  test('a file that claims more than 50 million pixels is refused by its header', async () => {
    const model = new HeldModel();
    model.letGo();
    const origin = await started(model);
    const claim = Buffer.from(await png(1));
    claim.writeUInt32BE(8000, 16);
    claim.writeUInt32BE(8000, 20);
    const answer = await post(origin, claim);
    expect([answer.status, ((await answer.json()) as { error: string }).error]).toEqual([
      422,
      'not an image that can be read: it has 8000 × 8000 pixels, at most 50000000 are taken',
    ]);
  });
});
