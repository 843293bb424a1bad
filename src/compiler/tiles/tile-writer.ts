/**
 * The common part of a tile kernel's lowering: values as arrays of the thread's elements, loops
 * over them, and errors with places in the user's text.
 *
 * The block's threads share every axis in one way as rows, and in one way as columns, in all tiles:
 * a row belongs to the same thread in every tile with these rows.
 */
import type { AnyNode } from 'acorn';

import type { KernelSource } from '../signature.js';
import type { StorageType } from '../tree.js';
import { KernelSourceError } from '../source-error.js';
import { PrintedText } from './printed-text.js';
import { PRODUCT_ACROSS, PRODUCT_ROWS, columnSlots, rowSlots } from './tile-form.js';
import type { AxisForm, SumStorage, TileForm } from './tile-form.js';

/** Axes along which a value differs within the tile. */
export interface Varies {
  readonly rows: number | undefined;
  readonly columns: number | undefined;
}

export const NO_AXES: Varies = { rows: undefined, columns: undefined };

/** A value of the body, by its name in the written text. */
export interface TileValue {
  readonly name: string;
  readonly varies: Varies;
  /**
   * The dtype of its elements, where it is the tile of a tensor, and i32 where they are computed
   * from integers; undefined for what is computed otherwise.
   */
  readonly storage?: StorageType | undefined;
}

/** The index expressions of a thread's slot. */
export interface Slot {
  readonly row: string;
  readonly column: string;
}

export const FIRST: Slot = { row: '0', column: '0' };
export const IN_LOOP: Slot = { row: 'r$', column: 'c$' };

/**
 * The facts that one pass over the body finds for the next: shapes of variables, shared memory of
 * products, tensors that are both read and written.
 */
export interface Found {
  /** The axes of variables, by the place of their declaration. */
  readonly variables: Map<number, Varies>;
  /** The buffers for operands of products. */
  buffers: readonly Buffer[];
  /**
   * Constants from outside of a loop that products within it use, by the place of their
   * declaration: how they are staged there, by {@link stagedKey}.
   */
  readonly ahead: Map<number, Map<string, StagedForm>>;
  /** Variables that get a value that is not computed from integers, by the same places. */
  readonly fractions: Set<number>;
  /** Tensors of which a tile is loaded, and stored, anywhere in the body. */
  readonly loaded: Set<string>;
  readonly stored: Set<string>;
}

/** A buffer of shared memory, in elements. */
export interface Buffer {
  readonly length: number;
  readonly type: SumStorage;
}

/** How an operand is staged: the axis that is summed over, and the type of its elements. */
export interface StagedForm {
  readonly summed: number;
  readonly type: SumStorage;
}

export const stagedKey = ({ summed, type }: StagedForm): string => `${summed} ${type}`;

export abstract class TileWriter {
  readonly definition: KernelSource;
  readonly form: TileForm;
  readonly out = new PrintedText();
  /** The number of loops around the text that is being written. */
  depth = 0;
  /** Elements of the shared arrays that were declared. */
  sharedElements = 0;
  private count = 0;

  constructor(definition: KernelSource, form: TileForm) {
    this.definition = definition;
    this.form = form;
  }

  /** The axes along which an expression differs. */
  abstract varies(node: AnyNode): Varies;

  /** Writes the expression for one slot. */
  abstract print(node: AnyNode, slot: Slot): void;

  fail(node: AnyNode, what: string, fix: string): never {
    throw new KernelSourceError(
      what,
      fix,
      { text: 0, start: node.start, end: node.end },
      this.definition.text,
    );
  }

  code(node: AnyNode): string {
    return this.definition.text.slice(node.start, node.end).replace(/\s+/g, ' ').slice(0, 60);
  }

  line(...lines: readonly string[]): void {
    for (const line of lines) this.out.write(`${line}\n`);
  }

  newName(of: string): string {
    return `${of}$${this.count++}`;
  }

  axis(number: number): AxisForm {
    return this.form.axes[number]!;
  }

  /** Rows, or columns, that a thread has along an axis; one where there is no axis. */
  rowSlots(axis: number | undefined): number {
    return axis === undefined ? 1 : rowSlots(this.axis(axis), this.form);
  }

  columnSlots(axis: number | undefined): number {
    return axis === undefined ? 1 : columnSlots(this.axis(axis), this.form);
  }

  widthOf(axis: number | undefined): number {
    return axis === undefined ? 1 : this.axis(axis).width;
  }

  /** The number of a value's slots. */
  slots({ rows, columns }: Varies): number {
    return this.rowSlots(rows) * this.columnSlots(columns);
  }

  /** The element of a slot. */
  element({ name, varies: { rows, columns } }: TileValue, { row, column }: Slot): string {
    if (rows === undefined && columns === undefined) return name;
    if (columns === undefined) return `${name}[${row}]`;
    if (rows === undefined || this.rowSlots(rows) === 1) return `${name}[${column}]`;
    return row === '0'
      ? `${name}[${column}]`
      : `${name}[${row} * ${this.columnSlots(columns)} + ${column}]`;
  }

  /** Writes loops over the slots of a value. */
  each({ rows, columns }: Varies, turn: () => void): void {
    const over = [
      rows === undefined ? '' : `for (let r$ = 0; r$ < ${this.rowSlots(rows)}; r$++) `,
      columns === undefined ? '' : `for (let c$ = 0; c$ < ${this.columnSlots(columns)}; c$++) `,
    ];
    this.out.write(`${over.join('')}{ `);
    turn();
    this.line(' }');
  }

  /** Writes a constant: its value in each of the thread's slots. */
  define(name: string, node: AnyNode, varies: Varies): void {
    const { out } = this;
    if (varies.rows === undefined && varies.columns === undefined) {
      out.write(`const ${name} = `);
      this.print(node, FIRST);
      this.line(';');
      return;
    }
    this.declare('local', name, this.slots(varies), node);
    this.assign({ name, varies }, node);
  }

  /** Writes assignments of the expression to every slot of an existing value. */
  assign(value: TileValue, node: AnyNode): void {
    this.each(value.varies, () => {
      this.out.write(`${this.element(value, IN_LOOP)} = `);
      this.print(node, IN_LOOP);
      this.out.write(';');
    });
  }

  /** Declares an array of the expression's type, or of the common type with `added`. */
  declare(
    space: 'local' | 'shared',
    name: string,
    length: number,
    like: AnyNode,
    added?: string,
  ): void {
    if (space === 'shared') this.sharedElements += length;
    this.out.write(`const ${name} = gpu$.${space}Like$(${length}, `);
    this.print(like, FIRST);
    this.line(added === undefined ? ');' : ` + ${added});`);
  }

  /** Writes a barrier of the block. */
  barrier(): void {
    const { product, down } = this.form;
    this.line(
      product === undefined || product.by === 'warps'
        ? 'gpu$.block.sync();'
        : `gpu$.block.syncThreads(1, ${down * PRODUCT_ACROSS});`,
    );
  }

  /** In a loop, threads may still read shared memory of the iteration before. */
  barrierInLoop(): void {
    if (this.depth > 0) this.barrier();
  }

  // Elements of a thread along an axis, in the kernel's own names.

  /** The number, within the tile, of row `r$`, and of column `q$ * width + k$`. */
  rowInTile(turn: string): string {
    return this.form.down === 1 ? turn : `(threadRow$ + ${turn} * ${this.rowStep})`;
  }

  /** Rows from one of a thread's slots to the next. */
  get rowStep(): number {
    return this.form.product === undefined ? this.form.down : PRODUCT_ROWS;
  }

  columnInTile(axis: number, group: string, inGroup: string): string {
    const width = this.widthOf(axis);
    const number = `(threadColumn$ + ${group} * ${this.form.across})`;
    return width === 1 ? number : `(${number} * ${width} + ${inGroup})`;
  }

  /** The test whether a slot is an existing element; empty where it always is. */
  rowExists(axis: number, turn: string): string {
    return this.axis(axis).exactRows
      ? ''
      : `firstRow${axis}$ + ${turn} * ${this.rowStep} <= lastRow${axis}$`;
  }

  groupExists(axis: number, group: string): string {
    return this.axis(axis).exactColumns
      ? ''
      : `firstGroup${axis}$ + ${group} * ${this.form.across} <= lastGroup${axis}$`;
  }

  /**
   * The number of elements of this tile along an axis. Where no tile goes beyond the end it is a
   * constant of the same type, and a mean then divides by a power of two without a division.
   */
  lengthOf(axis: number, as: 'rows' | 'columns'): string {
    const { tile, exactRows, exactColumns } = this.axis(axis);
    if (as === 'rows' ? exactRows : exactColumns)
      return `gpu$.${this.definition.indexType}(${tile})`;
    if (as === 'rows') return `(lastRow${axis}$ + 1 - top${axis}$)`;
    const width = this.widthOf(axis);
    return `(lastGroup${axis}$ + 1 - left${axis}$)${width === 1 ? '' : ` * ${width}`}`;
  }
}

/** A test that all tests hold. */
export const all = (...tests: readonly string[]): string =>
  tests.filter((test) => test !== '').join(' && ');
