import { DTYPES, f16, f32, i64 } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { DLDataTypeCode, DLDeviceType, fromDLPack, toDLPack } from './dlpack.js';
import type { DLTensor } from './dlpack.js';
import { contiguous, strided } from './layout.js';
import { layouts } from './naive-view.test-support.js';

const device = { type: DLDeviceType.kDLCUDA, id: 0 } as const;
const described: DLTensor = {
  device,
  data: 0x7f0000000000n,
  dtype: { code: 2, bits: 32, lanes: 1 },
  shape: [2, 3],
  strides: [3, 1],
  byteOffset: 0,
};

test('a tensor goes into a descriptor and comes out again', { tags: 'random' }, () => {
  fc.assert(
    fc.property(
      layouts(),
      fc.constantFrom<DType>(...Object.values(DTYPES)),
      fc.bigInt({ min: 1n, max: 2n ** 46n }),
      (layout, dtype, page) => {
        const owner = {};
        const tensor = { dtype, layout, address: page * 16n, device, owner };
        const back = fromDLPack(toDLPack(tensor));
        expect(back).toEqual(tensor);
        expect(back.owner).toBe(owner);
      },
    ),
  );
});

test('the fields are those of dlpack.h', () => {
  expect(
    toDLPack({
      dtype: f16,
      layout: strided([2, 3], [1, 2], 5),
      address: 4096n,
      device,
      readOnly: true,
    }),
  ).toEqual({
    device: { type: 2, id: 0 },
    data: 4096n,
    dtype: { code: 2, bits: 16, lanes: 1 },
    shape: [2, 3],
    strides: [1, 2],
    byteOffset: 10,
    readOnly: true,
  });
  const codes = Object.values(DTYPES).map((dtype) => {
    const {
      dtype: { code, bits },
    } = toDLPack({ dtype, layout: contiguous([1]), address: 16n, device });
    return [dtype.name, code, bits];
  });
  const { kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool, kDLComplex } = DLDataTypeCode;
  const { kDLFloat8_e4m3fn, kDLFloat8_e5m2 } = DLDataTypeCode;
  expect(codes).toEqual([
    ['u8', kDLUInt, 8],
    ['i8', kDLInt, 8],
    ['u16', kDLUInt, 16],
    ['i16', kDLInt, 16],
    ['u32', kDLUInt, 32],
    ['i32', kDLInt, 32],
    ['u64', kDLUInt, 64],
    ['i64', kDLInt, 64],
    ['f16', kDLFloat, 16],
    ['bf16', kDLBfloat, 16],
    ['f32', kDLFloat, 32],
    ['f64', kDLFloat, 64],
    ['f8e4m3', kDLFloat8_e4m3fn, 8],
    ['f8e5m2', kDLFloat8_e5m2, 8],
    ['bool', kDLBool, 8],
    ['complex64', kDLComplex, 64],
    ['complex128', kDLComplex, 128],
  ]);
});

test('without strides the tensor is contiguous', () => {
  expect(fromDLPack({ ...described, strides: null }).layout).toEqual(contiguous([2, 3]));
});

test('the descriptor is its own owner where it names none', () => {
  expect(fromDLPack(described).owner).toBe(described);
});

test('an offset that is no whole number of elements goes into the address', () => {
  const { address, layout } = fromDLPack({ ...described, data: 4098n, byteOffset: 10 });
  expect([address, layout.offset]).toEqual([4100n, 2]);
});

test('a tensor without elements may have any address', () => {
  expect(fromDLPack({ ...described, data: 0n, shape: [0, 3] }).address).toBe(0n);
});

test.each<[Partial<Record<keyof DLTensor, unknown>>, string]>([
  [{ device: undefined }, 'descriptor.device: expected an object with type and id'],
  [
    { device: { type: 10, id: 0 } },
    'descriptor.device.type: expected one of 1 (kDLCPU), 2 (kDLCUDA), 3 (kDLCUDAHost), 12 ' +
      '(kDLExtDev), 13 (kDLCUDAManaged), got 10.',
  ],
  [{ deleter: 1 as never }, 'descriptor.deleter: expected a function, got 1.'],
  [
    { device: { type: 2, id: -1 } },
    'descriptor.device.id: expected a whole number from 0 to 2147483647, got -1.',
  ],
  [{ data: 4096 }, 'descriptor.data: expected an address, as a bigint, got 4096.'],
  [{ data: 0n }, 'descriptor.data: expected an address other than null, got 0n.'],
  [
    { data: 4098n },
    'descriptor.data: expected an address that is a multiple of the 4 bytes of f32, got 4098n.',
  ],
  [
    { byteOffset: 2 },
    'descriptor.data: expected an address with byteOffset 2 that is a multiple of the 4 ' +
      'bytes of f32',
  ],
  [
    { byteOffset: -4 },
    'descriptor.byteOffset: expected a whole number of at least 0 (bytes), got -4.',
  ],
  [
    { dtype: { code: 2, bits: 32, lanes: 4 } },
    'descriptor.dtype.lanes: expected 1, got 4. Describe vectors by one more axis.',
  ],
  [
    { dtype: { code: 5, bits: 32, lanes: 1 } },
    'descriptor.dtype: expected code and bits of one of u8, i8',
  ],
  [
    { dtype: { code: 2, bits: 128, lanes: 1 } },
    'descriptor.dtype: expected code and bits of one of',
  ],
  [{ shape: [2, -1] }, 'descriptor.shape[1]: expected a whole number of at least 0, got -1.'],
  [{ strides: [1] }, 'descriptor.strides: expected null, or 2 strides, got [ 1 ].'],
  [{ strides: [1, 0.5] }, 'descriptor.strides[1]: expected a whole number (elements), got 0.5.'],
  [
    { strides: [-3, 1] },
    'descriptor.strides: expected strides with which no element of [2, 3] lies before the ' +
      'memory, got [ -3, 1 ].',
  ],
  [
    { strides: [2 ** 52, 1] },
    'descriptor.strides: expected strides with which every element of [2, 3] has an address',
  ],
  [
    { data: 2n ** 64n - 8n },
    'descriptor.strides: expected strides with which every element of [2, 3] has an address',
  ],
  [{ readOnly: 1 }, 'descriptor.readOnly: expected true or false, got 1.'],
])('refuses what it cannot describe: %#', (change, message) => {
  expect(() => fromDLPack({ ...described, ...change } as DLTensor)).toThrow(message);
});

test('a value that is no tensor is refused', () => {
  expect(() => toDLPack({ dtype: i64, layout: contiguous([1]), address: 12n, device })).toThrow(
    'tensor.address: expected an address that is a multiple of the 8 bytes of i64, got 12n.',
  );
  expect(() => toDLPack({ dtype: f32, layout: [1] as never, address: 12n, device })).toThrow(
    'tensor.layout: expected a layout',
  );
  expect(() => toDLPack(undefined as never)).toThrow(
    'tensor: expected an object with dtype, layout, address and device',
  );
});
