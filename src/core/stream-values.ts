/**
 * Stream memory operations: a stream writes a number to memory, or waits for one, between its other
 * work. They order work where tracking must not: a write that releases a waiting stream cannot wait
 * for it.
 */
import { ACCESS_READ, ACCESS_SHIFT, ACCESS_WRITE, OP } from '../runtime/commands.js';
import { CudaError } from '../ground/errors.js';
import type { CudaArgumentError } from '../ground/errors.js';
import { putInt64 } from '../runtime/ring-writer.js';
import { checkInteger, invalid } from '../ground/arguments.js';
import { DeviceBuffer } from './buffer.js';
import { ManagedBuffer } from './managed.js';
import { Allocation } from './memory.js';
import { Pending } from './pending.js';
import { PinnedBuffer } from './pinned.js';
import type { Stream } from './stream.js';

/** The dtypes of stream memory operations. */
export type ValueType = 'u32' | 'u64';
/**
 * The memory of stream memory operations: buffers of `device.allocPlain` and `device.pinned`, and
 * variables of modules.
 */
export type ValueBuffer<D extends ValueType> = DeviceBuffer<D> | PinnedBuffer<D>;
/** An element of such a buffer. */
export type Value<D extends ValueType> = D extends 'u64' ? bigint | number : number;

const CONDITIONS = { geq: 0, eq: 1, and: 2, nor: 3 } as const;
/** CUstreamWaitValue_flags */
export type ValueCondition = keyof typeof CONDITIONS;

/** Queues a wait for `condition`, or a write where it is undefined. */
export function streamValue(
  stream: Stream,
  buffer: ValueBuffer<ValueType> | ManagedBuffer,
  index: number,
  value: number | bigint,
  condition: ValueCondition | undefined,
): Pending {
  const { runtime } = stream;
  const call = condition === undefined ? 'writeValue' : 'waitValue';
  stream.check();
  if (!(
    buffer instanceof DeviceBuffer ||
    buffer instanceof PinnedBuffer ||
    buffer instanceof ManagedBuffer
  )) {
    throw invalid('buffer', 'a buffer of u32 or u64', buffer);
  }
  buffer.checkAlive();
  if (buffer.device.runtime !== runtime)
    throw invalid('buffer', `a buffer of ${stream.device.title}`, buffer);
  const { dtype } = buffer;
  if (dtype.name !== 'u32' && dtype.name !== 'u64') {
    const fix =
      buffer instanceof DeviceBuffer
        ? 'To see the same bytes as one of them use buffer.reinterpret(u32).'
        : `Write await device.pinned(u32, ${buffer.length}).`;
    throw invalid('buffer', 'a buffer of u32 or u64', buffer, fix);
  }
  if (buffer instanceof ManagedBuffer) throw refused(buffer, 'The driver refuses managed memory');
  if (buffer instanceof DeviceBuffer && buffer.memory.pooled)
    throw refused(buffer, 'Memory of device.alloc comes from a pool, which the driver refuses');
  const { memory } = buffer;
  checkInteger('index', index, 0, buffer.length - 1);
  const number = dtype.name === 'u32' ? checkedU32(value) : checkedU64(value);
  if (
    condition !== undefined &&
    !(typeof condition === 'string' && Object.hasOwn(CONDITIONS, condition))
  ) {
    throw invalid('condition', `one of ${Object.keys(CONDITIONS).join(', ')}`, condition);
  }
  stream.checkNotCaptured(`stream.${call}()`, 'call it before or after graph.launch()');
  if (!runtime.info.memoryOperations) {
    throw new CudaError(
      'ERR_CUDA_UNSUPPORTED',
      `stream.${call}: ${stream.device.name} has no stream memory operations here; order the ` +
        'work with events',
    );
  }
  const root = runtime.nextRoot();
  runtime.name(root, {
    toString: () => `${call} ${String(value)} at ${index} of ${buffer.toString()}`,
  });
  // The wait is only for the allocation.
  if (memory instanceof Allocation && memory.stream !== stream)
    stream.waitFor(memory.stream, memory.mark);
  const { freeGate } = stream.shared;
  if (condition !== undefined) freeGate.hold(stream);
  const body = stream.begin(
    condition === undefined ? OP.writeValue : OP.waitValue,
    condition === undefined ? 10 : 11,
    root,
  );
  const words = runtime.ring.memory;
  words[body] =
    memory.handle | ((condition === undefined ? ACCESS_WRITE : ACCESS_READ) << ACCESS_SHIFT);
  putInt64(
    words,
    body + 1,
    buffer.byteOffset +
      index * dtype.bytes +
      (buffer instanceof PinnedBuffer ? buffer.memory.deviceOffset : 0),
  );
  words[body + 3] = Number(number & 0xffffffffn) | 0;
  words[body + 4] = Number(number >> 32n) | 0;
  words[body + 5] = dtype.bytes * 8;
  if (condition !== undefined) words[body + 6] = CONDITIONS[condition];
  const mark = stream.commit();
  memory.keep(stream, mark);
  if (condition !== undefined) freeGate.entered(stream, mark);
  return new Pending(stream, root, mark);
}

/** The error for memory that the driver refuses (CUDA_ERROR_INVALID_VALUE, driver 580). */
function refused(buffer: DeviceBuffer | ManagedBuffer, why: string): CudaArgumentError {
  const make = `(${buffer.dtype.name}, ${buffer.length})`;
  return invalid(
    'buffer',
    'memory of device.allocPlain or page-locked memory',
    buffer,
    `${why}: write await device.allocPlain${make} or await device.pinned${make}.`,
  );
}

function checkedU32(value: unknown): bigint {
  checkInteger('value', value, 0, 0xffffffff);
  return BigInt(value);
}

function checkedU64(value: unknown): bigint {
  if (typeof value !== 'bigint') {
    checkInteger('value', value, 0, Number.MAX_SAFE_INTEGER);
    return BigInt(value);
  }
  if (value < 0n || value >= 1n << 64n)
    throw invalid('value', 'a bigint from 0n to 2n ** 64n - 1n', value);
  return value;
}
