/**
 * A server that finds something on photographs: `POST /text`, or whatever it is named after what is found, with a JPEG or PNG file gives
 * JSON. Photographs of several requests run through the models together.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Readable } from 'node:stream';

import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { CudaQueueFullError, type Device, RoundRobin } from 'async-cuda';
import { Batcher, type BatcherOptions, type BatcherStatistics } from 'async-cuda/inference';

import { type DevicePhotograph, type Finding, sizeOf } from '../../demo/inference/photograph.js';
import { type Body, Bodies } from './bodies.js';
import { DecodingError, decodePhotograph } from './decoding.js';

export interface ServerOptions {
  /** Where photographs are decoded to. */
  readonly device: Device;
  /** What is found, and what the route is called: `text` for `POST /text`. */
  readonly task: string;
  /** Runs one batch: what is on each photograph. */
  readonly find: (photographs: readonly DevicePhotograph[]) => PromiseLike<readonly Finding[][]>;
  /** How requests are put together. */
  readonly batching: BatcherOptions;
  /** Requests that may be under way at once, from the first byte to the last; a further one is answered with 503. Default: eight batches. */
  readonly maxInFlight?: number;
  /** What `/healthz` says that it runs on. */
  readonly description: string;
  /** Bytes of a photograph, at most. Default: 16 MiB. */
  readonly bodyLimit?: number;
  readonly logger?: boolean;
}

/** Photographs that may be on their way to the device at once; further ones wait for one another. */
const ARRIVALS = 16;

/** Bytes of bodies' memory that waits for the next ones, at most. */
const MOST_KEPT_BYTES = 2 ** 26;

/** How often the event loop is looked at; a timer is late by its delay. */
const LOOP_RESOLUTION_MS = 1;

/** Of requests that ended: how many with each status, and their time from the first byte to the answer. */
interface Answered {
  readonly statuses: Map<number, number>;
  seconds: number;
}

/** The client has gone: nobody reads the answer. */
class ClientGone extends Error {
  override name = 'ClientGone';
}

/** Requests that a server of the options has under way at once, at most. */
export function maxInFlightOf({ maxInFlight, batching }: ServerOptions): number {
  return maxInFlight ?? 8 * batching.maxBatchSize;
}

/** The server, which listens once its `listen` is called. Its `close` finishes what has been taken, and refuses what comes. */
export function buildServer(options: ServerOptions): FastifyInstance {
  const { device, task, find, batching, description, bodyLimit = 2 ** 24, logger = false } = options;
  const maxInFlight = maxInFlightOf(options);
  const app = Fastify({ bodyLimit, logger, forceCloseConnections: 'idle' });
  // Streams of their own, so that no photograph waits behind a batch.
  const arrivals = new RoundRobin(device, ARRIVALS);
  // A client may go while its photograph is in a batch: that is closed behind the batch.
  const running = new Set<DevicePhotograph>();
  const batcher = new Batcher(async (photographs: readonly DevicePhotograph[]) => {
    for (const each of photographs) running.add(each);
    try {
      return await find(photographs);
    } finally {
      for (const each of photographs) {
        running.delete(each);
        each.close();
      }
    }
  }, batching);
  const answered: Answered = { statuses: new Map(), seconds: 0 };
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  let inFlight = 0;

  const bodies = new Bodies(bodyLimit, MOST_KEPT_BYTES);
  app.addContentTypeParser(['image/jpeg', 'image/png'], (request: FastifyRequest, payload: Readable) => {
    const length = request.headers['content-length'];
    return bodies.read(payload, length === undefined ? undefined : Number(length));
  });

  app.post(`/${task}`, {
    // Before the body is read: what there is no room for costs as little as can be.
    onRequest: async (_request, reply) => {
      if (inFlight >= maxInFlight) return refuse(reply, 1000);
      inFlight++;
      reply.raw.once('close', () => inFlight--);
    },
    handler: async (request, reply) => {
      const signal = signalOf(reply);
      const body = request.body as Body;
      const photograph = await decodePhotograph(device, body.bytes, arrivals, signal);
      // Of one that could not be decoded, or whose client has gone, something may still be reading: it is left to the garbage collector.
      body.release();
      try {
        return { ...sizeOf(photograph), [task]: await batcher.run(photograph, { signal }) };
      } finally {
        if (!running.has(photograph)) photograph.close();
      }
    },
  });

  app.get('/healthz', () => ({ status: 'ok', runsOn: description }));
  app.get('/metrics', (_request, reply) => {
    const delay = Math.max(0, loop.max / 1e9 - LOOP_RESOLUTION_MS / 1000);
    loop.reset();
    return reply.type('text/plain; version=0.0.4').send(metrics(batcher.statistics, answered, inFlight, delay));
  });

  app.addHook('onResponse', async (request, reply) => {
    if (request.routeOptions.url !== `/${task}`) return;
    answered.statuses.set(reply.statusCode, (answered.statuses.get(reply.statusCode) ?? 0) + 1);
    answered.seconds += reply.elapsedTime / 1000;
  });
  app.setErrorHandler((error, request, reply) => {
    if (error instanceof ClientGone) return reply.hijack();
    if (error instanceof DecodingError) return reply.code(422).send({ error: error.message });
    if (error instanceof CudaQueueFullError) return refuse(reply, error.retryAfter);
    const { statusCode = 500 } = error as { statusCode?: number };
    if (statusCode >= 500) request.log.error(error);
    return reply.code(statusCode).send({ error: statusCode >= 500 ? 'the model failed' : (error as Error).message });
  });
  // A connection that is busy now would stay open behind its answer, for as long as it is kept alive, and so would the server.
  let closing = false;
  app.addHook('preClose', async () => {
    closing = true;
  });
  app.addHook('onSend', async (_request, reply) => {
    if (closing) reply.header('connection', 'close');
  });
  // Once every request has its answer: Fastify calls these hooks behind the last one.
  app.addHook('onClose', async () => {
    loop.disable();
    await batcher.close();
    arrivals.close();
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
  return reply.code(503).header('retry-after', Math.max(1, Math.ceil(milliseconds / 1000))).send({ error: 'too many requests are under way' });
}

/** As Prometheus reads it. */
function metrics(batcher: BatcherStatistics, { statuses, seconds }: Answered, inFlight: number, loopDelay: number): string {
  const rows: [name: string, type: 'gauge' | 'counter', samples: readonly (readonly [labels: string, value: number])[]][] = [
    ['photographs_requests_in_flight', 'gauge', [['', inFlight]]],
    ['photographs_responses_total', 'counter', [...statuses].map(([status, count]) => [`{status="${status}"}`, count])],
    ['photographs_response_seconds_total', 'counter', [['', seconds]]],
    // The longest since it was asked for last: what held up the event loop.
    ['photographs_event_loop_delay_seconds', 'gauge', [['', loopDelay]]],
    ['photographs_queue_length', 'gauge', [['', batcher.queued]]],
    ['photographs_batches_running', 'gauge', [['', batcher.running]]],
    ['photographs_batches_total', 'counter', [['', batcher.batches]]],
    ['photographs_batched_total', 'counter', [['', batcher.items]]],
    ['photographs_aborted_total', 'counter', [['', batcher.aborted]]],
    ['photographs_refused_total', 'counter', [['', batcher.refused]]],
  ];
  return rows.map(([name, type, samples]) => [`# TYPE ${name} ${type}`, ...samples.map(([labels, value]) => `${name}${labels} ${value}`), ''].join('\n')).join('');
}
