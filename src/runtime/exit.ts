/**
 * The end of the process. `process.exit()` waits for a worker that is inside a native call (a kernel of four seconds
 * made an exit of 4.1, measured), so the runtime threads are asked to stop, and where one does not within 50 ms, or work
 * goes on that `device.close()` has given up on, the process ends without the orderly shutdown.
 */
import { isMainThread } from 'node:worker_threads';

import type { ProviderConfig } from './messages.js';
import { nativeOutput } from './native-output.js';

const GRACE_MS = 50;
/** A worker_thread's device work is waited for this long, so that its memory can be given back. */
const WORKER_GRACE_MS = 1000;

const live = new Set<Ending>();

/** What {@link atExit} asks of a runtime, and of any thread that is starting. */
export interface Ending {
  readonly config: ProviderConfig;
  askToStop?(): void;
  /** Waits, blocking, until `deadline` at most. Whether nothing holds up an orderly shutdown. */
  hasStopped(deadline: number): boolean;
  /** Reads what the runtime thread has posted. */
  hearOut?(): void;
  releasePinned?(ms: number): void;
}

function atExit(code: number): void {
  // There is no other way out of a worker_thread than the orderly one.
  const deadline = performance.now() + (isMainThread ? GRACE_MS : WORKER_GRACE_MS);
  for (const runtime of live) runtime.askToStop?.();
  let stopped = true;
  for (const runtime of live) {
    if (!runtime.hasStopped(deadline)) stopped = false;
    runtime.hearOut?.();
  }
  if (!isMainThread) {
    for (const runtime of live) runtime.releasePinned?.(WORKER_GRACE_MS);
    return;
  }
  if (stopped) return;
  const cuda = [...live].find((runtime) => runtime.config.provider === 'libcuda');
  // A CPU device's thread runs JavaScript and WebAssembly only, which Node can end.
  if (cuda === undefined) return;
  const output = nativeOutput(cuda.config.koffiPath);
  // Where there is no such libc the orderly shutdown has to do.
  if (output !== undefined) output.exit(runOtherListeners(code));
}

/** Those that Node would have called after this one. Returns the exit code that they leave. */
function runOtherListeners(code: number): number {
  const listeners = process.rawListeners('exit') as ((code: number) => void)[];
  for (const listener of listeners.slice(listeners.indexOf(atExit) + 1)) {
    try {
      listener.call(process, code);
    } catch (error) {
      console.error(error);
    }
  }
  return Number(process.exitCode ?? code);
}

/** Ends `runtime` with the process. Returns how to call that off. */
export function onExit(runtime: Ending): () => void {
  if (live.size === 0) process.on('exit', atExit);
  live.add(runtime);
  return () => {
    live.delete(runtime);
    if (live.size === 0) process.off('exit', atExit);
  };
}
