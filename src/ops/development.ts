/**
 * Development mode: says which operations were made and never run, and where. Off unless ASYNC_CUDA_DEVELOPMENT is set or
 * {@link setDevelopmentMode} is called, since remembering where each operation was made takes microseconds.
 */
import { invalid } from '../core/arguments.js';

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

const placeOf = (frame: string): string => /^\s+at (?:.* \()?(?:async )?(.+?):\d+:\d+\)?$/.exec(frame)?.[1] ?? '';

/** The folder that holds all files of the library: of its sources, or of what was built of them. */
function libraryFolder(ownFile: string): string {
  return ownFile.replace(/(?:[\\/]ops[\\/]development\.[jt]s|[\\/][^\\/]*)(?:\?.*)?$/, '/').replaceAll('\\', '/');
}

/** The nearest call from outside of the library; where it is bundled with the program, some calls that lead here. */
function callerOf(stack: string): string {
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  const library = libraryFolder(placeOf(frames[0] ?? ''));
  const outside = frames.find((frame) => {
    const place = placeOf(frame).replaceAll('\\', '/');
    return place !== '' && !place.startsWith('node:') && !place.startsWith(library);
  });
  return outside === undefined ? `:\n${frames.slice(1, 9).join('\n')}` : outside.replace(/^\s*at /, ' at ');
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
