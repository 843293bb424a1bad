/** The example server in a process of its own, on the built package, under the benches' load. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { Load } from './load.js';

const START_TIMEOUT_MS = 80_000;
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** How the server batches requests. */
export const MAX_BATCH = 16;
export const MAX_DELAY_MS = 5;

export class ServerProcess {
  readonly load: Load;
  private readonly child: ChildProcess;
  private readonly origin: string;

  private constructor(child: ChildProcess, origin: string, load: Load) {
    this.child = child;
    this.origin = origin;
    this.load = load;
  }

  static start(kind: 'cuda' | 'cpu'): Promise<ServerProcess> {
    return ServerProcess.run('../../examples/fastify/main.ts', [
      '--port',
      '0',
      '--task',
      'digits',
      '--device',
      kind,
      '--max-batch',
      `${MAX_BATCH}`,
      '--max-delay',
      `${MAX_DELAY_MS}`,
    ]);
  }

  /** A server without models: see bare-server.ts. */
  static bare(): Promise<ServerProcess> {
    return ServerProcess.run('bare-server.ts', []);
  }

  private static async run(program: string, options: readonly string[]): Promise<ServerProcess> {
    // Only tsx's loader is used: its command is a process of its own, which exits where the server
    // is too busy to answer it on a signal.
    const args = ['--import', import.meta.resolve('tsx'), here(program), ...options];
    // Without the paths to the sources: the package as it is published. Photographs are decoded on
    // as many threads as there are cores.
    const env = {
      ...process.env,
      TSX_TSCONFIG_PATH: here('tsconfig.json'),
      UV_THREADPOOL_SIZE: '16',
    };
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    let complaints = '';
    child.stderr.on(
      'data',
      (data: Buffer) => (complaints = (complaints + data.toString()).slice(-2000)),
    );
    const origin = await new Promise<string>((resolve, reject) => {
      const timer = setTimeout(
        () =>
          reject(new Error(`the server did not start in ${START_TIMEOUT_MS} ms: ${complaints}`)),
        START_TIMEOUT_MS,
      );
      child.once('exit', (code) =>
        reject(new Error(`the server ended with ${code}: ${complaints}`)),
      );
      child.stdout.on('data', (data: Buffer) => {
        said += data.toString();
        const found = /listening on (http:\S+),/.exec(said);
        if (found === null) return;
        clearTimeout(timer);
        resolve(found[1]!);
      });
    }).catch((error: unknown) => {
      child.kill();
      throw error;
    });
    const body = await readFile(here('../../demo/inference/digits/photographs/menu.jpg'));
    const load = await Load.start({ url: `${origin}/digits`, type: 'image/jpeg', body }).catch(
      (error: unknown) => {
        child.kill();
        throw error;
      },
    );
    return new ServerProcess(child, origin, load);
  }

  /** The values of `/metrics`; each read of the event loop's delay begins a new interval. */
  async metrics(): Promise<Map<string, number>> {
    const text = await (await fetch(`${this.origin}/metrics`)).text();
    return new Map(
      text
        .split('\n')
        .filter((line) => line !== '' && !line.startsWith('#'))
        .map((line) => {
          const [name, value] = line.split(' ');
          return [name!, Number(value)] as const;
        }),
    );
  }

  /** Stops it gracefully. @throws Error where it does not end by itself, or with an error */
  async close(): Promise<void> {
    await this.load.close();
    const exit = once(this.child, 'exit') as Promise<[number | null]>;
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 20_000);
    const [code] = await exit;
    clearTimeout(timer);
    if (code !== 0) throw new Error(`the server ended with ${code} on SIGTERM`);
  }
}
