// Test only: what a tensor copy does, element by element, from the definitions of the PTX ISA
// ("Tensors"): a plain model that knows nothing of rows, memory or WebAssembly.

import { OUTSIDE_NAN, isFloatTensor, tensorTypeBytes } from '../tensor-map.js';
import type { TensorMap } from '../tensor-map.js';

export type TensorMode = 'tile' | 'im2col' | 'rows';

/** One element of a box. */
export interface BoxElement {
  /** Bytes from the beginning of the box, before swizzling. */
  at: number;
  /** Bytes from the beginning of the tensor; undefined for an element outside of it. */
  from: number | undefined;
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

/** Every element of the box, in the order of shared memory. */
export function boxElements(
  map: TensorMap,
  mode: TensorMode,
  coordinates: readonly number[],
  offsets: readonly number[] = [],
): BoxElement[] {
  const size = tensorTypeBytes(map.type);
  const rank = map.dims.length;
  const slice = map.interleave ? (8 << map.interleave) / size : 0;
  // The places of a pixel's channels: one list for each slice.
  const channels = mode === 'im2col' ? map.channels : map.box[0]!;
  const step = mode === 'im2col' || !slice ? 1 : map.steps[0]!;
  const groups = slice
    ? range(Math.ceil(Math.ceil(channels / slice) / step)).map((group) =>
        range(slice).map((index) => coordinates[0]! + group * step * slice + index),
      )
    : [range(channels).map((index) => coordinates[0]! + index)];
  const slicePitch = slice ? map.dims[rank - 2]! * map.strides[rank - 3]! : 0;
  /** Bytes to an element; undefined outside of the tensor. */
  const place = (channel: number, rest: readonly number[]): number | undefined => {
    if (channel < 0 || channel >= map.dims[0]!) return undefined;
    if (rest.some((at, index) => at < 0 || at >= map.dims[index + 1]!)) return undefined;
    const outer = rest.reduce((sum, at, index) => sum + at * map.strides[index]!, 0);
    return slice
      ? outer + Math.floor(channel / slice) * slicePitch + (channel % slice) * size
      : outer + channel * size;
  };
  const found: BoxElement[] = [];
  const add = (group: readonly number[], rest: readonly number[]): void => {
    for (const channel of group)
      found.push({ at: found.length * size, from: place(channel, rest) });
  };
  if (mode === 'rows') {
    for (const row of coordinates.slice(1, 5)) add(groups[0]!, [row]);
    return found;
  }
  if (mode === 'im2col') {
    for (const group of groups)
      for (const pixel of pixelsOf(map, coordinates, offsets)) add(group, pixel);
    return found;
  }
  const counts = map.box.map((box, axis) => Math.ceil(box / map.steps[axis]!));
  const walk = (axis: number, rest: readonly number[], group: readonly number[]): void => {
    if (axis === 0) {
      add(group, rest);
      return;
    }
    for (const index of range(counts[axis]!)) {
      const at = coordinates[axis]! + index * map.steps[axis]!;
      const inner = [at, ...rest];
      // The slices of an image are outside of its rows.
      if (slice && axis === rank - 1) for (const each of groups) walk(axis - 1, inner, each);
      else walk(axis - 1, inner, group);
    }
  };
  walk(rank - 1, [], groups[0]!);
  return found;
}

/** The coordinates of the pixels of im2col: W, H, D and the image. */
function pixelsOf(
  map: TensorMap,
  coordinates: readonly number[],
  offsets: readonly number[],
): number[][] {
  const spatial = map.dims.length - 2;
  const position = coordinates.slice(1, 1 + spatial);
  let image = coordinates[1 + spatial]!;
  return range(map.pixels).map(() => {
    const pixel = [...position.map((at, axis) => at + offsets[axis]!), image];
    let axis = 0;
    for (; axis < spatial; axis++) {
      position[axis]! += map.steps[axis + 1]!;
      if (position[axis]! <= map.dims[axis + 1]! - 1 + map.upper[axis]!) break;
      position[axis] = map.lower[axis]!;
    }
    if (axis === spatial) image++;
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
  if (!map.type.startsWith('tf32') && !map.type.endsWith('.ftz')) return loaded;
  const view = new DataView(loaded.buffer);
  let bits = view.getUint32(0, true);
  const exponent = (bits >>> 23) & 255;
  if (map.type.endsWith('.ftz') && exponent === 0) bits &= 0x80000000;
  if (map.type.startsWith('tf32')) {
    // Ten bits of mantissa, ties away from zero.
    if (exponent < 255) bits = (bits + 0x1000) & ~0x1fff;
    else if (bits & 0x7fffff) bits = 0x7fffe000;
  }
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
  for (const { at, from } of elements) {
    if (from === undefined) continue;
    const value = Uint8Array.from(
      range(size),
      (index) => shared[swizzledPlace(map, address + at + index)]!,
    );
    tensor.set(change(tensor.slice(from, from + size), value), from);
  }
}
