/**
 * Values of the kernel as tiles of rows and columns, with one of either where all are the same.
 */
import type {
  AttributesOf,
  ElementName,
  FlagsOf,
  FunctionBuilder,
  OperationName,
  TypeId,
  TypeTable,
  Value,
} from '../../tileir/index.js';
import type { ValueType } from '../tree.js';
import { COMPUTED_AS, elementOf } from './element-types.js';
import type { Constant } from './element-types.js';

/** Rows and columns; none for a scalar, as the operands of a reduction's function are. */
export type Extents = readonly number[];

export const SINGLE: Extents = [1, 1];

/** A tile. Constants have no value before their extents are known. */
export interface Tile {
  readonly type: ValueType;
  readonly extents: Extents;
  readonly of: { readonly value: Value } | { readonly constant: Constant };
  /** What the tile was loaded as, for products. */
  readonly loaded?: Loaded;
}

/** A tile as it is in memory: elements outside of the tensor are zero. */
export interface Loaded {
  readonly value: Value;
  readonly storage: ElementName;
  readonly sign: 'signed' | 'unsigned';
}

export const joined = (a: Extents, b: Extents): Extents =>
  a.map((extent, at) => Math.max(extent, b[at]!));

export const sameExtents = (a: Extents, b: Extents): boolean =>
  a.every((extent, at) => extent === b[at]);

/** Writes operations on tiles of rows and columns. */
export class TileBuilder {
  readonly to: FunctionBuilder;
  readonly types: TypeTable;

  constructor(to: FunctionBuilder) {
    this.to = to;
    this.types = to.types;
  }

  element(type: ValueType): TypeId {
    return this.types.simple(COMPUTED_AS[type]);
  }

  tileType(type: ValueType, extents: readonly number[]): TypeId {
    return this.types.tile(this.element(type), extents);
  }

  constant(constant: Constant, type: ValueType): Tile {
    return { type, extents: SINGLE, of: { constant } };
  }

  tile(value: Value, type: ValueType, extents: Extents): Tile {
    return { type, extents, of: { value } };
  }

  /** A scalar of Tile IR as a tile of one element. */
  ofScalar(value: Value, type: ValueType): Tile {
    return this.tile(this.reshaped(value, type, SINGLE), type, SINGLE);
  }

  /** The only element of a tile, as a scalar of Tile IR. */
  scalar(tile: Tile): Value {
    if ('constant' in tile.of) return this.constantOf(tile.of.constant, tile.type, []);
    return this.reshaped(tile.of.value, tile.type, []);
  }

  /** The value of a tile, repeated to these extents. */
  value(tile: Tile, extents: Extents = tile.extents): Value {
    if ('constant' in tile.of) return this.constantOf(tile.of.constant, tile.type, extents);
    if (sameExtents(tile.extents, extents)) return tile.of.value;
    return this.to.one('broadcast', this.tileType(tile.type, extents), {
      operands: [tile.of.value],
    });
  }

  private constantOf(constant: Constant, type: ValueType, extents: readonly number[]): Value {
    return this.to.one('constant', this.tileType(type, extents), {
      attributes: { elements: elementOf(constant, type) },
    });
  }

  reshaped(value: Value, type: ValueType, extents: readonly number[]): Value {
    return this.to.one('reshape', this.tileType(type, extents), { operands: [value] });
  }

  /** Writes an operation on each element of tiles, which are repeated to common extents. */
  each<N extends OperationName>(
    name: N,
    type: ValueType,
    operands: readonly Tile[],
    attributes: AttributesOf<N>,
    flags: readonly FlagsOf<N>[] = [],
  ): Tile {
    const extents = operands.map((operand) => operand.extents).reduce(joined);
    const value = this.to.one(name, this.tileType(type, extents), {
      operands: operands.map((operand) => this.value(operand, extents)),
      attributes,
      flags,
    });
    return this.tile(value, type, extents);
  }

  select(test: Tile, then: Tile, otherwise: Tile): Tile {
    return this.each('select', then.type, [test, then, otherwise], {});
  }

  compare(
    how: AttributesOf<'cmpi'>['predicate'],
    left: Tile,
    right: Tile,
    sign: 'signed' | 'unsigned' = 'signed',
  ): Tile {
    return this.each('cmpi', 'bool', [left, right], { predicate: how, signedness: sign });
  }

  /** Arithmetic of integers that are at least 0, without wrapping. */
  integer(name: 'addi' | 'subi' | 'muli', left: Tile, right: Tile): Tile {
    return this.each(name, left.type, [left, right], { overflow: 'none' });
  }

  quotient(name: 'divi' | 'remi', left: Tile, right: Tile): Tile {
    return name === 'divi'
      ? this.each('divi', left.type, [left, right], { signedness: 'signed', rounding: 'zero' })
      : this.each('remi', left.type, [left, right], { signedness: 'signed' });
  }

  lesser(left: Tile, right: Tile): Tile {
    return this.each('mini', left.type, [left, right], { signedness: 'signed' });
  }
}
