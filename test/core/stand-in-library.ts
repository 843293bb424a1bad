/**
 * A stand-in for a native library, compiled by the host's C compiler: it records its arguments and
 * returns the status that the test sets. It is loaded into this process, so that the test can read
 * the calls of the runtime thread.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';

/** The reason why it cannot be built here, or undefined. */
export const whyNoStandIn: string | undefined =
  process.platform !== 'linux'
    ? 'SKIPPED: stand-in libraries are built on Linux only'
    : spawnSync('gcc', ['--version']).status !== 0
      ? 'SKIPPED: gcc is not installed'
      : undefined;

/**
 * What every stand-in has: `note(format, …)` records a line, `answer()` is the status to return.
 */
const PRELUDE = `
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define API __attribute__((visibility("default")))
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[1 << 20], taken[1 << 20];
static size_t used;
static int status;
static void note(const char *format, ...) {
  va_list list;
  va_start(list, format);
  pthread_mutex_lock(&lock);
  if (used < sizeof lines - 4096) used += vsnprintf(lines + used, 4096, format, list);
  if (used < sizeof lines - 1) { lines[used++] = '\\n'; lines[used] = 0; }
  pthread_mutex_unlock(&lock);
  va_end(list);
}
static int answer(void) { return status; }
API void standin_answer(int value) { status = value; }
API const char *standin_take(void) {
  pthread_mutex_lock(&lock);
  memcpy(taken, lines, used + 1);
  used = 0;
  lines[0] = 0;
  pthread_mutex_unlock(&lock);
  return taken;
}
`;

export class StandInLibrary {
  readonly path: string;
  private readonly takeText: () => string;
  private readonly setAnswer: (status: number) => void;

  /** Built once for each text, in the system's temporary folder. */
  constructor(name: string, text: string) {
    const source = PRELUDE + text;
    const folder = join(
      tmpdir(),
      `async-cuda-stand-in-${createHash('sha256').update(source).digest('hex').slice(0, 16)}`,
    );
    this.path = join(folder, `${name}.so`);
    if (!existsSync(this.path)) {
      mkdirSync(folder, { recursive: true });
      // Test files run at the same time: each builds under a name of its own, and the last rename
      // wins.
      const output = join(folder, `${process.pid}.so`);
      execFileSync(
        'gcc',
        [
          '-shared',
          '-fPIC',
          '-O1',
          '-fvisibility=hidden',
          '-Wall',
          '-Werror',
          '-x',
          'c',
          '-',
          '-o',
          output,
          '-lpthread',
        ],
        { input: source, stdio: ['pipe', 'inherit', 'inherit'] },
      );
      renameSync(output, this.path);
    }
    const library = koffi.load(this.path);
    this.takeText = library.func('const char* standin_take()') as () => string;
    this.setAnswer = library.func('void standin_answer(int status)') as (status: number) => void;
  }

  /** The lines recorded since the last call. */
  take(): string[] {
    return this.takeText()
      .split('\n')
      .filter((line) => line !== '');
  }

  /** Sets the status that every function returns. */
  answers(status: number): void {
    this.setAnswer(status);
  }
}
