/** One thread of http-threads.ts: an HTTP server, which calls the device's thread. */
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';

import { Counts } from './counts.js';
import { RemoteFinder } from './remote-finder.js';
import { buildServer } from './server.js';
import type { ServerOptions } from './server.js';

/** What a thread is started with. */
export interface HttpThreadData {
  readonly host: string;
  readonly port: number;
  /** Whether other threads listen on the same port. */
  readonly sharesPort: boolean;
  readonly server: Omit<ServerOptions, 'finder'>;
  /** To the finder. */
  readonly finder: MessagePort;
  /** The memory of all threads' counts. */
  readonly counts: SharedArrayBuffer;
}

/** Its message when it listens. */
export interface Listening {
  readonly origin: string;
  readonly port: number;
}

const { host, port, sharesPort, server, finder: toFinder, counts } = workerData as HttpThreadData;
const finder = new RemoteFinder(toFinder, new Counts(counts));
const app = buildServer({ ...server, finder });
// Fastify passes options on that it does not know.
const options = { host, port, reusePort: sharesPort };
await app.listen(options);
const listening: Listening = {
  origin: app.listeningOrigin,
  port: (app.server.address() as { port: number }).port,
};
parentPort!.postMessage(listening);
// The only message is the order to end. Without a listener for another the thread then ends by
// itself.
parentPort!.once('message', () => void app.close().then(() => finder.close()));
