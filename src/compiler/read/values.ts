/**
 * The values of expressions of the source during reading: numbers, and values that exist at compile
 * time only.
 */
import type { DeviceFunctionText } from '../signature.js';
import type { Expression, Span, StorageType, ValueType } from '../tree.js';
import type { StructLayout } from '../../ground/struct-layout.js';
import type { Call } from './calls.js';
import { roundToOdd } from '../round-to-odd.js';
import { constant, convert, toOdd } from './nodes.js';
import { isNarrowFloat, readAs, settled, type Level } from './types.js';

export type Constant = number | bigint | boolean;

/** A number or a boolean. One with a literal's level takes the type of the other operand. */
export interface NumberValue {
  readonly kind: 'number';
  readonly level: Level;
  readonly content:
    | { readonly is: 'expression'; readonly expression: Expression }
    | { readonly is: 'literal'; readonly value: Constant; readonly span: Span }
    /** One of two literals. */
    | {
        readonly is: 'choice';
        readonly test: Expression;
        readonly then: NumberValue;
        readonly otherwise: NumberValue;
        readonly span: Span;
      };
}

/**
 * A variable of the source that holds a number. Its level is the join of all values that were
 * assigned to it so far.
 */
export interface Variable {
  readonly key: string;
  readonly name: string;
  readonly local: number;
  readonly constant: boolean;
}

/**
 * The storage of a variable's value: one local, or one for each field of a structure, which its key
 * names.
 */
export type Slot =
  | { readonly kind: 'scalar'; readonly variable: Variable }
  | { readonly kind: 'fields'; readonly key: string; readonly fields: ReadonlyMap<string, Slot> };

export interface StructValue {
  readonly kind: 'struct';
  readonly fields: ReadonlyMap<string, Value>;
  /** The storage of the fields, if they can be assigned. */
  readonly slot?: Slot & { readonly kind: 'fields' };
  /** Keys of named structures that this one would be, or could be, in JavaScript. */
  readonly origins?: ReadonlySet<string>;
}

/** The key, among named structures, of structures in a tensor's memory. */
export const memoryKey = (param: number): string => `memory ${param}`;

export type Value =
  | NumberValue
  | StructValue
  /** A tensor, or part of one where fewer indices than axes were given. */
  | { readonly kind: 'tensor'; readonly param: number; readonly indices: readonly Expression[] }
  /**
   * An element that is a structure. `named`: the position since which it has a name through which
   * its fields are written.
   */
  | {
      readonly kind: 'element';
      readonly param: number;
      readonly index: Expression;
      readonly struct: StructLayout;
      readonly named?: { readonly name: string; readonly at: number };
    }
  | { readonly kind: 'structParam'; readonly param: number; readonly struct: StructLayout }
  /**
   * Shared or local memory. `index`: the element where the selected part begins, whose axes are
   * `dims`. Dynamic arrays have one axis without a length.
   */
  | {
      readonly kind: 'array';
      readonly array: number;
      readonly dims: readonly (number | undefined)[];
      readonly index?: Expression;
    }
  | { readonly kind: 'shape'; readonly param: number; readonly from: number }
  | { readonly kind: 'list'; readonly name: string; readonly items: readonly Constant[] }
  | { readonly kind: 'args' }
  /**
   * A namespace: gpu itself (''), `gpu.threadIdx`, Math, console. `given`: members of gpu beside
   * its rows.
   */
  | {
      readonly kind: 'namespace';
      readonly path: string;
      readonly given?: ReadonlyMap<string, Value>;
    }
  /** `typesOnly`: only the types of the arguments count; they are not evaluated. */
  | {
      readonly kind: 'function';
      readonly name: string;
      readonly call: (call: Call) => Value;
      readonly typesOnly?: boolean;
    }
  | { readonly kind: 'device'; readonly name: string; readonly fn: DeviceFunctionText }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'nothing' };

export const nothing: Value = { kind: 'nothing' };

export function typed(expression: Expression): NumberValue {
  return { kind: 'number', level: expression.type, content: { is: 'expression', expression } };
}

/** Converts the number to this type. The caller checks whether that is allowed. */
export function inType(value: NumberValue, type: ValueType): Expression {
  const { content } = value;
  switch (content.is) {
    case 'expression':
      return convert(content.expression, type);
    case 'literal':
      return constant(content.value, type, content.span);
    case 'choice':
      return {
        op: 'conditional',
        type,
        test: content.test,
        then: inType(content.then, type),
        otherwise: inType(content.otherwise, type),
        span: content.span,
      };
  }
}

/**
 * Converts the number to the type that elements of the storage type are read as, such that storing
 * it rounds once.
 */
export function inStorage(value: NumberValue, storage: StorageType): Expression {
  const { content } = value;
  if (!isNarrowFloat(storage)) return inType(value, readAs[storage]);
  switch (content.is) {
    case 'expression':
      return toOdd(content.expression);
    case 'literal':
      return {
        op: 'constant',
        type: 'f32',
        value: roundToOdd(
          typeof content.value === 'boolean' ? Number(content.value) : content.value,
        ),
        span: content.span,
      };
    case 'choice':
      return {
        op: 'conditional',
        type: 'f32',
        test: content.test,
        then: inStorage(content.then, storage),
        otherwise: inStorage(content.otherwise, storage),
        span: content.span,
      };
  }
}

/** Gives the number in the type of its own level. */
export function concrete(value: NumberValue): Expression {
  return inType(value, settled(value.level));
}

/** Gives the value that is a compile-time constant. */
export function constantOf(value: Value): Constant | undefined {
  if (value.kind !== 'number') return undefined;
  if (value.content.is === 'literal') return value.content.value;
  if (value.content.is === 'expression' && value.content.expression.op === 'constant')
    return value.content.expression.value;
  return undefined;
}

/** Whether a number is a constant below zero, also as one side of a selection. */
export function isNegative(value: NumberValue): boolean {
  if (value.content.is === 'choice')
    return isNegative(value.content.then) || isNegative(value.content.otherwise);
  const known = constantOf(value);
  return known !== undefined && Number(known) < 0;
}

/** Describes a value, for messages. */
export function describe(value: Value): string {
  switch (value.kind) {
    case 'number':
      return value.content.is === 'literal'
        ? `the number ${String(value.content.value)}`
        : `a number (${settled(value.level)})`;
    case 'struct':
    case 'element':
    case 'structParam':
      return 'a structure';
    case 'tensor':
      return value.indices.length === 0 ? 'a tensor' : 'a row of a tensor';
    case 'array':
      return 'an array';
    case 'shape':
      return 'a shape';
    case 'list':
      return `the list ${value.name}`;
    case 'args':
      return 'the arguments as a whole';
    case 'namespace':
      return value.path === '' ? 'gpu itself' : 'a group of names';
    case 'function':
    case 'device':
      return `the function ${value.name}`;
    case 'string':
      return 'a string';
    case 'nothing':
      return 'no value';
  }
}
