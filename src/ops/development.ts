/**
 * Development mode: warns about operations that were made and never run, with their places. It is
 * off unless ASYNC_CUDA_DEVELOPMENT is set or {@link setDevelopmentMode} is called, because
 * recording the place of each operation takes microseconds.
 */
import { invalid } from '../ground/arguments.js';
import { callersOf, splitStack, stackHere } from '../core/call-stack.js';
import { atPlace, recordsPlaces } from '../core/operation-places.js';
import type { Node } from './node.js';

/** The state of a watched operation. */
interface Made {
  readonly where: string;
  used: boolean;
}

let watching =
  process.env['ASYNC_CUDA_DEVELOPMENT'] !== undefined &&
  process.env['ASYNC_CUDA_DEVELOPMENT'] !== '0';
const made = new WeakMap<object, Made>();
/** Nodes whose places are recorded: several operations may have one node. */
const placed = new WeakSet();
const collected = new FinalizationRegistry<Made>(({ where, used }) => {
  if (!used)
    process.emitWarning(
      'an operation was made and never run: await it, or return it from andThen(…). It was ' +
        `made${where}`,
      'AsyncCudaWarning',
    );
});

/**
 * Turns the warnings on or off, for operations that are made from then on.
 *
 * @example
 * ```ts
 * setDevelopmentMode(true);
 * using x = await device.ones(f32, [2]); // without the await a process warning names this line
 * setDevelopmentMode(false);
 * ```
 * @throws CudaArgumentError for a value that is not a boolean
 */
export function setDevelopmentMode(on: boolean): void {
  if (typeof (on as unknown) !== 'boolean') throw invalid('on', 'true or false', on);
  watching = on;
}

/**
 * The nearest call from outside of the library. Where the library is bundled with the program, the
 * nearest calls.
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
 * On a checked device, reports about memory that the operation allocates show the place of the
 * operation.
 */
function recordPlace(node: Node<unknown>): void {
  if (placed.has(node)) return;
  placed.add(node);
  const place = callersOf(stackHere());
  const submit = node.submit.bind(node);
  node.submit = (run) => atPlace(place, () => submit(run));
}

/** Whether development mode is on. @internal */
export function isDevelopment(): boolean {
  return watching;
}

/** Called with each new operation and its node. @internal */
export function watchUnused(op: { readonly node: Node<unknown> }): void {
  if (recordsPlaces()) recordPlace(op.node);
  if (!watching) return;
  const note: Made = { where: callerOf(stackHere()), used: false };
  made.set(op.node, note);
  collected.register(op, note);
}

/** The operation became part of another one, or was run. @internal */
export function used(node: object): void {
  if (!watching) return;
  const note = made.get(node);
  if (note !== undefined) note.used = true;
}
