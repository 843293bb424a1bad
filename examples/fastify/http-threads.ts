/**
 * The server's HTTP on threads of its own. Of what a request takes of an event loop, half is
 * HTTP's; a loop that has both, the device's work and HTTP's, is the first thing that is busy.
 */
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer } from 'node:net';
import { availableParallelism, devNull } from 'node:os';
import { MessageChannel, Worker } from 'node:worker_threads';

import type { Finder } from './finder.js';
import type { HttpThreadData, Listening } from './http-thread.js';
import { FinderService } from './remote-finder.js';

/**
 * The kernel shares connections between sockets that listen on one port since these versions of
 * Node, on Linux.
 */
const [MAJOR = 0, MINOR = 0] = process.versions.node.split('.').map(Number);
export const SHARES_PORTS =
  process.platform === 'linux' &&
  (MAJOR > 23 || (MAJOR === 23 && MINOR >= 1) || (MAJOR === 22 && MINOR >= 12));
/** One for so many cores. */
const CORES_EACH = 8;
/**
 * Little of a request remains when it is answered, and nearly all of it is the bytes from the
 * socket, in memory that later requests can use after a garbage collection. With V8's default young
 * generation (48 MiB and more, three times what it fills between two collections) more of them
 * would accumulate than the processor's caches hold.
 */
const resourceLimits = { maxYoungGenerationSizeMb: 6 };

/** Connections for which there is room from the start. */
const CONNECTIONS = 4096;

export interface HttpThreadsOptions extends Omit<
  HttpThreadData,
  'finder' | 'counts' | 'sharesPort'
> {
  /**
   * Threads. More than one needs Linux, and Node 22.12 or 23.1. Default: one, and where there may
   * be several one for each 8 cores.
   */
  readonly threads?: number;
}

export class HttpThreads {
  /** Where they listen: `http://…`. */
  readonly origin: string;
  private readonly workers: readonly Worker[];

  private constructor(origin: string, workers: readonly Worker[]) {
    this.origin = origin;
    this.workers = workers;
  }

  /** Threads that listen. One that fails ends the process, as it would if it were the only one. */
  static async start(
    finder: Finder,
    { threads, ...options }: HttpThreadsOptions,
  ): Promise<HttpThreads> {
    const count =
      threads ?? (SHARES_PORTS ? Math.max(1, Math.floor(availableParallelism() / CORES_EACH)) : 1);
    if (!Number.isInteger(count) || count < 1)
      throw new RangeError(`threads of HTTP: expected 1 or more, got ${threads}`);
    if (count > 1 && !SHARES_PORTS)
      throw new RangeError(
        'threads of HTTP: several share a port on Linux with Node 22.12, 23.1 or later; got ' +
          `${count} on ${process.platform} with Node ${process.versions.node}. Write 1, or ` +
          'leave the number out',
      );
    if (count > 1 && options.port !== 0) await checkFree(options.host, options.port);
    makeRoom(CONNECTIONS);
    const service = new FinderService(finder);
    const workers: Worker[] = [];
    const start = async (port: number): Promise<Listening> => {
      const { port1, port2 } = new MessageChannel();
      service.serve(port1);
      const workerData: HttpThreadData = {
        ...options,
        port,
        sharesPort: count > 1,
        finder: port2,
        counts: finder.counts.shared,
      };
      const worker = new Worker(new URL('./start-http-thread.mjs', import.meta.url), {
        workerData,
        transferList: [port2],
        execArgv: [],
        resourceLimits,
      });
      workers.push(worker);
      // Rejects with what the thread ends with before.
      return ((await once(worker, 'message')) as [Listening])[0];
    };
    try {
      // The first finds a port where none was named.
      const { origin, port } = await start(options.port);
      await Promise.all(Array.from({ length: count - 1 }, () => start(port)));
      return new HttpThreads(origin, workers);
    } catch (error) {
      await Promise.all(workers.map((worker) => worker.terminate()));
      throw error;
    }
  }

  /** Answers what has been taken; nothing more is. */
  async close(): Promise<void> {
    await Promise.all(
      this.workers.map(async (worker) => {
        const exit = once(worker, 'exit');
        worker.postMessage('close');
        await exit;
      }),
    );
  }
}

/**
 * A process's table of open files is doubled when it is full, and keeps its size. On Linux every
 * thread that opens one, or takes a connection, then waits until no thread reads the old table: 5
 * to 30 ms, each time that there are twice as many connections as ever before.
 */
function makeRoom(files: number): void {
  if (process.platform !== 'linux') return;
  const open: number[] = [];
  try {
    while (open.length < files) open.push(openSync(devNull, 'r'));
  } catch {
    // The process may have no more.
  } finally {
    for (const file of open) closeSync(file);
  }
}

/**
 * A port that is shared is another program's too, if that shares it: without a word each would have
 * half of the connections. Rejects with EADDRINUSE.
 */
async function checkFree(host: string, port: number): Promise<void> {
  const probe = createServer().listen(port, host);
  await once(probe, 'listening');
  probe.close();
  await once(probe, 'close');
}
