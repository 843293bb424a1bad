/** Functions that make operations from values, callbacks and other operations. */
import type { Pending } from '../core/index.js';
import { invalid } from '../ground/arguments.js';
import { Collected, Made, Ready } from './collect.js';
import { DeviceOp, nodeOf, nodeOfResult } from './device-op.js';
import { release } from './ownership.js';
import { Enqueued } from './enqueued.js';
import { Parallel } from './parallel.js';
import { checkKeep } from './run.js';
import { coreOf } from './scheduling.js';
import type { AnyDevice } from './scheduling.js';
import type { Given } from './given.js';
import type { OpContext } from './op-context.js';

/**
 * Takes the memory that `given` holds out of the run that made it. The caller owns it then, and
 * closes it. This is for callbacks that store memory where no run finds it: in a class instance or
 * a cache. Memory that the caller owns already does not change. Returns `given`.
 *
 * @example
 * ```ts
 * const cache = new Map<string, Tensor>();
 * const y = await device.rand(f32, [8]).andThen((weights) => {
 *   cache.set('weights', keep(weights));
 *   return mul(weights, 2);
 * });
 * ```
 * @throws CudaArgumentError for a class instance: pass the tensors that it has; CudaDisposedError
 *   for a closed tensor; CudaError with code ERR_CUDA_CAPTURE while an operation is recorded, whose
 *   memory the graph owns
 */
export function keep<T>(given: T): T {
  const run = checkKeep();
  if (given instanceof DeviceOp)
    throw invalid('given', 'a value', given, 'Keep its value: op.map((x) => keep(x)).');
  if (!release(given, run))
    throw invalid(
      'given',
      'a tensor, a buffer, or an array, plain object, Map or Set of them',
      given,
      'Pass the tensors that it has.',
    );
  return given;
}

/** The values of a list of values and operations. */
export type GivenAll<A extends readonly unknown[]> = { -readonly [K in keyof A]: Given<A[K]> };

/**
 * An operation whose value is `given`.
 *
 * @example
 * ```ts
 * const seven = value(7);
 * const [values, n] = await device.zeros(i32, [2]).andThen((x) => zip(x.read(), seven));
 * console.log(values, n); // Int32Array(2) [ 0, 0 ] 7
 * ```
 */
export function value<T>(given: T): DeviceOp<T> {
  if (given instanceof DeviceOp)
    throw invalid('given', 'a value', given, 'It is an operation already.');
  return new DeviceOp(new Ready(given));
}

/**
 * An operation that queues nothing. Its value is the result of `make`, which is called when the
 * operation runs.
 *
 * @example
 * ```ts
 * const squares = allOf([1, 2].map((n) => empty(() => n * n)));
 * console.log(await device.value(0).andThen(() => squares)); // [ 1, 4 ]
 * ```
 */
export function empty(): DeviceOp<void>;
export function empty<T>(make: () => T): DeviceOp<T>;
export function empty(make: () => unknown = () => undefined): DeviceOp<unknown> {
  if (typeof make !== 'function') throw invalid('make', 'a function', make);
  return new DeviceOp(new Made(undefined, 'empty', make));
}

/**
 * The operation that `make` returns. `make` is called when it runs, and may queue work of level 3
 * on `context.stream`.
 *
 * @example
 * ```ts
 * using stream = device.createStream({ label: 'mine' });
 * const label = withContext((context) => value(context.stream.label), device);
 * console.log(await label.on(stream)); // mine
 * ```
 */
export function withContext<T>(
  make: (context: OpContext) => DeviceOp<T>,
  device?: AnyDevice,
): DeviceOp<T> {
  if (typeof make !== 'function') throw invalid('make', 'a function that returns a DeviceOp', make);
  return new DeviceOp(
    new Made<T>(device === undefined ? undefined : coreOf(device), 'withContext', (run) =>
      nodeOfResult(make(run), 'withContext').submit(run),
    ),
  );
}

/**
 * Work of level 3 as an operation. `queue` is called when the operation runs, and queues on
 * `context.stream`. Where it returns a Pending, such as that of `buffer.read(stream)`, the
 * operation's value is the Pending's.
 *
 * @example
 * ```ts
 * using buffer = device.core.alloc(f32, 2);
 * const filled = operation(device, ({ stream }) => {
 *   buffer.fill(stream, 3);
 *   return buffer.read(stream);
 * });
 * console.log(await filled); // Float32Array(2) [ 3, 3 ]
 * ```
 */
export function operation<T>(
  device: AnyDevice | undefined,
  queue: (context: OpContext) => T | Pending<T>,
): DeviceOp<T> {
  if (typeof queue !== 'function')
    throw invalid('queue', 'a function that queues work on context.stream', queue);
  return new DeviceOp(new Enqueued<T>(device === undefined ? undefined : coreOf(device), queue));
}

/**
 * Several operations as one whose value is the list of all their values. They run one after the
 * other on one stream, in the order in which they are written. An argument that is not an operation
 * is its own value. The first error ends the whole; later operations do not begin.
 *
 * @example
 * ```ts
 * const values = device.arange(i32, 3).andThen((x) => x.read());
 * console.log(await zip(values, 7)); // [ Int32Array(3) [ 0, 1, 2 ], 7 ]
 * ```
 */
export function zip<const A extends readonly unknown[]>(...ops: A): DeviceOp<GivenAll<A>> {
  return new DeviceOp(new Collected(ops.map(nodeOf), 'zip')) as unknown as DeviceOp<GivenAll<A>>;
}

/**
 * Like {@link zip}, for a list of any length.
 *
 * @example
 * ```ts
 * const ops = [1, 2].map((n) => device.full(i32, [2], n).andThen((x) => x.read()));
 * const rows = await allOf(ops);
 * console.log(rows.map((row) => row.join(' ')).join(', ')); // 1 1, 2 2
 * ```
 */
export function allOf<T>(ops: Iterable<T>): DeviceOp<Given<T>[]> {
  if (typeof (ops as Partial<Iterable<T>> | null | undefined)?.[Symbol.iterator] !== 'function')
    throw invalid('ops', 'a list of operations', ops);
  return new DeviceOp(
    new Collected(
      [...ops].map((op) => nodeOf<unknown>(op)),
      'all',
    ),
  ) as unknown as DeviceOp<Given<T>[]>;
}

/**
 * Like {@link zip}, but the operations may run at the same time, each on a stream of its own as far
 * as the policy has streams. The streams fork from the run's stream and join it again on the
 * device; the host does not wait. In a graph they are branches. Where an error is thrown later
 * branches do not begin.
 *
 * @example
 * ```ts
 * const [a, b] = await parallel(device.ones(f32, [2]), device.zeros(f32, [2])); // on two streams
 * console.log((await a.read()).join(' '), (await b.read()).join(' ')); // 1 1 0 0
 * a.close();
 * b.close();
 * ```
 */
export function parallel<const A extends readonly unknown[]>(...ops: A): DeviceOp<GivenAll<A>> {
  return new DeviceOp(new Parallel(ops.map(nodeOf))) as unknown as DeviceOp<GivenAll<A>>;
}
