/**
 * Statistics by NPP: each call takes scratch memory, and another function gives the number of its
 * bytes.
 */
import { i32, u8 } from '../../core/index.js';
import type { MemoryPlace } from '../../core/index.js';
import type { Work } from '../../library/operation.js';
import type { Run } from '../../ops/run.js';
import { whenLoaded } from '../../tensor/loaded-kernels.js';
import type { KernelTensor } from '../../tensor/index.js';
import type { Image } from '../image.js';
import { nppName } from './functions.js';
import type { Npp } from './library.js';
import { addCalls, formOf, isInteger, pixels, sizeOf, stepOf } from './step.js';
import type { Implementation } from '../implementation.js';
import type { Counting } from '../parameters.js';

const USUAL = { u8: [1, 3, 4], u16: [1, 3, 4], f32: [1, 3, 4] } as const;

/** Bytes by function and size: that call takes a turn of the runtime thread. */
const known = new WeakMap<Npp, Map<string, number>>();

/** Adds calls with scratch memory, whose size function `name` gives for an image and `more`. */
function addScratched(
  work: Work,
  image: Image,
  name: string,
  more: readonly (number | Int32Array)[],
  queue: (npp: Npp, run: Run, scratch: MemoryPlace) => void,
): void {
  addCalls(work, image, (npp, run) => {
    const sizes = known.get(npp) ?? new Map<string, number>();
    known.set(npp, sizes);
    const key = [name, image.width, image.height, ...more.map((each) => each.toString())].join(' ');
    const bytes = sizes.get(key);
    const asked =
      bytes === undefined
        ? npp.bytes(run.stream, name, [sizeOf(image), ...more])
        : Promise.resolve(bytes);
    return whenLoaded(
      run,
      bytes,
      asked,
      { what: `the size from ${name}`, fix: 'await such an operation once before' },
      (size) => {
        sizes.set(key, size);
        const scratch = run.alloc(u8, Math.max(size, 1));
        try {
          queue(npp, run, { buffer: scratch, byteOffset: 0 });
        } finally {
          // Memory that a recording allocates belongs to the graph.
          if (!run.recording) scratch.close();
        }
        return undefined;
      },
    );
  });
}

/** Element `index` of a contiguous tensor. */
function placeIn({ buffer, layout, dtype }: KernelTensor, index: number): MemoryPlace {
  return { buffer, byteOffset: (layout.offset + index) * dtype.bytes };
}

function totals(name: 'Sum' | 'Mean'): Implementation<object> {
  return {
    takes: USUAL,
    queue(work, { images: [given], results: [result] }) {
      const image = given!;
      addScratched(
        work,
        image,
        nppName(`${name}GetBufferHostSize`, formOf(image)),
        [],
        (npp, { stream }, scratch) => {
          for (let i = 0; i < image.batch; i++)
            npp.call(stream, nppName(name, formOf(image)), [
              pixels(image, i),
              stepOf(image),
              sizeOf(image),
              scratch,
              placeIn(result!, i * image.channels),
            ]);
        },
      );
    },
  };
}

export const nppSums = totals('Sum');
export const nppMeans = totals('Mean');

/**
 * NPP does not specify which of several equal elements it gives the position of. u8 is not taken:
 * on an H200 NPP 13's MinIndx gave the position of another element for the least one of the first
 * channel.
 */
export const nppExtremes: Implementation<object> = {
  takes: { u16: USUAL.u16, f32: USUAL.f32 },
  queue(work, { images: [given], results }) {
    const image = given!;
    const { batch, channels } = image;
    const [min, max, minAt, maxAt] = results as [
      KernelTensor,
      KernelTensor,
      KernelTensor,
      KernelTensor,
    ];
    for (const [name, values, places] of [
      ['MinIndx', min, minAt],
      ['MaxIndx', max, maxAt],
    ] as const) {
      const [columns, rows] = [0, 1].map(
        () => work.temporary(i32, [batch * channels]) as unknown as KernelTensor,
      ) as [KernelTensor, KernelTensor];
      addScratched(
        work,
        image,
        nppName(`${name}GetBufferHostSize`, formOf(image)),
        [],
        (npp, { stream }, scratch) => {
          for (let i = 0; i < batch; i++) {
            const at = i * channels;
            npp.call(stream, nppName(name, formOf(image)), [
              pixels(image, i),
              stepOf(image),
              sizeOf(image),
              scratch,
              placeIn(values, at),
              placeIn(columns, at),
              placeIn(rows, at),
            ]);
          }
        },
      );
      const pairs = places.reshape([batch * channels, 2] as never) as KernelTensor & {
        slice(...indices: unknown[]): KernelTensor;
      };
      work.add(pairs.slice([0, batch * channels], 0).copyFrom(rows));
      work.add(pairs.slice([0, batch * channels], 1).copyFrom(columns));
    }
  },
};

/** The same number for each channel, as an argument of NPP. */
function forEach({ channels }: Image, value: number): number | Int32Array {
  return channels === 1 ? value : Int32Array.from({ length: channels }, () => value);
}

export const nppHistogram: Implementation<Counting> = {
  takes: { u8: [1, 3, 4], u16: [1, 3, 4] },
  lacks({ images: [image], parameters: { bins, from, to } }) {
    // NPP rounds the levels between bins to whole numbers, and counts values that equal the last
    // level.
    if (
      !isInteger(image!) ||
      !Number.isInteger(from) ||
      !Number.isInteger(to) ||
      (to - from) % bins !== 0
    )
      return 'no bins but those of a whole number of values';
    return to < 2 ** (8 * image!.dtype.bytes)
      ? `no range that ends before the greatest ${image!.dtype.name}`
      : undefined;
  },
  queue(work, { images: [given], results: [result], parameters: { bins, from, to } }) {
    const image = given!;
    const levels = forEach(image, bins + 1);
    addScratched(
      work,
      image,
      nppName('HistogramEvenGetBufferSize', formOf(image)),
      [levels],
      (npp, { stream }, scratch) => {
        for (let i = 0; i < image.batch; i++) {
          const places = Array.from({ length: image.channels }, (_, c) =>
            placeIn(result!, (i * image.channels + c) * bins),
          );
          npp.call(stream, nppName('HistogramEven', formOf(image)), [
            pixels(image, i),
            stepOf(image),
            sizeOf(image),
            image.channels === 1 ? places[0]! : places,
            levels,
            forEach(image, from),
            forEach(image, to),
            scratch,
          ]);
        }
      },
    );
  },
};
