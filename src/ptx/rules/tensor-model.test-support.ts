// Test only: what a tensor copy does, element by element, from the definitions of the PTX ISA
// ("Tensors") and, where those leave it open, from what an H200 does (driver 580): a plain model
// that knows nothing of memory or WebAssembly.

import { OUTSIDE_NAN, isFloatTensor, tensorTypeBytes } from '../tensor-map.js';
import type { TensorMap } from '../tensor-map.js';

export type TensorMode = 'tile' | 'im2col' | 'rows';

/** One element of a box. */
export interface BoxElement {
  /** Bytes from the beginning of the box in shared memory, before swizzling. */
  at: number;
  /** Bytes from the beginning of the tensor; undefined for an element outside of it. */
  from: number | undefined;
  /** The same where a store changes it: 16 bytes whole, also those beyond the row. */
  to: number | undefined;
}

/** The tables of the ISA's section on swizzling modes: rows of eight cells of 16 bytes. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  '1.0': ['01234567', '10325476'],
  '4.0': ['01234567', '10325476'],
  '2.0': ['01234567', '10325476', '23016745', '32107654'],
  '3.0': [
    '01234567',
    '10325476',
    '23016745',
    '32107654',
    '45670123',
    '54761032',
    '67452301',
    '76543210',
  ],
  '3.1': ['01234567', '23016745', '45670123', '67452301'],
  '3.2': ['01234567', '23016745', '45670123', '67452301'],
  '3.3': ['01234567', '45670123'],
};

/** Where the byte at an address of shared memory is after swizzling. */
export function swizzledPlace(
  { swizzle, atomicity }: Pick<TensorMap, 'swizzle' | 'atomicity'>,
  address: number,
): number {
  if (swizzle === 0) return address;
  const rows = TABLES[`${swizzle}.${atomicity}`]!;
  const line = Math.floor(address / 128);
  const cell = Math.floor((address % 128) / 16);
  const row = rows[line % rows.length]!;
  const flipped = atomicity === 2 && line % 2 === 1 ? (address % 16) ^ 8 : address % 16;
  return line * 128 + row.indexOf(String(cell)) * 16 + flipped;
}

/** The numbers from 0 to `count` - 1. */
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** The bytes of a span of each swizzle. */
const SPANS = [0, 32, 64, 128, 96];

/** A row of a box: the element that it begins with, and where it is along the other dimensions. */
interface BoxRow {
  channel: number;
  at: readonly number[];
}

/** Every element of the box, in the order of shared memory. */
export function boxElements(
  map: TensorMap,
  mode: TensorMode,
  coordinates: readonly number[],
  offsets: readonly number[] = [],
): BoxElement[] {
  if (map.interleave) return sliceElements(map, mode, coordinates, offsets);
  const size = tensorTypeBytes(map.type);
  const inner = mode === 'im2col' ? map.channels : map.box[0]!;
  // Each row of a swizzled box has a span of its own.
  const pitch = SPANS[map.swizzle]! || inner * size;
  return rowsOf(map, mode, coordinates, offsets).flatMap(({ channel, at }, row) =>
    range(inner).map((index) => {
      const x = (channel + index) * size;
      const end = map.dims[0]! * size;
      const inside = x >= 0 && at.every((each, axis) => each >= 0 && each < map.dims[axis + 1]!);
      const place = at.reduce((sum, each, axis) => sum + each * map.strides[axis]!, x);
      return {
        at: row * pitch + index * size,
        from: inside && x < end ? place : undefined,
        to: inside && x < Math.ceil(end / 16) * 16 ? place : undefined,
      };
    }),
  );
}

function rowsOf(
  map: TensorMap,
  mode: TensorMode,
  coordinates: readonly number[],
  offsets: readonly number[],
): BoxRow[] {
  const channel = coordinates[0]!;
  if (mode === 'rows') return coordinates.slice(1, 5).map((row) => ({ channel, at: [row] }));
  if (mode === 'im2col')
    return pixelsOf(map, 1, coordinates.slice(1), offsets).map((at) => ({ channel, at }));
  return walk(map, coordinates, 0).map((at) => ({ channel, at: at.slice(1) }));
}

/**
 * The places of a box. The first coordinate changes first, and that of dimension `fixed` does not.
 */
function walk(map: TensorMap, coordinates: readonly number[], fixed: number): number[][] {
  return coordinates.reduceRight<number[][]>(
    (found, from, axis) =>
      found.flatMap((rest) =>
        range(axis === fixed ? 1 : Math.ceil(map.box[axis]! / map.steps[axis]!)).map((index) => [
          from + index * map.steps[axis]!,
          ...rest,
        ]),
      ),
    [[]],
  );
}

/**
 * The elements of a box of an interleaved tensor, whose dimensions are W, H and D, the number of
 * the slice, and the image. A box has one slice of each place.
 */
function sliceElements(
  map: TensorMap,
  mode: TensorMode,
  coordinates: readonly number[],
  offsets: readonly number[],
): BoxElement[] {
  const size = tensorTypeBytes(map.type);
  const bytes = 8 << map.interleave;
  const spatial = map.dims.length - 2;
  const places =
    mode === 'im2col'
      ? pixelsOf(
          map,
          0,
          coordinates.filter((_, axis) => axis !== spatial),
          offsets,
        ).map((at) => [...at.slice(0, spatial), coordinates[spatial]!, at[spatial]!])
      : walk(map, coordinates, spatial);
  return places.flatMap((at, row) => {
    const inside = at.every((each, axis) => each >= 0 && each < map.dims[axis]!);
    const from = at.reduce((sum, each, axis) => sum + each * [bytes, ...map.strides][axis]!, 0);
    return range(bytes / size).map((index) => {
      const place = inside ? from + index * size : undefined;
      return { at: row * bytes + index * size, from: place, to: place };
    });
  });
}

/** The coordinates of the pixels of im2col: W, H, D, of which W is dimension `first`; the image. */
function pixelsOf(
  map: TensorMap,
  first: number,
  coordinates: readonly number[],
  offsets: readonly number[],
): number[][] {
  const spatial = map.dims.length - 2;
  const position = coordinates.slice(0, spatial);
  let image = coordinates[spatial]!;
  return range(map.pixels).map(() => {
    const pixel = [...position.map((at, axis) => at + offsets[axis]!), image];
    let axis = 0;
    for (; axis < spatial; axis++) {
      position[axis]! += map.steps[axis + first]!;
      if (position[axis]! <= map.dims[axis + first]! - 1 + map.upper[axis]!) break;
      position[axis] = map.lower[axis]!;
    }
    if (axis === spatial) image += map.steps[spatial + 1]!;
    return pixel;
  });
}

/** The bytes of an element as a load leaves them. */
export function loadedBytes(map: TensorMap, bytes: Uint8Array | undefined): Uint8Array {
  const size = tensorTypeBytes(map.type);
  if (!bytes) {
    const fill = new Uint8Array(size);
    if (map.fill && isFloatTensor(map.type))
      fill.forEach((_, index) => {
        fill[index] = (OUTSIDE_NAN >> (8 * (index % 2))) & 255;
      });
    return fill;
  }
  const loaded = bytes.slice();
  if (!map.type.startsWith('tf32')) return loaded;
  const view = new DataView(loaded.buffer);
  let bits = view.getUint32(0, true);
  const exponent = (bits >>> 23) & 255;
  // Ten bits of mantissa, ties to even; subnormals stay, whatever the type.
  if (exponent < 255) bits = (bits + 0xfff + ((bits >>> 13) & 1)) & ~0x1fff;
  else if (bits & 0x7fffff) bits = 0x7fffe000;
  view.setUint32(0, bits >>> 0, true);
  return loaded;
}

/** What a load writes to shared memory, by the addresses there. */
export function load(
  map: TensorMap,
  elements: readonly BoxElement[],
  tensor: Uint8Array,
  shared: Uint8Array,
  address: number,
): void {
  const size = tensorTypeBytes(map.type);
  for (const { at, from } of elements) {
    const bytes = loadedBytes(
      map,
      from === undefined ? undefined : tensor.slice(from, from + size),
    );
    bytes.forEach((byte, index) => {
      shared[swizzledPlace(map, address + at + index)] = byte;
    });
  }
}

/** What a store or a reduction writes to the tensor; `change` computes an element. */
export function store(
  map: TensorMap,
  elements: readonly BoxElement[],
  tensor: Uint8Array,
  shared: Uint8Array,
  address: number,
  change: (old: Uint8Array, value: Uint8Array) => Uint8Array = (_, value) => value,
): void {
  const size = tensorTypeBytes(map.type);
  for (const { at, to } of elements) {
    if (to === undefined) continue;
    const value = Uint8Array.from(
      range(size),
      (index) => shared[swizzledPlace(map, address + at + index)]!,
    );
    tensor.set(change(tensor.slice(to, to + size), value), to);
  }
}
