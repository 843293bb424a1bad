import { CudaFormatError, DTYPES, f32, u8 } from 'async-cuda/core';
import type { DType } from 'async-cuda/core';
import { DTYPE_FACTS } from '../ground/dtype.js';
import * as fc from '../../test/fast-check.js';
import { describe, expect, test } from 'vitest';

import { expected, fixture, hex } from './fixtures.test-support.js';
import { contiguous, span, strided } from './layout.js';
import { layouts } from './naive-view.test-support.js';
import {
  readSafetensors,
  readSafetensorsHeader,
  safetensorsHeaderBytes,
  writeSafetensors,
} from './safetensors.js';
import { packed } from './tensor-data.js';
import type { TensorData } from './tensor-data.js';
import { scaled } from '../../test/random-runs.js';

/** A file with a given header, and `data` bytes after it. */
function file(header: string | object, data = 0): Uint8Array {
  const text = new TextEncoder().encode(
    typeof header === 'string' ? header : JSON.stringify(header),
  );
  const bytes = new Uint8Array(8 + text.length + data);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 8);
  return bytes;
}
const entry = (start: number, end: number, more: object = {}): object => ({
  dtype: 'U8',
  shape: [end - start],
  data_offsets: [start, end],
  ...more,
});

describe('the file that the reference wrote', () => {
  const original = fixture('tensors.safetensors');

  test('gives its tensors and metadata', () => {
    const { tensors, metadata } = readSafetensors(original);
    expect(Object.fromEntries(metadata)).toEqual({ format: 'np' });
    expect([...tensors.keys()].sort()).toEqual(Object.keys(expected.safetensors).sort());
    for (const [name, { dtype, shape, hex: elements }] of Object.entries(expected.safetensors)) {
      const tensor = tensors.get(name)!;
      expect(tensor.dtype).toBe(DTYPES[dtype]);
      expect(tensor.layout).toEqual(contiguous(shape));
      expect(hex(tensor.bytes)).toBe(elements);
    }
  });

  test('is written again byte for byte', () => {
    const { tensors, metadata } = readSafetensors(original);
    const shuffled = new Map([...tensors].reverse());
    expect(hex(writeSafetensors(shuffled, { metadata }))).toBe(hex(original));
  });

  test('tensors are views where they are aligned', () => {
    const { tensors } = readSafetensors(original);
    for (const { bytes } of tensors.values()) expect(bytes.buffer).toBe(original.buffer);
    const odd = new Uint8Array(original.length + 1).subarray(1);
    odd.set(original);
    for (const [name, { bytes, dtype }] of readSafetensors(odd).tensors) {
      expect(hex(bytes)).toBe(expected.safetensors[name]!.hex);
      expect(bytes.byteOffset % dtype.bytes).toBe(0);
    }
  });

  test('the header alone has the place of each tensor', () => {
    const begin = safetensorsHeaderBytes(original.subarray(0, 8));
    const { tensors, fileBytes } = readSafetensorsHeader(original.slice(0, begin));
    expect(fileBytes).toBe(original.length);
    for (const [name, { start, end }] of tensors)
      expect(hex(original.subarray(start, end))).toBe(expected.safetensors[name]!.hex);
  });
});

describe('what is written', () => {
  test('reads back, of every dtype, layout and name', { tags: 'random' }, () => {
    const named = Object.values(DTYPES).filter(
      ({ name }) => DTYPE_FACTS[name].safetensors !== null,
    );
    const tensor = fc
      .tuple(layouts({ maxRank: 3 }), fc.constantFrom<DType>(...named))
      .map(([layout, dtype]): TensorData => ({
        dtype,
        layout,
        bytes: Uint8Array.from({ length: span(layout).end * dtype.bytes }, (_, i) => i * 13),
      }));
    const name = fc.string({ unit: 'grapheme' }).filter((text) => text !== '__metadata__');
    const metadata = fc
      .array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })))
      .map((entries) => new Map(entries));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(name, tensor), { maxLength: 6 }).map((entries) => new Map(entries)),
        metadata,
        (tensors, texts) => {
          const read = readSafetensors(writeSafetensors(tensors, { metadata: texts }));
          expect(new Map(read.metadata)).toEqual(texts);
          expect(read.tensors.size).toBe(tensors.size);
          for (const [key, written] of tensors) {
            const back = read.tensors.get(key)!;
            expect(back.dtype).toBe(written.dtype);
            expect(back.layout.shape).toEqual(written.layout.shape);
            expect(hex(back.bytes)).toBe(hex(packed(written)));
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test('may be no tensors at all', () => {
    const nothing = writeSafetensors({});
    expect(hex(nothing)).toBe('08000000000000007b7d202020202020');
    expect(readSafetensors(nothing).tensors.size).toBe(0);
  });

  test('keeps names that objects have by themselves', () => {
    const tensor = { dtype: u8, layout: contiguous([1]), bytes: Uint8Array.of(7) };
    const read = readSafetensors(
      writeSafetensors(
        new Map([
          ['__proto__', tensor],
          ['constructor', tensor],
        ]),
      ),
    );
    expect([...read.tensors.keys()].sort()).toEqual(['__proto__', 'constructor']);
  });

  test.each<[() => unknown, string]>([
    [() => writeSafetensors([] as never), 'tensors: expected an object or a Map, by names'],
    [
      () =>
        writeSafetensors({
          __metadata__: { dtype: u8, layout: contiguous([1]), bytes: new Uint8Array(1) },
        }),
      'tensors: expected names other than __metadata__',
    ],
    [
      () =>
        writeSafetensors({
          '\ud800': { dtype: u8, layout: contiguous([1]), bytes: new Uint8Array(1) },
        }),
      'tensors: expected Unicode text, without lone surrogates',
    ],
    [
      () =>
        writeSafetensors({
          x: { dtype: f32, layout: strided([2], [3]), bytes: new Uint8Array(15) },
        }),
      'tensors["x"].bytes: expected at least 16 bytes',
    ],
    [
      () => writeSafetensors({}, { metadata: { a: 1 } as never }),
      'options.metadata["a"]: expected a text, got 1.',
    ],
    [() => writeSafetensors({}, { meta: {} } as never), "options: there is no option 'meta'."],
  ])('refuses what the format does not take: %#', (call, message) => {
    expect(call).toThrow(message);
  });
});

test.each<[Uint8Array, string]>([
  [new Uint8Array(7), 'the file has 7 bytes, and the length of its header takes 8'],
  [new Uint8Array(8), 'an empty header'],
  [Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0), 'a header of 1 bytes, and the file has 0'],
  [
    new Uint8Array(8).fill(255),
    'a header of 18446744073709552000 bytes; the format allows 100000000',
  ],
  [file(' {}'), "the header does not begin with '{'"],
  [file('{'), 'the header is no JSON'],
  [file('{} x'), 'the header is no JSON'],
  [file({ a: 1 }), 'tensor "a" is 1, not an object'],
  [file({ a: [] }), 'tensor "a" is [], not an object'],
  [file({ a: {} }), 'tensor "a" has dtype none; dtypes of tensors are BOOL, U8'],
  [file({ a: entry(0, 1, { dtype: 'C128' }) }, 1), 'tensor "a" has dtype "C128"'],
  [file({ a: entry(0, 1, { dtype: 'toString' }) }, 1), 'tensor "a" has dtype "toString"'],
  [file({ a: entry(0, 1, { shape: 1 }) }, 1), 'tensor "a" has shape 1, not a list of extents'],
  [
    file({ a: entry(0, 1, { shape: [-1] }) }, 1),
    'tensor "a" has shape [-1], not a list of extents',
  ],
  [
    file({ a: entry(0, 1, { shape: [0.5] }) }, 1),
    'tensor "a" has shape [0.5], not a list of extents',
  ],
  [
    file({ a: entry(0, 1, { shape: new Array(65).fill(1) }) }, 1),
    'tensor "a" has 65 axes; expected no more than 64',
  ],
  [
    file({ a: entry(0, 1, { data_offsets: [0] }) }, 1),
    'tensor "a" has data_offsets [0], not [start, end]',
  ],
  [
    file({ a: entry(0, 1, { data_offsets: [1, 0] }) }, 1),
    'tensor "a" has data_offsets [1,0], -1 bytes; [1] of u8 takes 1',
  ],
  [
    file({ a: entry(0, 4, { dtype: 'F32', shape: [2] }) }, 4),
    'tensor "a" has data_offsets [0,4], 4 bytes; [2] of f32 takes 8',
  ],
  [
    file({ a: entry(0, 0, { shape: [2 ** 40, 2 ** 40, 0] }) }),
    'tensor "a" has a shape of too many elements: [1099511627776, 1099511627776, 0]',
  ],
  [file({ a: entry(0, 4), b: entry(5, 8) }, 8), 'tensor "b" begins at byte'],
  [file({ a: entry(0, 4), b: entry(3, 8) }, 8), 'within the tensor before it'],
  [file({ a: entry(1, 4) }, 4), 'after a hole'],
  [file({ a: entry(0, 4) }, 5), 'the file has'],
  [file({ a: entry(0, 4) }, 3), 'the file has'],
  [
    file(
      '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},' +
        '"\\u0061":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}',
      1,
    ),
    'the key "a" twice',
  ],
  [
    file('{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}', 1),
    'the key "dtype" twice',
  ],
  [file('{"\\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 1), 'is not Unicode'],
  [file({ __metadata__: [] }), '__metadata__ is [], not an object of texts'],
  [file({ __metadata__: { a: 1 } }), '__metadata__ has 1 for "a", not a text'],
  [file('{"a\xff":1}').map((byte) => (byte === 0xc3 ? 0xff : byte)), 'the header is not UTF-8'],
])('says what was found: %#', (bytes, message) => {
  let error: unknown;
  try {
    readSafetensors(bytes);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(CudaFormatError);
  expect(error).toMatchObject({ code: 'ERR_CUDA_FORMAT', format: 'safetensors' });
  expect((error as CudaFormatError).message).toContain(message);
});

test('brackets in names are none, and empty tensors may lie anywhere between', () => {
  const { tensors } = readSafetensors(
    file({ 'a{"}': entry(0, 2), b: entry(2, 2), '{': entry(2, 3), c: entry(3, 3) }, 3),
  );
  expect([...tensors.keys()]).toEqual(['a{"}', 'b', '{', 'c']);
});

test('cut short or mutated, a file is read or refused', { tags: 'random' }, () => {
  const original = fixture('tensors.safetensors');
  let refused = 0;
  const mutation = fc.tuple(
    fc.nat(original.length - 1),
    fc.oneof(fc.nat(255), fc.constantFrom(...new TextEncoder().encode('{}[]",:0123456789'))),
  );
  fc.assert(
    fc.property(
      fc.option(fc.nat(original.length)),
      fc.array(mutation, { maxLength: 4 }),
      (cut, mutations) => {
        const bytes = original.slice(0, cut ?? undefined);
        for (const [at, byte] of mutations) if (at < bytes.length) bytes[at] = byte;
        try {
          for (const { dtype, layout, bytes: data } of readSafetensors(bytes).tensors.values())
            expect(span(layout).end * dtype.bytes).toBe(
              data.length || span(layout).end * dtype.bytes,
            );
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

test('a file may lie in shared memory', () => {
  const original = fixture('tensors.safetensors');
  const shared = new Uint8Array(new SharedArrayBuffer(original.length));
  shared.set(original);
  expect(readSafetensors(shared).tensors.size).toBe(Object.keys(expected.safetensors).length);
});

describe('tensors of other types', () => {
  const mixed = (): Uint8Array =>
    file(
      {
        scale: entry(0, 4, { dtype: 'F8_E8M0' }),
        w: entry(4, 8, { dtype: 'F32', shape: [1] }),
        z: entry(8, 10, { dtype: 'X_NEW', shape: [3] }),
      },
      10,
    );

  test('keep none from being read that is named', () => {
    const { tensors } = readSafetensors(mixed(), ['w']);
    expect([...tensors.keys()]).toEqual(['w']);
    expect(tensors.get('w')!.dtype).toBe(f32);
    expect([...readSafetensors(mixed(), []).tensors]).toEqual([]);
  });

  test('are refused where they are named, or all are read', () => {
    expect(() => readSafetensors(mixed(), ['w', 'scale'])).toThrow(
      'tensor "scale" has dtype "F8_E8M0"; dtypes of tensors are BOOL, U8',
    );
    expect(() => readSafetensors(mixed())).toThrow('tensor "scale" has dtype "F8_E8M0"');
    expect(() => readSafetensors(mixed(), ['v'])).toThrow(
      "names: expected names of the file: w, got 'v'",
    );
    expect(() => readSafetensors(mixed(), 'w' as never)).toThrow('names: expected a list of names');
  });

  test('are in the header beside the others, with their places', () => {
    const { tensors, others, fileBytes } = readSafetensorsHeader(mixed());
    const [begin] = [tensors.get('w')!.start - 4];
    expect([...others]).toEqual([
      ['scale', { dtype: 'F8_E8M0', shape: [4], start: begin, end: begin + 4 }],
      ['z', { dtype: 'X_NEW', shape: [3], start: begin + 8, end: begin + 10 }],
    ]);
    expect(fileBytes).toBe(begin + 10);
  });

  test('do not hide a file that is damaged', () => {
    expect(() =>
      readSafetensors(
        file(
          { scale: entry(0, 4, { dtype: 'F4' }), w: entry(3, 7, { dtype: 'F32', shape: [1] }) },
          7,
        ),
        ['w'],
      ),
    ).toThrow('within the tensor before it');
    expect(() => readSafetensors(mixed().subarray(0, -1), ['w'])).toThrow('its header says');
  });
});
