/** Memory that is allocated and freed in a stream's order. */
import { ACCESS_WRITE, OP } from '../runtime/commands.js';
import { putInt64 } from '../runtime/ring-writer.js';
import { checkLabel, checkOptions, invalid } from '../ground/arguments.js';
import { captureError } from './capture-error.js';
import type { CoreDevice } from './device.js';
import { Allocation } from './memory.js';
import { NodeMemory } from './node-memory.js';
import { MemoryPool } from './pool.js';
import type { Stream } from './stream.js';

/** Options of {@link CoreDevice.alloc} and {@link CoreDevice.alloc2D}. */
export interface AllocOptions {
  /**
   * The stream on which the memory is allocated and freed, in its order. Default `device.stream`.
   */
  stream?: Stream;
  /** The pool of the memory. Default: the device's own. */
  pool?: MemoryPool;
  /** The label that errors show. */
  label?: string;
}

/** Options of {@link CoreDevice.allocPlain}. */
export type PlainAllocOptions = Pick<AllocOptions, 'label'>;

/** Queues the allocation of `bytes` bytes. `describe` gives what errors show. cuMemAllocAsync */
export function allocateInOrder(
  device: CoreDevice,
  bytes: number,
  options: AllocOptions,
  describe: () => string,
): Allocation {
  checkOptions('options', options, ['stream', 'pool', 'label']);
  const { stream = device.stream, pool, label } = options;
  checkLabel('options.label', label);
  device.checkStream('options.stream', stream);
  // On a stream that has not joined a capture, an allocation is not work that the graph would
  // lack: the memory stays.
  const { captureScope } = stream;
  if (captureScope?.isBody === true)
    throw captureError(
      'device.alloc in the body of a conditional node',
      'allocate before the node; its bodies cannot',
    );
  if (captureScope?.allocates === false) {
    throw captureError(
      'device.alloc',
      'allocate before the capture, and the graph keeps the addresses; or let nodes of the ' +
        "graph allocate, with stream.capture(…, { allocate: 'nodes' })",
    );
  }
  if (pool !== undefined) {
    if (!(pool instanceof MemoryPool) || pool.device.runtime !== device.runtime)
      throw invalid('options.pool', `a pool of ${device.title}`, pool);
    pool.check();
  }
  const handle = device.runtime.handles.take();
  const named = label === undefined ? describe : () => `${describe()} '${label}'`;
  const memory =
    captureScope === undefined
      ? new Allocation(device, stream, handle, bytes, label, named)
      : new NodeMemory(device, stream, handle, bytes, label, named);
  // A capture fails as a whole.
  const root = captureScope === undefined ? device.runtime.nextRoot() : captureScope.root;
  if (captureScope === undefined) device.runtime.name(root, memory);
  const body = stream.begin(OP.alloc, 8, root);
  const words = device.runtime.ring.memory;
  words[body] = handle;
  words[body + 1] = pool?.handle ?? 0;
  putInt64(words, body + 2, bytes);
  const mark = stream.commit();
  memory.root = root;
  memory.mark = mark;
  if (captureScope !== undefined) {
    stream.used(memory, ACCESS_WRITE, mark);
    return memory;
  }
  memory.used(stream, ACCESS_WRITE, mark);
  if (device.isChecked) device.origins.record(memory, named());
  device.objects.allocated(memory, pool);
  return memory;
}
