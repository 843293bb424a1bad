import { DTYPES, f32, u16, u8 } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import { contiguous, elements, span, strided } from './layout.js';
import { layouts } from './naive-view.test-support.js';
import { inBytes } from './reinterpreting.js';
import { aligned, checkTensorData, packed, wordsOf } from './tensor-data.js';

test(
  'packed bytes are the elements in order, of every dtype and layout',
  { tags: 'random' },
  () => {
    fc.assert(
      fc.property(
        layouts(),
        fc.constantFrom<DType>(...Object.values(DTYPES)),
        fc.nat(7),
        (layout, dtype, shift) => {
          const length = span(layout).end * dtype.bytes;
          const bytes = Uint8Array.from({ length: length + shift }, (_, i) => i * 7).subarray(
            shift,
          );
          expect([...packed({ dtype, layout, bytes })]).toEqual(
            [...elements(inBytes(layout, dtype))].map((at) => bytes[at]),
          );
        },
      ),
      { numRuns: 500 },
    );
  },
);

test('what lies packed already is not copied', () => {
  const bytes = new Uint8Array(100);
  const part = packed({ dtype: f32, layout: contiguous([2, 3], 4), bytes });
  expect([part.buffer, part.byteOffset, part.length]).toEqual([bytes.buffer, 16, 24]);
});

test('words are a view where the bytes are aligned, else of a copy', () => {
  const bytes = Uint8Array.of(9, 1, 2, 3, 4, 5);
  const words = wordsOf({ dtype: u16, layout: contiguous([2]), bytes: bytes.subarray(2) });
  expect(words).toEqual(Uint16Array.of(0x0302, 0x0504));
  expect(words.buffer).toBe(bytes.buffer);
  const copied = wordsOf({ dtype: u16, layout: contiguous([2]), bytes: bytes.subarray(1) });
  expect(copied).toEqual(Uint16Array.of(0x0201, 0x0403));
  expect(copied.buffer).not.toBe(bytes.buffer);
  expect(aligned(bytes.subarray(1), 1).buffer).toBe(bytes.buffer);
});

test.each([
  [undefined, 't: expected an object with dtype, layout and bytes, got undefined.'],
  [{ dtype: 'f32' }, 't.dtype: expected one of'],
  [{ dtype: f32, bytes: new ArrayBuffer(4) }, 'Write new Uint8Array(buffer).'],
  [
    { dtype: f32, bytes: new Float32Array(4) },
    'Write new Uint8Array(array.buffer, array.byteOffset, array.byteLength).',
  ],
  [
    { dtype: f32, bytes: new Uint8Array(4), layout: [2] },
    't.layout: expected a layout, got [ 2 ]. Write contiguous(shape).',
  ],
  [
    { dtype: f32, bytes: new Uint8Array(23), layout: contiguous([2, 3]) },
    't.bytes: expected at least 24 bytes, which [2, 3] of f32 takes, got Uint8Array(23).',
  ],
  [
    { dtype: u8, bytes: new Uint8Array(5), layout: strided([3], [2], 1) },
    't.bytes: expected at least 6 bytes',
  ],
])('refuses what is no tensor: %#', (tensor, message) => {
  expect(() => checkTensorData('t', tensor)).toThrow(message);
});
