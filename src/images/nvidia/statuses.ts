/**
 * The statuses that NPP's functions return. NPP 13.2 gave many statuses other numbers: nppdefs.h of
 * 11.8, 12.4, 13.0 and 13.1 agree, except for additions, and that of 13.2 differs.
 */
import type { LibraryStatus } from '../../core/index.js';

/** The numbers up to 13.1 and from 13.2 on, and NPP's description, where it has one. */
const NUMBERS: Readonly<
  Record<string, readonly [until131: number | undefined, from132: number, text?: string]>
> = {
  NPP_NOT_SUPPORTED_MODE_ERROR: [-9999, -14, 'not supported mode'],
  NPP_INVALID_HOST_POINTER_ERROR: [-1032, -1032, 'invalid host memory pointer'],
  NPP_INVALID_DEVICE_POINTER_ERROR: [-1031, -1031, 'invalid device memory pointer'],
  NPP_LUT_PALETTE_BITSIZE_ERROR: [-1030, -1030, 'color look up table bitsize'],
  NPP_ZC_MODE_NOT_SUPPORTED_ERROR: [-1028, -1028, 'zero crossing mode not supported'],
  NPP_NOT_SUFFICIENT_COMPUTE_CAPABILITY: [-1027, -1027, 'not sufficient CUDA compute capability'],
  NPP_TEXTURE_BIND_ERROR: [-1024, -1024, 'texture bind'],
  NPP_WRONG_INTERSECTION_ROI_ERROR: [-1020, -1020, 'wrong intersection region of interest'],
  NPP_HAAR_CLASSIFIER_PIXEL_MATCH_ERROR: [-1006, -1006, 'haar classifier pixel match'],
  NPP_MEMFREE_ERROR: [-1005, -1005, 'memory free request'],
  NPP_MEMSET_ERROR: [-1004, -1004, 'memory set request'],
  NPP_MEMCPY_ERROR: [-1003, -1003, 'memory copy request'],
  NPP_ALIGNMENT_ERROR: [-1002, -1002, 'memory alignment'],
  NPP_CUDA_KERNEL_EXECUTION_ERROR: [
    -1000,
    -1000,
    'CUDA kernel execution error, most commonly CUDA kernel launch',
  ],
  NPP_STREAM_CTX_ERROR: [-215, -215, 'non CTX function support has been deprecated'],
  NPP_ROUND_MODE_NOT_SUPPORTED_ERROR: [-213, -213, 'unsupported round mode'],
  NPP_QUALITY_INDEX_ERROR: [-210, -210, 'image pixels are constant for quality index'],
  NPP_RESIZE_NO_OPERATION_ERROR: [
    -201,
    -201,
    'one of the output image dimensions is less than 1 pixel',
  ],
  NPP_OVERFLOW_ERROR: [-109, -109, 'number overflows the upper or lower limit of the data type'],
  NPP_NOT_EVEN_STEP_ERROR: [-108, -108, 'step value is not pixel multiple'],
  NPP_HISTOGRAM_NUMBER_OF_LEVELS_ERROR: [
    -107,
    -107,
    'number of levels for histogram is less than 2',
  ],
  NPP_LUT_NUMBER_OF_LEVELS_ERROR: [-106, -106, 'number of levels for LUT is less than 2'],
  NPP_CORRUPTED_DATA_ERROR: [-61, -61, 'processed data is corrupted'],
  NPP_CHANNEL_ORDER_ERROR: [-60, -60, 'wrong order of the destination channels'],
  NPP_ZERO_MASK_VALUE_ERROR: [-59, -62, 'all values of the mask are zero'],
  NPP_QUADRANGLE_ERROR: [
    -58,
    -58,
    'the quadrangle is nonconvex or degenerates into triangle, line or point',
  ],
  NPP_RECTANGLE_ERROR: [-57, -57, 'size of the rectangle region is less than or equal to 1'],
  NPP_COEFFICIENT_ERROR: [-56, -56, 'unallowable values of the transformation coefficients'],
  NPP_NUMBER_OF_CHANNELS_ERROR: [-53, -53, 'bad or unsupported number of channels'],
  NPP_COI_ERROR: [-52, -52, 'channel of interest is not 1, 2, or 3'],
  NPP_DIVISOR_ERROR: [-51, -51, 'divisor is equal to zero'],
  NPP_CHANNEL_ERROR: [-47, -47, 'illegal channel index'],
  NPP_STRIDE_ERROR: [-37, -37, 'stride is less than the row length'],
  NPP_ANCHOR_ERROR: [-34, -34, 'anchor point is outside mask'],
  NPP_MASK_SIZE_ERROR: [-33, -33, 'lower bound is larger than upper bound'],
  NPP_RESIZE_FACTOR_ERROR: [-23, -24],
  NPP_INTERPOLATION_ERROR: [-22, -23],
  NPP_MIRROR_FLIP_ERROR: [-21, -22],
  NPP_MOMENT_00_ZERO_ERROR: [-20, -21],
  NPP_THRESHOLD_NEGATIVE_LEVEL_ERROR: [-19, -20],
  NPP_THRESHOLD_ERROR: [-18, -19],
  NPP_CONTEXT_MATCH_ERROR: [-17, -13],
  NPP_FFT_FLAG_ERROR: [-16, -18],
  NPP_FFT_ORDER_ERROR: [-15, -17],
  NPP_STEP_ERROR: [-14, -16, 'step is less or equal zero'],
  NPP_SCALE_RANGE_ERROR: [-13, -12],
  NPP_DATA_TYPE_ERROR: [-12, -59, 'data type is incorrect or not supported'],
  NPP_OUT_OFF_RANGE_ERROR: [-11, -11],
  NPP_DIVIDE_BY_ZERO_ERROR: [-10, -10],
  NPP_MEMORY_ALLOCATION_ERR: [-9, -9],
  NPP_NULL_POINTER_ERROR: [-8, -8],
  NPP_RANGE_ERROR: [-7, -7],
  NPP_SIZE_ERROR: [-6, -6],
  NPP_BAD_ARGUMENT_ERROR: [-5, -5],
  NPP_NO_MEMORY_ERROR: [-4, -4],
  NPP_NOT_IMPLEMENTED_ERROR: [-3, -3],
  NPP_ERROR: [-2, -2],
  NPP_ERROR_RESERVED: [-1, -1],
  NPP_NO_OPERATION_WARNING: [1, 1, 'no operation was performed'],
  NPP_DIVIDE_BY_ZERO_WARNING: [6, 6, 'A divisor is zero'],
  NPP_AFFINE_QUAD_INCORRECT_WARNING: [
    28,
    28,
    'the quadrangle is none that an affine map makes: its fourth vertex is not used',
  ],
  NPP_WRONG_INTERSECTION_ROI_WARNING: [
    29,
    29,
    'the regions have nothing in common: no operation was performed',
  ],
  NPP_WRONG_INTERSECTION_QUAD_WARNING: [
    30,
    30,
    'the quadrangle and the regions have nothing in common: no operation was performed',
  ],
  NPP_DOUBLE_SIZE_WARNING: [35, 35, 'the size is odd, and another was taken'],
  NPP_MISALIGNED_DST_ROI_WARNING: [
    10000,
    10000,
    'speed reduction due to uncoalesced memory accesses warning',
  ],
  // This status exists from 13.1 on; before, the number was free.
  NPP_LIBRARY_VERSION_MISMATCH_ERROR: [
    -9998,
    -9998,
    'application and NPP library version mismatch',
  ],
};

const MEANINGS: Readonly<Record<string, Pick<LibraryStatus, 'means' | 'harmless'>>> = {
  NPP_MEMORY_ALLOCATION_ERR: { means: 'memory' },
  NPP_NO_MEMORY_ERROR: { means: 'memory' },
  NPP_NOT_SUFFICIENT_COMPUTE_CAPABILITY: { means: 'unsupported' },
  NPP_NOT_IMPLEMENTED_ERROR: { means: 'unsupported' },
  NPP_NOT_SUPPORTED_MODE_ERROR: { means: 'unsupported' },
  // The operation was done, but slower than possible. Every other warning means that something was
  // not done, or not as requested.
  NPP_MISALIGNED_DST_ROI_WARNING: { harmless: true },
};

/** The statuses of a version, by their numbers. */
export function statusesOf(major: number, minor: number): Readonly<Record<number, LibraryStatus>> {
  const renumbered = major > 13 || (major === 13 && minor >= 2);
  return Object.fromEntries(
    Object.entries(NUMBERS).flatMap(([name, [before, since, text]]) => {
      const number = renumbered ? since : before;
      return number === undefined
        ? []
        : [[number, { name, ...(text === undefined ? {} : { text }), ...MEANINGS[name] }]];
    }),
  );
}
