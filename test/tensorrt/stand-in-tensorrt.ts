/**
 * A stand-in library with the virtual tables of a version of TensorRT, compiled here from the slots
 * of the bindings.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import koffi from 'koffi';

import { generationOf } from '../../src/tensorrt/thread/generations.js';
import type { SlotKey } from '../../src/tensorrt/thread/generations.js';
import { SLOTS } from '../../src/tensorrt/thread/slots.js';

export const whyNoStandIn: string | undefined =
  process.platform !== 'linux'
    ? 'SKIPPED: stand-in libraries are built on Linux only'
    : spawnSync('g++', ['--version']).status !== 0
      ? 'SKIPPED: g++ is not installed'
      : undefined;

const source = fileURLToPath(new URL('stand-in.cpp', import.meta.url));

export class StandInTensorRT {
  readonly path: string;
  private readonly takeText: () => string;
  private readonly setAnswer: (answer: number) => void;
  private readonly countAlive: () => number;
  private readonly setRows: (rows: number) => void;

  /** Has the tables of `key`; `version` is the version that it reports. */
  constructor(key: SlotKey, version: number) {
    const rows: Readonly<Record<string, Readonly<Record<string, number>>>> = SLOTS[key];
    const { callbacks } = generationOf(key);
    const defines = [
      `VERSION=${version}`,
      `LOG=${callbacks.log}`,
      `PROFILER=${callbacks.profiler}`,
      `OUTPUT_REALLOCATE=${callbacks.output.reallocate.at(-1)!}`,
      `OUTPUT_NOTIFY=${callbacks.output.notifyShape}`,
      ...(callbacks.output.version === undefined
        ? []
        : [`OUTPUT_VERSION=${callbacks.output.version}`]),
      `EXTENT=${generationOf(key).extentBytes === 8 ? 'int64_t' : 'int32_t'}`,
      `CONTEXT_SLOTS=${rows['ExecutionContext']!['slots']!}`,
      `ENGINE_SLOTS=${rows['CudaEngine']!['slots']!}`,
      `RUNTIME_SLOTS=${rows['Runtime']!['slots']!}`,
      ...Object.entries(rows).flatMap(([name, slots]) =>
        Object.entries(slots).map(([method, slot]) => `${name}_${method}=${slot}`),
      ),
    ].map((define) => `-D${define}`);
    const hash = createHash('sha256').update(readFileSync(source)).update(defines.join());
    const folder = join(tmpdir(), `async-cuda-stand-in-${hash.digest('hex').slice(0, 16)}`);
    this.path = join(folder, 'libnvinfer.so');
    if (!existsSync(this.path)) {
      mkdirSync(folder, { recursive: true });
      const output = join(folder, `${process.pid}.so`);
      execFileSync(
        'g++',
        [
          '-shared',
          '-fPIC',
          '-O1',
          '-std=c++17',
          '-fvisibility=hidden',
          '-w',
          ...defines,
          source,
          '-o',
          output,
          '-ldl',
          '-lpthread',
        ],
        { stdio: ['ignore', 'inherit', 'inherit'] },
      );
      renameSync(output, this.path);
    }
    const library = koffi.load(this.path);
    this.takeText = library.func('const char* standin_take()') as () => string;
    this.setAnswer = library.func('void standin_answer(int answer)') as (answer: number) => void;
    this.countAlive = library.func('int standin_alive()') as () => number;
    this.setRows = library.func('void standin_rows(int rows)') as (rows: number) => void;
  }

  /** The calls that were recorded since the last `take`. */
  take(): string[] {
    return this.takeText()
      .split('\n')
      .filter((line) => line !== '');
  }

  /** Objects that it has made, and that have not been destroyed. */
  get alive(): number {
    return this.countAlive();
  }

  /** The first extent that runs of an engine whose output is open give it from now on. */
  rows(rows: number): void {
    this.setRows(rows);
  }

  /**
   * Whether runs and contexts fail from now on: 1 for a reason, 2 for too little memory, 3 for too
   * little memory of a context.
   */
  answers(answer: number): void {
    this.setAnswer(answer);
  }
}

/** `open`: the first extent of the output depends on the run. */
export function planText(rows: number, columns: number, open = false): Uint8Array {
  return new TextEncoder().encode(`plan ${rows} ${columns}${open ? ' open' : ''}`);
}
