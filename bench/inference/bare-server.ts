/**
 * What is left of the example server without its device: Fastify, bodies read as it reads them, and an answer of its size. What that takes at
 * the same rate is the host's and Node's part of the server's times.
 */
import type { Readable } from 'node:stream';

import Fastify from 'fastify';
import type { FastifyRequest } from 'fastify';

import { Bodies } from '../../examples/fastify/bodies.js';

const FINDINGS = 6;
const finding = (i: number): object => ({ label: `${i}`, score: 0.9, corners: [0, 1, 2, 3].map((corner) => ({ x: 100 * i + 0.1 + corner, y: 50 * i + 0.3 + corner })) });

const bodies = new Bodies(2 ** 24, 2 ** 26);
const app = Fastify({ bodyLimit: 2 ** 24, forceCloseConnections: 'idle' });
app.addContentTypeParser('image/jpeg', (request: FastifyRequest, payload: Readable) => bodies.read(payload, Number(request.headers['content-length'])));
app.post('/digits', (request) => {
  const body = request.body as Uint8Array<SharedArrayBuffer>;
  const { length } = body;
  bodies.give(body.buffer);
  return { width: length, height: length, digits: Array.from({ length: FINDINGS }, (_, i) => finding(i)) };
});
await app.listen({ host: '127.0.0.1', port: 0 });
console.log(`listening on ${app.listeningOrigin}, on nothing`);
process.once('SIGTERM', () => void app.close());
