/** The offsets of declared parameters where neither PTX nor the driver gives them. */
import { expect, test } from 'vitest';

import { f32, f64, u8 } from '../ground/dtype.js';
import { inout } from './parameter-declarations.js';
import { layoutFromDeclaration } from './signature.js';
import { struct } from './struct-declaration.js';

const places = (declarations: Parameters<typeof layoutFromDeclaration>[1]): number[][] =>
  layoutFromDeclaration('kernel', declarations, undefined).map(({ offset, size }) => [
    offset,
    size,
  ]);

test('each parameter begins at a multiple of its size, and the last one ends where it ends', () => {
  expect(places([inout(f32), u8, f32, f64, u8])).toEqual([
    [0, 8],
    [8, 1],
    [12, 4],
    [16, 8],
    [24, 1],
  ]);
});

test('a structure begins at a multiple of its alignment', () => {
  expect(places([f32, struct(8, 4), u8])).toEqual([
    [0, 4],
    [4, 8],
    [12, 1],
  ]);
  expect(places([f32, struct(8, 8), u8])).toEqual([
    [0, 4],
    [8, 8],
    [16, 1],
  ]);
});

test('a structure whose offset is not certain needs its alignment', () => {
  expect(() => places([f32, struct(8)])).toThrow(
    "signature[1]: this driver does not give the offset of parameter 1 of kernel 'kernel'. Give " +
      "the structure's alignment",
  );
  expect(places([f64, struct(8)])).toEqual([
    [0, 8],
    [8, 8],
  ]);
});

test('parameters beyond what CUDA allows are refused', () => {
  expect(() => struct(32765)).toThrow('bytes: expected a whole number from 1 to 32764');
  expect(() => struct(8, 3)).toThrow('align: expected 1, 2, 4, 8 or 16, got 3');
  expect(() => places([struct(32000), struct(1000)])).toThrow('at most 32764 bytes of parameters');
});
