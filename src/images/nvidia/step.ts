/** Calls of NPP as steps of an operation, and images as their arguments. */
import type { KernelDType, LibraryArgument, MemoryPlace } from '../../core/index.js';
import { Made } from '../../ops/collect.js';
import { DeviceOp } from '../../ops/device-op.js';
import type { Submitted } from '../../ops/node.js';
import type { Run } from '../../ops/run.js';
import type { Work } from '../../library/operation.js';
import { whenLoaded } from '../../tensor/loaded-kernels.js';
import type { KernelTensor } from '../../tensor/index.js';
import type { Image, ImageName } from '../image.js';
import type { Element } from './functions.js';
import { openNpp, openedNpp } from './library.js';
import type { Npp } from './library.js';

/**
 * Adds calls of NPP, which is opened where it is not open. `queue` makes the calls on the run's
 * stream.
 */
export function addCalls(
  work: Work,
  { tensor }: { readonly tensor: KernelTensor },
  queue: (npp: Npp, run: Run) => Submitted<unknown>,
): void {
  const { device } = tensor;
  work.add(
    new DeviceOp(
      new Made<unknown>(device, 'NPP', (run) =>
        whenLoaded(
          run,
          openedNpp(device),
          openNpp(device),
          { what: 'NPP', fix: 'await engines(device) once before' },
          (npp) => queue(npp, run),
        ),
      ),
    ),
  );
}

const ELEMENTS: Readonly<Record<ImageName, Element>> = {
  u8: '8u',
  u16: '16u',
  f16: '16f',
  f32: '32f',
};

/** Gives NPP's name of a dtype. */
export function elementOf(dtype: KernelDType): Element {
  return ELEMENTS[dtype.name as ImageName];
}

/** Gives the form in a function's name, such as `8u_C3R`. */
export function formOf({ dtype, channels }: Image, suffix = ''): string {
  return `${elementOf(dtype)}_C${channels}R${suffix}`;
}

/** Whether arithmetic scales its results by a power of two. */
export function isInteger({ dtype }: Image): boolean {
  return dtype.name === 'u8' || dtype.name === 'u16';
}

/** Gives the first pixel of image `index` of a batch. */
export function pixels(image: Image, index: number): MemoryPlace {
  const { tensor, dtype, imagePitch } = image;
  return {
    buffer: tensor.buffer,
    byteOffset: (tensor.layout.offset + index * imagePitch) * dtype.bytes,
  };
}

/** Gives the pitch of rows in bytes. */
export function stepOf({ rowPitch, dtype }: Image): number {
  return rowPitch * dtype.bytes;
}

export function sizeOf({
  width,
  height,
}: {
  readonly width: number;
  readonly height: number;
}): [number, number] {
  return [width, height];
}

/** Gives the whole image as a rectangle. */
export function wholeOf({ width, height }: Image): [number, number, number, number] {
  return [0, 0, width, height];
}

/**
 * Gives a number for each channel, as an argument of NPP: one by value, several as an array of the
 * element's type, f32 for f16.
 */
export function numbersFor({ dtype, channels }: Image, values: readonly number[]): LibraryArgument {
  if (channels === 1) return values[0]!;
  const given = values.slice(0, channels);
  return dtype.name === 'u8'
    ? Uint8Array.from(given)
    : dtype.name === 'u16'
      ? Uint16Array.from(given)
      : Float32Array.from(given);
}
