/**
 * Development mode: says which operations were made and never run, and where. Off unless
 * ASYNC_CUDA_DEVELOPMENT is set or {@link setDevelopmentMode} is called, since remembering where
 * each operation was made takes microseconds.
 */
import { invalid } from '../ground/arguments.js';
import { callersOf, splitStack, stackHere } from '../core/call-stack.js';
import { atPlace, placesAreWanted } from '../core/operation-places.js';
import type { Node } from './node.js';

/** What is known of an operation that is watched. */
interface Made {
  readonly where: string;
  used: boolean;
}

let watching =
  process.env['ASYNC_CUDA_DEVELOPMENT'] !== undefined &&
  process.env['ASYNC_CUDA_DEVELOPMENT'] !== '0';
const made = new WeakMap<object, Made>();
/** Nodes whose places are noted: several operations may have one node. */
const placed = new WeakSet();
const forgotten = new FinalizationRegistry<Made>(({ where, used }) => {
  if (!used)
    process.emitWarning(
      'an operation was made and never run: await it, or return it from andThen(…). It was ' +
        `made${where}`,
      'AsyncCudaWarning',
    );
});

/**
 * Turns the warnings on or off, for operations that are made from then on. @throws
 * CudaArgumentError for what is no boolean
 *
 * @example
 * ```ts
 * setDevelopmentMode(true);
 * using x = await device.ones(f32, [2]); // without the await a process warning names this line
 * setDevelopmentMode(false);
 * ```
 */
export function setDevelopmentMode(on: boolean): void {
  if (typeof (on as unknown) !== 'boolean') throw invalid('on', 'true or false', on);
  watching = on;
}

/**
 * The nearest call from outside of the library; where it is bundled with the program, some calls
 * that lead here.
 */
function callerOf(stack: string): string {
  const {
    all,
    outside: [nearest],
  } = splitStack(stack);
  return nearest === undefined
    ? `:\n${all.slice(1, 9).join('\n')}`
    : nearest.replace(/^\s*at /, ' at ');
}

/**
 * What the operation allocates, where a device is checked, is said to be made where the operation
 * was.
 */
function notePlace(node: Node<unknown>): void {
  if (placed.has(node)) return;
  placed.add(node);
  const place = callersOf(stackHere());
  const submit = node.submit.bind(node);
  node.submit = (run) => atPlace(place, () => submit(run));
}

/** Whether it is on. @internal */
export function isDevelopment(): boolean {
  return watching;
}

/** To be called with each new operation and its node. @internal */
export function watchUnused(op: { readonly node: Node<unknown> }): void {
  if (placesAreWanted()) notePlace(op.node);
  if (!watching) return;
  const note: Made = { where: callerOf(stackHere()), used: false };
  made.set(op.node, note);
  forgotten.register(op, note);
}

/** The operation is part of another one, or was run. @internal */
export function used(node: object): void {
  if (!watching) return;
  const note = made.get(node);
  if (note !== undefined) note.used = true;
}
