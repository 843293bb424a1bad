/**
 * Exports and imports of tensors by DLPack descriptors. Memory changes hands without a copy; the
 * consumer calls the descriptor's `deleter` once, when it no longer needs the memory.
 */
import { CudaDisposedError } from '../core/index.js';
import type { CoreDevice, DeviceBuffer } from '../core/index.js';
import { adoptMemory } from '../core/adopted-memory.js';
import { checkOptions, invalid } from '../ground/arguments.js';
import type { Allocation } from '../core/memory.js';
import { Later } from '../ops/node.js';
import type { Submitted } from '../ops/node.js';
import type { Run } from '../ops/run.js';
import { DLDeviceType, fromDLPack, toDLPack } from './dlpack.js';
import type { DLTensor } from './dlpack.js';
import { span } from './layout.js';
import type { Layout } from './layout.js';
import type { AnyTensor } from './tensor.js';

/** Gives back the memory of exports that were collected before their deleter was called. */
const collected = new FinalizationRegistry<() => void>((giveBack) => {
  giveBack();
});

/**
 * The owner of an exported descriptor: the descriptor and its deleter refer to it. When both are
 * collected, the memory is given back.
 */
class ExportedMemory {
  readonly memory: Allocation;
  /** The memory's owner, which must not be collected. */
  readonly tensor: AnyTensor;
  private readonly giveBack: () => void;
  private over = false;

  constructor(tensor: AnyTensor) {
    this.tensor = tensor;
    this.memory = tensor.buffer.memory;
    this.giveBack = this.memory.borrow();
    collected.register(this, this.giveBack, this);
  }

  /** Gives the memory back: the consumer has called the deleter. */
  end(): void {
    if (this.over)
      throw new CudaDisposedError('deleter: called twice. Call it once for each tensor.');
    this.over = true;
    collected.unregister(this);
    this.giveBack();
  }
}

/** Descriptors that were imported: each can be imported once. */
const imported = new WeakSet<object>();

/**
 * Exports a tensor: gives its descriptor when all work that was queued with its memory has ended.
 * See {@link Tensor.toDLPack}.
 */
export function exportTensor(run: Run, tensor: AnyTensor): Submitted<DLTensor> {
  run.checkNotRecording('tensor.toDLPack()', 'hand over graph.output after graph.replay()');
  tensor.checkAlive();
  const { memory } = tensor.buffer;
  // The run's stream waits for the other streams, and the host for that stream, so that the
  // consumer has nothing to wait for.
  memory.orderEnd(run.stream);
  if (run.mode === 'block') {
    run.block();
    return described(tensor);
  }
  // It is waited for even if nothing was queued: new memory may not be allocated yet.
  return new Later(
    Promise.all([tensor.buffer.allocated(), run.stream.finished()]).then(() => described(tensor)),
    true,
  );
}

function described(tensor: AnyTensor): DLTensor {
  const { dtype, layout, device, buffer } = tensor;
  tensor.checkAlive();
  const { memory } = buffer;
  const owner = new ExportedMemory(tensor);
  const address = BigInt(device.runtime.shared.values[memory.handle]! + buffer.byteOffset);
  const type =
    device.kind === 'cpu'
      ? DLDeviceType.kDLExtDev
      : memory.kind === 'managed'
        ? DLDeviceType.kDLCUDAManaged
        : DLDeviceType.kDLCUDA;
  return toDLPack({
    dtype,
    layout,
    address,
    device: { type, id: device.ordinal },
    owner,
    deleter: () => {
      owner.end();
    },
    ...(memory.isReadOnly ? { readOnly: true } : {}),
  });
}

/** Options of {@link Tensor.fromDLPack}. */
export interface TakeOverOptions {
  /** Shown in errors. */
  label?: string;
}

/**
 * Imports a descriptor: adopts its memory, and gives the buffer and the layout of a tensor that
 * owns it. See {@link Tensor.fromDLPack}.
 */
export async function importTensor(
  device: CoreDevice,
  descriptor: DLTensor,
  options: TakeOverOptions = {},
): Promise<{ readonly buffer: DeviceBuffer; readonly layout: Layout<number[]> }> {
  checkOptions('options', options, ['label']);
  device.check();
  const {
    dtype,
    layout,
    address,
    device: place,
    readOnly = false,
    owner,
    deleter,
  } = fromDLPack(descriptor);
  const { type, id } = place;
  const fits =
    device.kind === 'cpu'
      ? type === DLDeviceType.kDLExtDev && id === device.ordinal
      : type === DLDeviceType.kDLCUDAManaged ||
        (type === DLDeviceType.kDLCUDA && id === device.ordinal);
  if (!fits) {
    const isHost = type === DLDeviceType.kDLCPU || type === DLDeviceType.kDLCUDAHost;
    throw invalid(
      'descriptor.device',
      device.kind === 'cpu'
        ? `kDLExtDev (12) with id ${device.ordinal}, memory of ${device.name}`
        : `kDLCUDA (2) with id ${device.ordinal}, or kDLCUDAManaged (13)`,
      place,
      isHost
        ? 'It is memory of the host: make a typed array of it, and copy that with ' +
            'tensor(device, dtype, array, shape).'
        : 'Take it over on its own device, and copy it with to(device).',
    );
  }
  if (deleter !== undefined) {
    if (imported.has(descriptor))
      throw invalid(
        'descriptor',
        'one that has not been taken over',
        descriptor,
        'A descriptor can be taken over once: get another from its owner.',
      );
    imported.add(descriptor);
  }
  const { end } = span(layout);
  const alias =
    owner instanceof ExportedMemory && owner.memory.device.runtime === device.runtime
      ? owner.memory
      : undefined;
  // The release callback refers to it, so that it is alive for as long as the memory is in use
  // here.
  const kept = { owner, deleter };
  try {
    const buffer = await adoptMemory(device, dtype, layout.shape.includes(0) ? 0 : end, address, {
      readOnly,
      label: options.label,
      alias,
      release: () => {
        const { deleter: last } = kept;
        kept.owner = undefined;
        kept.deleter = undefined;
        last?.();
      },
    });
    return { buffer, layout };
  } catch (error) {
    // The memory stays its owner's.
    imported.delete(descriptor);
    throw error;
  }
}
