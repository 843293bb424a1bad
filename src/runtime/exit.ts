/**
 * The end of the process. `process.exit()` waits for a worker that is inside a native call (a kernel of four seconds
 * made an exit of 4.1, measured), so the runtime threads are asked to stop, and where one does not within 50 ms the
 * process ends without the orderly shutdown.
 */
import { isMainThread } from 'node:worker_threads';

import { nativeOutput } from './native-output.js';
import type { Runtime } from './runtime.js';

const GRACE_MS = 50;
/** A worker_thread's device work is waited for this long, so that its memory can be given back. */
const WORKER_GRACE_MS = 1000;

const live = new Set<Runtime>();

function atExit(code: number): void {
  let stopped = true;
  for (const runtime of live) {
    if (!runtime.stopNow(GRACE_MS)) stopped = false;
    runtime.hearOut();
  }
  if (!isMainThread) {
    for (const runtime of live) runtime.releasePinned(WORKER_GRACE_MS);
    return;
  }
  if (stopped) return;
  const cuda = [...live].find((runtime) => runtime.config.provider === 'libcuda');
  // A CPU device's thread runs JavaScript and WebAssembly only, which Node can end.
  if (cuda === undefined) return;
  // Where there is no such libc the orderly shutdown has to do.
  nativeOutput(cuda.config.koffiPath)?.exit(code);
}

/** Ends `runtime` with the process. Returns how to call that off. */
export function onExit(runtime: Runtime): () => void {
  if (live.size === 0) process.on('exit', atExit);
  live.add(runtime);
  return () => {
    live.delete(runtime);
    if (live.size === 0) process.off('exit', atExit);
  };
}
