/**
 * Tensors handed over and taken over, as DLPack describes them. Memory goes from one side to the
 * other without a copy; who takes it over calls the descriptor's `deleter`, once, when it is needed
 * no longer.
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

/** What was handed over and forgotten, with its deleter uncalled. */
const forgotten = new FinalizationRegistry<() => void>((giveBack) => {
  giveBack();
});

/**
 * What a descriptor of ours and its deleter hold: the memory is taken back where both are
 * forgotten.
 */
class Handover {
  readonly memory: Allocation;
  /** Kept from being collected, as the memory's owner. */
  readonly tensor: AnyTensor;
  private readonly giveBack: () => void;
  private over = false;

  constructor(tensor: AnyTensor) {
    this.tensor = tensor;
    this.memory = tensor.buffer.memory;
    this.giveBack = this.memory.borrow();
    forgotten.register(this, this.giveBack, this);
  }

  /** Who took the tensor over needs it no longer. */
  end(): void {
    if (this.over)
      throw new CudaDisposedError('deleter: called twice. Who takes a tensor over calls it once.');
    this.over = true;
    forgotten.unregister(this);
    this.giveBack();
  }
}

/** Descriptors whose memory has been taken over, and may be so once only. */
const taken = new WeakSet<object>();

/**
 * The descriptor of a tensor, once everything that was queued with its memory is over. See
 * {@link Tensor.toDLPack}.
 */
export function handOver(run: Run, tensor: AnyTensor): Submitted<DLTensor> {
  run.checkNotRecording('tensor.toDLPack()', 'hand over graph.output after graph.replay()');
  tensor.checkAlive();
  const { memory } = tensor.buffer;
  // The run's stream waits for the others, and the host for that stream: whoever has the descriptor
  // need wait for nothing.
  memory.orderEnd(run.stream);
  if (run.mode === 'block') {
    run.block();
    return described(tensor);
  }
  // Also where nothing was queued: memory that has just been allocated is not there yet.
  return new Later(
    Promise.all([tensor.buffer.allocated(), run.stream.finished()]).then(() => described(tensor)),
    true,
  );
}

function described(tensor: AnyTensor): DLTensor {
  const { dtype, layout, device, buffer } = tensor;
  tensor.checkAlive();
  const { memory } = buffer;
  const owner = new Handover(tensor);
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

/** What {@link Tensor.fromDLPack} takes beside the descriptor. */
export interface TakeOverOptions {
  /** Shown in errors. */
  label?: string;
}

/**
 * The memory that the descriptor is of, adopted, and how a tensor lies in it: the parts of one that
 * owns it. See {@link Tensor.fromDLPack}.
 */
export async function takeOver(
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
    if (taken.has(descriptor))
      throw invalid(
        'descriptor',
        'one that nobody has taken over',
        descriptor,
        'Its memory has been taken over, which is possible once: ask its owner for another.',
      );
    taken.add(descriptor);
  }
  const { end } = span(layout);
  const alias =
    owner instanceof Handover && owner.memory.device.runtime === device.runtime
      ? owner.memory
      : undefined;
  // Held by what is given back, and so for as long as the memory is in use here.
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
    // It stays its owner's.
    taken.delete(descriptor);
    throw error;
  }
}
