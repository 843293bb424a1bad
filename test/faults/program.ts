/**
 * Runs a program of `programs/` in a process of its own, for tests that end a process or make a GPU
 * unusable in it.
 */
import { spawn } from 'node:child_process';
import { mkdir, rename } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { build } from 'esbuild';

import { testDevice } from '../core/test-device.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
/** Inside node_modules, so that the programs find koffi. */
const output = `${root}node_modules/.cache/async-cuda-test-programs/`;
const built = new Map<string, Promise<string>>();

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
  /** The last line that the program printed, as JSON; undefined where it is not JSON. */
  result: unknown;
  /** Milliseconds from the program's first line of output to its end. */
  afterFirstLine: number;
}

export interface RunOptions {
  args?: readonly (string | number)[];
  node?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** The process is killed after this many milliseconds. */
  timeout?: number;
}

function bundle(name: string): Promise<string> {
  let path = built.get(name);
  if (path === undefined) {
    path = (async () => {
      await mkdir(output, { recursive: true });
      const outfile = `${output}${name}.mjs`;
      const unfinished = `${outfile}.${process.pid}`;
      await build({
        entryPoints: [`${root}test/faults/programs/${name}.ts`],
        outfile: unfinished,
        bundle: true,
        platform: 'node',
        format: 'esm',
        target: 'node20',
        external: ['koffi'],
        alias: {
          'async-cuda/core': `${root}src/core/index.ts`,
          'async-cuda/ops': `${root}src/ops/index.ts`,
        },
        logLevel: 'error',
      });
      // The file is renamed in one step: another run of the suite may start the same program.
      await rename(unfinished, outfile);
      return outfile;
    })();
    built.set(name, path);
  }
  return path;
}

export async function runProgram(name: string, options: RunOptions = {}): Promise<Ended> {
  const file = await bundle(name);
  const child = spawn(
    process.execPath,
    [...(options.node ?? []), file, ...(options.args ?? []).map(String)],
    {
      cwd: root,
      env: { ...process.env, ASYNC_CUDA_TEST_DEVICE: testDevice, NODE_OPTIONS: '', ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let stdout = '';
  let stderr = '';
  let firstLine = 0;
  child.stdout.on('data', (data: Buffer) => {
    if (firstLine === 0) firstLine = performance.now();
    stdout += data.toString();
  });
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeout ?? 25_000);
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) => {
    child.on('close', (...end) => resolve(end));
  });
  clearTimeout(timer);
  let result: unknown;
  try {
    result = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  } catch {
    result = undefined;
  }
  return { code, signal, stdout, stderr, result, afterFirstLine: performance.now() - firstLine };
}
