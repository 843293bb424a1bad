/** Variables of the source: numbers in locals, structures split into their fields. */
import type { AnyNode } from 'acorn';
import type { Declaration } from './names.js';
import { load } from './places.js';
import type { Pass } from './pass.js';
import { readAs } from './types.js';
import { describe, typed, type NumberValue, type Slot, type StructValue, type Value } from './values.js';

/** A structure's fields as values; undefined for what is no structure. */
export function fieldsOf(pass: Pass, node: AnyNode, value: Value): ReadonlyMap<string, Value> | undefined {
  switch (value.kind) {
    case 'struct': return value.slot === undefined ? value.fields : readSlot(pass, value.slot, node).fields;
    case 'element': return new Map(value.struct.fields.map((field) => [field.name, load(pass.paramPlace(value.param, value.index, field.storage, pass.span(node), field))]));
    case 'structParam': return new Map(value.struct.fields.map((field, at) => [field.name, structField(pass, node, value.param, at)]));
    default: return undefined;
  }
}

export function structField(pass: Pass, node: AnyNode, param: number, field: number): NumberValue {
  const declared = pass.params[param];
  if (declared?.kind !== 'struct') return pass.fail(node, 'This is no structure', 'Declare it as one in the signature.');
  const { storage } = declared.struct.fields[field]!;
  return typed(pass.abi({ kind: 'scalar', param, field, storage }, pass.span(node), readAs[storage]));
}

/** A place for values like this one. */
export function slotFor(pass: Pass, node: AnyNode, value: Value, key: string, name: string, constant: boolean): Slot {
  if (value.kind === 'number') return { kind: 'scalar', variable: pass.variable(key, name, constant) };
  const fields = fieldsOf(pass, node, value);
  if (fields === undefined) {
    return pass.fail(node, `\`${name}\` would hold ${describe(value)}, and a variable that is assigned can hold numbers, booleans and structures`, 'Use const, and give it one value.');
  }
  return { kind: 'fields', fields: new Map([...fields].map(([field, of]) => [field, slotFor(pass, node, of, `${key}.${field}`, `${name}.${field}`, constant)])) };
}

export function readSlot(pass: Pass, slot: Slot & { kind: 'fields' }, node: AnyNode): StructValue;
export function readSlot(pass: Pass, slot: Slot, node: AnyNode): NumberValue | StructValue;
export function readSlot(pass: Pass, slot: Slot, node: AnyNode): NumberValue | StructValue {
  if (slot.kind === 'scalar') return pass.readVariable(slot.variable, pass.span(node));
  return { kind: 'struct', slot, fields: new Map([...slot.fields].map(([name, field]) => [name, readSlot(pass, field, node)])) };
}

/** Assigns the value, of a structure every field. */
export function assignSlot(pass: Pass, slot: Slot, value: Value, node: AnyNode, name: string): void {
  if (slot.kind === 'scalar') {
    if (value.kind !== 'number') pass.fail(node, `\`${name}\` holds a number, and this assigns ${describe(value)}`, 'Use another variable.');
    else pass.assignVariable(slot.variable, value, pass.span(node));
    return;
  }
  const fields = fieldsOf(pass, node, value);
  if (fields === undefined || fields.size !== slot.fields.size || [...fields.keys()].some((field) => !slot.fields.has(field))) {
    pass.fail(node, `\`${name}\` holds a structure of ${[...slot.fields.keys()].join(', ')}, and this assigns ${fields === undefined ? describe(value) : `one of ${[...fields.keys()].join(', ')}`}`, 'Assign a structure with the same fields.');
  }
  // All are read before any is written: { x: p.y, y: p.x }.
  const saved = new Map([...fields].map(([field, of]) => [field, of.kind === 'number' && of.content.is === 'expression' ? typed(pass.reusable(of.content.expression, field)) : of]));
  for (const [field, of] of saved) assignSlot(pass, slot.fields.get(field)!, of, node, `${name}.${field}`);
}

/** What a name that is given one value, for good, stands for: the value itself where it exists at compile time only. */
export function fixed(pass: Pass, value: Value, declaration: Declaration, node: AnyNode): Value | Slot {
  const { name } = declaration;
  switch (value.kind) {
    case 'number': {
      // An argument is one value for the whole kernel, by whatever name; ES5 takes them out of the parameter with variables.
      const isArgument = value.content.is === 'expression' && value.content.expression.op === 'abi';
      if (declaration.kind === 'param' || (isArgument && declaration.initialised)) return held(pass, value, name);
      if (value.content.is === 'literal' && declaration.initialised) return value;
      // What was computed into a temporary, and never changes, only gets its name.
      if (value.content.is === 'expression' && declaration.initialised && pass.rename(value.content.expression, name)) return value;
      const slot: Slot = { kind: 'scalar', variable: pass.variable(pass.freshKey(node, name), name, declaration.initialised) };
      assignSlot(pass, slot, value, node, name);
      return slot;
    }
    case 'struct': {
      if (value.slot !== undefined) return value;
      if (declaration.fieldWrites > 0) {
        const slot = slotFor(pass, node, value, pass.freshKey(node, name), name, false);
        assignSlot(pass, slot, value, node, name);
        return slot;
      }
      return { ...value, fields: new Map([...value.fields].map(([field, of]) => [field, held(pass, of, `${name}.${field}`)])) };
    }
    default: return held(pass, value, name);
  }
}

/** The value with all that it computes computed now. */
export function held(pass: Pass, value: Value, name: string): Value {
  switch (value.kind) {
    case 'number': return value.content.is === 'literal' ? value : value.content.is === 'expression' ? typed(pass.reusable(value.content.expression, name)) : { ...value, content: { ...value.content, test: pass.reusable(value.content.test, name) } };
    case 'struct': return value.slot !== undefined ? value : { ...value, fields: new Map([...value.fields].map(([field, of]) => [field, held(pass, of, `${name}.${field}`)])) };
    case 'tensor': return { ...value, indices: value.indices.map((index) => pass.reusable(index, 'index')) };
    case 'element': return { ...value, index: pass.reusable(value.index, 'index') };
    case 'array': return value.index === undefined ? value : { ...value, index: pass.reusable(value.index, 'index') };
    default: return value;
  }
}
