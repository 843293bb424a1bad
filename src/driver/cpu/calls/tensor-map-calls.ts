/**
 * Tensor maps. Their layout is the device's own (`ptx/tensor-map.ts`); compiled kernels read them
 * where they find them, and check them again. The calls refuse what those of an H200 refuse (driver
 * 580), except for the swizzles of compute capability 10.0, which the device has.
 */
import {
  TENSOR_MAP,
  encodeTensorMap,
  isFloatTensor,
  isTensorMap,
  tensorTypeBytes,
} from '../../../ptx/tensor-map.js';
import type { TensorMap, TensorType } from '../../../ptx/tensor-map.js';
import type { TensorMapCalls } from '../../driver.js';
import {
  CUtensorMapDataType as T,
  CUtensorMapInterleave,
  CUtensorMapL2promotion,
  CUtensorMapSwizzle,
} from '../../flags.js';
import { CUresult } from '../../../ground/result.js';
import { SHARED_PER_MULTIPROCESSOR } from '../device-attributes.js';
import { fail, hex, invalidValue } from '../failure.js';
import type { Machine } from '../machine.js';

/** The driver's types that the device has. Those of 4 and 6 bits need compute capability 10.0. */
const TYPES: ReadonlyMap<number, TensorType> = new Map([
  [T.CU_TENSOR_MAP_DATA_TYPE_UINT8, 'u8'],
  [T.CU_TENSOR_MAP_DATA_TYPE_UINT16, 'u16'],
  [T.CU_TENSOR_MAP_DATA_TYPE_UINT32, 'u32'],
  [T.CU_TENSOR_MAP_DATA_TYPE_INT32, 's32'],
  [T.CU_TENSOR_MAP_DATA_TYPE_UINT64, 'u64'],
  [T.CU_TENSOR_MAP_DATA_TYPE_INT64, 's64'],
  [T.CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 'f16'],
  [T.CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 'f32'],
  [T.CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 'f64'],
  [T.CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 'bf16'],
  [T.CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 'f32.ftz'],
  [T.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32, 'tf32'],
  [T.CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, 'tf32.ftz'],
]);

/** The swizzle and the atomicity of each CUtensorMapSwizzle, and the bytes of its span. */
const SWIZZLES: readonly (readonly [swizzle: number, atomicity: number, span: number])[] = [
  [0, 0, Infinity],
  [1, 0, 32],
  [2, 0, 64],
  [3, 0, 128],
  [3, 1, 128],
  [3, 2, 128],
  [3, 3, 128],
];
const MOST_DIM = 2 ** 32;
const MOST_STRIDE = 2 ** 40;
const MOST_BOX = 256;
const MOST_STEP = 8;
const MOST_PIXELS = 1024;
/** The bytes of a box: the shared memory of a multiprocessor, whatever swizzles and slices add. */
const MOST_BYTES = SHARED_PER_MULTIPROCESSOR;
/** The limits of the corners of im2col, by the number of dimensions. */
const CORNERS: readonly number[] = [0, 0, 0, 2 ** 15, 2 ** 7, 2 ** 4];

/** The arguments that all kinds of tensor maps have. */
interface Common {
  type: number;
  rank: number;
  address: number;
  dims: readonly number[];
  strides: readonly number[];
  steps: readonly number[];
  interleave: number;
  swizzle: number;
  promotion: number;
  fill: number;
}

function within(
  call: string,
  name: string,
  value: number | undefined,
  least: number,
  most: number,
) {
  if (!(Number.isInteger(value) && value! >= least && value! <= most))
    invalidValue(call, `${name} is ${value}; it must be ${least} to ${most}`);
}

function multiple(call: string, name: string, value: number, of: number): void {
  if (value % of !== 0) invalidValue(call, `${name} is ${value}; it must be a multiple of ${of}`);
}

/** Checks what does not depend on the kind, and returns the fields. */
function common(call: string, leastRank: number, given: Common): Omit<TensorMap, 'kind'> {
  const { rank, address, interleave } = given;
  const type = TYPES.get(given.type);
  if (type === undefined)
    invalidValue(
      call,
      `tensorDataType is ${given.type}; the CPU device has the types 0 to ${TYPES.size - 1}`,
    );
  within(call, 'interleave', interleave, 0, Object.keys(CUtensorMapInterleave).length - 1);
  within(call, 'swizzle', given.swizzle, 0, Object.keys(CUtensorMapSwizzle).length - 1);
  within(call, 'l2Promotion', given.promotion, 0, Object.keys(CUtensorMapL2promotion).length - 1);
  within(call, 'oobFill', given.fill, 0, 1);
  within(call, 'tensorRank', rank, interleave ? 3 : leastRank, TENSOR_MAP.most);
  if (given.fill && !isFloatTensor(type))
    invalidValue(call, `oobFill is NaN, and the elements are ${type}`);
  const unit = interleave === CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
  if (!Number.isSafeInteger(address) || address < 0)
    invalidValue(call, `globalAddress is ${address}`);
  if (address % unit !== 0)
    invalidValue(call, `globalAddress ${hex(address)} is not a multiple of ${unit}`);
  for (let axis = 0; axis < rank; axis++) {
    within(call, `globalDim[${axis}]`, given.dims[axis], 1, MOST_DIM);
    within(call, `elementStrides[${axis}]`, given.steps[axis], 1, MOST_STEP);
  }
  for (let axis = 0; axis < rank - 1; axis++) {
    const name = `globalStrides[${axis}]`;
    within(call, name, given.strides[axis], 0, MOST_STRIDE - 1);
    multiple(call, name, given.strides[axis]!, unit);
  }
  const [swizzle, atomicity] = SWIZZLES[given.swizzle]!;
  return {
    type,
    address,
    dims: given.dims.slice(0, rank),
    strides: given.strides.slice(0, rank - 1),
    steps: given.steps.slice(0, rank),
    interleave,
    swizzle,
    atomicity,
    fill: given.fill,
    promotion: given.promotion,
    box: [],
    lower: [],
    upper: [],
    channels: 1,
    pixels: 1,
  };
}

/** Checks the bytes of a box's rows, which are slices if the tensor is interleaved. */
function checkRow(
  call: string,
  name: string,
  elements: number,
  type: TensorType,
  given: Common,
): void {
  const bytes = elements * tensorTypeBytes(type);
  multiple(call, `${name} times the bytes of an element`, bytes, 16);
  if (given.interleave) return;
  const [, , span] = SWIZZLES[given.swizzle]!;
  if (bytes > span)
    invalidValue(call, `rows of ${bytes} bytes are longer than the ${span} of the swizzle`);
}

function checkVolume(call: string, elements: number, type: TensorType): void {
  const bytes = elements * tensorTypeBytes(type);
  if (bytes > MOST_BYTES)
    invalidValue(call, `the box has ${bytes} bytes; it must have at most ${MOST_BYTES}`);
}

export function tensorMapCalls(machine: Machine) {
  return {
    cuTensorMapEncodeTiled(
      type,
      rank,
      address,
      dims,
      strides,
      boxDim,
      steps,
      interleave,
      swizzle,
      promotion,
      fill,
    ) {
      const call = 'cuTensorMapEncodeTiled';
      machine.context(call);
      const given = {
        type,
        rank,
        address,
        dims,
        strides,
        steps,
        interleave,
        swizzle,
        promotion,
        fill,
      };
      const fields = common(call, 1, given);
      for (let axis = 0; axis < rank; axis++)
        within(call, `boxDim[${axis}]`, boxDim[axis], 1, MOST_BOX);
      checkRow(call, 'boxDim[0]', boxDim[0]!, fields.type, given);
      const rows = fields.steps
        .slice(1)
        .reduce((count, step, axis) => count * Math.ceil(boxDim[axis + 1]! / step), 1);
      checkVolume(call, boxDim[0]! * rows, fields.type);
      return encodeTensorMap({ ...fields, kind: 'tile', box: boxDim.slice(0, rank) });
    },
    cuTensorMapEncodeIm2col(
      type,
      rank,
      address,
      dims,
      strides,
      lower,
      upper,
      channels,
      pixels,
      steps,
      interleave,
      swizzle,
      promotion,
      fill,
    ) {
      const call = 'cuTensorMapEncodeIm2col';
      machine.context(call);
      const given = {
        type,
        rank,
        address,
        dims,
        strides,
        steps,
        interleave,
        swizzle,
        promotion,
        fill,
      };
      const fields = common(call, 3, given);
      within(call, 'channelsPerPixel', channels, 1, MOST_BOX);
      within(call, 'pixelsPerColumn', pixels, 1, MOST_PIXELS);
      for (let axis = 0; axis < rank - 2; axis++) {
        const limit = CORNERS[rank]!;
        within(call, `pixelBoxLowerCorner[${axis}]`, lower[axis], -limit, limit - 1);
        within(call, `pixelBoxUpperCorner[${axis}]`, upper[axis], -limit, limit - 1);
        // W, H and D are above the channels, of which interleaved tensors have no dimension.
        const dimension = interleave ? axis : axis + 1;
        if (dims[dimension]! + upper[axis]! - lower[axis]! < 1)
          invalidValue(call, `the box between the corners is empty along dimension ${dimension}`);
      }
      checkRow(call, 'channelsPerPixel', channels, fields.type, given);
      checkVolume(call, channels * pixels, fields.type);
      return encodeTensorMap({
        ...fields,
        kind: 'im2col',
        lower: lower.slice(0, rank - 2),
        upper: upper.slice(0, rank - 2),
        channels,
        pixels,
      });
    },
    cuTensorMapEncodeIm2colWide() {
      fail(
        'cuTensorMapEncodeIm2colWide',
        CUresult.CUDA_ERROR_NOT_SUPPORTED,
        'the CPU device has no wide im2col, which needs compute capability 10.0',
      );
    },
    cuTensorMapReplaceAddress(tensorMap, address) {
      const call = 'cuTensorMapReplaceAddress';
      machine.context(call);
      if (!isTensorMap(tensorMap)) invalidValue(call, 'the bytes are no tensor map');
      // Not 32, whatever the interleave, and unlike the calls that make maps it refuses 0.
      if (!Number.isSafeInteger(address) || address <= 0 || address % 16 !== 0)
        invalidValue(call, `globalAddress ${hex(address)} is not a multiple of 16`);
      new DataView(tensorMap.buffer, tensorMap.byteOffset).setBigUint64(
        TENSOR_MAP.address,
        BigInt(address),
        true,
      );
    },
  } satisfies TensorMapCalls;
}
