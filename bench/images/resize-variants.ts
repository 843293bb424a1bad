/**
 * Compares kernels that reduce photographs: `linear` of u8 with three channels, 1920 × 1080 to 640
 * × 640, each variant's time with NPP's. The bytes have to be those of `bytes`.
 *
 *     npx tsx bench/images/resize-variants.ts [images=32] [device]
 *
 * Runs the sources, not the built package. The goal is 0.833 of NPP's time; reading and writing
 * alone takes 0.05 ms for 32 images on an H200 (238 MB at 4.8 TB/s). The limit is not the memory
 * but the cache of a multiprocessor, which looks up a line of 128 bytes at a time: neighbouring
 * pixels of the result lie 9 bytes apart in the source, so that a warp's load of one byte for each
 * of 32 pixels takes three of them, and 12 such loads make 36 for 32 pixels. The variants differ in
 * the number of lookups:
 *
 * | variant | a thread has | lines looked up for 128 pixels of a row (loads and stores) |
 * |---|---|---|
 * | bytes | a pixel of a few rows, byte by byte | 144 + 12 |
 * | words | a pixel of a few rows, three words of two neighbours | 72 + 12 |
 * | fours | four pixels of a few rows, three words of two neighbours, three stores | 216 + 9 |
 * | tile | four pixels of a few rows, read from shared memory | 18, 24 of shared memory, + 9 |
 *
 * resize(…) does what `bytes` does where images are not aligned to words, and else what `fours`
 * does (src/images/resize-fours.ts). In `tile` the block first reads its pixels into shared memory
 * in units of 16 bytes; a group of four is 9 words there, so that reads have no bank conflicts.
 *
 * On an H200 `fours` with 4 rows and blocks of 32 is the fastest, 0.075 ms, though it looks up the
 * most lines: it has the fewest loads and stores of global memory for a pixel but for `tile`, which
 * takes 0.084 ms. All but the first also save conversions: a byte becomes a float as the last bits
 * of 2²³ (see STORES in src/images/sampling.ts).
 */
import { Device, u8 } from '../../src/index.js';
import type { AnyTensor, DeviceOp } from '../../src/index.js';
import { i32, u32 } from '../../src/core/index.js';
import { input, output } from '../../src/kernels/index.js';
import { KernelFamily } from '../../src/library/kernel-family.js';
import type { Gpu, Input, Launchable, Output } from '../../src/library/kernel-family.js';
import { operation } from '../../src/library/operation.js';
import type { Work } from '../../src/library/operation.js';
import { imageOf } from '../../src/images/image.js';
import type { Image } from '../../src/images/image.js';
import { resize } from '../../src/images/index.js';
import { queueFours } from '../../src/images/resize-fours.js';
import { proportionsOf } from '../../src/images/proportions.js';
import { queueResize } from '../../src/images/resizing.js';
import { Programs } from '../peers/programs.js';
import { CHANNELS, FROM_HEIGHT, FROM_WIDTH, TO, noise } from './pictures.js';

const SAMPLES = 9;
const RUNS = 20;

/** Pitches are in words. */
interface Args {
  readonly out: Output;
  readonly x: Input;
  readonly width: number;
  readonly height: number;
  readonly outRow: number;
  readonly outImage: number;
  readonly columns: number;
  readonly rows: number;
  readonly inRow: number;
  readonly inImage: number;
  /** Sizes divided by their common divisor. */
  readonly fromX: number;
  readonly toX: number;
  readonly fromY: number;
  readonly toY: number;
}

interface VariantGpu extends Gpu {
  readonly ROWS: number;
}

const words = new KernelFamily(
  'variant_words',
  (
    {
      out,
      x,
      width,
      height,
      outRow,
      outImage,
      columns,
      rows,
      inRow,
      inImage,
      fromX,
      toX,
      fromY,
      toY,
    }: Args,
    gpu: VariantGpu,
  ) => {
    const column = gpu.globalId.x;
    if (column >= width) return;
    const z = gpu.blockIdx.z;
    const top = gpu.blockIdx.y * gpu.ROWS;
    const overX = (2 * column + 1) * fromX - toX;
    const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
    const fraction = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
    // At the edges both neighbours are inside and one has all the weight, which gives the same
    // bits.
    const fx = wholeX < 0 ? 0 * fraction : wholeX > columns - 2 ? 0 * fraction + 1 : fraction;
    const byte = Math.max(Math.min(wholeX, columns - 2), 0) * 3;
    const first = z * inImage + (byte >> 2);
    const last = z * inImage + ((byte + 5) >> 2);
    const shift = (byte & 3) * 8;
    gpu.unroll(gpu.ROWS);
    for (let r = 0; r < gpu.ROWS; r++) {
      if (top + r < height) {
        const overY = (2 * (top + r) + 1) * fromY - toY;
        const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
        const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
        const above = Math.max(wholeY, 0) * inRow;
        const below = Math.min(wholeY + 1, rows - 1) * inRow;
        const a1 = gpu.u64(x[above + first + 1]!);
        const b1 = gpu.u64(x[below + first + 1]!);
        const aLow = gpu.u32(((a1 << 32) | gpu.u64(x[above + first]!)) >>> shift);
        const aHigh = gpu.u32(((gpu.u64(x[above + last]!) << 32) | a1) >>> shift);
        const bLow = gpu.u32(((b1 << 32) | gpu.u64(x[below + first]!)) >>> shift);
        const bHigh = gpu.u32(((gpu.u64(x[below + last]!) << 32) | b1) >>> shift);
        gpu.unroll(3);
        for (let c = 0; c < 3; c++) {
          const a = gpu.fromBits(((aLow >>> (8 * c)) & 255) | 0x4b000000);
          const b = gpu.fromBits(
            ((c === 0 ? aLow >>> 24 : aHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
          );
          const d = gpu.fromBits(((bLow >>> (8 * c)) & 255) | 0x4b000000);
          const e = gpu.fromBits(
            ((c === 0 ? bLow >>> 24 : bHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
          );
          const upper = a - 8388608 + Math.fround(fx * (b - a));
          const lower = d - 8388608 + Math.fround(fx * (e - d));
          out[z * outImage + (top + r) * outRow + column * 3 + c] = gpu.i32(
            gpu.bits(upper + Math.fround(fy * (lower - upper)) + 12582912) & 255,
          );
        }
      }
    }
  },
);

interface TileGpu extends VariantGpu {
  readonly WARPS: number;
  /** Rows of the source and words of each that a block reads, at most; words in fours. */
  readonly DEPTH: number;
  readonly SPAN: number;
}

/** Blocks have 128 columns and ROWS rows. Rows of the source lie at multiples of 16 bytes. */
const tile = new KernelFamily(
  'variant_tile',
  (
    {
      out,
      x,
      width,
      height,
      outRow,
      outImage,
      columns,
      rows,
      inRow,
      inImage,
      fromX,
      toX,
      fromY,
      toY,
    }: Args,
    gpu: TileGpu,
  ) => {
    const read = gpu.shared.u32(gpu.DEPTH, gpu.SPAN);
    const places = gpu.shared.i32(4, 32);
    const shares = gpu.shared.f32(4, 32);
    const t = gpu.threadIdx.x;
    const z = gpu.blockIdx.z;
    const top = gpu.blockIdx.y * gpu.ROWS;
    const column = gpu.blockIdx.x * 128;
    const firstX = ((2 * column + 1) * fromX - toX + 2 * toX) / (2 * toX) - 1;
    const begin = ((Math.max(Math.min(firstX, columns - 2), 0) * 3) / 16) * 4;
    const firstY = Math.max(((2 * top + 1) * fromY - toY + 2 * toY) / (2 * toY) - 1, 0);
    const bottom = Math.min(top + gpu.ROWS, height) - 1;
    const lastY = Math.min(((2 * bottom + 1) * fromY - toY + 2 * toY) / (2 * toY), rows - 1);
    const from = z * inImage + firstY * inRow + begin;
    for (let i = t; i < (lastY - firstY + 1) * (gpu.SPAN / 4); i += gpu.WARPS * 32) {
      const line = i / (gpu.SPAN / 4);
      const word = (i % (gpu.SPAN / 4)) * 4;
      if (begin + word < inRow) gpu.async.copy(read[line]!, word, x, from + line * inRow + word, 4);
    }
    gpu.async.commit();
    // Meanwhile the source of each column is computed, once for all of the block's rows.
    if (t < 128) {
      const overX = (2 * (column + t) + 1) * fromX - toX;
      const wholeX = (overX + 2 * toX) / (2 * toX) - 1;
      const fraction = gpu.f32(overX - wholeX * 2 * toX) / gpu.f32(2 * toX);
      places[t & 3]![t >> 2] = Math.max(Math.min(wholeX, columns - 2), 0) * 3 - begin * 4;
      shares[t & 3]![t >> 2] =
        wholeX < 0 ? 0 * fraction : wholeX > columns - 2 ? 0 * fraction + 1 : fraction;
    }
    gpu.async.wait(0);
    gpu.block.sync();
    const { lane } = gpu;
    if (column + lane * 4 < width) {
      for (let row = top + gpu.warpIdx; row <= bottom; row += gpu.WARPS) {
        const overY = (2 * row + 1) * fromY - toY;
        const wholeY = (overY + 2 * toY) / (2 * toY) - 1;
        const fy = gpu.f32(overY - wholeY * 2 * toY) / gpu.f32(2 * toY);
        const above = Math.max(wholeY, 0) - firstY;
        const below = Math.min(wholeY + 1, rows - 1) - firstY;
        const made = gpu.local.u32(3);
        gpu.unroll(4);
        for (let p = 0; p < 4; p++) {
          const byte = places[p]![lane]!;
          const fx = shares[p]![lane]!;
          const first = byte >> 2;
          const last = (byte + 5) >> 2;
          const shift = (byte & 3) * 8;
          const a1 = gpu.u64(read[above]![first + 1]!);
          const b1 = gpu.u64(read[below]![first + 1]!);
          const aLow = gpu.u32(((a1 << 32) | gpu.u64(read[above]![first]!)) >>> shift);
          const aHigh = gpu.u32(((gpu.u64(read[above]![last]!) << 32) | a1) >>> shift);
          const bLow = gpu.u32(((b1 << 32) | gpu.u64(read[below]![first]!)) >>> shift);
          const bHigh = gpu.u32(((gpu.u64(read[below]![last]!) << 32) | b1) >>> shift);
          gpu.unroll(3);
          for (let c = 0; c < 3; c++) {
            const a = gpu.fromBits(((aLow >>> (8 * c)) & 255) | 0x4b000000);
            const b = gpu.fromBits(
              ((c === 0 ? aLow >>> 24 : aHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
            );
            const d = gpu.fromBits(((bLow >>> (8 * c)) & 255) | 0x4b000000);
            const e = gpu.fromBits(
              ((c === 0 ? bLow >>> 24 : bHigh >>> (8 * (c - 1))) & 255) | 0x4b000000,
            );
            const upper = a - 8388608 + Math.fround(fx * (b - a));
            const lower = d - 8388608 + Math.fround(fx * (e - d));
            const n = p * 3 + c;
            made[n >> 2] =
              made[n >> 2]! |
              ((gpu.bits(upper + Math.fround(fy * (lower - upper)) + 12582912) & 255) <<
                (8 * (n & 3)));
          }
        }
        const to = z * outImage + row * outRow + (column / 4) * 3 + lane * 3;
        gpu.unroll(3);
        for (let w = 0; w < 3; w++) out[to + w] = made[w]!;
      }
    }
  },
);

const [images, deviceName] = [Number(process.argv[2] ?? 32), process.argv[3]];
await using device = await (deviceName === undefined
  ? Device.open()
  : Device.open(deviceName as 'cpu'));
const { stream } = device.core;
const image = await device.tensor(u8, noise(images), [images, FROM_HEIGHT, FROM_WIDTH, CHANNELS]);
const out = await device.zeros(u8, [images, TO, TO, CHANNELS]);

/** Queues with `out` as the result. */
function queued(queue: (work: Work, image: Image, out: Image) => void): DeviceOp<unknown> {
  return operation('resize', [image, out], () => (work) => {
    queue(work, imageOf('resize', 'image', image), imageOf('resize', 'out', out));
  });
}

const bytes = queued((work, from, to) => {
  queueResize(work, from, to, 'linear', false);
});
await bytes.runOn(stream);
const expected = await out.read();

const proportions = proportionsOf(
  { width: FROM_WIDTH, height: FROM_HEIGHT },
  { width: TO, height: TO },
);

const flat = (tensor: AnyTensor): AnyTensor => tensor.reshape([tensor.size] as never);
const asWords = (tensor: AnyTensor): AnyTensor => flat(tensor).reinterpret(u32);
const sizes = {
  width: TO,
  height: TO,
  columns: FROM_WIDTH,
  rows: FROM_HEIGHT,
  inRow: (FROM_WIDTH * CHANNELS) / 4,
  inImage: (FROM_HEIGHT * FROM_WIDTH * CHANNELS) / 4,
  ...proportions,
};
const NUMBERS = Object.fromEntries(
  [...Object.keys(sizes), 'outRow', 'outImage'].map((name) => [name, i32]),
);

interface Variant {
  readonly name: string;
  readonly op: DeviceOp<unknown>;
}

function variant(
  name: string,
  family: KernelFamily<Args, never>,
  uses: Readonly<Record<string, number>>,
  block: number,
  grid: readonly [number, number],
  byWords: boolean,
): Variant {
  const key = [...Object.values(uses), block].join('_');
  const launch: Launchable = family.member(key, () => ({
    signature: { out: output(byWords ? u32 : u8), x: input(u32), ...NUMBERS },
    uses,
    block,
  }));
  const pitches = byWords
    ? { outRow: (TO * CHANNELS) / 4, outImage: (TO * TO * CHANNELS) / 4 }
    : { outRow: TO * CHANNELS, outImage: TO * TO * CHANNELS };
  return {
    name: `${name}, ${Object.entries(uses)
      .map((pair) => pair.join(' '))
      .join(', ')}, blocks of ${block}`,
    op: launch(
      { out: byWords ? asWords(out) : flat(out), x: asWords(image), ...sizes, ...pitches },
      { grid: [...grid, images] },
    ),
  };
}

/** A tile's rows and words for the given number of rows of the result, and 128 columns. */
function tileOf(rows: number): { DEPTH: number; SPAN: number } {
  const bytes = Math.ceil((128 * FROM_WIDTH) / TO + 2) * CHANNELS + 15;
  return { DEPTH: Math.ceil((rows * FROM_HEIGHT) / TO) + 2, SPAN: Math.ceil(bytes / 16) * 4 };
}

const variants: readonly Variant[] = [
  { name: 'resize(…)', op: resize(image, { out }) },
  { name: 'bytes', op: bytes },
  ...[64, 128, 256].flatMap((block) =>
    [1, 2, 4, 8].map((ROWS) =>
      variant(
        'words',
        words,
        { ROWS },
        block,
        [Math.ceil(TO / block), Math.ceil(TO / ROWS)],
        false,
      ),
    ),
  ),
  ...[32, 64].flatMap((block) =>
    [1, 2, 4].map((rows) => ({
      name: `fours, ROWS ${rows}, blocks of ${block}`,
      op: queued((work, from, to) => {
        queueFours(work, from, to, proportionsOf(from, to), { rows, block });
      }),
    })),
  ),
  ...[4, 8].flatMap((WARPS) =>
    [4, 8, 16]
      .filter((ROWS) => ROWS >= WARPS)
      .map((ROWS) =>
        variant(
          'tile',
          tile,
          { ROWS, WARPS, ...tileOf(ROWS) },
          WARPS * 32,
          [Math.ceil(TO / 128), Math.ceil(TO / ROWS)],
          true,
        ),
      ),
  ),
];

/** ms: the median. @throws Error where bytes differ from those of `bytes` */
async function measure({ op }: Variant): Promise<number> {
  await out.fill(0);
  await op.runOn(stream);
  const made = await out.read();
  if (Buffer.compare(made, expected) !== 0) {
    const at = made.findIndex((value, i) => value !== expected[i]);
    throw new Error(`element ${at} is ${made[at]}, not ${expected[at]}`);
  }
  const times: number[] = [];
  for (let k = 0; k < (device.kind === 'cuda' ? SAMPLES : 1); k++) {
    const runs = device.kind === 'cuda' ? RUNS : 1;
    const [begin, end] = [device.core.createEvent(), device.core.createEvent()];
    stream.record(begin);
    const queued = Array.from({ length: runs }, () => op.runOn(stream));
    stream.record(end);
    times.push((await begin.elapsed(end)) / runs);
    await Promise.all(queued);
    begin.close();
    end.close();
  }
  return times.sort((a, b) => a - b)[times.length >> 1]!;
}

const programs = new Programs(device.kind === 'cuda' ? device.ordinal : undefined);
let best = NaN;
for (const measurement of ['resize-each', 'resize-batch']) {
  try {
    const { samples } = await (
      await programs.get('NPP')
    ).round(`${measurement} ${SAMPLES} ${images} ${RUNS}`);
    const time = [...samples].sort((a, b) => a - b)[samples.length >> 1]!;
    best = Number.isNaN(best) ? time : Math.min(best, time);
    console.log(`NPP, ${measurement}: ${time.toFixed(4)} ms`);
  } catch (error) {
    console.log(`NPP, ${measurement}: absent: ${(error as Error).message}`);
  }
}
for (const each of variants) {
  try {
    const time = await measure(each);
    console.log(
      `${each.name.padEnd(64)} ${time.toFixed(4).padStart(9)} ms  ` +
        `${Number.isNaN(best) ? '' : `${(time / best).toFixed(3)} of NPP`}`,
    );
  } catch (error) {
    console.log(`${each.name}: FAILED: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
await programs.close();
image.close();
out.close();
