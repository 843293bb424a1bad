/**
 * The end of the process. `process.exit()` waits for a worker that is inside a native call (a
 * kernel of four seconds made an exit of 4.1, measured). So the runtime threads are requested to
 * stop; if one does not within 50 ms, or work continues that `device.close()` has abandoned, the
 * process ends without the orderly shutdown.
 */
import { isMainThread } from 'node:worker_threads';

import type { ProviderConfig } from './messages.js';
import { nativeOutput } from './native-output.js';

const GRACE_MS = 50;
/** How long a worker_thread's device work is waited for, so that its memory can be freed. */
const WORKER_GRACE_MS = 1000;

const live = new Set<Ending>();

/** The interface of a runtime, and of a thread that is starting, for {@link atExit}. */
export interface Ending {
  readonly config: ProviderConfig;
  requestStop?(): void;
  /** Waits, blocking, until `deadline` at most. Returns whether an orderly shutdown is possible. */
  hasStopped(deadline: number): boolean;
  /** Reads the messages that the runtime thread has posted. */
  readMessages?(): void;
  releasePinned?(ms: number): void;
}

/** Load makes the optimising compiler slower than it was when its time was estimated. */
const SLOWNESS = 8;
/**
 * Until this time of performance.now V8 may be optimising code of a CPU device, which may take it
 * long.
 */
let optimisesUntil = 0;
/** An uncaught exception ends the process: Node prints it after the 'exit' listeners. */
let crashes = false;

/**
 * Records that V8 may be optimising a kernel's code in the background, for about `ms` milliseconds
 * from now. Node would wait for that at the end of the process, however it ends.
 */
export function expectOptimiser(ms: number): void {
  // A worker_thread can only end in the orderly way.
  if (!isMainThread) return;
  if (optimisesUntil === 0) {
    process.on('exit', leaveOptimiser);
    process.on('uncaughtExceptionMonitor', () => {
      crashes = true;
    });
  }
  optimisesUntil = Math.max(optimisesUntil, performance.now() + SLOWNESS * ms);
}

/**
 * Ends the process at once where V8 may be optimising. Where no libc is available for that, Node
 * waits.
 */
function leaveOptimiser(code: number): void {
  if (performance.now() > optimisesUntil || crashes || isProfiled()) return;
  nativeOutput(undefined)?.exit(runOtherListeners(code, leaveOptimiser));
}

/** Whether Node profiles: it writes its recordings in the orderly shutdown. */
function isProfiled(): boolean {
  const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  return (
    process.env['NODE_V8_COVERAGE'] !== undefined ||
    /--(cpu-prof|heap-prof|prof|trace-event|report)/.test(options)
  );
}

function atExit(code: number): void {
  // A worker_thread can only end in the orderly way.
  const deadline = performance.now() + (isMainThread ? GRACE_MS : WORKER_GRACE_MS);
  for (const runtime of live) runtime.requestStop?.();
  let stopped = true;
  for (const runtime of live) {
    if (!runtime.hasStopped(deadline)) stopped = false;
    runtime.readMessages?.();
  }
  if (!isMainThread) {
    for (const runtime of live) runtime.releasePinned?.(WORKER_GRACE_MS);
    return;
  }
  if (stopped) return;
  const cuda = [...live].find((runtime) => runtime.config.provider === 'libcuda');
  // A CPU device's thread runs JavaScript and WebAssembly only, which Node can terminate.
  if (cuda === undefined) return;
  const output = nativeOutput(cuda.config.koffiPath);
  // Where no such libc is available, the orderly shutdown has to do.
  if (output !== undefined) output.exit(runOtherListeners(code, atExit));
}

/**
 * Calls the listeners that Node would have called after `listener`. Returns the exit code that they
 * set.
 */
function runOtherListeners(code: number, listener: (code: number) => void): number {
  const listeners = process.rawListeners('exit') as ((code: number) => void)[];
  for (const later of listeners.slice(listeners.indexOf(listener) + 1)) {
    try {
      later.call(process, code);
    } catch (error) {
      console.error(error);
    }
  }
  return Number(process.exitCode ?? code);
}

/** Ends `runtime` with the process. Returns a function that cancels this. */
export function onExit(runtime: Ending): () => void {
  if (live.size === 0) process.on('exit', atExit);
  live.add(runtime);
  return () => {
    live.delete(runtime);
    if (live.size === 0) process.off('exit', atExit);
  };
}
