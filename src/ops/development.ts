/**
 * Development mode: says which operations were made and never run, and where. Off unless ASYNC_CUDA_DEVELOPMENT is set or
 * {@link setDevelopmentMode} is called, since remembering where each operation was made takes microseconds.
 */

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

/** Turns the warnings on or off, for operations that are made from then on. */
export function setDevelopmentMode(on: boolean): void {
  watching = on;
}

/** To be called with each new operation and its node. @internal */
export function watchUnused(op: { readonly node: object }): void {
  if (!watching) return;
  const { stack = '' } = new Error('made');
  // The first line names the error, the next ones this file and the class.
  const outside = stack.split('\n').slice(1).find((line) => !/[\\/](ops|dist)[\\/]/.test(line));
  const note: Made = { where: outside === undefined ? ' by the library' : outside.replace(/^\s*at /, ' at '), used: false };
  made.set(op.node, note);
  forgotten.register(op, note);
}

/** The operation is part of another one, or was run. @internal */
export function used(node: object): void {
  if (!watching) return;
  const note = made.get(node);
  if (note !== undefined) note.used = true;
}
