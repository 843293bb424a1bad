/**
 * Conversions between values and their form in memory: narrow integers, and floats of 16 and 8
 * bits.
 */
import type { StorageType } from '../tree.js';
import type { Builder } from './builder.js';
import type { MemoryAccess, Value } from './function.js';

/** The form in which each dtype is read. bf16 and f8 are read as the bits of an integer. */
export const formOf: Readonly<Record<StorageType, MemoryAccess['form']>> = {
  bool: 'u8',
  i8: 's8',
  u8: 'u8',
  i16: 's16',
  u16: 'u16',
  f16: 'b16',
  bf16: 'u16',
  f8e4m3: 'u8',
  f8e5m2: 'u8',
  i32: 'b32',
  u32: 'b32',
  i64: 'b64',
  u64: 'b64',
  f32: 'f32',
  f64: 'f64',
};

/** The register of each form. */
export const registerOfForm = {
  s8: 'b32',
  u8: 'b32',
  s16: 'b32',
  u16: 'b32',
  b16: 'b16',
  b32: 'b32',
  b64: 'b64',
  f32: 'f32',
  f64: 'f64',
} as const;

/** Converts a value from its form in memory. */
export function fromMemory(b: Builder, storage: StorageType, read: Value): Value {
  const int = (value: number): Value => b.constant('b32', value);
  switch (storage) {
    case 'bool':
      return b.make('compare', 'pred', [read, int(0)], 'ne', 's32');
    case 'f16':
      return b.make('convert', 'f32', [read], 'f32.f16');
    case 'bf16':
      return b.make('bits', 'f32', [b.make('shl', 'b32', [read, int(16)])]);
    // An f16 with the same exponent bits.
    case 'f8e5m2':
      return b.make(
        'convert',
        'f32',
        [b.make('bits', 'b16', [b.make('shl', 'b32', [read, int(8)])])],
        'f32.f16',
      );
    case 'f8e4m3': {
      // An f16 whose exponent is smaller by 8; subnormals fit too. All ones are NaN; there is no
      // infinity.
      const magnitude = b.make('and', 'b32', [read, int(0x7f)]);
      const sign = b.make('shl', 'b32', [b.make('and', 'b32', [read, int(0x80)]), int(8)]);
      const half = b.make('or', 'b32', [b.make('shl', 'b32', [magnitude, int(7)]), sign]);
      const scaled = b.make('mul', 'f32', [
        b.make('convert', 'f32', [b.make('bits', 'b16', [half])], 'f32.f16'),
        b.constant('f32', 256),
      ]);
      return b.make('select', 'f32', [
        b.make('compare', 'pred', [magnitude, int(0x7f)], 'eq', 's32'),
        b.constant('f32', NaN),
        scaled,
      ]);
    }
    case 'i8':
    case 'u8':
    case 'i16':
    case 'u16':
    case 'i32':
    case 'u32':
    case 'i64':
    case 'u64':
    case 'f32':
    case 'f64':
      return read;
    default:
      return storage satisfies never;
  }
}

/** Converts a value to its form in memory; the store itself narrows integers. */
export function toMemory(b: Builder, storage: StorageType, value: Value): Value {
  switch (storage) {
    case 'bool':
      return b.make('select', 'b32', [value, b.constant('b32', 1), b.constant('b32', 0)]);
    case 'f16':
      return b.make('convert', 'b16', [value], 'f16.f32');
    case 'bf16':
      return b.options.capability >= 80
        ? b.make('bits', 'b32', [b.make('convert', 'b16', [value], 'bf16.f32')])
        : roundToBfloat(b, value);
    case 'f8e4m3':
    case 'f8e5m2': {
      const kind = storage === 'f8e4m3' ? 'e4m3' : 'e5m2';
      if (b.options.capability < 89) return roundToByte(b, value, kind);
      const pair = b.make('convert', 'b16', [value], `${kind}.f32`);
      return b.make('and', 'b32', [b.make('bits', 'b32', [pair]), b.constant('b32', 0xff)]);
    }
    case 'i8':
    case 'u8':
    case 'i16':
    case 'u16':
    case 'i32':
    case 'u32':
    case 'i64':
    case 'u64':
    case 'f32':
    case 'f64':
      return value;
    default:
      return storage satisfies never;
  }
}

/** The value after a store and a load. */
export function throughMemory(b: Builder, storage: StorageType, value: Value): Value {
  switch (storage) {
    case 'i8':
    case 'u8':
    case 'i16':
    case 'u16':
      return b.make(
        'narrow',
        'b32',
        [value],
        `${storage[0] === 'i' ? 's' : 'u'}${storage.slice(1)}`,
      );
    case 'f16':
    case 'bf16':
    case 'f8e4m3':
    case 'f8e5m2':
      return fromMemory(b, storage, toMemory(b, storage, value));
    case 'bool':
    case 'i32':
    case 'u32':
    case 'i64':
    case 'u64':
    case 'f32':
    case 'f64':
      return value;
    default:
      return storage satisfies never;
  }
}

/** The upper half of the bits, rounded to nearest even; NaN as cvt.rn.bf16 gives it. */
function roundToBfloat(b: Builder, value: Value): Value {
  const int = (constant: number): Value => b.constant('b32', constant);
  const bits = b.make('bits', 'b32', [value]);
  const odd = b.make('and', 'b32', [b.make('shr', 'b32', [bits, int(16)], '', 'u32'), int(1)]);
  const rounded = b.make('add', 'b32', [b.make('add', 'b32', [bits, odd]), int(0x7fff)]);
  const upper = b.make('shr', 'b32', [rounded, int(16)], '', 'u32');
  const isNaN = b.make('compare', 'pred', [value, value], 'nan', 'f32');
  return b.make('select', 'b32', [isNaN, int(0x7fff), upper]);
}

const bytes = {
  // The largest value; dropped bits; the difference of the exponents, in the result's place; the
  // smallest normal value; a float whose last place is that of a subnormal.
  e4m3: { largest: 448, drop: 20, rebias: 120 << 3, normal: 2 ** -6, magic: 2 ** 14 },
  e5m2: { largest: 57344, drop: 21, rebias: 112 << 2, normal: 2 ** -14, magic: 2 ** 7 },
} as const;

/**
 * Rounds to nearest even and stays finite, as cvt.rn.satfinite does on devices of compute
 * capability 8.9.
 */
function roundToByte(b: Builder, value: Value, kind: keyof typeof bytes): Value {
  const { largest, drop, rebias, normal, magic } = bytes[kind];
  const int = (constant: number): Value => b.constant('b32', constant);
  const float = (constant: number): Value => b.constant('f32', constant);
  const isNaN = b.make('compare', 'pred', [value, value], 'nan', 'f32');
  const absolute = b.make('abs', 'f32', [value]);
  const fits = b.make('select', 'f32', [
    b.make('compare', 'pred', [absolute, float(largest)], 'gt', 'f32'),
    float(largest),
    absolute,
  ]);
  const bits = b.make('bits', 'b32', [fits]);
  const odd = b.make('and', 'b32', [b.make('shr', 'b32', [bits, int(drop)], '', 'u32'), int(1)]);
  const half = b.make('add', 'b32', [b.make('add', 'b32', [bits, odd]), int(2 ** (drop - 1) - 1)]);
  const usual = b.make('add', 'b32', [
    b.make('shr', 'b32', [half, int(drop)], '', 'u32'),
    int(-rebias),
  ]);
  // In a sum with the magic number, the last place is that of the smallest subnormal, and the bits
  // count subnormals.
  const counted = b.make('and', 'b32', [
    b.make('bits', 'b32', [b.make('add', 'f32', [fits, float(magic)])]),
    int(0xff),
  ]);
  const small = b.make('compare', 'pred', [fits, float(normal)], 'lt', 'f32');
  const magnitude = b.make('select', 'b32', [
    isNaN,
    int(0x7f),
    b.make('select', 'b32', [small, counted, usual]),
  ]);
  const sign = b.make('and', 'b32', [
    b.make('shr', 'b32', [b.make('bits', 'b32', [value]), int(24)], '', 'u32'),
    int(0x80),
  ]);
  return b.make('or', 'b32', [magnitude, b.make('select', 'b32', [isNaN, int(0), sign])]);
}
