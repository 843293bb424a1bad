/**
 * Tensor maps, which kernels take as parameters of 128 bytes for their tensor copies.
 */
import { STRUCTURE } from '../../native/native-memory.js';
import type { CUdeviceptr } from '../handles.js';
import type { CUtensorMap } from '../structures.js';
import type { Binding } from './binding.js';
import type { RowsOf } from './call-row.js';
import { hex } from './memory-calls.js';

/**
 * Tensor maps. Dimensions are in C's order, the innermost first; a list has an element for each
 * dimension unless stated otherwise.
 */
export interface TensorMapCalls {
  /**
   * Makes a tensor map for boxes of a tensor. `globalDim` and `boxDim` count elements,
   * `globalStrides` bytes, for all dimensions but the innermost.
   */
  cuTensorMapEncodeTiled(
    tensorDataType: number,
    tensorRank: number,
    globalAddress: CUdeviceptr,
    globalDim: readonly number[],
    globalStrides: readonly number[],
    boxDim: readonly number[],
    elementStrides: readonly number[],
    interleave: number,
    swizzle: number,
    l2Promotion: number,
    oobFill: number,
  ): CUtensorMap;
  /**
   * Makes a tensor map for the columns of a convolution. The corners have two elements less than
   * the tensor has dimensions, that of the width first.
   */
  cuTensorMapEncodeIm2col(
    tensorDataType: number,
    tensorRank: number,
    globalAddress: CUdeviceptr,
    globalDim: readonly number[],
    globalStrides: readonly number[],
    pixelBoxLowerCorner: readonly number[],
    pixelBoxUpperCorner: readonly number[],
    channelsPerPixel: number,
    pixelsPerColumn: number,
    elementStrides: readonly number[],
    interleave: number,
    swizzle: number,
    l2Promotion: number,
    oobFill: number,
  ): CUtensorMap;
  /** The same along the width only. Compute capability 10.0. */
  cuTensorMapEncodeIm2colWide(
    tensorDataType: number,
    tensorRank: number,
    globalAddress: CUdeviceptr,
    globalDim: readonly number[],
    globalStrides: readonly number[],
    pixelBoxLowerCornerWidth: number,
    pixelBoxUpperCornerWidth: number,
    channelsPerPixel: number,
    pixelsPerColumn: number,
    elementStrides: readonly number[],
    interleave: number,
    mode: number,
    swizzle: number,
    l2Promotion: number,
    oobFill: number,
  ): CUtensorMap;
  /** Changes the address of the tensor in the tensor map. */
  cuTensorMapReplaceAddress(tensorMap: CUtensorMap, globalAddress: CUdeviceptr): void;
}

export const TENSOR_MAP_CALLS = {
  cuTensorMapEncodeTiled: {
    since: '12.0',
    symbols: ['cuTensorMapEncodeTiled'],
    args: [
      'uintptr_t tensorMap',
      'int tensorDataType',
      'uint32_t tensorRank',
      'uintptr_t globalAddress',
      'uintptr_t globalDim',
      'uintptr_t globalStrides',
      'uintptr_t boxDim',
      'uintptr_t elementStrides',
      'int interleave',
      'int swizzle',
      'int l2Promotion',
      'int oobFill',
    ],
  },
  cuTensorMapEncodeIm2col: {
    since: '12.0',
    symbols: ['cuTensorMapEncodeIm2col'],
    args: [
      'uintptr_t tensorMap',
      'int tensorDataType',
      'uint32_t tensorRank',
      'uintptr_t globalAddress',
      'uintptr_t globalDim',
      'uintptr_t globalStrides',
      'uintptr_t pixelBoxLowerCorner',
      'uintptr_t pixelBoxUpperCorner',
      'uint32_t channelsPerPixel',
      'uint32_t pixelsPerColumn',
      'uintptr_t elementStrides',
      'int interleave',
      'int swizzle',
      'int l2Promotion',
      'int oobFill',
    ],
  },
  cuTensorMapEncodeIm2colWide: {
    since: '12.8',
    symbols: ['cuTensorMapEncodeIm2colWide'],
    args: [
      'uintptr_t tensorMap',
      'int tensorDataType',
      'uint32_t tensorRank',
      'uintptr_t globalAddress',
      'uintptr_t globalDim',
      'uintptr_t globalStrides',
      'int pixelBoxLowerCornerWidth',
      'int pixelBoxUpperCornerWidth',
      'uint32_t channelsPerPixel',
      'uint32_t pixelsPerColumn',
      'uintptr_t elementStrides',
      'int interleave',
      'int mode',
      'int swizzle',
      'int l2Promotion',
      'int oobFill',
    ],
  },
  cuTensorMapReplaceAddress: {
    since: '12.0',
    symbols: ['cuTensorMapReplaceAddress'],
    args: ['uintptr_t tensorMap', 'uintptr_t globalAddress'],
  },
} as const satisfies RowsOf<TensorMapCalls>;

/** The bytes of a CUtensorMap, and its alignment in CUDA 13. */
const MAP = 128;
const MOST = 5;

export function tensorMapCalls({ calls, scratch }: Binding): TensorMapCalls {
  const {
    cuTensorMapEncodeTiled,
    cuTensorMapEncodeIm2col,
    cuTensorMapEncodeIm2colWide,
    cuTensorMapReplaceAddress,
  } = calls;
  // The map first, which has to be aligned, and after it five lists.
  const map = STRUCTURE + ((MAP - ((scratch.address + STRUCTURE) % MAP)) % MAP);
  const list = (index: number): number => map + MAP + index * 8 * MOST;
  const address = (offset: number): number => scratch.address + offset;

  /** Writes a list of numbers of 64 bits; what the driver reads beyond it is zero. */
  function wide(index: number, values: readonly number[]): number {
    for (let i = 0; i < MOST; i++) scratch.setU64(list(index) + 8 * i, values[i] ?? 0);
    return address(list(index));
  }
  function narrow(index: number, values: readonly number[]): number {
    for (let i = 0; i < MOST; i++) scratch.i32[(list(index) >> 2) + i] = values[i] ?? 0;
    return address(list(index));
  }
  const result = (): CUtensorMap => scratch.bytes.slice(map, map + MAP);
  const asked = (dims: readonly number[], at: number): string =>
    `a tensor of ${dims.join(' × ')} elements at ${hex(at)}`;

  return {
    cuTensorMapEncodeTiled(type, rank, at, dims, strides, box, steps, ...rest) {
      const r = cuTensorMapEncodeTiled.run(
        address(map),
        type,
        rank,
        at,
        wide(0, dims),
        wide(1, strides),
        narrow(2, box),
        narrow(3, steps),
        ...rest,
      );
      if (r !== 0)
        throw cuTensorMapEncodeTiled.failure(
          r,
          `boxes of ${box.join(' × ')} of ${asked(dims, at)}`,
        );
      return result();
    },
    cuTensorMapEncodeIm2col(
      type,
      rank,
      at,
      dims,
      strides,
      lower,
      upper,
      channels,
      pixels,
      steps,
      ...rest
    ) {
      const r = cuTensorMapEncodeIm2col.run(
        address(map),
        type,
        rank,
        at,
        wide(0, dims),
        wide(1, strides),
        narrow(2, lower),
        narrow(3, upper),
        channels,
        pixels,
        narrow(4, steps),
        ...rest,
      );
      if (r !== 0)
        throw cuTensorMapEncodeIm2col.failure(
          r,
          `columns of ${pixels} pixels of ${channels} channels of ${asked(dims, at)}`,
        );
      return result();
    },
    cuTensorMapEncodeIm2colWide(
      type,
      rank,
      at,
      dims,
      strides,
      lower,
      upper,
      channels,
      pixels,
      steps,
      ...rest
    ) {
      const r = cuTensorMapEncodeIm2colWide.run(
        address(map),
        type,
        rank,
        at,
        wide(0, dims),
        wide(1, strides),
        lower,
        upper,
        channels,
        pixels,
        narrow(4, steps),
        ...rest,
      );
      if (r !== 0)
        throw cuTensorMapEncodeIm2colWide.failure(
          r,
          `columns of ${pixels} pixels of ${channels} channels of ${asked(dims, at)}`,
        );
      return result();
    },
    cuTensorMapReplaceAddress(tensorMap, at) {
      scratch.bytes.set(tensorMap.subarray(0, MAP), map);
      const r = cuTensorMapReplaceAddress.run(address(map), at);
      if (r !== 0) throw cuTensorMapReplaceAddress.failure(r, hex(at));
      tensorMap.set(scratch.bytes.subarray(map, map + MAP));
    },
  };
}
