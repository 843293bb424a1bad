/**
 * Standard output of native code, written through C's stdio: the driver writes the text of kernels
 * that print. C buffers it where standard output is a pipe or a file, so it appears when the buffer
 * is flushed.
 */
import { koffiPath, loadKoffi } from '../native/koffi.js';

const STDOUT = 1;
const F_GETFL = 3;
const F_SETFL = 4;
/** The flag on Linux, on every architecture that Node supports there. */
const O_NONBLOCK = 0o4000;

export interface NativeOutput {
  /** Runs `write`, then flushes. It waits for a slow reader of a pipe, as any printf does. */
  bring(write: () => void): void;
  /** Flushes and ends the process, at once. */
  exit(code: number): void;
}

type Call = (...args: unknown[]) => number;

let opened: NativeOutput | undefined | null = null;

/** Undefined where no such libc is available. `path` is koffi's. */
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
      // Node makes a pipe non-blocking. C's stdio drops the bytes that such a pipe does not accept
      // at once.
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
