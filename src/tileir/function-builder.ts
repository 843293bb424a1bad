/** The body of a function: operations in order, and the values that they give. */
import { Bytes } from './bytes.js';
import { OPERATIONS } from './operations.js';
import type { AttributesOf, FlagsOf, OperationName, OperationRow } from './operations.js';
import type { Attribute } from './attributes.js';
import { NO_PLACE } from './debug-info.js';
import type { ConstantTable, StringTable } from './tables.js';
import type { TypeId, TypeTable } from './types.js';

declare const valueId: unique symbol;
/** The number of a value within its function. */
export type Value = number & { readonly [valueId]: true };

/** An operand, several of them, or an optional one that is left out. */
export type Operand = Value | readonly Value[] | undefined;

/** What an operation consists of, beside its name. */
export interface Operation<N extends OperationName> {
  readonly results?: readonly TypeId[];
  readonly operands?: readonly Operand[];
  readonly attributes?: AttributesOf<N>;
  readonly flags?: readonly FlagsOf<N>[];
  /** The region of a loop or a reduction: the types of its arguments, and what it consists of. */
  readonly region?: {
    readonly arguments: readonly TypeId[];
    readonly write: (given: readonly Value[]) => void;
  };
}

/** The tables of the module that the function is part of. */
export interface ModuleTables {
  readonly types: TypeTable;
  readonly strings: StringTable;
  readonly constants: ConstantTable;
}

/** Writes the operations of one function. */
export class FunctionBuilder {
  readonly types: TypeTable;
  /** The debug attribute of the operations that follow. */
  place = NO_PLACE;
  /** The debug attribute of each operation, in order. */
  readonly places: number[] = [];
  private readonly tables: ModuleTables;
  private bytes = new Bytes();
  private values = 0;
  /** Operations of the region that is being written. */
  private operations = 0;

  constructor(tables: ModuleTables) {
    this.tables = tables;
    this.types = tables.types;
  }

  /** The function's own operations. */
  get code(): Uint8Array {
    return this.bytes.toArray();
  }

  /** Gives values for arguments, or for results. */
  take(count: number): Value[] {
    const first = this.values;
    this.values += count;
    return Array.from({ length: count }, (_, at) => (first + at) as Value);
  }

  /** Writes an operation with one result. */
  one<N extends OperationName>(name: N, result: TypeId, operation: Operation<N> = {}): Value {
    return this.write(name, { ...operation, results: [result] })[0]!;
  }

  /** Writes an operation, and gives its results. */
  write<N extends OperationName>(name: N, operation: Operation<N>): readonly Value[] {
    const { results = [], operands = [], flags = [], region } = operation;
    const row: OperationRow = OPERATIONS[name];
    const { bytes } = this;
    bytes.varint(row.code);
    if (row.results === 'counted') bytes.varints(results);
    else for (const type of results) bytes.varint(type);
    if (row.flags !== undefined) {
      const set: readonly string[] = [
        ...flags,
        // Of the optional parts only the token is ever given.
        ...(row.operands.some((part, at) => part === 'optional' && operands[at] !== undefined)
          ? ['token']
          : []),
      ];
      bytes.varint(set.reduce((bits, flag) => bits | (1 << row.flags!.indexOf(flag)), 0));
    }
    const given = (operation.attributes ?? {}) as Readonly<Record<string, unknown>>;
    for (const [attribute, how] of Object.entries(row.attributes) as [string, Attribute<unknown>][])
      how.write(given[attribute], { ...this.tables, bytes });
    for (const [at, part] of row.operands.entries()) {
      const operand = operands[at];
      if (part === 'counted') bytes.varints(operand as readonly Value[]);
      else if (operand !== undefined) bytes.varint(operand as Value);
    }
    this.places.push(this.place);
    this.operations++;
    if (row.regions === 1) this.region(region!);
    return this.take(results.length);
  }

  /** Writes a region of one block. Its values have numbers that are used again after it. */
  private region({ arguments: types, write }: NonNullable<Operation<'for'>['region']>): void {
    const { bytes: around, values, operations } = this;
    // One region, of one block.
    around.varint(1);
    around.varint(1);
    around.varints(types);
    this.bytes = new Bytes();
    this.operations = 0;
    write(this.take(types.length));
    around.varint(this.operations);
    around.bytes(this.bytes.toArray());
    this.bytes = around;
    this.values = values;
    this.operations = operations;
  }
}
