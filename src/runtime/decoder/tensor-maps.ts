/**
 * Tensor maps among the parameters of launches. The driver's call takes about a microsecond, so
 * that maps are kept: a launch with the same tensor copies its map.
 */
import type { Driver } from '../../driver/driver.js';
import { MAP, MAP_WORDS } from '../commands/launch-maps.js';
import { int64 } from '../commands/record.js';

/** Maps that are kept, a power of two: each has one place, by its description. */
const KEPT = 256;
/** The words of a place: the description without the parameter's number, the address, the map. */
const DESCRIBED = MAP.words - 1;
const STRIDE = DESCRIBED + 2 + MAP_WORDS;
const TWO32 = 4294967296;
/** CU_TENSOR_MAP_L2_PROMOTION_L2_128B: a line of 128 bytes is read as a whole. */
const PROMOTION = 2;

export class TensorMaps {
  private readonly driver: Driver;
  private readonly kept = new Int32Array(KEPT * STRIDE);

  constructor(driver: Driver) {
    this.driver = driver;
  }

  /**
   * Makes the map that the words at `described` describe, in the parameters that begin at `params`.
   * Its first two words there are the tensor's address.
   */
  put(memory: Int32Array, described: number, params: number): void {
    const { kept } = this;
    const target = params + memory[described + MAP.param]!;
    const [low, high] = [memory[target]!, memory[target + 1]!];
    let hash = Math.imul(low >>> 4, 0x9e3779b1) ^ high;
    for (let i = 1; i < MAP.words; i++)
      hash = Math.imul(hash ^ memory[described + i]!, 0x85ebca6b) ^ (hash >>> 15);
    const place = (hash & (KEPT - 1)) * STRIDE;
    if (!this.has(place, memory, described, low, high)) {
      const map = this.encode(memory, described, (low >>> 0) + high * TWO32);
      for (let i = 0; i < DESCRIBED; i++) kept[place + i] = memory[described + 1 + i]!;
      kept[place + DESCRIBED] = low;
      kept[place + DESCRIBED + 1] = high;
      kept.set(map, place + DESCRIBED + 2);
    }
    for (let i = 0; i < MAP_WORDS; i++) memory[target + i] = kept[place + DESCRIBED + 2 + i]!;
  }

  private has(
    place: number,
    memory: Int32Array,
    described: number,
    low: number,
    high: number,
  ): boolean {
    const { kept } = this;
    if (kept[place + DESCRIBED] !== low || kept[place + DESCRIBED + 1] !== high) return false;
    for (let i = 0; i < DESCRIBED; i++)
      if (kept[place + i] !== memory[described + 1 + i]) return false;
    // No map describes a tensor of no axes, as empty places do.
    return kept[place + MAP.axes - 1] !== 0;
  }

  private encode(memory: Int32Array, at: number, address: number): Int32Array {
    const axes = memory[at + MAP.axes]!;
    const list = (first: number, count: number): number[] =>
      Array.from({ length: count }, (_, axis) => int64(memory, at + first + 2 * axis));
    const map = this.driver.cuTensorMapEncodeTiled(
      memory[at + MAP.type]!,
      axes,
      address,
      list(MAP.extents, axes),
      list(MAP.strides, axes - 1),
      Array.from({ length: axes }, (_, axis) => memory[at + MAP.box + axis]!),
      new Array<number>(axes).fill(1),
      0,
      memory[at + MAP.swizzle]!,
      PROMOTION,
      0,
    );
    return new Int32Array(map.buffer, map.byteOffset, MAP_WORDS);
  }
}
