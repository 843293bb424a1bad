/**
 * The gradients of attention of 129 to 256 channels by Hopper's warp groups. A block has 64 keys,
 * and goes over the queries that see them, 64 at a time. The gradients of the keys do not fit in
 * the registers of one warp group: each of two has half of the channels. For the scores each has
 * half of the queries, and both write shares and gradients of scores to shared memory, where the
 * products of both take them. The rest is as in `warp-group-attention-backward.ts`.
 */
import { deviceFunction } from '../kernels/index.js';
import type { DeviceFunction } from '../kernels/index.js';
import { addTransposedMaskOf } from './attention-masks.js';
import { LINE, LINE_BYTES, arraysOf } from './attention-products.js';
import type { Lines } from './attention-products.js';
import { isHalved, sumLinesOf } from './attention-query-sums.js';
import { KernelFamily } from './kernel-family.js';
import type { Gpu, KernelArray, Launchable } from './kernel-family.js';
import {
  NUMBER_LINES,
  backwardKeyOf,
  backwardSignature,
  linesOf,
  maskOf,
  sumLinesIn,
} from './warp-group-attention-backward.js';
import type {
  BackwardArgs,
  BackwardForm,
  BackwardGpu,
  BackwardPlan,
} from './warp-group-attention-backward.js';

const THREADS = 128 * 3;

/**
 * Lines of shared memory: keys and values, queries of two steps, gradients of results of one,
 * shares, gradients of scores of two steps, half of the sums of a step, numbers of two steps, a
 * mask's tile.
 */
const halvedLinesOf = (plan: BackwardPlan, channels: number, masked: boolean): number =>
  (channels / LINE) * (2 + plan.stages + 1) * 64 +
  64 +
  plan.stages * 64 +
  sumLinesOf(plan, channels) / 2 +
  plan.stages * NUMBER_LINES +
  (masked ? 64 : 0);

/** Bytes of dynamic shared memory of the kernel for so many channels. */
export const backwardSharedBytesOf = (
  plan: BackwardPlan,
  channels: number,
  masked = false,
): number =>
  (isHalved(channels) ? halvedLinesOf(plan, channels, masked) : linesOf(plan, channels)) *
  LINE_BYTES;

interface HalvedGpu extends BackwardGpu {
  beginHalf(sums: KernelArray<number>, lines: Lines, lineA: number, lineB: number): void;
  beginGradient(sums: KernelArray<number>, lines: Lines, lineA: number, lineB: number): void;
  beginQueries(sums: KernelArray<number>, lines: Lines, lineA: number, lineB: number): void;
}

/** Begins the products of 64 keys, or values, and half of a step's queries, or their gradients. */
const beginHalfOf = (uses: { readonly CHANNELS: number }): DeviceFunction =>
  deviceFunction(
    ((
      sums: KernelArray<number>,
      lines: Lines,
      lineA: number,
      lineB: number,
      gpu: Gpu & typeof uses,
    ) => {
      gpu.unroll();
      for (let i = 0; i < 16; i++) sums[i] = 0;
      gpu.group.begin();
      gpu.unroll();
      for (let part = 0; part < gpu.CHANNELS / 16; part++)
        gpu.group.mma(
          sums,
          lines,
          lineA + (part >> 2) * 64,
          (part & 3) * 16,
          lines,
          lineB + (part >> 2) * 64,
          (part & 3) * 16,
        );
      gpu.group.commit();
    }) as never,
    { uses },
  ) as DeviceFunction;

/** Begins to add the products of shares, or gradients of scores, and half of the channels. */
const beginGradient = deviceFunction(
  (sums: KernelArray<number>, lines: Lines, lineA: number, lineB: number, gpu: Gpu) => {
    gpu.group.begin();
    gpu.unroll();
    for (let part = 0; part < 4; part++)
      gpu.group.mma(sums, lines, lineA, part * 16, lines, lineB + part * 16, 0, 0, 64);
    gpu.group.commit();
  },
) as DeviceFunction;

/** Begins the products of gradients of scores and 64 channels of the keys. */
const beginQueries = deviceFunction(
  (sums: KernelArray<number>, lines: Lines, lineA: number, lineB: number, gpu: Gpu) => {
    gpu.unroll();
    for (let i = 0; i < 32; i++) sums[i] = 0;
    gpu.group.begin();
    gpu.unroll();
    for (let part = 0; part < 4; part++)
      gpu.group.mma(sums, lines, lineA + part * 16, 0, lines, lineB + part * 16, 0, 64, 64);
    gpu.group.commit();
  },
) as DeviceFunction;

const gradients = new KernelFamily(
  'halved_attention_backward',
  (args: BackwardArgs, gpu: HalvedGpu) => {
    const { sums, dk, dv, q, dOut, k, v, numbers, m, n, kvHeads, group, down } = args;
    const { scale, factor, window } = args;
    const { CHANNELS, STAGES, CAUSAL, WINDOW, MASKED } = gpu;
    const CHUNKS = CHANNELS / 64;
    const HALF = CHUNKS / 2;
    // Lines: keys, values, queries, gradients of results, shares, gradients of scores, sums,
    // numbers, a mask.
    const FIRST_VALUE = CHUNKS * 64;
    const FIRST_QUERY = 2 * FIRST_VALUE;
    const FIRST_OUT = FIRST_QUERY + STAGES * CHUNKS * 64;
    const FIRST_SHARE = FIRST_OUT + CHUNKS * 64;
    const FIRST_SLOPE = FIRST_SHARE + 64;
    const FIRST_SUM = FIRST_SLOPE + STAGES * 64;
    const FIRST_NUMBER = FIRST_SUM + CHANNELS;
    const FIRST_MASK = FIRST_NUMBER + STAGES * 8;
    // mbarriers: stages of queries that are full, and empty; gradients of results; keys and values.
    const EMPTY_QUERIES = STAGES;
    const FULL_OUT = 2 * STAGES;
    const EMPTY_OUT = FULL_OUT + 1;
    const FULL_KEYS = FULL_OUT + 2;
    const FULL_VALUES = FULL_OUT + 3;
    const lines = gpu.lines();
    const sumLines = gpu.sumLines();
    const bars = gpu.shared.u64(FULL_VALUES + 1);
    if (gpu.threadIdx.x === 0) {
      for (let s = 0; s < STAGES; s++) {
        gpu.barrier.init(bars, s, 1);
        gpu.barrier.init(bars, EMPTY_QUERIES + s, 2);
      }
      gpu.barrier.init(bars, FULL_OUT, 1);
      gpu.barrier.init(bars, EMPTY_OUT, 2);
      gpu.barrier.init(bars, FULL_KEYS, 1);
      gpu.barrier.init(bars, FULL_VALUES, 1);
      gpu.fence.barriers();
    }
    gpu.block.sync();

    const warpGroup = gpu.warpIdx >> 2;
    const matrix = gpu.blockIdx.x / down;
    const top = (gpu.blockIdx.x % down) * 64;
    const batch = matrix / kvHeads;
    const shared = matrix % kvHeads;
    // Tiles of queries that see keys of the block: at least one, so that loops have a step.
    const firstTile = CAUSAL ? Math.max(0, top + m - n) / 64 : 0;
    const end = WINDOW ? Math.max(1, Math.min(m, top + 64 + m - n + window)) : m;
    const endTile = Math.max(firstTile + 1, (end + 63) / 64);
    if (warpGroup === 2) {
      gpu.group.fewerRegisters(gpu.FEWER);
      if (gpu.threadIdx.x === 256) {
        gpu.barrier.expect(bars, FULL_KEYS, CHUNKS * 64 * 128);
        gpu.unroll();
        for (let c = 0; c < CHUNKS; c++)
          gpu.tensor.load(lines, c * 64, 64, k, bars, FULL_KEYS, batch, shared, top, c * 64);
        let stage = 0;
        let parity = 1;
        let parityOut = 1;
        for (let turn = 0; turn < group; turn++) {
          const head = shared * group + turn;
          for (let tile = firstTile; tile < endTile; tile++) {
            const row = tile * 64;
            gpu.barrier.wait(bars, EMPTY_QUERIES + stage, parity);
            gpu.barrier.expect(bars, stage, CHUNKS * 64 * 128 + 64 * 8);
            const lineQ = FIRST_QUERY + stage * CHUNKS * 64;
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++)
              gpu.tensor.load(lines, lineQ + c * 64, 64, q, bars, stage, batch, head, row, c * 64);
            const numberLine = FIRST_NUMBER + stage * 8;
            const ownMatrix = matrix * group + turn;
            gpu.tensor.load(sumLines, numberLine, 4, numbers, bars, stage, ownMatrix, tile * 4, 0);
            if (turn === 0 && tile === firstTile) {
              gpu.barrier.expect(bars, FULL_VALUES, CHUNKS * 64 * 128);
              gpu.unroll();
              for (let c = 0; c < CHUNKS; c++) {
                const line = FIRST_VALUE + c * 64;
                gpu.tensor.load(lines, line, 64, v, bars, FULL_VALUES, batch, shared, top, c * 64);
              }
            }
            gpu.barrier.wait(bars, EMPTY_OUT, parityOut);
            gpu.barrier.expect(bars, FULL_OUT, (CHUNKS + (MASKED ? 1 : 0)) * 64 * 128);
            gpu.unroll();
            for (let c = 0; c < CHUNKS; c++) {
              const line = FIRST_OUT + c * 64;
              gpu.tensor.load(lines, line, 64, dOut, bars, FULL_OUT, batch, head, row, c * 64);
            }
            if (MASKED)
              gpu.tensor.load(
                lines,
                FIRST_MASK,
                64,
                args.mask,
                bars,
                FULL_OUT,
                batch * args.maskBatch,
                head * args.maskHead,
                row * args.maskQuery,
                top,
              );
            parityOut ^= 1;
            stage++;
            if (stage === STAGES) {
              stage = 0;
              parity ^= 1;
            }
          }
        }
      }
    } else {
      gpu.group.moreRegisters(gpu.MORE);
      const sumsK = gpu.local.f32(CHANNELS / 4);
      const sumsV = gpu.local.f32(CHANNELS / 4);
      const scores = gpu.local.f32(16);
      const slopes = gpu.local.f32(16);
      const sumsQ = gpu.local.f32(32);
      const thread = gpu.threadIdx.x % 128;
      const warp = gpu.warpIdx % 4;
      const { lane } = gpu;
      const row = top + warp * 16 + (lane >> 2);
      // Where the group's first query of a step is between these two, none of its scores is masked:
      // each of its queries sees every key of the block.
      const wholeFrom = top + 63 + m - n;
      const wholeTo = top + m - n + window - 31;
      const isLast = top + 64 > n;
      // The group's channels of keys, queries and gradients of results.
      const ownLine = warpGroup * HALF * 64;
      const sumLine = FIRST_SUM + warpGroup * 128;
      const writtenLine = sumLine + (thread >> 3);
      const writtenPlace = ((thread & 7) ^ ((thread >> 3) & 7)) * 4;
      // Where the lane writes shares and gradients of scores: its key, and units of queries.
      const shareLine = warp * 16 + (lane & 15);
      const shareUnit = warpGroup * 4 + (lane >> 4);
      let stage = 0;
      let parity = 0;
      let parityOut = 0;
      gpu.unroll();
      for (let i = 0; i < CHANNELS / 4; i++) {
        sumsK[i] = 0;
        sumsV[i] = 0;
      }
      gpu.barrier.wait(bars, FULL_KEYS, 0);
      for (let turn = 0; turn < group; turn++) {
        for (let tile = firstTile; tile < endTile; tile++) {
          const first = tile * 64 + warpGroup * 32;
          const lineQ = FIRST_QUERY + stage * CHUNKS * 64;
          const slopeLine = FIRST_SLOPE + stage * 64;
          gpu.barrier.wait(bars, stage, parity);
          gpu.beginHalf(scores, lines, 0, lineQ + warpGroup * 32);
          // They have come once, before the first step.
          gpu.barrier.wait(bars, FULL_VALUES, 0);
          gpu.barrier.wait(bars, FULL_OUT, parityOut);
          parityOut ^= 1;
          gpu.beginHalf(slopes, lines, FIRST_VALUE, FIRST_OUT + warpGroup * 32);
          // The scores are complete, the gradients of shares are not.
          gpu.group.wait(1);
          if (MASKED) gpu.addMask(scores, lines, FIRST_MASK + warpGroup * 32, warp * 2, scale);
          if (isLast || (CAUSAL && first < wholeFrom) || (WINDOW && first > wholeTo))
            gpu.mask(scores, first, row, m, n, window);
          const numberLine = FIRST_NUMBER + stage * 8 + warpGroup;
          gpu.unroll();
          for (let j = 0; j < 4; j++) {
            // Unit 2 j + (lane % 4) / 2 of the group's line, swizzled.
            const place = ((j * 2 + ((lane >> 1) & 1)) ^ warpGroup) * 4 + (lane & 1) * 2;
            gpu.unroll();
            for (let e = 0; e < 2; e++) {
              const log = sumLines[numberLine]![place + e]!;
              gpu.unroll();
              for (let r = 0; r < 2; r++) {
                const at = j * 4 + r * 2 + e;
                scores[at] = MASKED
                  ? gpu.fast.exp2((scores[at]! - log) * Math.LOG2E)
                  : gpu.fast.exp2(gpu.fma(scores[at]!, factor, -log));
              }
            }
          }
          // The products of both groups with the last shares are complete: the gradients of results
          // that have come took the place of theirs.
          gpu.unroll();
          for (let part = 0; part < 2; part++) {
            const packed = gpu.packed();
            gpu.unroll();
            for (let i = 0; i < 8; i++) packed[i] = scores[part * 8 + i]!;
            gpu.warp.storeMatrices(
              lines[FIRST_SHARE + shareLine]!,
              ((shareUnit + part * 2) ^ (lane & 7)) * 8,
              packed,
            );
          }
          gpu.group.wait(0);
          gpu.unroll();
          for (let part = 0; part < 2; part++) {
            const packed = gpu.packed();
            gpu.unroll();
            for (let i = 0; i < 2; i++) {
              const unit = (part * 2 + i) * 2 + ((lane >> 1) & 1);
              const place = (unit ^ (2 + warpGroup)) * 4 + (lane & 1) * 2;
              gpu.unroll();
              for (let e = 0; e < 2; e++) {
                const delta = sumLines[numberLine + 2]![place + e]!;
                gpu.unroll();
                for (let r = 0; r < 2; r++) {
                  const at = part * 8 + i * 4 + r * 2 + e;
                  packed[i * 4 + r * 2 + e] = scores[at]! * (slopes[at]! - delta);
                }
              }
            }
            gpu.warp.storeMatrices(
              lines[slopeLine + shareLine]!,
              ((shareUnit + part * 2) ^ (lane & 7)) * 8,
              packed,
            );
          }
          gpu.fence.async();
          // The copy of the last sums has read the lines of the next.
          if (thread === 0) gpu.tensor.waitRead(0);
          // Gradients of scores of the last step may still be read: a stage has its own.
          gpu.block.syncThreads(1, 256);
          gpu.beginQueries(sumsQ, lines, slopeLine, ownLine);
          gpu.beginGradient(sumsV, lines, FIRST_SHARE, FIRST_OUT + ownLine);
          gpu.beginGradient(sumsK, lines, slopeLine, lineQ + ownLine);
          gpu.unroll();
          for (let half = 0; half < HALF; half++) {
            if (half === 0) gpu.group.wait(2);
            else {
              gpu.group.wait(0);
              if (thread === 0) {
                gpu.barrier.arrive(bars, EMPTY_QUERIES + stage);
                gpu.tensor.waitRead(0);
              }
              gpu.block.syncThreads(warpGroup + 2, 128);
            }
            gpu.unroll();
            for (let j = 0; j < 8; j++) {
              gpu.unroll();
              for (let e = 0; e < 4; e++)
                sumLines[writtenLine + j * 16]![writtenPlace + e] = sumsQ[j * 4 + e]!;
            }
            gpu.fence.async();
            gpu.block.syncThreads(warpGroup + 2, 128);
            if (thread === 0) {
              gpu.tensor.add(
                sums,
                sumLines,
                sumLine,
                128,
                matrix * group + turn,
                tile * (CHANNELS * 2) + (warpGroup * HALF + half) * 128,
                0,
              );
              gpu.tensor.commit();
            }
            if (half === 0) {
              gpu.beginQueries(sumsQ, lines, slopeLine, ownLine + 64);
              // The products with gradients of results are complete.
              gpu.group.wait(2);
              if (thread === 0) gpu.barrier.arrive(bars, EMPTY_OUT);
            }
          }
          stage++;
          if (stage === STAGES) {
            stage = 0;
            parity ^= 1;
          }
        }
      }

      // The results take the place of keys and values, which the products of both have read.
      gpu.block.syncThreads(1, 256);
      const line = ownLine + warp * 16 + (lane & 15);
      gpu.unroll();
      for (let part = 0; part < CHANNELS / 32; part++) {
        const place = (((part & 3) * 2 + (lane >> 4)) ^ (lane & 7)) * 8;
        const packedK = gpu.packed();
        const packedV = gpu.packed();
        gpu.unroll();
        for (let i = 0; i < 8; i++) {
          packedK[i] = sumsK[part * 8 + i]! * scale;
          packedV[i] = sumsV[part * 8 + i]!;
        }
        gpu.warp.storeMatrices(lines[line + (part >> 2) * 64]!, place, packedK);
        gpu.warp.storeMatrices(lines[FIRST_VALUE + line + (part >> 2) * 64]!, place, packedV);
      }
      gpu.fence.async();
      gpu.block.syncThreads(warpGroup + 2, 128);
      if (thread === 0) {
        gpu.unroll();
        for (let c = 0; c < HALF; c++) {
          const from = ownLine + c * 64;
          const channel = (warpGroup * HALF + c) * 64;
          gpu.tensor.store(dk, lines, from, 64, batch, shared, top, channel);
          gpu.tensor.store(dv, lines, FIRST_VALUE + from, 64, batch, shared, top, channel);
        }
        gpu.tensor.commit();
        gpu.tensor.waitRead(0);
      }
    }
  },
);

/** Gives the kernel for a form of 256 channels. Its plan has 64 queries and 64 keys. */
export function halvedAttentionBackward(form: BackwardForm): Launchable {
  const { plan, dtype, channels, causal, window, masked = false } = form;
  return gradients.member(backwardKeyOf(form), () => {
    // Half of a step's queries have their scores in a group.
    const masking = { ROWS: 32, CAUSAL: causal, WINDOW: window };
    const COUNT = halvedLinesOf(plan, channels, masked);
    return {
      signature: backwardSignature(form),
      uses: {
        CHANNELS: channels,
        STAGES: plan.stages,
        FEWER: 24,
        MORE: 240,
        CAUSAL: causal,
        WINDOW: window,
        MASKED: masked,
        ...arraysOf(dtype.name, { COUNT, PARTS: 1 }),
        sumLines: sumLinesIn(COUNT),
        beginHalf: beginHalfOf({ CHANNELS: channels }),
        beginGradient,
        beginQueries,
        addMask: addTransposedMaskOf(dtype.name, { ROWS: 32, KEYS: 64 }),
        mask: maskOf(masking),
      },
      block: THREADS,
    };
  });
}
