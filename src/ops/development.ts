/**
 * Development mode: says which operations were made and never run, and where. Off unless ASYNC_CUDA_DEVELOPMENT is set or
 * {@link setDevelopmentMode} is called, since remembering where each operation was made takes microseconds.
 */
import { invalid } from '../core/arguments.js';
import { parseStack } from '../core/call-stack.js';

/** What is known of an operation that is watched. */
interface Made {
  readonly where: string;
  used: boolean;
}

let watching = process.env['ASYNC_CUDA_DEVELOPMENT'] !== undefined && process.env['ASYNC_CUDA_DEVELOPMENT'] !== '0';
const made = new WeakMap<object, Made>();
const forgotten = new FinalizationRegistry<Made>(({ where, used }) => {
  if (!used) process.emitWarning(`an operation was made and never run: await it, or return it from andThen(…). It was made${where}`, 'AsyncCudaWarning');
});

/** Turns the warnings on or off, for operations that are made from then on. @throws CudaArgumentError for what is no boolean */
export function setDevelopmentMode(on: boolean): void {
  if (typeof (on as unknown) !== 'boolean') throw invalid('on', 'true or false', on);
  watching = on;
}

/** Frames that are looked through for one that is not the library's. */
const FRAMES = 24;

/** The file of one line of a stack; '' where it is in none, or is Node's own. */
const fileOf = (frame: string): string => parseStack(frame)[0]?.file ?? '';

/** The folder that holds all files of the library: of its sources, or of what was built of them. */
function libraryFolder(ownFile: string): string {
  return ownFile.replace(/(?:[\\/]ops[\\/]development\.[jt]s|[\\/][^\\/]*)(?:\?.*)?$/, '/').replaceAll('\\', '/');
}

/** The nearest call from outside of the library; where it is bundled with the program, some calls that lead here. */
function callerOf(stack: string): string {
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const library = libraryFolder(fileOf(frames[0] ?? ''));
  const outside = frames.find((frame) => {
    const file = fileOf(frame).replaceAll('\\', '/');
    return file !== '' && !file.startsWith(library);
  });
  return outside === undefined ? `:\n${frames.slice(1, 9).join('\n')}` : outside.replace(/^\s*at /, ' at ');
}

/** Whether it is on. @internal */
export function isDevelopment(): boolean {
  return watching;
}

/** To be called with each new operation and its node. @internal */
export function watchUnused(op: { readonly node: object }): void {
  if (!watching) return;
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = FRAMES;
  const { stack = '' } = new Error('made');
  Error.stackTraceLimit = stackTraceLimit;
  const note: Made = { where: callerOf(stack), used: false };
  made.set(op.node, note);
  forgotten.register(op, note);
}

/** The operation is part of another one, or was run. @internal */
export function used(node: object): void {
  if (!watching) return;
  const note = made.get(node);
  if (note !== undefined) note.used = true;
}
