/** Operations on tiles as a whole: reductions, products, and the exchange of rows and columns. */
import type { ElementName, Value } from '../../tileir/index.js';
import type { ValueType } from '../tree.js';
import { BINARY } from './arithmetic.js';
import { BITS, bitsOf, isFloat } from './element-types.js';
import type { Constant } from './element-types.js';
import type { MarkedOperand, MarkedOperation } from './marked-source.js';
import { TilePlaces } from './places.js';
import { sameExtents } from './tile-values.js';
import type { Extents, Tile } from './tile-values.js';

/** Floats whose products tensor cores compute. */
const NARROW_FLOATS: readonly ElementName[] = ['f16', 'bf16', 'f8E4M3FN', 'f8E5M2'];

/** The values that change no maximum, by type; their negatives change no minimum. */
const LOWEST: Readonly<Record<ValueType, Constant>> = {
  bool: false,
  i32: -(2 ** 31),
  u32: 0,
  i64: -(2n ** 63n),
  u64: 0n,
  f32: -Infinity,
  f64: -Infinity,
};
const HIGHEST: Readonly<Record<ValueType, Constant>> = {
  bool: true,
  i32: 2 ** 31 - 1,
  u32: 2 ** 32 - 1,
  i64: 2n ** 63n - 1n,
  u64: 2n ** 64n - 1n,
  f32: Infinity,
  f64: Infinity,
};

type ReductionOperation = MarkedOperation & { readonly is: 'reduce' };
type ProductOperation = MarkedOperation & { readonly is: 'product' };

/** The elements of an operand as a product takes them. */
interface Factor {
  readonly value: Value;
  readonly element: ElementName;
  readonly extents: Extents;
}

export abstract class WholeTiles extends TilePlaces {
  /** Operands of products, by their marks. */
  protected readonly operands = new Map<number, Tile>();

  protected turned(tile: Tile): Tile {
    const [rows, columns] = tile.extents as [number, number];
    if ('constant' in tile.of) return tile;
    const value = this.to.to.one('permute', this.to.tileType(tile.type, [columns, rows]), {
      operands: [tile.of.value],
      attributes: { axes: [1, 0] },
    });
    return this.to.tile(value, tile.type, [columns, rows]);
  }

  protected reduced(tile: Tile, { reduction, of, along }: ReductionOperation): Tile {
    const { type } = tile;
    const neutral = reduction === 'max' ? LOWEST[type] : reduction === 'min' ? HIGHEST[type] : 0;
    const operator = reduction === 'max' || reduction === 'min' ? reduction : 'add';
    const whole = this.extentsOf(of);
    const axes = along === 'both' ? (['columns', 'rows'] as const) : ([along] as const);
    let value = this.to.tile(this.to.value(tile, whole), type, whole);
    // Elements outside of the tensor that was loaded are zeros, which are in no sum.
    const isZero = neutral === 0 && tile.loaded !== undefined && sameExtents(tile.extents, whole);
    for (const as of axes) {
      const mask = isZero ? undefined : this.maskOf(of[as], as);
      if (mask !== undefined) value = this.to.select(mask, value, this.to.constant(neutral, type));
    }
    for (const as of axes) value = this.reducedAlong(value, as, operator, neutral);
    return value;
  }

  private reducedAlong(
    tile: Tile,
    as: 'rows' | 'columns',
    operator: 'add' | 'max' | 'min',
    neutral: Constant,
  ): Tile {
    const { type, extents } = tile;
    const { to } = this.to;
    const scalar = this.to.tileType(type, []);
    const kept = as === 'columns' ? extents[0]! : extents[1]!;
    const [reduced] = to.write('reduce', {
      results: [this.to.tileType(type, [kept])],
      operands: [[this.to.value(tile)]],
      attributes: {
        axis: as === 'columns' ? 1 : 0,
        neutrals: [
          {
            type: this.to.element(type),
            is: isFloat(type) ? 'float' : 'integer',
            bits: bitsOf(neutral, type),
            width: BITS[type],
          },
        ],
      },
      region: {
        arguments: [scalar, scalar],
        write: (given) => {
          const [a, b] = given.map((value) => this.to.tile(value, type, []));
          to.write('yield', { operands: [[this.to.value(BINARY[operator](this.to, a!, b!)!)]] });
        },
      },
    });
    const result: Extents = as === 'columns' ? [kept, 1] : [1, kept];
    return this.to.tile(this.to.reshaped(reduced!, type, result), type, result);
  }

  /** A product, added to the value of `sum`. */
  protected product(number: number, sum: Tile): Tile {
    const operation = this.operations[number] as ProductOperation;
    const tiles = [this.operands.get(2 * number)!, this.operands.get(2 * number + 1)!] as const;
    const [a, b] = tiles.map(({ loaded }) => loaded?.storage);
    const integers = operation.type === 'i32';
    const asLoaded = integers || (a !== undefined && a === b && NARROW_FLOATS.includes(a));
    const [left, right] = [operation.left, operation.right].map((operand, at) =>
      this.factor(tiles[at]!, operand, operation.summed, asLoaded),
    ) as [Factor, Factor];
    const extents: Extents = [left.extents[0]!, right.extents[1]!];
    const { to } = this.to;
    if (!integers) {
      const value = to.one('mmaf', this.to.tileType('f32', extents), {
        operands: [left.value, right.value, this.to.value(sum, extents)],
      });
      return this.to.tile(value, 'f32', extents);
    }
    const value = to.one('mmai', this.to.tileType('i32', extents), {
      operands: [left.value, right.value, this.to.value(sum, extents)],
      attributes: { left: tiles[0].loaded!.sign, right: tiles[1].loaded!.sign },
    });
    return this.to.tile(value, 'i32', extents);
  }

  /** An operand with zeros outside of the tensors along the axis that is summed over. */
  private factor(
    tile: Tile,
    { of, turned }: MarkedOperand,
    summed: number,
    asLoaded: boolean,
  ): Factor {
    const extents = this.extentsOf(of);
    const { to, types } = this.to;
    let value: Value;
    if (asLoaded) ({ value } = tile.loaded!);
    else {
      const as = of.rows === summed ? 'rows' : 'columns';
      const isZero = tile.loaded !== undefined && sameExtents(tile.extents, extents);
      const mask = isZero ? undefined : this.maskOf(summed, as);
      const whole = this.to.tile(this.to.value(tile, extents), tile.type, extents);
      value = this.to.value(
        mask === undefined ? whole : this.to.select(mask, whole, this.to.constant(0, tile.type)),
      );
    }
    const element = asLoaded ? tile.loaded!.storage : 'f32';
    if (!turned) return { value, element, extents };
    const exchanged: Extents = [extents[1]!, extents[0]!];
    const permuted = to.one('permute', types.tile(types.simple(element), exchanged), {
      operands: [value],
      attributes: { axes: [1, 0] },
    });
    return { value: permuted, element, extents: exchanged };
  }
}
