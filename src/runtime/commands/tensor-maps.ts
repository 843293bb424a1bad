/** The command that makes a tensor map. */
import { command, handlesOf, operandsAt } from './command.js';
import type { Command } from './command.js';
import { int64 } from './record.js';

/** The most axes of a tensor map. */
const MOST_AXES = 5;
/** Words of a tensor map. */
const MAP_WORDS = 32;

/**
 * `memory` and `offset`: the tensor. `map` and `mapOffset`: 128 bytes of device memory. Extents and
 * strides (in bytes, of all axes but the first) are 64-bit; the first axis is the one whose
 * elements are adjacent.
 */
const TENSOR_MAP = {
  memory: 0,
  map: 1,
  offset: 2,
  mapOffset: 4,
  type: 6,
  axes: 7,
  swizzle: 8,
  extents: 9,
  strides: 9 + 2 * MOST_AXES,
  box: 9 + 4 * MOST_AXES,
} as const;
export const TENSOR_MAP_WORDS = TENSOR_MAP.box + MOST_AXES;
export const TENSOR_MAP_PLACES = TENSOR_MAP;

const OPERANDS = operandsAt(TENSOR_MAP.memory, TENSOR_MAP.map);
/** CU_TENSOR_MAP_L2_PROMOTION_L2_128B: a line of 128 bytes is read as a whole. */
const PROMOTION = 2;

export const tensorMaps = {
  tensorMap: command({
    op: 22,
    call: 'cuTensorMapEncodeTiled',
    words: { ...TENSOR_MAP, lastOfBox: TENSOR_MAP.box + MOST_AXES - 1 },
    length: TENSOR_MAP_WORDS,
    operands: OPERANDS,
    makes: undefined,
    trace: (memory, body) => ({
      kind: 'fill',
      memory: handlesOf(OPERANDS(memory, body)).reverse(),
      bytes: 4 * MAP_WORDS,
    }),
    inFlight: 'fill',
    copies: undefined,
    takesTime: true,
    visit: 'never',
    launches: 0,
    runsAfterFailure: false,
    withoutStream: 'fails',
    mustWait: undefined,
    execute: ({ driver, shared, operands }, memory, body, stream) => {
      const axes = memory[body + TENSOR_MAP.axes]!;
      const list = (first: number, count: number): number[] =>
        Array.from({ length: count }, (_, axis) => int64(memory, body + first + 2 * axis));
      const map = driver.cuTensorMapEncodeTiled(
        memory[body + TENSOR_MAP.type]!,
        axes,
        operands.address(memory[body + TENSOR_MAP.memory]!) +
          int64(memory, body + TENSOR_MAP.offset),
        list(TENSOR_MAP.extents, axes),
        list(TENSOR_MAP.strides, axes - 1),
        Array.from({ length: axes }, (_, axis) => memory[body + TENSOR_MAP.box + axis]!),
        new Array<number>(axes).fill(1),
        0,
        memory[body + TENSOR_MAP.swizzle]!,
        PROMOTION,
        0,
      );
      const target =
        operands.address(memory[body + TENSOR_MAP.map]!) +
        int64(memory, body + TENSOR_MAP.mapOffset);
      const words = new Uint32Array(map.buffer, map.byteOffset, MAP_WORDS);
      // Fills need no memory of the host, which a graph would read again in each launch.
      words.forEach((word, at) => {
        driver.cuMemsetD32Async(target + 4 * at, word, 1, shared.streams[stream]!);
      });
    },
  }),
} satisfies Record<string, Command>;
