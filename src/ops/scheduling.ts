/**
 * The choice of the stream that an operation runs on. Operations of one run share a stream, which
 * orders them. Two runs on different streams may overlap and end in any order, except for memory
 * that both use: the device orders the uses, whatever the streams.
 */
import { checkInteger, invalid } from '../ground/arguments.js';
import { CudaError, CoreDevice, Stream } from '../core/index.js';

/** A policy chooses streams, all of one device. */
export interface SchedulingPolicy {
  /** The stream of the next run. */
  nextStream(): Stream;
}

/** A device of level 3, or a `Device` of 'async-cuda'. */
export type AnyDevice = CoreDevice | { readonly core: CoreDevice };

/** The device of level 3. @internal */
export function coreOf(device: unknown): CoreDevice {
  const core: unknown =
    device instanceof CoreDevice ? device : (device as { core?: unknown } | null | undefined)?.core;
  if (core instanceof CoreDevice) return core;
  throw invalid('device', 'a Device', device);
}

/** The default number of streams of a policy. */
export const DEFAULT_STREAMS = 4;
const MOST_STREAMS = 64;

/** Streams that are made when they are first needed. */
class LazyStreams {
  readonly device: CoreDevice;
  readonly count: number;
  private readonly priority: number;
  private readonly streams: (Stream | undefined)[] = [];

  constructor(device: AnyDevice, count: number, priority: number) {
    checkInteger('count', count, 1, MOST_STREAMS, 'streams');
    this.device = coreOf(device);
    this.count = count;
    this.priority = priority;
  }

  at(index: number): Stream {
    const stream = this.streams[index];
    if (stream?.isClosed === false) return stream;
    return (this.streams[index] = this.device.createStream({ priority: this.priority }));
  }

  /** Closes the streams that were made. They are made again when they are needed. */
  close(): void {
    for (const stream of this.streams)
      if (stream?.isClosed === false && !stream.isUnusable) stream.close();
  }

  /** The stream of the index, if it exists. */
  made(index: number): Stream | undefined {
    const stream = this.streams[index];
    return stream?.isClosed === false ? stream : undefined;
  }
}

/**
 * Each run gets the next of `count` streams (default 4), so that independent runs overlap.
 *
 * @example
 * ```ts
 * using policy = new RoundRobin(device, 2);
 * const [first, second, third] = [1, 2, 3].map(() => policy.nextStream());
 * console.log(first === second, first === third); // false true
 * ```
 */
export class RoundRobin implements SchedulingPolicy, Disposable {
  private readonly streams: LazyStreams;
  private next = 0;

  /** @param priority the priority of the streams, as for {@link CoreDevice.createStream} */
  constructor(device: AnyDevice, count = DEFAULT_STREAMS, priority = 0) {
    this.streams = new LazyStreams(device, count, priority);
  }

  nextStream(): Stream {
    const stream = this.streams.at(this.next);
    this.next = (this.next + 1) % this.streams.count;
    return stream;
  }

  /**
   * Closes the policy's streams, after their work. The policy can still be used: it makes new ones.
   */
  close(): void {
    this.streams.close();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * The default policy. It is like {@link RoundRobin}, but a run stays on the stream of the run
 * before it where that run has ended. Independent runs overlap without a cost, and runs that are
 * awaited one by one do not pay for a change of streams, which costs a driver more than a
 * microsecond (H200: 8.9 µs from launch to await on one stream, 10.0 from stream to stream).
 *
 * @example
 * ```ts
 * using policy = new NextIdle(device, 2);
 * device.policy = policy;
 * using x = await device.ones(f32, [2]); // runs on a stream of the policy
 * device.policy = undefined;
 * ```
 */
export class NextIdle implements SchedulingPolicy, Disposable {
  private readonly turns: RoundRobin;
  private last: Stream | undefined = undefined;

  constructor(device: AnyDevice, count = DEFAULT_STREAMS, priority = 0) {
    this.turns = new RoundRobin(device, count, priority);
  }

  nextStream(): Stream {
    const { last } = this;
    return last?.isClosed === false && last.outstanding === 0 ? last : this.otherStream();
  }

  /**
   * The next stream, also where the last one is idle: branches are to run at the same time.
   * @internal
   */
  otherStream(): Stream {
    return (this.last = this.turns.nextStream());
  }

  /**
   * Closes the policy's streams, after their work. The policy can still be used: it makes new ones.
   */
  close(): void {
    this.turns.close();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/**
 * All runs use one stream, so all are in order.
 *
 * @example
 * ```ts
 * using stream = device.createStream();
 * const policy = new SingleStream(stream);
 * using x = await device.ones(f32, [2]).schedule(policy);
 * console.log(policy.nextStream() === stream); // true
 * ```
 */
export class SingleStream implements SchedulingPolicy {
  readonly stream: Stream;

  /** @param on a stream, or a device, whose own `device.stream` is used */
  constructor(on: AnyDevice | Stream) {
    this.stream = on instanceof Stream ? on : coreOf(on).stream;
  }

  nextStream(): Stream {
    return this.stream;
  }
}

/**
 * Each run gets the stream with the fewest operations that are not known to have ended. An idle
 * stream is taken at once.
 *
 * @example
 * ```ts
 * using policy = new LeastLoaded(device, 2);
 * device.policy = policy;
 * using x = await device.ones(f32, [2]); // runs on a stream of the policy
 * device.policy = undefined;
 * ```
 */
export class LeastLoaded implements SchedulingPolicy, Disposable {
  private readonly streams: LazyStreams;

  constructor(device: AnyDevice, count = DEFAULT_STREAMS, priority = 0) {
    this.streams = new LazyStreams(device, count, priority);
  }

  nextStream(): Stream {
    const { streams } = this;
    let best: Stream | undefined;
    let least = Infinity;
    for (let index = 0; index < streams.count; index++) {
      const stream = streams.made(index);
      if (stream === undefined) return streams.at(index);
      const load = stream.outstanding;
      if (load === 0) return stream;
      if (load < least) {
        best = stream;
        least = load;
      }
    }
    return best!;
  }

  /**
   * Closes the policy's streams, after their work. The policy can still be used: it makes new ones.
   */
  close(): void {
    this.streams.close();
  }

  /** Calls {@link close}, for `using`. */
  [Symbol.dispose](): void {
    this.close();
  }
}

/** Names of priorities, for {@link byPriority}. */
export type PriorityName = 'high' | 'normal' | 'low';

/**
 * Policies whose streams differ in priority: blocks of a stream of higher priority start before
 * waiting blocks of other streams. The device decides how many levels there are
 * (`device.streamPriorities`). cuStreamCreateWithPriority
 *
 * @example
 * ```ts
 * const { high, low } = byPriority(device, 1);
 * const background = device.ones(f32, [1 << 16]).schedule(low);
 * using urgent = await device.ones(f32, [2]).schedule(high);
 * (await background).close();
 * ```
 */
export function byPriority(
  device: AnyDevice,
  count = DEFAULT_STREAMS,
): Readonly<Record<PriorityName, SchedulingPolicy>> {
  const { least, greatest } = coreOf(device).streamPriorities;
  const normal = Math.max(greatest, Math.min(least, Math.trunc((least + greatest) / 2)));
  return {
    high: new RoundRobin(device, count, greatest),
    normal: new RoundRobin(device, count, normal),
    low: new RoundRobin(device, count, least),
  };
}

const policies = new WeakMap<CoreDevice, SchedulingPolicy>();

/**
 * The policy of operations that were passed none: {@link NextIdle} over four streams, or the policy
 * of {@link setPolicy}.
 *
 * @example
 * ```ts
 * console.log(policyOf(device) instanceof NextIdle); // true
 * ```
 */
export function policyOf(device: AnyDevice): SchedulingPolicy {
  const core = coreOf(device);
  let policy = policies.get(core);
  if (policy === undefined) {
    policy = new NextIdle(core);
    policies.set(core, policy);
  }
  return policy;
}

/**
 * Sets the policy of operations of a device that are passed none; `undefined` restores the default.
 *
 * @example
 * ```ts
 * using stream = device.createStream();
 * setPolicy(device, new SingleStream(stream));
 * using x = await device.ones(f32, [2]); // runs on that stream
 * setPolicy(device, undefined);
 * ```
 */
export function setPolicy(device: AnyDevice, policy: SchedulingPolicy | undefined): void {
  const core = coreOf(device);
  if (policy === undefined) policies.delete(core);
  else {
    checkPolicy(policy);
    policies.set(core, policy);
  }
}

export function checkPolicy(policy: unknown): asserts policy is SchedulingPolicy {
  if (typeof (policy as Partial<SchedulingPolicy> | null | undefined)?.nextStream === 'function')
    return;
  throw invalid(
    'policy',
    'an object with nextStream()',
    policy,
    'Write new RoundRobin(device), new SingleStream(stream) or a class of your own with that ' +
      'method.',
  );
}

let defaultDevice: CoreDevice | undefined;

/**
 * The device of operations that belong to none, such as `value(1)`: the device of
 * {@link setDefaultDevice}, or the first one that ran an operation.
 *
 * @example
 * ```ts
 * setDefaultDevice(device);
 * console.log(getDefaultDevice() === device.core); // true
 * setDefaultDevice(undefined);
 * ```
 */
export function getDefaultDevice(): CoreDevice | undefined {
  return defaultDevice?.isClosed === true ? undefined : defaultDevice;
}

/**
 * Sets the device of operations that belong to none.
 *
 * @example
 * ```ts
 * setDefaultDevice(device);
 * console.log(await zip(value(1), 2)); // [ 1, 2 ]
 * setDefaultDevice(undefined);
 * ```
 */
export function setDefaultDevice(device: AnyDevice | undefined): void {
  defaultDevice = device === undefined ? undefined : coreOf(device);
}

/** The policy that was passed, or that of the device, or of the default device. */
export function chosenPolicy(
  policy: SchedulingPolicy | undefined,
  device: CoreDevice | undefined,
): SchedulingPolicy {
  if (policy !== undefined) return policy;
  const on = device ?? getDefaultDevice();
  if (on === undefined) {
    throw new CudaError(
      'ERR_CUDA_INVALID_ARGUMENT',
      'the operation belongs to no device: run it on a stream with runOn(stream), or call ' +
        'setDefaultDevice(device).',
    );
  }
  return policyOf(on);
}

/** The stream that the policy chooses, checked: a program may define policies. */
export function nextOf(policy: SchedulingPolicy): Stream {
  const stream = policy.nextStream();
  if (!(stream instanceof Stream)) throw invalid('policy.nextStream()', 'a Stream', stream);
  return stream;
}
