/**
 * Tensor maps among the parameters of launches. The driver's call takes about a microsecond, so
 * that maps are kept: a launch with the same tensor copies its map.
 */
import type { Driver } from '../../driver/driver.js';
import { MAP, MAP_WORDS } from '../commands/launch-maps.js';
import { int64 } from '../commands/record.js';

/** Maps that are kept, a power of two: each has one place, by its description. */
const KEPT = 256;
/** The words of a place: the description, the map. */
const STRIDE = MAP.words + MAP_WORDS;
/** CU_TENSOR_MAP_L2_PROMOTION_L2_128B: a line of 128 bytes is read as a whole. */
const PROMOTION = 2;

/** A signed byte of a word. */
const byteOf = (word: number, at: number): number => (word << (24 - 8 * at)) >> 24;

export class TensorMaps {
  private readonly driver: Driver;
  private readonly kept = new Int32Array(KEPT * STRIDE);

  constructor(driver: Driver) {
    this.driver = driver;
  }

  /** Replaces the description at `at` by the map. */
  put(memory: Int32Array, at: number): void {
    const { kept } = this;
    let hash = Math.imul(memory[at]! >>> 4, 0x9e3779b1);
    for (let i = 1; i < MAP.words; i++)
      hash = Math.imul(hash ^ memory[at + i]!, 0x85ebca6b) ^ (hash >>> 15);
    const place = (hash & (KEPT - 1)) * STRIDE;
    if (!this.has(place, memory, at)) {
      const map = this.encode(memory, at);
      for (let i = 0; i < MAP.words; i++) kept[place + i] = memory[at + i]!;
      kept.set(map, place + MAP.words);
    }
    for (let i = 0; i < MAP_WORDS; i++) memory[at + i] = kept[place + MAP.words + i]!;
  }

  private has(place: number, memory: Int32Array, at: number): boolean {
    const { kept } = this;
    for (let i = 0; i < MAP.words; i++) if (kept[place + i] !== memory[at + i]) return false;
    // No map describes a tensor of no axes, as empty places do.
    return kept[place + MAP.axes] !== 0;
  }

  private encode(memory: Int32Array, at: number): Int32Array {
    const axes = memory[at + MAP.axes]!;
    const list = (first: number, count: number): number[] =>
      Array.from({ length: count }, (_, axis) => int64(memory, at + first + 2 * axis));
    const box = Array.from({ length: axes }, (_, axis) => memory[at + MAP.box + axis]!);
    const tensor = [
      memory[at + MAP.type]!,
      axes,
      int64(memory, at + MAP.address),
      list(MAP.extents, axes),
      list(MAP.strides, axes - 1),
    ] as const;
    const rest = [0, memory[at + MAP.swizzle]!, PROMOTION, 0] as const;
    const corners = memory[at + MAP.corners]!;
    const steps = memory[at + MAP.steps]!;
    const map =
      steps === 0
        ? this.driver.cuTensorMapEncodeTiled(
            ...tensor,
            box,
            new Array<number>(axes).fill(1),
            ...rest,
          )
        : this.driver.cuTensorMapEncodeIm2col(
            ...tensor,
            [byteOf(corners, 0), byteOf(corners, 1)],
            [byteOf(corners, 2), byteOf(corners, 3)],
            box[0]!,
            box[1]!,
            [1, byteOf(steps, 0), byteOf(steps, 1), 1],
            ...rest,
          );
    return new Int32Array(map.buffer, map.byteOffset, MAP_WORDS);
  }
}
