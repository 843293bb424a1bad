/**
 * A thousand photographs from JPEG to a network's input, and back on the host: decoded by sharp,
 * uploaded, put into a letterbox and normalised, downloaded, several at a time; and only decoded,
 * by nvJPEG compared with sharp. Measured are photographs per second, the share of the device's
 * work that overlaps decoding, and how long the event loop is blocked meanwhile, compared with an
 * idle loop. Photographs are the demo's, in several sizes and crops.
 */
import { readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';

import type { Device } from 'async-cuda';
import type { PinnedBuffer } from 'async-cuda/core';

import type { Benchmark, Contender, LocalPeer, Setup } from '../benchmark.js';
import { core, imageLibrary, root } from '../library.js';
import { longestGaps } from '../loop-gaps.js';

const PHOTOGRAPHS = 1000;
/**
 * Photographs in flight: libuv decodes four of them, the others are on the device or being copied.
 */
const AT_ONCE = 8;
const WIDTHS = [640, 1024, 1600, 2400];
const CUTS = 4;
const TO = {
  width: 640,
  height: 640,
  color: 114,
  mean: [0.485, 0.456, 0.406],
  deviation: [0.229, 0.224, 0.225],
} as const;
/** Duration of the idle loop, about as long as the photographs take. */
const IDLE_MS = 4000;
/**
 * The time before is no steady state: a forced garbage collection, and code that is recompiled
 * after it.
 */
const SETTLE_MS = 300;
const WINDOW_MS = 100;
const MOST_WINDOWS = 1000;

/** The part of sharp that is used. */
interface Sharp {
  (data: Uint8Array): {
    extract(region: { left: number; top: number; width: number; height: number }): {
      resize(width: number): {
        jpeg(options: { quality: number }): { toBuffer(): Promise<Uint8Array> };
      };
    };
    metadata(): Promise<{ width: number; height: number }>;
  };
}

async function photographs(): Promise<Uint8Array[]> {
  const { default: sharp } = (await import('sharp')) as unknown as { default: Sharp };
  const picture = await readFile(new URL('../../demo/images/coffee.png', import.meta.url));
  const { width, height } = await sharp(picture).metadata();
  const cuts = Array.from({ length: CUTS }, (_, i) => ({
    left: i * 8,
    top: i * 4,
    width: width - CUTS * 8,
    height: height - CUTS * 4,
  }));
  return Promise.all(
    WIDTHS.flatMap((to) =>
      cuts.map((cut) => sharp(picture).extract(cut).resize(to).jpeg({ quality: 90 }).toBuffer()),
    ),
  );
}

/** A span of time, in milliseconds of one clock. */
type Span = readonly [begin: number, end: number];

/** Spans that do not overlap, in order. */
function united(spans: readonly Span[]): Span[] {
  const made: [number, number][] = [];
  for (const [begin, end] of [...spans].sort(([a], [b]) => a - b)) {
    const before = made.at(-1);
    if (before !== undefined && begin <= before[1]) before[1] = Math.max(before[1], end);
    else made.push([begin, end]);
  }
  return made;
}

const length = (spans: readonly Span[]): number =>
  spans.reduce((sum, [begin, end]) => sum + end - begin, 0);

function intersection(a: readonly Span[], b: readonly Span[]): number {
  // The overlap, by the union of the sets.
  return length(united(a)) + length(united(b)) - length(united([...a, ...b]));
}

class Photographs {
  private readonly device: Device;
  private readonly jpegs: readonly Uint8Array[];
  /** The host buffer of each photograph in flight. */
  private readonly places: readonly PinnedBuffer<'f16'>[];
  private sums: readonly number[] = [];

  private constructor(
    device: Device,
    jpegs: readonly Uint8Array[],
    places: readonly PinnedBuffer<'f16'>[],
  ) {
    this.device = device;
    this.jpegs = jpegs;
    this.places = places;
  }

  /** The expected result of each photograph, one after the other. */
  static async open(device: Device): Promise<Photographs> {
    const places = await Promise.all(
      Array.from({ length: AT_ONCE }, () => device.pinned(core.f16, 3 * TO.height * TO.width)),
    );
    const made = new Photographs(device, await photographs(), places);
    const sums: number[] = [];
    for (const [i] of made.jpegs.entries()) sums.push(await made.one(i, made.places[0]!, []));
    if (new Set(sums).size < sums.length / 2)
      throw new Error('photographs that differ gave the same');
    made.sums = sums;
    return made;
  }

  /** From JPEG to words on the host; returns a number that identifies wrong ones. */
  private async one(index: number, place: PinnedBuffer<'f16'>, decodes: Span[]): Promise<number> {
    const begin = performance.now();
    // By sharp, also where nvJPEG is installed: the rows are the same on machines without it.
    await imageLibrary
      .decodeImage(this.device, this.jpegs[index % this.jpegs.length]!, { engine: 'sharp' })
      .tap(() => {
        decodes.push([begin, performance.now()]);
      })
      .andThen((image) => imageLibrary.letterboxNormalise(image, TO))
      .andThen((input) => input.readTo(place));
    const words = place.bits();
    let sum = 0;
    for (let i = 0; i < words.length; i += 997) sum += Number(words[i]);
    return sum;
  }

  /** Runs all of them; returns when each was decoded. */
  async run(count: number): Promise<Span[]> {
    const decodes: Span[] = [];
    let next = 0;
    const worker = async (place: PinnedBuffer<'f16'>): Promise<void> => {
      for (let i = next++; i < count; i = next++) {
        if ((await this.one(i, place, decodes)) !== this.sums[i % this.jpegs.length])
          throw new Error(`photograph ${i} gave something else than by itself`);
      }
    };
    await Promise.all(this.places.map(worker));
    return decodes;
  }

  async close(): Promise<void> {
    await Promise.all(this.places.map((place) => place.close()));
  }

  /**
   * The share of the device's work that overlaps decoding, and the share of the time in which it
   * works, in percent: with fewer photographs, since a trace takes time.
   */
  async overlap(count: number): Promise<{ beside: number; busy: number }> {
    const begun = performance.now();
    const recording = this.device.recordTrace();
    const decodes = (await this.run(count)).map(([begin, end]): Span => [
      begin - begun,
      end - begun,
    ]);
    const ended = performance.now() - begun;
    const { traceEvents } = (await recording.stop()).toJSON();
    const work = traceEvents
      .filter(({ ph, pid }) => ph === 'X' && pid === 2)
      .map(({ ts = 0, dur = 0 }): Span => [ts / 1000, (ts + dur) / 1000]);
    const busy = length(united(work));
    return { beside: (100 * intersection(work, decodes)) / busy, busy: (100 * busy) / ended };
  }
}

const start = async (
  { device, count }: Setup,
  sample: (
    photographs: Photographs,
    number: number,
  ) => Promise<{ samples: number[]; notes: Record<string, number> }>,
): Promise<Contender> => {
  const made = await Photographs.open(root.Device.of(device));
  return { round: () => sample(made, count(PHOTOGRAPHS)), close: () => made.close() };
};

/** The longest of all: a bar of five milliseconds exceeds the gaps of an idle loop on a machine. */
const longestGap = async (work: () => Promise<unknown>): Promise<number> =>
  Math.max(
    ...(await longestGaps(work, {
      settleMs: SETTLE_MS,
      windowMs: WINDOW_MS,
      windows: MOST_WINDOWS,
    })),
  );

const idle: LocalPeer = {
  name: 'Node with nothing to do',
  start: ({ count }) =>
    Promise.resolve({
      round: async () => ({
        samples: [
          await longestGap(
            () =>
              new Promise((resolve) => {
                setTimeout(resolve, Math.max(count(IDLE_MS), SETTLE_MS + 2 * WINDOW_MS));
              }),
          ),
        ],
      }),
    }),
};

/** JPEGs to images on the device and nothing else. */
async function decodingBy(
  engine: 'nvjpeg' | 'sharp',
  { device, count }: Setup,
): Promise<Contender> {
  const [lazy, jpegs] = [root.Device.of(device), await photographs()];
  const meanBy = async (by: 'nvjpeg' | 'sharp'): Promise<number> => {
    const bytes = await imageLibrary
      .decodeImage(lazy, jpegs[0]!, { engine: by })
      .andThen((image) => image.read());
    return (bytes as Uint8Array).reduce((sum, byte) => sum + byte, 0) / bytes.length;
  };
  // A photograph that is decoded to black would be fast.
  const [mean, wanted] = [await meanBy(engine), await meanBy('sharp')];
  if (Math.abs(mean - wanted) > 2)
    throw new Error(`${engine} gives a mean of ${mean}, sharp of ${wanted}`);
  const run = async (number: number): Promise<void> => {
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < number; i = next++)
        (await imageLibrary.decodeImage(lazy, jpegs[i % jpegs.length]!, { engine })).close();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  };
  await run(jpegs.length);
  return {
    round: async () => {
      const number = count(PHOTOGRAPHS);
      const begin = performance.now();
      const { user, system } = process.cpuUsage();
      await run(number);
      const ms = performance.now() - begin;
      const used = process.cpuUsage({ user, system });
      return {
        samples: [(number / ms) * 1000],
        notes: { 'processor time of one, ms': (used.user + used.system) / 1000 / number },
      };
    },
  };
}

const sharpDecoding: LocalPeer = {
  name: 'the same by sharp, uploaded',
  start: (setup) => decodingBy('sharp', setup),
};

const decoding: Benchmark = {
  area: 'images',
  name: '1000 JPEGs to images on the device by nvJPEG',
  unit: '1/s',
  statistic: 'median',
  peers: [sharpDecoding],
  rounds: 3,
  start: (setup) => decodingBy('nvjpeg', setup),
};

const rate: Benchmark = {
  area: 'images',
  name: '1000 photographs: decode, upload, preprocess, download',
  unit: '1/s',
  statistic: 'median',
  peers: [],
  rounds: 3,
  start: (setup) =>
    start(setup, async (made, number) => {
      const begin = performance.now();
      await made.run(number);
      const value = (number / (performance.now() - begin)) * 1000;
      const { beside, busy } = await made.overlap(Math.ceil(number / 5));
      return {
        samples: [value],
        notes: { "device's work beside decoding, %": beside, 'device at work, %': busy },
      };
    }),
};

const stall: Benchmark = {
  area: 'images',
  name: 'longest event-loop stall, 1000 photographs',
  unit: 'ms',
  statistic: 'longest',
  bar: '<= 5',
  peers: [idle],
  rounds: 2,
  start: (setup) =>
    start(setup, async (made, number) => ({
      samples: [await longestGap(() => made.run(number))],
      notes: { photographs: number },
    })),
};

export const photographsBenchmarks: readonly Benchmark[] = [rate, stall, decoding];
