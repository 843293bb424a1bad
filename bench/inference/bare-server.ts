/**
 * The example server without its device: HTTP on as many threads, the same reading of bodies, and
 * an immediate answer of the same size from the main thread. Its times at the same rate are the
 * host's and Node's part of the server's times.
 */
import { Counts } from '../../examples/fastify/counts.js';
import type { Finder } from '../../examples/fastify/finder.js';
import { HttpThreads } from '../../examples/fastify/http-threads.js';

const FINDINGS = 6;
const corner = (i: number, c: number): object => ({ x: 100 * i + 0.1 + c, y: 50 * i + 0.3 + c });
const digits = Array.from({ length: FINDINGS }, (_, i) => ({
  label: `${i}`,
  score: 0.9,
  corners: [0, 1, 2, 3].map((c) => corner(i, c)),
}));
const MOST = 1024;

const counts = new Counts();
const finder: Finder = {
  counts,
  find: () => Promise.resolve(JSON.stringify({ width: 600, height: 400, digits })),
  statistics: () =>
    Promise.resolve({
      counted: [counts.take()],
      batcher: {
        queued: 0,
        running: 0,
        taken: 0,
        fulfilled: 0,
        failed: 0,
        aborted: 0,
        refused: 0,
        batches: 0,
        items: 0,
      },
    }),
};
const threads = await HttpThreads.start(finder, {
  host: '127.0.0.1',
  port: 0,
  server: { task: 'digits', maxInFlight: MOST, description: 'nothing' },
});
console.log(`listening on ${threads.origin}, on nothing`);
process.once('SIGTERM', () => void threads.close().then(() => counts.close()));
