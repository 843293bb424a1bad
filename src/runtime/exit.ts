/**
 * The end of the process. `process.exit()` waits for a worker that is inside a native call (a
 * kernel of four seconds made an exit of 4.1, measured), so the runtime threads are asked to stop,
 * and where one does not within 50 ms, or work goes on that `device.close()` has given up on, the
 * process ends without the orderly shutdown.
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

/** Load makes the optimising compiler slower than it was when its time was estimated. */
const SLOWNESS = 8;
/**
 * Up to this time of performance.now V8 may be optimising code of a CPU device that takes it long.
 */
let optimisesUntil = 0;
/** An exception that nothing caught ends the process: Node prints it after the 'exit' listeners. */
let crashes = false;

/**
 * V8 may be optimising a kernel's code in the background, for about so many milliseconds from now.
 * Node would wait for that at the end of the process, however it ends.
 */
export function expectOptimiser(ms: number): void {
  // There is no other way out of a worker_thread than the orderly one.
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
 * Ends the process at once where V8 may be optimising. Without a libc to do that with, Node waits.
 */
function leaveOptimiser(code: number): void {
  if (performance.now() > optimisesUntil || crashes || isProfiled()) return;
  nativeOutput(undefined)?.exit(runOtherListeners(code, leaveOptimiser));
}

/** Node writes what it has recorded in the orderly shutdown. */
function isProfiled(): boolean {
  const options = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ');
  return (
    process.env['NODE_V8_COVERAGE'] !== undefined ||
    /--(cpu-prof|heap-prof|prof|trace-event|report)/.test(options)
  );
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
  if (output !== undefined) output.exit(runOtherListeners(code, atExit));
}

/** Those that Node would have called after `listener`. Returns the exit code that they leave. */
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

/** Ends `runtime` with the process. Returns how to call that off. */
export function onExit(runtime: Ending): () => void {
  if (live.size === 0) process.on('exit', atExit);
  live.add(runtime);
  return () => {
    live.delete(runtime);
    if (live.size === 0) process.off('exit', atExit);
  };
}
