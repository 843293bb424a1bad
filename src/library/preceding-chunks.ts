/**
 * The sum of all chunks before one, for scans that read their elements once: each block publishes
 * the sum of its chunk, and adds up the sums of the blocks before it (decoupled look-back: Merrill
 * and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
 *
 * The paper's algorithm adds the sums and prefixes that are published at the time, so that the last
 * bits of floats depend on timing. Here the order is fixed: 32 chunks are a group, 32 groups a
 * span. A chunk adds the sums of the chunks of its group, of the groups of its span, and the prefix
 * up to its span. The last chunk of a group publishes the group's sum, that of a span the prefix up
 * to the span's end, so that only spans, of four million elements, wait for one another in
 * sequence.
 *
 * The upper half of each word has a flag that it was published, so that no fence is needed; a sum
 * of 64 bits takes two words.
 */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction, GpuWith, Usable } from '../kernels/index.js';
import type { Gpu, Output } from './kernel-family.js';
import type { Accumulator } from './reduction-kernels.js';

const IN_GROUP = 32;
const IN_SPAN = IN_GROUP * IN_GROUP;

interface Coded {
  /** From a value to its bits as u32 or u64, and back. */
  readonly code: Usable;
  readonly value: Usable;
}

const ofFloat: Coded = {
  code: (value: number, gpu: Gpu): number => gpu.bits(value),
  value: (bits: number, gpu: Gpu): number => gpu.fromBits(bits),
};

const CODED: Readonly<Record<Accumulator, Coded>> = {
  f32: ofFloat,
  f64: ofFloat,
  i32: {
    code: (value: number, gpu: Gpu): number => gpu.u32(value),
    value: (bits: number, gpu: Gpu): number => gpu.i32(bits),
  },
  u32: { code: (value: number): number => value, value: (bits: number): number => bits },
  i64: {
    code: (value: number, gpu: Gpu): number => gpu.u64(value),
    value: (bits: number, gpu: Gpu): number => gpu.i64(bits),
  },
  u64: { code: (value: number): number => value, value: (bits: number): number => bits },
};

const NOTHING: Readonly<Record<Accumulator, (gpu: Gpu) => number>> = {
  f32: (gpu) => gpu.f32(0),
  f64: (gpu) => gpu.f64(0),
  i32: (gpu) => gpu.i32(0),
  u32: (gpu) => gpu.u32(0),
  i64: (gpu) => gpu.i64(0),
  u64: (gpu) => gpu.u64(0),
};

const wordsOf = (accumulator: Accumulator): number => (accumulator.endsWith('64') ? 2 : 1);

/**
 * Gives the number of words of u64 by which blocks publish sums. They are zeros at first. The first
 * word counts blocks.
 */
export function wordsOfChunks(rows: number, chunks: number, accumulator: Accumulator): number {
  return (
    1 +
    rows *
      (chunks + Math.ceil(chunks / IN_GROUP) + Math.ceil(chunks / IN_SPAN)) *
      wordsOf(accumulator)
  );
}

/**
 * Gives a device function `(state, row, chunk, chunks, total)` for all lanes of one warp. It
 * publishes the sum of a chunk, waits for the sums of the row's chunks before it, and gives their
 * sum. Blocks have to take chunks in the order in which they begin.
 */
export function precedingChunks(accumulator: Accumulator): DeviceFunction {
  const { code, value } = CODED[accumulator];
  const coded = {
    code: code as (value: number) => number,
    value: value as (bits: number) => number,
  };
  const put =
    wordsOf(accumulator) === 1
      ? deviceFunction(
          (state: Output, at: number, sum: number, gpu: GpuWith<typeof coded>): void => {
            gpu.volatileStore(state, 1 + at, gpu.u64(gpu.code(sum)) | 0x100000000);
          },
          { uses: coded },
        )
      : deviceFunction(
          (state: Output, at: number, sum: number, gpu: GpuWith<typeof coded>): void => {
            const both = gpu.code(sum);
            gpu.volatileStore(state, 1 + 2 * at, (both & 0xffffffff) | 0x100000000);
            gpu.volatileStore(state, 2 + 2 * at, (both >>> 32) | 0x100000000);
          },
          { uses: coded },
        );
  const get =
    wordsOf(accumulator) === 1
      ? deviceFunction(
          (state: Output, at: number, gpu: GpuWith<typeof coded>): number => {
            let word = gpu.u64(0);
            do word = gpu.volatileLoad(state, 1 + at);
            while (word < 0x100000000);
            return gpu.value(gpu.u32(word));
          },
          { uses: coded },
        )
      : deviceFunction(
          (state: Output, at: number, gpu: GpuWith<typeof coded>): number => {
            let low = gpu.u64(0);
            let high = gpu.u64(0);
            do {
              low = gpu.volatileLoad(state, 1 + 2 * at);
              high = gpu.volatileLoad(state, 2 + 2 * at);
            } while (low < 0x100000000 || high < 0x100000000);
            return gpu.value((low & 0xffffffff) | (high << 32));
          },
          { uses: coded },
        );
  const uses = { put, get, none: NOTHING[accumulator] };
  return deviceFunction(
    (
      state: Output,
      row: number,
      chunk: number,
      chunks: number,
      total: number,
      gpu: GpuWith<typeof uses>,
    ): number => {
      const { lane } = gpu;
      const groups = (chunks + 31) / 32;
      const sums = gpu.i32(row * (chunks + groups + (groups + 31) / 32));
      const sumsOfGroups = sums + gpu.i32(chunks);
      const upToSpans = sumsOfGroups + gpu.i32(groups);
      const group = gpu.i32(chunk / 32);
      const span = group / 32;
      const last = chunk % 32 === 31;
      if (lane === 0) gpu.put(state, sums + gpu.i32(chunk), total);
      let sum = gpu.none();
      if (lane < chunk % 32) sum = gpu.get(state, sums + group * 32 + lane);
      const inGroup = gpu.warp.sum(sum);
      if (last && lane === 0) gpu.put(state, sumsOfGroups + group, inGroup + total);
      sum = gpu.none();
      if (lane < group % 32) sum = gpu.get(state, sumsOfGroups + span * 32 + lane);
      // At most 31 groups precede one in its span, so that the last lane is free.
      let before = gpu.none();
      if (lane === 31 && span > 0) before = gpu.get(state, upToSpans + span - 1);
      const inSpan = gpu.warp.sum(sum);
      before = gpu.warp.shuffle(before, 31);
      if (last && group % 32 === 31 && lane === 0)
        gpu.put(state, upToSpans + span, before + (inSpan + (inGroup + total)));
      return before + inSpan + inGroup;
    },
    { uses },
  ) as DeviceFunction;
}
