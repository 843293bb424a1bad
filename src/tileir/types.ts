/** Types of Tile IR, and the table of those that a module uses. */
import { Bytes } from './bytes.js';
import { Table } from './tables.js';

/** Types of elements, and of tokens, by their tags. */
const SIMPLE = {
  i1: 0x00,
  i8: 0x01,
  i16: 0x02,
  i32: 0x03,
  i64: 0x04,
  f16: 0x05,
  bf16: 0x06,
  f32: 0x07,
  tf32: 0x08,
  f64: 0x09,
  f8E4M3FN: 0x0a,
  f8E5M2: 0x0b,
  token: 0x11,
} as const;

/** Types of several parts, by their tags. */
const COMPOSITE = { pointer: 0x0c, tile: 0x0d, tensorView: 0x0e, partition: 0x0f, function: 0x10 };

/** Element types. Integers have no sign: operations do. */
export type ElementName = Exclude<keyof typeof SIMPLE, 'token'>;

declare const typeId: unique symbol;
/** The number of a type in the module's table. */
export type TypeId = number & { readonly [typeId]: true };

/** The value of elements that a load gives outside of the tensor, by its number. */
const PADDINGS = { zero: 0, negativeZero: 1, nan: 2, infinity: 3, negativeInfinity: 4 } as const;
export type Padding = keyof typeof PADDINGS;

/** A length or stride that is a value, and not part of the type. */
export const DYNAMIC = -(2n ** 63n);

/** The types of a module. */
export class TypeTable extends Table {
  constructor() {
    super();
    // i1 and i32 have the first numbers in every module.
    this.simple('i1');
    this.simple('i32');
  }

  simple(name: keyof typeof SIMPLE): TypeId {
    return this.add((to) => {
      to.byte(SIMPLE[name]);
    });
  }

  get token(): TypeId {
    return this.simple('token');
  }

  pointer(to: ElementName): TypeId {
    const pointee = this.simple(to);
    return this.add((item) => {
      item.byte(COMPOSITE.pointer);
      item.varint(pointee);
    });
  }

  /** A tile: every extent is a power of two, and there is none for a scalar. */
  tile(element: TypeId, shape: readonly number[]): TypeId {
    return this.add((to) => {
      to.byte(COMPOSITE.tile);
      to.varint(element);
      to.integers(shape, 8);
    });
  }

  /** A tensor in memory. {@link DYNAMIC} lengths and strides are operands of the view. */
  tensorView(
    element: ElementName,
    shape: readonly (number | bigint)[],
    strides: readonly (number | bigint)[],
  ): TypeId {
    const of = this.simple(element);
    return this.add((to) => {
      to.byte(COMPOSITE.tensorView);
      to.varint(of);
      to.integers(shape, 8);
      to.integers(strides, 8);
    });
  }

  /** A tensor cut into tiles. */
  partition(tile: readonly number[], view: TypeId, padding?: Padding): TypeId {
    return this.add((to) => {
      to.byte(COMPOSITE.partition);
      to.varint(padding === undefined ? 0 : 1);
      to.integers(tile, 4);
      to.varint(view);
      // Axis n of the tile is axis n of the tensor.
      to.integers(
        tile.map((_, axis) => axis),
        4,
      );
      if (padding !== undefined) to.byte(PADDINGS[padding]);
    });
  }

  /** The type of a function without results. */
  function(parameters: readonly TypeId[]): TypeId {
    return this.add((to) => {
      to.byte(COMPOSITE.function);
      to.varints(parameters);
      to.varint(0);
    });
  }

  private add(write: (to: Bytes) => void): TypeId {
    const item = new Bytes();
    write(item);
    return this.numberOf(item.toArray()) as TypeId;
  }
}
