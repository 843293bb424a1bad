/**
 * A server that finds something on photographs: `POST /text`, or whatever it is named after what is
 * found, with a JPEG or PNG file gives JSON. What finds it may belong to another thread.
 */
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';

import { Bodies } from './bodies.js';
import type { Finder, Statistics } from './finder.js';

export interface ServerOptions {
  readonly finder: Finder;
  /** What is found, and what the route is called: `text` for `POST /text`. */
  readonly task: string;
  /**
   * Requests that may be under way at once, from the first byte to the last; a further one is
   * answered with 503.
   */
  readonly maxInFlight: number;
  /** The device in the answer of `/healthz`. */
  readonly description: string;
  /** Bytes of a photograph, at most. Default: 16 MiB. */
  readonly bodyLimit?: number;
  /**
   * Milliseconds in which a request has to arrive whole, head and body; after that the connection
   * is closed. Default: 30,000.
   */
  readonly requestTimeout?: number;
  /**
   * Bytes of memory for bodies that are being received, at most, on this thread: past it slow ones
   * are cut, and new ones refused. Default: 256 MiB.
   */
  readonly mostReceiving?: number;
  readonly logger?: boolean;
}

/** Bytes of bodies' memory that waits for the next ones, at most. */
const MOST_KEPT_BYTES = 2 ** 26;
const REQUEST_TIMEOUT_MS = 30_000;
const MOST_RECEIVING_BYTES = 2 ** 28;
/** How often Node looks for requests that take too long: milliseconds. Its default is 30,000. */
const CHECKING_INTERVAL_MS = 1000;
/** Connections of one thread; Node closes further ones at once. */
const MOST_CONNECTIONS = 8192;

/** The client has disconnected: the answer is not read. */
class ClientGone extends Error {
  override name = 'ClientGone';
}

/** The connections of a server. */
class Connections {
  /** Those whose request is whole, and is not answered yet. */
  readonly answering = new Set<Socket>();
  private readonly open = new Set<Socket>();

  add(socket: Socket): void {
    this.open.add(socket);
    socket.once('close', () => this.open.delete(socket));
  }

  /** Closes those that no request has come on, or a part of one. */
  cutUnfinished(): void {
    for (const each of this.open) if (!this.answering.has(each)) each.destroy();
  }
}

/**
 * The server, which listens once its `listen` is called. Its `close` finishes what has been taken,
 * and refuses what comes.
 */
export function buildServer({
  finder,
  task,
  maxInFlight,
  description,
  bodyLimit = 2 ** 24,
  requestTimeout = REQUEST_TIMEOUT_MS,
  mostReceiving = MOST_RECEIVING_BYTES,
  logger = false,
}: ServerOptions): FastifyInstance {
  const http = {
    requestTimeout,
    headersTimeout: requestTimeout,
    connectionsCheckingInterval: Math.min(CHECKING_INTERVAL_MS, requestTimeout),
  };
  const app = Fastify({ bodyLimit, logger, forceCloseConnections: 'idle', requestTimeout, http });
  app.server.maxConnections = MOST_CONNECTIONS;
  const connections = new Connections();
  app.server.on('connection', (socket: Socket) => connections.add(socket));
  const { counts } = finder;
  const bodies = new Bodies(bodyLimit, MOST_KEPT_BYTES, mostReceiving);
  // Those of Fastify for JSON and text: what they give is no photograph.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ['image/jpeg', 'image/png'],
    (request: FastifyRequest, payload: Readable) => {
      const length = request.headers['content-length'];
      return bodies.read(payload, length === undefined ? undefined : Number(length));
    },
  );

  app.post(`/${task}`, {
    // Before the body is read: what there is no room for costs as little as can be.
    onRequest: async (_request, reply) => {
      if (counts.inFlight >= maxInFlight) return refuse(reply, 1000);
    },
    // Once the body is there: a client that sends slowly, or stops, takes the place of no other
    // one.
    preHandler: async (request, reply) => {
      const file: unknown = request.body;
      if (!(file instanceof Uint8Array))
        return reply.code(415).send({
          error: 'Unsupported Media Type: expected the bytes of a file, as image/jpeg or image/png',
        });
      // Its event came before: no further one would free the place.
      const isGone = reply.raw.destroyed;
      if (isGone || !counts.enter(maxInFlight)) {
        bodies.give(file.buffer as SharedArrayBuffer);
        if (isGone) throw new ClientGone('the connection was closed');
        return refuse(reply, 1000);
      }
      const { socket } = request.raw;
      connections.answering.add(socket);
      reply.raw.once('close', () => {
        connections.answering.delete(socket);
        counts.leave();
      });
    },
    handler: async (request, reply) => {
      const file = request.body as Uint8Array<SharedArrayBuffer>;
      const json = await finder.find(file, signalOf(reply)).catch((error: unknown) => {
        // With a status it is the finder's answer, and nothing reads the file any more.
        if ((error as { statusCode?: number }).statusCode !== undefined) bodies.give(file.buffer);
        throw error;
      });
      bodies.give(file.buffer);
      return reply.type('application/json; charset=utf-8').send(json);
    },
  });
  app.get('/healthz', () => ({ status: 'ok', runsOn: description }));
  app.get('/metrics', async (_request, reply) =>
    reply
      .type('text/plain; version=0.0.4')
      .send(metrics(await finder.statistics(), counts.inFlight)),
  );
  app.addHook('onResponse', async (request, reply) => {
    if (request.routeOptions.url === `/${task}`)
      counts.answered(reply.statusCode, reply.elapsedTime / 1000);
  });

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof ClientGone) return reply.hijack();
    const {
      statusCode = 500,
      retryAfter,
      message,
    } = error as Error & { statusCode?: number; retryAfter?: number };
    if (retryAfter !== undefined) return refuse(reply, retryAfter);
    if (statusCode >= 500) request.log.error(error);
    return reply.code(statusCode).send({ error: statusCode >= 500 ? 'the model failed' : message });
  });
  // A connection that is busy now would stay open after its answer, for as long as it is kept
  // alive, and so would the server.
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
    // Node stops looking for slow requests when a server closes: one of them would keep it open for
    // ever.
    setTimeout(() => connections.cutUnfinished(), requestTimeout).unref();
  });
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  return app;
}

/** Aborts when the connection closes before the answer has been sent. */
function signalOf(reply: FastifyReply): AbortSignal {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(new ClientGone('the connection was closed'));
  });
  return controller.signal;
}

/** There is no room: try again, a little later. */
function refuse(reply: FastifyReply, milliseconds: number): FastifyReply {
  return reply
    .code(503)
    .header('retry-after', Math.max(1, Math.ceil(milliseconds / 1000)))
    .send({ error: 'too many requests are under way' });
}

/** As Prometheus reads it. */
function metrics({ counted, batcher }: Statistics, inFlight: number): string {
  const statuses = new Map<number, number>();
  for (const [status, count] of counted.flatMap((each) => each.statuses))
    statuses.set(status, (statuses.get(status) ?? 0) + count);
  const rows: [
    name: string,
    type: 'gauge' | 'counter',
    samples: readonly (readonly [labels: string, value: number])[],
  ][] = [
    ['photographs_requests_in_flight', 'gauge', [['', inFlight]]],
    [
      'photographs_responses_total',
      'counter',
      [...statuses].map(([status, count]) => [`{status="${status}"}`, count]),
    ],
    [
      'photographs_response_seconds_total',
      'counter',
      [['', counted.reduce((sum, { seconds }) => sum + seconds, 0)]],
    ],
    // The longest delay of a thread's event loop since the last read.
    [
      'photographs_event_loop_delay_seconds',
      'gauge',
      [['', Math.max(...counted.map(({ loopDelay }) => loopDelay))]],
    ],
    ['photographs_queue_length', 'gauge', [['', batcher.queued]]],
    ['photographs_batches_running', 'gauge', [['', batcher.running]]],
    ['photographs_batches_total', 'counter', [['', batcher.batches]]],
    ['photographs_batched_total', 'counter', [['', batcher.items]]],
    ['photographs_aborted_total', 'counter', [['', batcher.aborted]]],
    ['photographs_refused_total', 'counter', [['', batcher.refused]]],
  ];
  return rows
    .map(([name, type, samples]) =>
      [
        `# TYPE ${name} ${type}`,
        ...samples.map(([labels, value]) => `${name}${labels} ${value}`),
        '',
      ].join('\n'),
    )
    .join('');
}
