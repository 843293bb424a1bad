import * as fc from '../../test/fast-check.js';
import { expect, test } from 'vitest';

import {
  CudaArgumentError,
  DTYPES,
  bool,
  f16,
  f32,
  f64,
  f8e4m3,
  i16,
  i64,
  i8,
  u64,
  u8,
} from '../core/index.js';
import { FLOAT_LIMITS, namesWhere } from '../ground/dtype.js';
import type { KernelDTypeName } from '../ground/dtype.js';
import { isNarrow } from '../ground/narrow-floats.js';
import type { NarrowName } from '../ground/narrow-floats.js';
import { struct } from './struct-declaration.js';

test.each([
  [{ a: i8, b: f64, c: i16 }, [0, 8, 16], 24, 8],
  [{ a: i8, b: i8, c: i16 }, [0, 1, 2], 4, 2],
  [{ x: f32, y: f32, z: f32 }, [0, 4, 8], 12, 4],
  [{ a: bool, b: f16, c: u8, d: u64 }, [0, 2, 4, 8], 16, 8],
])('is laid out as C lays it out: %o', (fields, offsets, bytes, align) => {
  const declared = struct(fields);
  expect(declared.layout.fields.map(({ offset }) => offset)).toEqual(offsets);
  expect([declared.bytes, declared.align]).toEqual([bytes, align]);
});

test('unpack reverses pack', { tags: 'random' }, () => {
  const values: Record<
    Exclude<KernelDTypeName, NarrowName>,
    fc.Arbitrary<number | bigint | boolean>
  > = {
    i8: fc.integer({ min: -128, max: 127 }),
    u8: fc.integer({ min: 0, max: 255 }),
    i16: fc.integer({ min: -32768, max: 32767 }),
    u16: fc.integer({ min: 0, max: 65535 }),
    i32: fc.integer(),
    u32: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
    i64: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    u64: fc.bigInt(0n, 2n ** 64n - 1n),
    f32: fc.float(),
    f64: fc.double(),
    bool: fc.boolean(),
  };
  const valuesOf = (name: KernelDTypeName): fc.Arbitrary<number | bigint | boolean> => {
    if (!isNarrow(name)) return values[name];
    const { epsilon, max } = FLOAT_LIMITS[name]!;
    const exact = Math.floor(Math.min(2 / epsilon, max));
    return fc.integer({ min: -exact, max: exact });
  };
  const names = namesWhere(({ compute }) => compute !== null) as KernelDTypeName[];
  fc.assert(
    fc.property(
      fc
        .array(fc.constantFrom(...names), { minLength: 1, maxLength: 8 })
        .chain((dtypes) =>
          fc.tuple(
            fc.constant(dtypes),
            fc.array(fc.tuple(...dtypes.map(valuesOf)), { maxLength: 4 }),
          ),
        ),
      ([dtypes, rows]) => {
        const declared = struct(
          Object.fromEntries(dtypes.map((name, index) => [`f${index}`, DTYPES[name]])),
        );
        const given = rows.map((row) =>
          Object.fromEntries(row.map((value, index) => [`f${index}`, value])),
        );
        const bytes = declared.pack(given as never);
        expect(bytes.length).toBe(rows.length * declared.bytes);
        expect(declared.unpack(bytes)).toEqual(given);
      },
    ),
  );
});

test('the bytes are those of the device', () => {
  const declared = struct({ flag: bool, half: f16, tiny: f8e4m3, wide: i64 });
  expect([...declared.pack([{ flag: true, half: 1.5, tiny: 1, wide: -2 }])]).toEqual([
    1, 0, 0x00, 0x3e, 0x38, 0, 0, 0, 0xfe, 255, 255, 255, 255, 255, 255, 255,
  ]);
});

test.each<[string, () => unknown, string]>([
  [
    'nothing',
    () => struct(undefined as never),
    'fields: expected an object of dtypes, or a number of bytes, got undefined.',
  ],
  ['no fields', () => struct({}), 'fields: expected at least one field'],
  ['a field of no dtype', () => struct({ x: 'f32' } as never), 'fields.x'],
  [
    'a structure in a structure',
    () => struct({ at: struct({ x: f32 }) } as never),
    'fields.at: expected a dtype, got struct({ x: f32 }). Structures cannot contain ' +
      "structures: list the fields of 'at' among the others.",
  ],
  [
    'a field whose name is none',
    () => struct({ 'a b': f32 }),
    'fields: expected the name of a field',
  ],
  [
    'more than a parameter holds',
    () => struct(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`f${i}`, f64]))),
    'bytes',
  ],
  [
    'bytes that are no structures',
    () => struct({ x: f32 }).unpack(new Uint8Array(5)),
    "bytes: expected an array of a multiple of 4 bytes, got '5 bytes'. It is struct({ x: f32 }).",
  ],
  [
    'a value of another type',
    () => struct({ x: f32 }).pack([{ x: 'y' } as never]),
    "values[0].x: expected a number for f32, got 'y'.",
  ],
  [
    'one structure in the place of a list',
    () => struct({ x: f32 }).pack({ x: 1 } as never),
    'Write pack([{ … }, { … }]).',
  ],
])('%s', (_, make, message) => {
  expect(make).toThrow(CudaArgumentError);
  expect(make).toThrow(message);
});
