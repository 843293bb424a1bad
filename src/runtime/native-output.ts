/**
 * What native code writes to standard output through C's stdio: the driver's text of kernels that
 * print. C keeps it in a buffer of its own where standard output is a pipe or a file, so it comes
 * out when that is flushed.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

const STDOUT = 1;
const F_GETFL = 3;
const F_SETFL = 4;
/** On Linux, on every architecture that Node has there. */
const O_NONBLOCK = 0o4000;

export interface NativeOutput {
  /** Runs `write`, then flushes. Waits for a slow reader of a pipe, as any printf does. */
  bring(write: () => void): void;
  /** Flushes and ends the process, at once. */
  exit(code: number): void;
}

type Call = (...args: unknown[]) => number;

let opened: NativeOutput | undefined | null = null;

/** Undefined where there is no such libc. `path` is koffi's. */
export function nativeOutput(path: string | undefined): NativeOutput | undefined {
  if (opened !== null) return opened;
  try {
    opened = open(path);
  } catch {
    opened = undefined;
  }
  return opened;
}

function open(path: string | undefined): NativeOutput {
  const libc = loadKoffi(path ?? koffiPath()).load('libc.so.6');
  const fflush = libc.func('int fflush(void*)') as Call;
  const fcntl = libc.func('int fcntl(int fd, int command, ...)') as Call;
  const exit = libc.func('void _exit(int)') as Call;
  return {
    bring(write) {
      // Node opens a pipe without blocking. C's stdio drops what such a pipe does not take at once.
      const flags = fcntl(STDOUT, F_GETFL, 'int', 0);
      const blocks = flags === -1 || (flags & O_NONBLOCK) === 0;
      if (!blocks) fcntl(STDOUT, F_SETFL, 'int', flags & ~O_NONBLOCK);
      try {
        write();
        fflush(null);
      } finally {
        if (!blocks) fcntl(STDOUT, F_SETFL, 'int', flags);
      }
    },
    exit(code) {
      fflush(null);
      exit(code);
    },
  };
}
