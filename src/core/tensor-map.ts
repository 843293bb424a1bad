/**
 * Tensor maps: descriptions of tensors by which kernels copy boxes of them. A map is 128 bytes of
 * device memory, which a kernel gets the address of. It is made by a command on the stream of the
 * first launch that uses it, since the address of memory in stream order is known on the runtime
 * thread only, and kept for the launches that follow.
 */
import { CudaArgumentError, CudaError } from '../ground/errors.js';
import { u8 } from '../ground/dtype.js';
import type { DTypeName } from '../ground/dtype.js';
import {
  ACCESS_READ,
  ACCESS_SHIFT,
  ACCESS_WRITE,
  OP,
  TENSOR_MAP_PLACES as PLACES,
  TENSOR_MAP_WORDS,
} from '../runtime/commands.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { DeviceBuffer } from './buffer.js';
import type { CoreDevice } from './device.js';
import type { Resource } from './resource.js';
import type { Stream } from './stream.js';

const MAP_BYTES = 128;
/** Maps of one piece of memory. Beyond them the oldest one that can be is replaced. */
const MAPS = 512;
/** The alignment of a tensor and of its strides, in bytes (CUDA driver API, tensor maps). */
const ALIGNMENT = 16;
const MOST_STRIDE = 2 ** 40;

/** CUtensorMapDataType. Types of one size are copied alike. */
const TYPES: Readonly<Record<number, number>> = { 1: 0, 2: 1, 4: 2, 8: 4 };
/** CUtensorMapSwizzle by the bytes of a line. */
const SWIZZLES: Readonly<Record<number, number>> = { 0: 0, 32: 1, 64: 2, 128: 3 };

/** A box of a tensor: extents in elements, axis by axis, and how its lines are swizzled. */
export interface BoxShape {
  readonly box: readonly number[];
  readonly swizzle: 0 | 32 | 64 | 128;
}

/** The tensor that a map describes. */
export interface MappedTensor {
  /** Null for a tensor without elements. */
  readonly buffer: DeviceBuffer<DTypeName> | null;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
}

/** Maps of one tensor's memory that a launch finds without making their key. */
const RECENT = 4;

/** The tensor maps of one tensor's memory, by their numbers. */
class MemoryMaps {
  /** The keys are the numbers of {@link partsOf}, joined. */
  private readonly all = new Map<string, number>();
  /** Some of those that were used last. */
  private readonly recent: { readonly parts: readonly number[]; readonly slot: number }[] = [];
  /** The one that is replaced next. */
  private oldest = 0;

  /** The number of a tensor's map, where it was added. */
  find(buffer: DeviceBuffer<DTypeName>, tensor: MappedTensor, shape: BoxShape): number | undefined {
    for (const { parts, slot } of this.recent)
      if (isMadeFrom(parts, buffer, tensor, shape)) return slot;
    const parts = partsOf(buffer, tensor, shape);
    const slot = this.all.get(parts.join());
    if (slot !== undefined) this.used(parts, slot);
    return slot;
  }

  /** Gives the function that removes it. */
  add(
    slot: number,
    buffer: DeviceBuffer<DTypeName>,
    tensor: MappedTensor,
    shape: BoxShape,
  ): () => void {
    const parts = partsOf(buffer, tensor, shape);
    const key = parts.join();
    this.all.set(key, slot);
    this.used(parts, slot);
    return () => {
      this.all.delete(key);
      const at = this.recent.findIndex((each) => each.slot === slot);
      if (at >= 0) this.recent.splice(at, 1);
    };
  }

  private used(parts: readonly number[], slot: number): void {
    if (this.recent.length < RECENT) this.recent.push({ parts, slot });
    else {
      this.recent[this.oldest] = { parts, slot };
      this.oldest = (this.oldest + 1) % RECENT;
    }
  }
}

/** The numbers that a map is made from, apart from its memory. */
function partsOf(
  { byteOffset, dtype }: DeviceBuffer<DTypeName>,
  { shape, strides }: MappedTensor,
  { box, swizzle }: BoxShape,
): number[] {
  return [byteOffset, dtype.bytes, swizzle, ...shape, ...strides, ...box];
}

/** Whether the numbers are those that {@link partsOf} gives. */
function isMadeFrom(
  parts: readonly number[],
  { byteOffset, dtype }: DeviceBuffer<DTypeName>,
  { shape, strides }: MappedTensor,
  { box, swizzle }: BoxShape,
): boolean {
  const axes = shape.length;
  if (parts.length !== 3 + 3 * axes) return false;
  if (parts[0] !== byteOffset || parts[1] !== dtype.bytes || parts[2] !== swizzle) return false;
  for (let axis = 0, at = 3; axis < axes; axis++, at++)
    if (
      parts[at] !== shape[axis] ||
      parts[at + axes] !== strides[axis] ||
      parts[at + 2 * axes] !== box[axis]
    )
      return false;
  return true;
}

/** The tensor maps of a device. */
export class TensorMaps {
  private readonly device: CoreDevice;
  private readonly pieces: DeviceBuffer<'u8'>[] = [];
  private readonly known = new WeakMap<Resource, MemoryMaps>();
  /** By number of a map: what forgets it when another one takes its place. */
  private readonly forget: (() => void)[] = [];
  /** Maps that graphs read in each launch: no other one takes their place. */
  private readonly captured = new Set<number>();
  private next = 0;

  constructor(device: CoreDevice) {
    this.device = device;
  }

  /**
   * The memory of a tensor's map. Where it is not known, it is made on the stream.
   *
   * @throws CudaArgumentError for a tensor that no map describes
   */
  of(stream: Stream, name: string, tensor: MappedTensor, shape: BoxShape): DeviceBuffer<'u8'> {
    const { buffer } = tensor;
    const maps = buffer === null ? undefined : this.known.get(buffer.memory);
    // A known map is of a tensor that was checked.
    const slot =
      maps?.find(buffer!, tensor, shape) ??
      this.create(stream, name, checkMapped(name, tensor), tensor, shape);
    if (stream.capturing !== undefined) this.captured.add(slot);
    return this.at(slot);
  }

  /** Makes the map of a tensor, and returns its number. */
  private create(
    stream: Stream,
    name: string,
    buffer: DeviceBuffer<DTypeName>,
    tensor: MappedTensor,
    shape: BoxShape,
  ): number {
    const slot = this.take(stream, name);
    make(stream, this.at(slot), buffer, tensor, shape);
    // What a graph makes is there in its launches only.
    this.forget[slot] = () => undefined;
    if (stream.capturing === undefined) {
      const maps = this.known.get(buffer.memory) ?? new MemoryMaps();
      this.known.set(buffer.memory, maps);
      this.forget[slot] = maps.add(slot, buffer, tensor, shape);
    }
    return slot;
  }

  /** Allocates memory for maps, since captures cannot. */
  reserve(): void {
    const { stream } = this.device;
    if (this.pieces.length > 0 || stream.capturing !== undefined) return;
    this.pieces.push(this.device.allocScoped(u8, MAPS * MAP_BYTES, { stream }));
  }

  /** Closes the memory, before the device does. */
  close(): void {
    for (const piece of this.pieces) piece.close();
  }

  /** The number of a map that may be written. Uses of the old one are ordered before that. */
  private take(stream: Stream, name: string): number {
    const count = this.pieces.length * MAPS;
    for (let tries = 0; tries < count; tries++) {
      const slot = this.next;
      this.next = (slot + 1) % count;
      if (this.captured.has(slot)) continue;
      this.forget[slot]?.();
      return slot;
    }
    if (stream.capturing !== undefined)
      throw new CudaError(
        'ERR_CUDA_CAPTURE',
        `${name}: there is no memory left for its tensor map, and a capture allocates none. ` +
          'Launch the kernel once before the capture, with the same tensors.',
      );
    this.pieces.push(this.device.allocScoped(u8, MAPS * MAP_BYTES, { stream }));
    this.next = count + 1;
    return count;
  }

  private at(slot: number): DeviceBuffer<'u8'> {
    const at = (slot % MAPS) * MAP_BYTES;
    return this.pieces[Math.floor(slot / MAPS)]!.slice(at, at + MAP_BYTES);
  }
}

/** Gives the tensor's memory. */
function checkMapped(
  name: string,
  { buffer, shape, strides }: MappedTensor,
): DeviceBuffer<DTypeName> {
  const fail = (what: string): never => {
    throw new CudaArgumentError(
      name,
      `${name}: this kernel copies boxes of it, and ${what}. Copy the tensor to one whose rows ` +
        `begin at multiples of ${ALIGNMENT} bytes.`,
    );
  };
  if (buffer === null || shape.includes(0)) return fail('it has no elements');
  const { bytes } = buffer.dtype;
  if (shape.at(-1) !== 1 && strides.at(-1) !== 1)
    fail('the elements of its last axis are not adjacent');
  if (buffer.byteOffset % ALIGNMENT !== 0)
    fail(
      `it begins at byte ${buffer.byteOffset} of its memory, which is no multiple of ${ALIGNMENT}`,
    );
  strides.slice(0, -1).forEach((stride, axis) => {
    const step = stride * bytes;
    if (shape[axis] !== 1 && (step <= 0 || step % ALIGNMENT !== 0 || step >= MOST_STRIDE))
      fail(
        `axis ${axis} has a stride of ${step} bytes, which is no positive multiple of ${ALIGNMENT}`,
      );
  });
  return buffer;
}

function make(
  stream: Stream,
  map: DeviceBuffer<'u8'>,
  buffer: DeviceBuffer<DTypeName>,
  { shape, strides }: MappedTensor,
  { box, swizzle }: BoxShape,
): void {
  const { bytes } = buffer.dtype;
  const axes = shape.length;
  stream.order(buffer.memory, ACCESS_READ);
  stream.order(map.memory, ACCESS_WRITE);
  const root = stream.nextRoot();
  const body = stream.begin(OP.tensorMap, TENSOR_MAP_WORDS + 4, root);
  const { memory } = stream.runtime.ring;
  memory[body + PLACES.memory] = buffer.memory.handle | (ACCESS_READ << ACCESS_SHIFT);
  memory[body + PLACES.map] = map.memory.handle | (ACCESS_WRITE << ACCESS_SHIFT);
  putInt64(memory, body + PLACES.offset, buffer.byteOffset);
  putInt64(memory, body + PLACES.mapOffset, map.byteOffset);
  memory[body + PLACES.type] = TYPES[bytes]!;
  memory[body + PLACES.axes] = axes;
  memory[body + PLACES.swizzle] = SWIZZLES[swizzle]!;
  // The driver lists the last axis first.
  for (let axis = 0; axis < axes; axis++) {
    const from = axes - 1 - axis;
    putInt64(memory, body + PLACES.extents + 2 * axis, shape[from]!);
    if (axis > 0) {
      const stride = shape[from] === 1 ? ALIGNMENT : strides[from]! * bytes;
      putInt64(memory, body + PLACES.strides + 2 * (axis - 1), stride);
    }
    memory[body + PLACES.box + axis] = box[from]!;
  }
  const mark = stream.commit();
  stream.used(buffer.memory, ACCESS_READ, mark);
  stream.used(map.memory, ACCESS_WRITE, mark);
}
