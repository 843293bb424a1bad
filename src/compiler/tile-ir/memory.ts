/**
 * Tensors in memory: the entry's parameters, views that are cut into tiles, and loads and stores of
 * one tile.
 */
import { DYNAMIC } from '../../tileir/index.js';
import type { ElementName, TypeId, TypeTable, Value } from '../../tileir/index.js';
import type { Signature } from '../signature.js';
import { readAs, storageBytes } from '../storage-types.js';
import type { AbiParam, StorageType, ValueType } from '../tree.js';
import { COMPUTED_AS, STORED_AS, isFloat, signOf } from './element-types.js';
import type { TileIrForm, TileIrTensor } from './tile-ir-form.js';
import type { Extents, Tile, TileBuilder } from './tile-values.js';

/** The alignment in bytes that lets a copy engine read and write rows. */
const ALIGNMENT = 16;

/** A tensor of the kernel that was made ready at its beginning. */
interface TensorView {
  readonly storage: StorageType;
  readonly axes: TileIrTensor['axes'];
  /** The extents of its tile, along its own axes. */
  readonly tile: readonly number[];
  readonly parts: Value;
}

/** The entry's parameters, in order: addresses, lengths and strides of tensors, and scalars. */
export function abiOf(signature: Signature, form: TileIrForm): AbiParam[] {
  return Object.entries(signature).flatMap(([name, entry], param): AbiParam[] => {
    if (entry.kind === 'scalar') return [{ kind: 'scalar', param, storage: entry.storage }];
    if (entry.kind === 'struct')
      return entry.struct.fields.map(({ storage }, field) => ({
        kind: 'scalar',
        param,
        field,
        storage,
      }));
    const { axes, strides } = form.tensors[name]!;
    return [
      { kind: 'pointer', param },
      ...axes.map((_, axis): AbiParam => ({ kind: 'extent', param, axis })),
      ...strides.flatMap((fact, axis): AbiParam[] =>
        fact === 'one' ? [] : [{ kind: 'stride', param, axis }],
      ),
    ];
  });
}

/** The types of these parameters. */
export function parameterTypes(
  types: TypeTable,
  abi: readonly AbiParam[],
  signature: Signature,
  index: 'i32' | 'i64',
): TypeId[] {
  const entries = Object.values(signature);
  return abi.map((param) => {
    if (param.kind === 'pointer') {
      const entry = entries[param.param]!;
      return types.tile(types.pointer(storedAs(storageOf(entry))), []);
    }
    return types.tile(types.simple(param.kind === 'scalar' ? storedAs(param.storage) : index), []);
  });
}

const storageOf = (entry: Signature[string]): StorageType =>
  entry.kind === 'tensor' && 'storage' in entry.element ? entry.element.storage : 'u8';

const storedAs = (storage: StorageType): ElementName => STORED_AS[storage]!;

/** The names of parameters whose dtypes Tile IR does not have. */
export function unknownDtypes(signature: Signature): [name: string, storage: StorageType][] {
  return Object.entries(signature).flatMap(([name, entry]) => {
    const storages =
      entry.kind === 'tensor'
        ? [storageOf(entry)]
        : entry.kind === 'scalar'
          ? [entry.storage]
          : entry.struct.fields.map((field) => field.storage);
    return storages
      .filter((storage) => STORED_AS[storage] === undefined)
      .map((storage): [string, StorageType] => [name, storage]);
  });
}

/** The extents of a tile of two axes. */
const rowsAndColumns = (tile: readonly number[]): Extents => [
  tile.length > 1 ? tile.at(-2)! : 1,
  tile.at(-1)!,
];

/** Loads and stores of a kernel's tensors. */
export class TileMemory {
  /** Lengths of axes, as scalars of the index type. */
  readonly lengths = new Map<number, Value>();
  /** The last access of each tensor whose accesses are in order. */
  tokens = new Map<string, Value>();
  private readonly to: TileBuilder;
  private readonly views = new Map<string, TensorView>();
  private readonly index: 'i32' | 'i64';

  constructor(to: TileBuilder, index: 'i32' | 'i64') {
    this.to = to;
    this.index = index;
  }

  /** Makes the views of all tensors. `aligned`: whether each begins at a multiple of 16 bytes. */
  open(
    signature: Signature,
    { axes, tensors }: TileIrForm,
    given: (kind: 'pointer' | 'extent' | 'stride', param: number, axis: number) => Value,
    aligned: boolean,
  ): void {
    for (const [param, [name, entry]] of Object.entries(signature).entries()) {
      if (entry.kind !== 'tensor') continue;
      const { axes: own, strides } = tensors[name]!;
      const storage = storageOf(entry);
      const lengths = own.map((axis, at) => {
        const length = this.lengthGiven(given('extent', param, at), axis, axes);
        if (axis !== undefined && !this.lengths.has(axis)) this.lengths.set(axis, length);
        return length;
      });
      const steps = strides.flatMap((fact, at) => {
        if (fact === 'one') return [];
        const stride = this.atLeastZero(given('stride', param, at));
        const elements = ALIGNMENT / storageBytes[storage];
        return [fact === 'sixteen' ? this.divisible(stride, this.scalar, elements) : stride];
      });
      const element = storedAs(storage);
      const { types, to } = this.to;
      const pointer = types.tile(types.pointer(element), []);
      const base = given('pointer', param, 0);
      const view = types.tensorView(
        element,
        own.map(() => DYNAMIC),
        strides.map((fact) => (fact === 'one' ? 1 : DYNAMIC)),
      );
      const tensor = to.one('makeTensorView', view, {
        operands: [aligned ? this.divisible(base, pointer, ALIGNMENT) : base, lengths, steps],
      });
      const tile = own.map((axis) => (axis === undefined ? 1 : axes[axis]!.tile));
      // Elements outside of an input are read as zeros.
      const padding = entry.access === 'output' ? undefined : 'zero';
      const parts = to.one('makePartitionView', types.partition(tile, view, padding), {
        operands: [tensor],
      });
      this.views.set(name, { storage, axes: own, tile, parts });
    }
  }

  /** A length of which it is known that no tile goes beyond it, where that is so. */
  private lengthGiven(given: Value, axis: number | undefined, axes: TileIrForm['axes']): Value {
    const length = this.atLeastZero(given);
    const known = axis === undefined ? undefined : axes[axis]!;
    return known?.divides === true && known.tile > 1
      ? this.divisible(length, this.scalar, known.tile)
      : length;
  }

  private get scalar(): TypeId {
    return this.to.tileType(this.index, []);
  }

  private divisible(value: Value, type: TypeId, by: number): Value {
    return this.to.to.one('assume', type, {
      operands: [value],
      attributes: { assumption: { is: 'divisible', by } },
    });
  }

  private atLeastZero(value: Value): Value {
    return this.to.to.one('assume', this.scalar, {
      operands: [value],
      attributes: { assumption: { is: 'bounded', from: 0 } },
    });
  }

  /** The tile at a place. `places`: the number of the tile along each axis, as scalars of i32. */
  load(name: string, place: (axis: number | undefined) => Value): Tile {
    const { storage, axes, tile, parts } = this.views.get(name)!;
    const { to, types } = this.to;
    const element = storedAs(storage);
    const [loaded, token] = to.write('loadView', {
      results: [types.tile(types.simple(element), tile), types.token],
      operands: [parts, axes.map(place), this.tokens.get(name)],
      attributes: { ordering: 'weak' },
    });
    if (this.tokens.has(name)) this.tokens.set(name, token!);
    const extents = rowsAndColumns(tile);
    const flat =
      tile.length === 2
        ? loaded!
        : to.one('reshape', types.tile(types.simple(element), extents), { operands: [loaded] });
    const value = this.widened(flat, storage, extents);
    return {
      ...this.to.tile(value, readAs[storage], extents),
      loaded: { value: flat, storage: element, sign: signOf(storage) },
    };
  }

  /** Stores a value of the tensor's tile, which is repeated where it has fewer elements. */
  store(name: string, value: Tile, place: (axis: number | undefined) => Value): void {
    const { storage, axes, tile, parts } = this.views.get(name)!;
    const { to, types } = this.to;
    const extents = rowsAndColumns(tile);
    const flat = this.narrowed(this.to.value(value, extents), storage, extents);
    const stored =
      tile.length === 2
        ? flat
        : to.one('reshape', types.tile(types.simple(storedAs(storage)), tile), {
            operands: [flat],
          });
    const [token] = to.write('storeView', {
      results: [types.token],
      operands: [stored, parts, axes.map(place), this.tokens.get(name)],
      attributes: { ordering: 'weak' },
    });
    if (this.tokens.has(name)) this.tokens.set(name, token!);
  }

  /** A scalar parameter, in the type that it is computed with. */
  scalarOf(value: Value, storage: StorageType): Tile {
    return this.to.ofScalar(this.widened(value, storage, []), readAs[storage]);
  }

  /** Values of memory in the type that they are computed with. */
  private widened(value: Value, storage: StorageType, extents: readonly number[]): Value {
    const { to, types } = this.to;
    const type = readAs[storage];
    const element = storedAs(storage);
    if (element === COMPUTED_AS[type]) return value;
    const result = this.to.tileType(type, extents);
    if (isFloat(type))
      return to.one('ftof', result, {
        operands: [value],
        attributes: { rounding: 'nearestEven' },
      });
    if (type !== 'bool')
      return to.one('exti', result, {
        operands: [value],
        attributes: { signedness: signOf(storage) },
      });
    const zero = to.one('constant', types.tile(types.simple(element), extents), {
      attributes: { elements: Uint8Array.of(0) },
    });
    return to.one('cmpi', result, {
      operands: [value, zero],
      attributes: { predicate: 'notEqual', signedness: 'unsigned' },
    });
  }

  /** Values in the type of memory: floats are rounded to nearest, integers wrap. */
  narrowed(value: Value, storage: StorageType, extents: readonly number[]): Value {
    const { to, types } = this.to;
    const type: ValueType = readAs[storage];
    const element = storedAs(storage);
    if (element === COMPUTED_AS[type]) return value;
    const result = types.tile(types.simple(element), extents);
    if (isFloat(type))
      return to.one('ftof', result, {
        operands: [value],
        attributes: { rounding: 'nearestEven' },
      });
    return type === 'bool'
      ? to.one('exti', result, { operands: [value], attributes: { signedness: 'unsigned' } })
      : to.one('trunci', result, { operands: [value], attributes: { overflow: 'none' } });
  }

  /** A value as it is after a store and a load. */
  rounded(value: Tile, storage: StorageType): Tile {
    const narrow = this.narrowed(this.to.value(value), storage, value.extents);
    return this.to.tile(
      this.widened(narrow, storage, value.extents),
      readAs[storage],
      value.extents,
    );
  }
}
