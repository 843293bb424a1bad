/**
 * A tile kernel's body as a kernel in which each tile is one number: arithmetic on tiles is
 * arithmetic on numbers, and what concerns a tile as a whole is a mark. So reading gives every
 * type, conversion, constant and device function as it does for the other back end, and functions
 * of Math consist of the same operations.
 *
 * | mark | operation on tiles |
 * |---|---|
 * | `args$.x[n]` | load of the tile of `x` |
 * | `args$.y[n] = v` | store |
 * | `gpu$.warp.shuffleXor(v, n)` | reduction, or exchange of rows and columns |
 * | `args$.operands$[2 * n] = a`, `args$.products$[n]` | product of two operands |
 *
 * Each `n` is the number of a row in the list of operations.
 */
import type { Bounds } from '../tiles/tile-indices.js';
import type { AnyNode, CallExpression, Expression } from 'acorn';

import type { KernelSource, SignatureEntry } from '../signature.js';
import { storageIn, variesOf } from '../tiles/tile-memory.js';
import { INTEGERS } from '../tiles/tile-form.js';
import type { SumStorage } from '../tiles/tile-form.js';
import type { ProductAxes, ProductOptions, ProductOperand } from '../tiles/tile-operations.js';
import type { Reduction } from '../tiles/tile-reductions.js';
import type { Variable } from '../tiles/tile-scope.js';
import { TileBody, readAgain } from '../tiles/tile-source.js';
import { FIRST, NO_AXES } from '../tiles/tile-writer.js';
import type { Found, TileValue, Varies } from '../tiles/tile-writer.js';
import { markedForm } from './tile-ir-form.js';
import type { TileIrForm } from './tile-ir-form.js';

/** An operation on whole tiles. */
export type MarkedOperation =
  | { readonly is: 'load' | 'store' }
  | {
      readonly is: 'reduce';
      readonly reduction: Reduction;
      /** The axes of the value, and those of them that it is reduced along. */
      readonly of: Varies;
      readonly along: 'rows' | 'columns' | 'both';
    }
  | { readonly is: 'turn' }
  | {
      readonly is: 'product';
      readonly summed: number;
      readonly type: SumStorage;
      readonly left: MarkedOperand;
      readonly right: MarkedOperand;
    };

/** An operand of a product: its axes before its rows and columns are exchanged. */
export interface MarkedOperand {
  readonly of: Varies;
  readonly turned: boolean;
}

/** Tensors of marks, by the type of a product's sums: products, and their operands. */
export const PRODUCTS = { f32: 'products$', i32: 'wholeProducts$' } as const;
export const OPERANDS = { f32: 'operands$', i32: 'wholeOperands$' } as const;
/** Whether a tensor is one of those marks. */
export const isMark = (marks: Readonly<Record<SumStorage, string>>, name: string): boolean =>
  Object.values(marks).includes(name);
/** The number of an axis' tiles, and the elements of the present one that are in the tensor. */
export const countName = (axis: number): string => `tiles$${axis}`;
export const insideName = (axis: number): string => `inside$${axis}`;

export interface MarkedSource {
  readonly source: KernelSource;
  readonly operations: readonly MarkedOperation[];
}

/** @throws KernelSourceError */
export function markedSource(source: KernelSource, form: TileIrForm): MarkedSource {
  let operations: readonly MarkedOperation[] = [];
  const written = readAgain((found) => {
    const body = new MarkedBody(source, form, found);
    ({ operations } = body);
    return body;
  });
  return { source: written, operations };
}

class MarkedBody extends TileBody {
  readonly operations: MarkedOperation[] = [];

  constructor(definition: KernelSource, form: TileIrForm, found: Found) {
    super(definition, markedForm(form), found);
  }

  /** Everything of a tile is one number. */
  override element({ name }: TileValue): string {
    return name;
  }

  override define(name: string, node: AnyNode): void {
    this.out.write(`const ${name} = `);
    this.print(node, FIRST);
    this.line(';');
  }

  /** Loads and stores of one tensor are in the order of the body. */
  override barrier(): void {
    // Tokens put them in order.
  }

  protected override prologue(): void {
    // The places of tiles are no part of the text.
  }

  protected override extraEntries(): Record<string, SignatureEntry> {
    const { indexType } = this.definition;
    const marks = (storage: SumStorage): SignatureEntry => ({
      kind: 'tensor',
      element: { storage },
      access: 'inout',
      rank: 1,
    });
    const scalar = { kind: 'scalar', storage: indexType } as const;
    return {
      [PRODUCTS.f32]: marks('f32'),
      [PRODUCTS.i32]: marks('i32'),
      [OPERANDS.f32]: marks('f32'),
      [OPERANDS.i32]: marks('i32'),
      ...Object.fromEntries(
        this.form.axes.flatMap((_, axis) => [
          [countName(axis), scalar],
          [insideName(axis), scalar],
        ]),
      ),
    };
  }

  protected override writeVariable({ name }: Variable, init: Expression): void {
    this.out.write(`let ${name} = `);
    this.print(init, FIRST);
    this.line(';');
  }

  protected override writeAssignment({ name }: Variable, value: AnyNode): void {
    this.out.write(`${name} = `);
    this.print(value, FIRST);
    this.line(';');
  }

  protected override writeIndex(_axis: number, _varies: Varies, node: AnyNode): TileValue {
    return this.failPlaces(node);
  }

  protected override writePlaceOf(_axis: number, _which: 'start' | 'end', node: AnyNode): string {
    return this.failPlaces(node);
  }

  protected override boundsOf(options: AnyNode | undefined): Bounds {
    return options === undefined ? super.boundsOf(options) : this.failPlaces(options);
  }

  private failPlaces(node: AnyNode): never {
    return this.fail(
      node,
      `The Tile IR back end has no numbers of elements: ${this.code(node)}`,
      "Leave backend: 'tileir' out of the options.",
    );
  }

  protected override openLoop(axis: number): void {
    const step = this.newName('step');
    this.line(
      `for (let ${step} = gpu$.${this.definition.indexType}(0); ${step} < ` +
        `args$.${countName(axis)}; ${step}++) {`,
    );
  }

  protected override writeLoad(param: string): TileValue {
    const value = {
      name: this.newName(param),
      varies: variesOf(this.form.tensors[param]!),
      storage: storageIn(this.definition, param),
    };
    this.line(`const ${value.name} = args$.${param}[${this.number({ is: 'load' })}];`);
    return value;
  }

  protected override writeStore(param: string, { name }: TileValue): void {
    this.line(`args$.${param}[${this.number({ is: 'store' })}] = ${name};`);
  }

  protected override writeReduction(
    value: AnyNode,
    reduction: Reduction,
    of: Varies,
    axis: 0 | 1 | undefined,
  ): TileValue {
    const along = axis === undefined ? 'both' : axis === 1 ? 'columns' : 'rows';
    const number = this.number({ is: 'reduce', reduction, of, along });
    const name = this.newName(reduction);
    // A sum of integers and its mean have the types that the other back end gives them.
    const zero = reduction === 'mean' ? '0n + ' : reduction === 'sum' ? '0 + ' : '';
    this.out.write(`const ${name} = ${reduction === 'mean' ? '(' : ''}`);
    this.out.write(`gpu$.warp.shuffleXor(${zero}(`);
    this.print(value, FIRST);
    this.out.write(`), ${number})`);
    if (reduction === 'mean') {
      const reduced = [
        along === 'columns' ? undefined : of.rows,
        along === 'rows' ? undefined : of.columns,
      ].filter((each) => each !== undefined);
      const lengths = reduced.map((each) => this.insideOf(each)).join(' * ');
      this.out.write(` + gpu$.f32(0)) / (${lengths})`);
    }
    this.line(';');
    return {
      name,
      varies:
        along === 'both'
          ? NO_AXES
          : along === 'columns'
            ? { rows: of.rows, columns: undefined }
            : { rows: undefined, columns: of.columns },
    };
  }

  /** Elements of the present tile that are in the tensors. */
  private insideOf(axis: number): string {
    const { tile, exactRows } = this.axis(axis);
    return exactRows ? `gpu$.${this.definition.indexType}(${tile})` : `args$.${insideName(axis)}`;
  }

  protected override writeTurned({ name, varies, storage }: TileValue): TileValue {
    const turned = this.newName('turned');
    const number = this.number({ is: 'turn' });
    this.line(`const ${turned} = gpu$.warp.shuffleXor(${name}, ${number});`);
    return {
      name: turned,
      varies: { rows: varies.columns, columns: varies.rows },
      // It has left memory, and with it the type that a product of 8 bits takes.
      storage: storage !== undefined && INTEGERS.includes(storage) ? 'i32' : storage,
    };
  }

  protected override checkOptions(node: AnyNode): ProductOptions {
    const options = super.checkOptions(node);
    if (options.precision === 'exact')
      return this.fail(
        node,
        `Tile IR does not determine the order in which the terms of a product are added: ` +
          this.code(node),
        "Leave the options' backend out for exact products, or leave out the precision.",
      );
    if (options.accumulate === 'f16')
      return this.fail(
        node,
        `Products are summed in f32 and i32 with backend 'tileir': ${this.code(node)}`,
        "Leave accumulate out, or the options' backend.",
      );
    return options;
  }

  protected override writeProduct(
    node: CallExpression,
    left: ProductOperand,
    right: ProductOperand,
    { summed, type, varies, more }: ProductAxes,
  ): TileValue {
    const wider = [left, right].find(
      ({ storage }) => type === 'i32' && storage !== 'i8' && storage !== 'u8',
    );
    if (wider !== undefined)
      return this.fail(
        wider.node,
        `Tile IR multiplies integers of i8 and u8 as they are loaded: ${this.code(node)}`,
        'Write tile.dot(a.load(part), tile.transpose(b.load(part))) of such tensors, multiply ' +
          "floats, as tile.f32(v), or leave the options' backend out.",
      );
    if (more !== undefined) {
      this.hoist(more);
      this.join(node, this.varies(more), varies);
    }
    const number = this.operations.length;
    for (const [at, operand] of [left, right].entries()) {
      const { name } = this.operandValue(operand.node);
      this.line(`args$.${OPERANDS[type]}[${2 * number + at}] = ${name};`);
    }
    const [a, b] = [left, right].map(({ turned, varies: { rows, columns } }) => ({
      turned,
      of: turned ? { rows: columns, columns: rows } : { rows, columns },
    })) as [MarkedOperand, MarkedOperand];
    this.number({ is: 'product', summed, type, left: a, right: b });
    const name = this.newName('product');
    this.out.write(`const ${name} = args$.${PRODUCTS[type]}[${number}]`);
    if (more !== undefined) {
      this.out.write(' + (');
      this.print(more, FIRST);
      this.out.write(')');
    }
    this.line(';');
    return { name, varies };
  }

  private number(operation: MarkedOperation): number {
    return this.operations.push(operation) - 1;
  }
}
