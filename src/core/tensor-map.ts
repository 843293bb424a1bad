/**
 * Tensor maps: descriptions of tensors by which kernels copy boxes of them. A map is a parameter of
 * 128 bytes. The runtime thread makes it when it executes the launch, since the address of memory
 * in stream order is known there only.
 */
import { CudaArgumentError } from '../ground/errors.js';
import type { DType, DTypeName } from '../ground/dtype.js';
import { MAP, MAP_AXES, MAP_WORDS } from '../runtime/commands.js';
import { putInt64 } from '../runtime/ring-writer.js';
import type { DeviceBuffer } from './buffer.js';

/** The alignment of a tensor and of its strides, in bytes (CUDA driver API, tensor maps). */
const ALIGNMENT = 16;
const MOST_STRIDE = 2 ** 40;

/** CUtensorMapDataType of types whose elements can be added. */
const TYPES: Readonly<Partial<Record<DTypeName, number>>> = {
  ...{ i32: 3, i64: 5, f16: 6, f32: 7, f64: 8, bf16: 9 },
};
/** That of unsigned integers by their bytes: types of one size are copied alike. */
const UNSIGNED: Readonly<Record<number, number>> = { 1: 0, 2: 1, 4: 2, 8: 4 };
/** CUtensorMapSwizzle by the bytes of a line. */
const SWIZZLES: Readonly<Record<number, number>> = { 0: 0, 32: 1, 64: 2, 128: 3 };

/** A box of a tensor: extents in elements, axis by axis, and how its lines are swizzled. */
export interface BoxShape {
  readonly box: readonly number[];
  readonly swizzle: 0 | 32 | 64 | 128;
  /** Whether a box is pixels of images: as many as the axis before the last one has. */
  readonly pixels?: true;
}

/**
 * Which pixels of images [image, row, column, channel] a convolution's first weight is placed on:
 * those from `lower` to the image's extents plus `upper`, by steps.
 */
export interface PixelWindow {
  /** Rows and columns, -128 to 127. */
  readonly lower: readonly [down: number, across: number];
  readonly upper: readonly [down: number, across: number];
  /** 1 to 8. */
  readonly steps: readonly [down: number, across: number];
}

/** The tensor that a map describes. */
export interface MappedTensor {
  /** Null for a tensor without elements. */
  readonly buffer: DeviceBuffer<DTypeName> | null;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
  /** For maps of pixels. */
  readonly window?: PixelWindow | undefined;
}

/** The argument for a parameter that is a tensor map. */
export class TensorMap {
  readonly buffer: DeviceBuffer<DTypeName>;
  /** The words of a launch's record that describe the map. */
  private readonly words: Int32Array;

  /**
   * @param name the tensor's name in errors
   * @param isWritten whether the kernel may copy to the tensor
   * @throws CudaArgumentError for a tensor that no map describes
   */
  constructor(name: string, tensor: MappedTensor, shape: BoxShape, isWritten: boolean) {
    this.buffer = checkMapped(name, tensor, isWritten);
    this.words = describe(this.buffer, tensor, shape);
  }

  /** @internal */
  get memory(): DeviceBuffer['memory'] {
    return this.buffer.memory;
  }

  get byteOffset(): number {
    return this.buffer.byteOffset;
  }

  get dtype(): DType {
    return this.buffer.dtype;
  }

  /** Writes the description to a record. The decoder adds the address of memory to its offset. */
  put(memory: Int32Array, at: number): void {
    const { words } = this;
    for (let i = 0; i < words.length; i++) memory[at + i] = words[i]!;
  }

  toString(): string {
    return `TensorMap of ${this.buffer.toString()}`;
  }
}

/** Gives the tensor's memory. */
function checkMapped(
  name: string,
  { buffer, shape, strides }: MappedTensor,
  isWritten: boolean,
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
    // An axis along which all elements are one has a map, too (H200, driver 580).
    const least = isWritten ? 1 : 0;
    if (shape[axis] !== 1 && (step < least || step % ALIGNMENT !== 0 || step >= MOST_STRIDE))
      fail(
        `axis ${axis} has a stride of ${step} bytes, which is no positive multiple of ${ALIGNMENT}`,
      );
  });
  // Copies to a tensor write whole units of 16 bytes, behind a row's end too (H200, driver 580).
  const row = shape.at(-1)! * bytes;
  if (isWritten && row % ALIGNMENT !== 0)
    throw new CudaArgumentError(
      name,
      `${name}: this kernel copies boxes to it, and its rows have ${row} bytes, which is no ` +
        `multiple of ${ALIGNMENT}: a copy would also write what follows a row. Write to a tensor ` +
        'with longer rows, and take a slice of it.',
    );
  return buffer;
}

function describe(
  { byteOffset, dtype: { name, bytes } }: DeviceBuffer<DTypeName>,
  { shape, strides, window }: MappedTensor,
  { box, swizzle, pixels }: BoxShape,
): Int32Array {
  const words = new Int32Array(MAP_WORDS);
  putInt64(words, MAP.address, byteOffset);
  const axes = shape.length;
  words[MAP.type] = TYPES[name] ?? UNSIGNED[bytes]!;
  words[MAP.axes] = axes;
  words[MAP.swizzle] = SWIZZLES[swizzle]!;
  // The driver lists the last axis first.
  for (let axis = 0; axis < Math.min(axes, MAP_AXES); axis++) {
    const from = axes - 1 - axis;
    putInt64(words, MAP.extents + 2 * axis, shape[from]!);
    if (axis > 0) {
      const stride = shape[from] === 1 ? ALIGNMENT : strides[from]! * bytes;
      putInt64(words, MAP.strides + 2 * (axis - 1), stride);
    }
    words[MAP.box + axis] = box[from]!;
  }
  if (pixels) {
    if (window === undefined) throw new TypeError('a map of pixels of a tensor without a window');
    const { lower, upper, steps } = window;
    words[MAP.corners] = bytesOf(lower[1], lower[0], upper[1], upper[0]);
    words[MAP.steps] = bytesOf(steps[1], steps[0], 0, 0);
  }
  return words;
}

/** Bytes of a word, the lowest first. */
const bytesOf = (...bytes: readonly [number, number, number, number]): number =>
  bytes.reduce((word, byte, at) => word | ((byte & 0xff) << (8 * at)), 0);
