/**
 * Compiles and controls the stand-in driver: a shared library with libcuda's symbols that records
 * its calls and returns what the test scripts. So the tests cover the whole foreign function layer,
 * on machines without a GPU.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { loadKoffi } from '../../../native/koffi.js';
import { CALLS } from '../calls.js';
import { HEADER_FACTS } from './header-facts.js';

/** Why the stand-in is not available here; undefined where it is. */
export const whyNoStandIn: string | undefined =
  process.platform !== 'linux'
    ? 'SKIPPED: the stand-in driver is built on Linux only'
    : spawnSync('gcc', ['--version']).status !== 0
      ? 'SKIPPED: gcc is not installed'
      : undefined;

export const STAND_IN_SOURCE = readFileSync(
  fileURLToPath(new URL('./stand-in.c', import.meta.url)),
  'utf8',
);

/** The types of the classes in `header-facts.ts`; other classes are pointers. */
const C_TYPES: Readonly<Record<string, string>> = {
  p: 'uintptr_t',
  z: 'size_t',
  u: 'uint32_t',
  i: 'int',
  q: 'uint64_t',
  h: 'uint16_t',
  b: 'uint8_t',
  L: 'Location',
};

function entryPoint(symbol: string, classes: string): string {
  const kinds = [...classes];
  const list = kinds.map((kind, i) => `${C_TYPES[kind] ?? 'uintptr_t'} a${i}`).join(', ') || 'void';
  const values = kinds.map((kind, i) => {
    if (kind === 'L') return `(uint32_t)a${i}.type | (uint64_t)(uint32_t)a${i}.id << 32`;
    return kind === 'i' ? `(uint32_t)a${i}` : `a${i}`;
  });
  return (
    `API int ${symbol}(${list}) { uint64_t v[] = {${[...values, '0'].join(', ')}}; return ` +
    `record("${symbol}", v, ${kinds.length}); }`
  );
}

/** The symbols of the table: gcc takes seconds for all functions of the header. */
const SYMBOLS = new Set<string>(Object.values(CALLS).flatMap(({ symbols }) => symbols));

/**
 * Returns the path of a stand-in with those symbols that a driver for CUDA `version` (e.g. 13000)
 * has. It is built once for each state of the sources, in the system's temporary folder.
 */
export function buildStandIn(version: number): string {
  const points = Object.entries(HEADER_FACTS)
    .filter(([symbol, [since]]) => since <= version && SYMBOLS.has(symbol))
    .map(([symbol, [, classes]]) => entryPoint(symbol, classes));
  const text =
    '#define VERSION ' +
    `${version}\n${STAND_IN_SOURCE.replace('#include ENTRY_POINTS', () => points.join('\n'))}`;
  const folder = join(
    tmpdir(),
    `async-cuda-stand-in-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`,
  );
  const library = join(folder, 'libcuda.so.1');
  if (existsSync(library)) return library;
  mkdirSync(folder, { recursive: true });
  // Test files run side by side: each builds under a name of its own, and the last to finish wins.
  const output = join(folder, `${process.pid}.so`);
  execFileSync(
    'gcc',
    ['-shared', '-fPIC', '-O1', '-fvisibility=hidden', '-x', 'c', '-', '-o', output],
    {
      input: text,
      stdio: ['pipe', 'inherit', 'inherit'],
    },
  );
  renameSync(output, library);
  return library;
}

/**
 * Scripts a loaded stand-in. It is the same library, in the same process, that the provider under
 * test loads.
 */
export class StandIn {
  readonly path: string;
  readonly #functions: Record<string, (...args: unknown[]) => unknown> = {};

  constructor(path: string) {
    this.path = path;
    const library = loadKoffi().load(path);
    const declare = (name: string, declaration: string): void => {
      this.#functions[name] = library.func(declaration) as (...args: unknown[]) => unknown;
    };
    declare('log', 'const char* standin_log()');
    declare('reset', 'void standin_reset()');
    declare('forgetLog', 'void standin_forget_log()');
    declare('forgetParams', 'void standin_forget_params()');
    declare('return', 'void standin_return(const char* name, int result, int times)');
    declare('write', 'void standin_write(const char* name, int arg, void* data, size_t size)');
    declare('peek', 'void standin_peek(const char* name, int arg, size_t size)');
    declare('param', 'void standin_param(uint64_t offset, uint64_t size)');
    declare('jitLogs', 'void standin_jit_logs(const char* info, const char* error)');
  }

  /** Clears everything that was recorded and scripted. */
  reset(): void {
    this.#functions['reset']!();
  }

  /**
   * Returns the lines recorded since the last call of this: the symbol, then the arguments in
   * hexadecimal, then the bytes that were peeked at.
   */
  takeLog(): string[] {
    const text = this.#functions['log']!() as string;
    this.#functions['forgetLog']!();
    return text.split('\n').filter((line) => line !== '');
  }

  returns(symbol: string, result: number, times = -1): void {
    this.#functions['return']!(symbol, result, times);
  }

  /** Makes `symbol` write `bytes` through its argument number `arg`. */
  writes(symbol: string, arg: number, bytes: ArrayBufferView): void {
    const data = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#functions['write']!(symbol, arg, data, data.length);
  }

  peeks(symbol: string, arg: number, size: number): void {
    this.#functions['peek']!(symbol, arg, size);
  }

  /** Gives every function these parameters from now on. */
  parameters(...params: readonly { offset: number; size: number }[]): void {
    this.#functions['forgetParams']!();
    for (const { offset, size } of params) this.#functions['param']!(offset, size);
  }

  jitLogs(info: string, error: string): void {
    this.#functions['jitLogs']!(info, error);
  }
}
