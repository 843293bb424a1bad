import { CudaFormatError, DTYPES, bf16, f32, f8e4m3, i16 } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import { DTYPE_FACTS } from '../ground/dtype.js';
import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { expected, fixture, hex, unhex } from './fixtures.test-support.js';
import { contiguous, span, strided } from './layout.js';
import { layouts } from './naive-view.test-support.js';
import { readNpy, writeNpy } from './npy.js';
import { packed } from './tensor-data.js';
import { scaled } from '../../test/random-runs.js';

/** What is written of f8e5m2 NumPy loads; what ml_dtypes writes of it NumPy does not. */
const asWritten = (text: string): string => text.replace('|V1', '<V1').replace('<f1', '<V1');
const optionsFor = (name: keyof typeof DTYPES): { dtype?: DType } =>
  DTYPE_FACTS[name].npy.type.startsWith('V') ? { dtype: DTYPES[name] } : {};

/** A file with a header of one's own. */
function file(
  header: string,
  { data = 64, version = [1, 0] }: { data?: number; version?: number[] } = {},
): Uint8Array {
  const text = new TextEncoder().encode(header);
  const length =
    version[0] === 1
      ? [text.length & 255, text.length >> 8]
      : [text.length & 255, text.length >> 8, 0, 0];
  return Uint8Array.of(
    0x93,
    0x4e,
    0x55,
    0x4d,
    0x50,
    0x59,
    ...version,
    ...length,
    ...text,
    ...new Uint8Array(data),
  );
}
const header = (descr: string, shape = '(2,)', fortran = 'False'): string =>
  `{'descr': ${descr}, 'fortran_order': ${fortran}, 'shape': ${shape}, }`;

describe('arrays that NumPy wrote', () => {
  test.each(expected.npy)(
    '$dtype $shape at byte $start',
    ({ dtype, shape, fortran, hex: elements, start, end }) => {
      const array = readNpy(fixture('arrays.npy').subarray(start), optionsFor(dtype));
      expect(array.dtype).toBe(DTYPES[dtype]);
      expect(array.layout.shape).toEqual(shape);
      expect(hex(packed(array))).toBe(elements);
      expect(array.end).toBe(end - start);
      expect(array.layout.strides).toEqual(
        fortran
          ? shape.map((_, axis) => shape.slice(0, axis).reduce((a, b) => a * b, 1))
          : contiguous(shape).strides,
      );
    },
  );

  test('are a view of the file where they are aligned and little-endian', () => {
    const { start } = expected.npy.find(({ dtype }) => dtype === 'u8')!;
    const all = fixture('arrays.npy');
    expect(readNpy(all.subarray(start)).bytes.buffer).toBe(all.buffer);
  });

  test('of complex numbers are read', () => {
    const array = readNpy(unhex(expected.refused['complex']!));
    expect(array.dtype).toBe(DTYPES.complex64);
    expect(array.bytes.byteLength % 8).toBe(0);
  });

  const refused = Object.entries(expected.refused).filter(([what]) => what !== 'complex');
  test.each(refused)('of %s are refused', (_, text) => {
    expect(() => readNpy(unhex(text))).toThrow(
      expect.objectContaining({ code: 'ERR_CUDA_FORMAT', format: 'npy' }),
    );
  });
});

describe('what is written', () => {
  test('reads back, of every dtype and layout', { tags: 'random' }, () => {
    fc.assert(
      fc.property(layouts(), fc.constantFrom<DType>(...Object.values(DTYPES)), (layout, dtype) => {
        const bytes = Uint8Array.from({ length: span(layout).end * dtype.bytes }, (_, i) => i * 11);
        const tensor = { dtype, layout, bytes };
        const read = readNpy(writeNpy(tensor), optionsFor(dtype.name));
        expect(read.dtype).toBe(dtype);
        expect(read.layout.shape).toEqual(layout.shape);
        expect(hex(packed(read))).toBe(hex(packed(tensor)));
      }),
      { numRuns: 300 },
    );
  });

  test('is what NumPy writes, but for room in its header', () => {
    for (const { dtype, shape, start, end } of expected.npy.slice(0, 15)) {
      const theirs = fixture('arrays.npy').subarray(start, end);
      const ours = writeNpy(readNpy(theirs, optionsFor(dtype)));
      const text = (bytes: Uint8Array): string =>
        new TextDecoder('latin1').decode(bytes.subarray(10)).replace(/}[ ]*\n[^]*/, '}');
      expect(asWritten(text(ours)), `${dtype} ${shape.join()}`).toBe(asWritten(text(theirs)));
      expect(hex(ours.subarray(ours.length - 6))).toBe(hex(theirs.subarray(theirs.length - 6)));
    }
  });

  test('has its data at a multiple of 64 bytes', () => {
    for (const shape of [[], [1], [1, 2, 3], new Array<number>(40).fill(1)]) {
      const written = writeNpy({
        dtype: f32,
        layout: contiguous(shape),
        bytes: new Uint8Array(24),
      });
      expect(new DataView(written.buffer).getUint16(8, true) % 64).toBe(54);
    }
  });

  test("keeps Fortran's order without a copy", () => {
    const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6);
    const written = writeNpy({ dtype: DTYPES.u8, layout: strided([2, 3], [1, 2]), bytes });
    expect(new TextDecoder('latin1').decode(written)).toContain("'fortran_order': True");
    expect([...written.subarray(-6)]).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('has no more axes than NumPy', () => {
    const layout = contiguous(new Array<number>(65).fill(1));
    expect(() => writeNpy({ dtype: f32, layout, bytes: new Uint8Array(4) })).toThrow(
      'tensor: expected at most the 64 axes that NumPy has',
    );
  });
});

describe('types by other names', () => {
  test('words without a type need a dtype', () => {
    const words = file(header("'<V2'"));
    expect(() => readNpy(words)).toThrow(
      "npy: the file holds words of 16 bits without a type (descr '<V2'); name their dtype: " +
        'readNpy(file, { dtype: bf16 })',
    );
    expect(readNpy(words, { dtype: bf16 }).dtype).toBe(bf16);
    expect(readNpy(file(header("'|V1'")), { dtype: f8e4m3 }).dtype).toBe(f8e4m3);
    expect(readNpy(words, { dtype: i16 }).dtype).toBe(i16);
    expect(() => readNpy(words, { dtype: f32 })).toThrow(
      "npy: the file holds words of 2 bytes (descr '<V2'), and options.dtype, f32, has 4",
    );
  });

  test("ml_dtypes' own names are known", () => {
    expect(readNpy(file(header("'bfloat16'"))).dtype).toBe(bf16);
    expect(readNpy(file(header("'float8_e4m3fn'"))).dtype).toBe(f8e4m3);
  });

  test('a type other than the requested one is refused', () => {
    expect(() => readNpy(file(header("'<f4'")), { dtype: bf16 })).toThrow(
      "npy: the file holds f32 (descr '<f4'), and options.dtype is bf16",
    );
  });
});

test.each<[Uint8Array, string, number | undefined]>([
  [new Uint8Array(0), 'the file begins with nothing, not with 93 4e 55 4d 50 59', 0],
  [Uint8Array.of(0x50, 0x4b, 3, 4, 0, 0, 0, 0), 'the file begins with 50 4b 03 04 00 00 00 00', 0],
  [file(header("'<f4'"), { version: [4, 0] }), 'version 4.0; versions 1, 2 and 3 are known', 6],
  [
    file(header("'<f4'")).subarray(0, 9),
    'the file ends after 9 bytes, within the length of its header',
    9,
  ],
  [file(header("'<f4'")).subarray(0, 20), 'a header of 57 bytes, and the file has 10', 20],
  [
    Uint8Array.of(0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0, 255, 255, 255, 255),
    'a header of 4294967295 bytes',
    8,
  ],
  [file("{'descr': "), 'the header is no Python literal: expected a value, found the end', 20],
  [file('[]'), 'the header is a list, not a dictionary', 10],
  [file('{}'), 'the header has nothing, not descr, fortran_order and shape', 10],
  [
    file("{'descr': '<f4', 'shape': ()}"),
    "the header has 'descr', 'shape', not descr, fortran_order and shape",
    10,
  ],
  [file(header("'<f4'", '(2,)', '1')), 'fortran_order is 1, not True or False', undefined],
  [file(header("'<f4'", '2')), 'shape is 2, not a tuple', undefined],
  [file(header("'<f4'", '(-2,)')), 'the shape has an extent of -2', undefined],
  [file(header("'<f4'", '(True,)')), 'the shape has an extent of True', undefined],
  [
    file(header("'<f4'", `(${'1,'.repeat(65)})`)),
    'a shape of 65 axes; NumPy has no more than 64',
    undefined,
  ],
  [
    file(header("'<f4'", '(4503599627370496, 4503599627370496)')),
    'a shape of too many elements: [4503599627370496, 4503599627370496]',
    undefined,
  ],
  [
    file(header("'<f4'", '(0, 4503599627370496, 4503599627370496)')),
    'a shape of too many elements',
    undefined,
  ],
  [
    file(header("'<f4'", '(17,)')),
    '[17] of f32 takes 68 bytes, and the file has 64 after its header',
    132,
  ],
  [file(header("'<c32'")), "descr '<c32' is no dtype of tensors; they are u1, i1", undefined],
  [file(header("'<f16'")), "descr '<f16' is no dtype of tensors", undefined],
  [
    file(header("[('a', '<f4')]")),
    'the array has structures for elements (descr is a list)',
    undefined,
  ],
  [file(header('None')), 'descr is None, not a string', undefined],
])('says what was found: %#', (bytes, message, offset) => {
  let error: unknown;
  try {
    readNpy(bytes);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(CudaFormatError);
  expect((error as CudaFormatError).message).toContain(`npy: ${message}`);
  expect((error as CudaFormatError).offset).toBe(offset);
});

test('a header that is not UTF-8 is refused in version 3', () => {
  const bytes = file(header("'<f4'"), { version: [3, 0] });
  bytes[14] = 0xff;
  expect(() => readNpy(bytes)).toThrow('npy: the header is not UTF-8');
});

test('cut short or mutated, a file is read or refused', { tags: 'random' }, () => {
  const whole = expected.npy.map(({ start, end }) => fixture('arrays.npy').subarray(start, end));
  let refused = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...whole),
      fc.nat(),
      fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }),
      (original, cut, mutations) => {
        const bytes = original.slice(0, cut % (original.length + 1));
        for (const [at, byte] of mutations) if (at < bytes.length) bytes[at] = byte;
        try {
          const { dtype, layout, bytes: data, end } = readNpy(bytes, { dtype: bf16 });
          expect(span(layout).end * dtype.bytes).toBeLessThanOrEqual(data.length);
          expect(end).toBeLessThanOrEqual(bytes.length);
        } catch (error) {
          refused++;
          expect(error).toBeInstanceOf(CudaFormatError);
        }
      },
    ),
    { numRuns: 3000 },
  );
  expect(refused).toBeGreaterThan(scaled(1000));
});

test('arguments are checked', () => {
  expect(() => readNpy(new ArrayBuffer(8) as never)).toThrow(
    'file: expected a Uint8Array, got ArrayBuffer',
  );
  expect(() => readNpy(new Uint8Array(8), { dype: f32 } as never)).toThrow(
    "options: there is no option 'dype'. Did you mean 'dtype'?",
  );
});

test('a file may lie in shared memory', () => {
  const { start, end, hex: elements } = expected.npy.find(({ dtype }) => dtype === 'f32')!;
  const shared = new Uint8Array(new SharedArrayBuffer(end - start));
  shared.set(fixture('arrays.npy').subarray(start, end));
  expect(hex(packed(readNpy(shared)))).toBe(elements);
});
