/** Variables of the source: numbers in locals, structures split into their fields. */
import type { AnyNode } from 'acorn';
import type { Declaration } from './names.js';
import { load } from './places.js';
import type { Pass } from './pass.js';
import { readAs } from './types.js';
import {
  describe,
  memoryKey,
  typed,
  type NumberValue,
  type Slot,
  type StructValue,
  type Value,
} from './values.js';

const NO_ORIGINS: ReadonlySet<string> = new Set();

/** The named structures that this one is in JavaScript, where it would be no copy. */
export function originsOf(value: Value): ReadonlySet<string> {
  if (value.kind === 'element') return new Set([memoryKey(value.param)]);
  if (value.kind !== 'struct') return NO_ORIGINS;
  return value.slot === undefined ? (value.origins ?? NO_ORIGINS) : new Set([value.slot.key]);
}

/** Records that fields of a structure in memory are written, or that it is replaced. */
export function wroteElement(pass: Pass, param: number, of: 'fieldWrites' | 'replacements'): void {
  pass.wrote(memoryKey(param), of);
}

/**
 * Copies a structure: later writes to one do not change the other. Structures within it are shared,
 * as in JavaScript.
 */
export function copied(pass: Pass, node: AnyNode, value: Value): Value {
  const fields = fieldsOf(pass, node, value);
  if (fields === undefined)
    return pass.fail(node, `${describe(value)} has no fields to copy`, 'Name the fields.');
  return {
    kind: 'struct',
    fields: new Map(
      [...fields].map(([name, field]) => [
        name,
        field.kind === 'struct' || field.kind === 'element'
          ? fieldOf(pass, field, name, node)
          : field,
      ]),
    ),
  };
}

/**
 * The current value, with every field of a structure, for an assignment after which others may have
 * changed.
 */
export function asItIs(pass: Pass, node: AnyNode, value: Value, name: string): Value {
  if (value.kind === 'number')
    return value.content.is === 'expression'
      ? typed(pass.reusable(value.content.expression, name))
      : value;
  const fields =
    value.kind === 'struct' || value.kind === 'element' ? fieldsOf(pass, node, value) : undefined;
  if (fields === undefined) return value;
  return {
    kind: 'struct',
    fields: new Map([...fields].map(([field, of]) => [field, asItIs(pass, node, of, field)])),
    origins: originsOf(value),
  };
}

/**
 * The message for a copy that JavaScript would share, where the difference is visible, and what to
 * write.
 */
export function sharedAs(name: string): readonly [what: string, fix: string] {
  return [
    `\`${name}\` would be another name of a structure whose fields are written later, by one ` +
      'name or the other: a kernel keeps structures in registers, which cannot have two names',
    'Copy it, as in { ...s }, or write the fields by its first name.',
  ];
}

/** The fields of a structure as values; undefined for other values. */
export function fieldsOf(
  pass: Pass,
  node: AnyNode,
  value: Value,
): ReadonlyMap<string, Value> | undefined {
  switch (value.kind) {
    case 'struct':
      return value.slot === undefined ? value.fields : readSlot(pass, value.slot, node).fields;
    case 'element':
      checkInPlace(pass, value, node);
      return new Map(
        value.struct.fields.map((field) => [
          field.name,
          load(pass.paramPlace(value.param, value.index, field.storage, pass.span(node), field)),
        ]),
      );
    case 'structParam':
      return new Map(
        value.struct.fields.map((field, at) => [
          field.name,
          structField(pass, node, value.param, at),
        ]),
      );
    default:
      return undefined;
  }
}

export function structField(pass: Pass, node: AnyNode, param: number, field: number): NumberValue {
  const declared = pass.params[param];
  if (declared?.kind !== 'struct')
    return pass.fail(node, 'This is no structure', 'Declare it as one in the signature.');
  const { storage } = declared.struct.fields[field]!;
  return typed(
    pass.abi({ kind: 'scalar', param, field, storage }, pass.span(node), readAs[storage]),
  );
}

/** Makes a slot for values like this one. */
export function slotFor(
  pass: Pass,
  node: AnyNode,
  value: Value,
  key: string,
  name: string,
  constant: boolean,
): Slot {
  if (value.kind === 'number')
    return { kind: 'scalar', variable: pass.variable(key, name, constant) };
  const fields = fieldsOf(pass, node, value);
  if (fields === undefined) {
    if (name === 'either')
      return pass.fail(
        node,
        `This chooses between ${describe(value)} and another, and a choice can be one of ` +
          'numbers, booleans and structures',
        'Choose between their elements, or make one shared array of two rows, ' +
          'gpu.shared.f32(2, N), and choose the row.',
      );
    return pass.fail(
      node,
      `\`${name}\` would hold ${describe(value)}, and a variable that is assigned can hold ` +
        'numbers, booleans and structures',
      'Use const, and give it one value. Of two arrays that take turns make one of two rows, ' +
        'gpu.shared.f32(2, N), and let the row change.',
    );
  }
  pass.nameStructure(key);
  return {
    kind: 'fields',
    key,
    fields: new Map(
      [...fields].map(([field, of]) => [
        field,
        slotFor(pass, node, of, `${key}.${field}`, `${name}.${field}`, constant),
      ]),
    ),
  };
}

export function readSlot(pass: Pass, slot: Slot & { kind: 'fields' }, node: AnyNode): StructValue;
export function readSlot(pass: Pass, slot: Slot, node: AnyNode): NumberValue | StructValue;
export function readSlot(pass: Pass, slot: Slot, node: AnyNode): NumberValue | StructValue {
  if (slot.kind === 'scalar') return pass.readVariable(slot.variable, pass.span(node));
  const fields = new Map(
    [...slot.fields].map(([name, field]) => [name, readSlot(pass, field, node)]),
  );
  // The variable holds different structures in turn: a value that was read does not change.
  if (pass.isReplaced(slot.key) && !pass.isWritten(slot.key))
    return { kind: 'struct', fields, origins: new Set([slot.key]) };
  return { kind: 'struct', slot, fields };
}

/** The value of a slot without a name, with these origins. */
export function readTemporary(
  pass: Pass,
  slot: Slot,
  node: AnyNode,
  origins: ReadonlySet<string>,
): NumberValue | StructValue {
  const value = readSlot(pass, slot, node);
  return value.kind === 'struct' ? { kind: 'struct', fields: value.fields, origins } : value;
}

/** Replaces a variable's value. */
export function replaceSlot(
  pass: Pass,
  slot: Slot,
  value: Value,
  node: AnyNode,
  name: string,
): void {
  if (slot.kind === 'fields') {
    const origins = [...originsOf(value)].filter((origin) => origin !== slot.key);
    if (
      origins.length > 0 &&
      (pass.isWritten(slot.key) ||
        origins.some((origin) => pass.comesLater('fieldWrites', origin, true)))
    )
      pass.fail(node, ...sharedAs(name));
    noteReplaced(pass, slot);
  }
  assignSlot(pass, slot, value, node, name);
}

function noteReplaced(pass: Pass, slot: Slot): void {
  if (slot.kind === 'scalar') return;
  pass.wrote(slot.key, 'replacements');
  for (const field of slot.fields.values()) noteReplaced(pass, field);
}

/** Assigns the value, with every field of a structure, to a slot. */
export function assignSlot(
  pass: Pass,
  slot: Slot,
  value: Value,
  node: AnyNode,
  name: string,
): void {
  if (slot.kind === 'scalar') {
    if (value.kind !== 'number')
      pass.fail(
        node,
        `\`${name}\` holds a number, and this assigns ${describe(value)}`,
        'Use another variable.',
      );
    else pass.assignVariable(slot.variable, value, pass.span(node));
    return;
  }
  const fields = fieldsOf(pass, node, value);
  if (
    fields === undefined ||
    fields.size !== slot.fields.size ||
    [...fields.keys()].some((field) => !slot.fields.has(field))
  ) {
    pass.fail(
      node,
      `\`${name}\` holds a structure of ${[...slot.fields.keys()].join(', ')}, and this ` +
        'assigns ' +
        `${fields === undefined ? describe(value) : `one of ${[...fields.keys()].join(', ')}`}`,
      'Assign a structure with the same fields.',
    );
  }
  for (const [field, of] of fields)
    failWhereShared(pass, of, slot.fields.get(field)!, `${name}.${field}`, node);
  // All fields are read before any is written: { x: p.y, y: p.x }.
  const saved = new Map([...fields].map(([field, of]) => [field, asItIs(pass, node, of, field)]));
  for (const [field, of] of saved)
    assignSlot(pass, slot.fields.get(field)!, of, node, `${name}.${field}`);
}

/**
 * A field that is another name of a structure gets its current values: fields of neither may be
 * written later.
 */
function failWhereShared(pass: Pass, value: Value, slot: Slot, name: string, node: AnyNode): void {
  const origins = originsOf(value);
  if (slot.kind === 'scalar' || origins.size === 0 || origins.has(slot.key)) return;
  if (
    pass.isWritten(slot.key) ||
    [...origins].some((origin) => pass.comesLater('fieldWrites', origin, true))
  )
    pass.fail(node, ...sharedAs(name));
}

/** The binding of a name with one value: the value itself, where it exists at compile time only. */
export function fixed(
  pass: Pass,
  value: Value,
  declaration: Declaration,
  node: AnyNode,
): Value | Slot {
  const { name } = declaration;
  switch (value.kind) {
    case 'number': {
      // An argument is one value for the whole kernel, under any name; ES5 destructures the
      // parameter into variables.
      const isArgument = value.content.is === 'expression' && value.content.expression.op === 'abi';
      if (declaration.kind === 'param' || (isArgument && declaration.initialised))
        return held(pass, value, name);
      if (value.content.is === 'literal' && declaration.initialised) return value;
      // A temporary that never changes only gets its name.
      if (
        value.content.is === 'expression' &&
        declaration.initialised &&
        pass.rename(value.content.expression, name)
      )
        return value;
      const slot: Slot = {
        kind: 'scalar',
        variable: pass.variable(pass.freshKey(node, name), name, declaration.initialised),
      };
      assignSlot(pass, slot, value, node, name);
      return slot;
    }
    case 'struct':
      return fixedStruct(pass, value, declaration, node);
    case 'element':
      return fixedElement(pass, value, declaration, node);
    default:
      return held(pass, value, name);
  }
}

/** @throws KernelSourceError where another element has replaced the one that the name stands for */
export function checkInPlace(
  pass: Pass,
  { param, named }: Extract<Value, { kind: 'element' }>,
  node: AnyNode,
): void {
  if (named !== undefined && pass.isReplacedSince(memoryKey(param), named.at))
    pass.fail(node, ...sharedAs(named.name));
}

function fixedElement(
  pass: Pass,
  value: Extract<Value, { kind: 'element' }>,
  { name, fieldWrites }: Pick<Declaration, 'name' | 'fieldWrites'>,
  node: AnyNode,
): Value {
  const key = memoryKey(value.param);
  const element = { ...value, index: pass.reusable(value.index, 'index') };
  // Its fields are those in memory, now and later, unless another element replaces it, which other
  // threads may do at any time.
  if (!pass.isReplaced(key)) return element;
  if (fieldWrites > 0) return { ...element, named: { name, at: pass.now } };
  if (pass.comesLater('fieldWrites', key)) {
    if (!pass.comesLater('replacements', key)) return element;
    pass.fail(node, ...sharedAs(name));
  }
  return heldFields(
    pass,
    { kind: 'struct', fields: fieldsOf(pass, node, element)!, origins: new Set([key]) },
    name,
  );
}

/** Gives a structure as a field of another: that field is one more name of it. */
export function fieldOf(
  pass: Pass,
  value: Extract<Value, { kind: 'struct' | 'element' }>,
  name: string,
  node: AnyNode,
): Value {
  if (value.kind === 'element') return fixedElement(pass, value, { name, fieldWrites: 0 }, node);
  const origins = originsOf(value);
  if (origins.size === 0 || (value.slot !== undefined && !pass.isReplaced(value.slot.key)))
    return value;
  return anotherName(pass, value, name, node);
}

/**
 * Gives one more name of a structure, with its current values: its fields may not be written later.
 */
function anotherName(pass: Pass, value: StructValue, name: string, node: AnyNode): StructValue {
  const origins = originsOf(value);
  if ([...origins].some((each) => pass.comesLater('fieldWrites', each)))
    pass.fail(node, ...sharedAs(name));
  return heldFields(pass, { kind: 'struct', fields: value.fields, origins }, name);
}

function fixedStruct(
  pass: Pass,
  value: StructValue,
  declaration: Declaration,
  node: AnyNode,
): Value | Slot {
  const { name, fieldWrites } = declaration;
  const origins = originsOf(value);
  // This is another name of it. An argument of a function cannot be replaced meanwhile.
  if (
    value.slot !== undefined &&
    (declaration.kind === 'param' || !pass.isReplaced(value.slot.key))
  )
    return value;
  const [origin] = origins;
  if (origin === undefined) {
    const key = pass.freshKey(node, name);
    if (fieldWrites > 0 || pass.isWritten(key)) {
      const slot = slotFor(pass, node, value, key, name, false);
      assignSlot(pass, slot, value, node, name);
      return slot;
    }
    return keyed(pass, value, key, name, node);
  }
  if (fieldWrites > 0) {
    if (origins.size > 1 || (pass.isReplaced(origin) && declaration.kind !== 'param'))
      pass.fail(node, ...sharedAs(name));
    // The original gets a slot for its fields in the next pass, and this becomes its name then.
    pass.wrote(origin, 'fieldWrites');
  }
  return anotherName(pass, value, name, node);
}

/**
 * Gives a structure without another name, under this key; structures within it have keys of their
 * own, and slots where their fields are written.
 */
function keyed(
  pass: Pass,
  value: StructValue,
  key: string,
  name: string,
  node: AnyNode,
): StructValue {
  pass.nameStructure(key);
  const fields = new Map(
    [...value.fields].map(([field, of]): [string, Value] => {
      const own = `${key}.${field}`;
      if (of.kind !== 'struct' || originsOf(of).size > 0)
        return [field, held(pass, of, `${name}.${field}`)];
      if (!pass.isWritten(own)) return [field, keyed(pass, of, own, `${name}.${field}`, node)];
      const slot = slotFor(pass, node, of, own, `${name}.${field}`, false);
      assignSlot(pass, slot, of, node, `${name}.${field}`);
      return [field, readSlot(pass, slot, node)];
    }),
  );
  return { kind: 'struct', fields, origins: new Set([key]) };
}

function heldFields(pass: Pass, value: StructValue, name: string): StructValue {
  return {
    ...value,
    fields: new Map(
      [...value.fields].map(([field, of]) => [field, held(pass, of, `${name}.${field}`)]),
    ),
  };
}

/** Gives the value with all of its computations done now. */
export function held(pass: Pass, value: Value, name: string): Value {
  switch (value.kind) {
    case 'number':
      return value.content.is === 'literal'
        ? value
        : value.content.is === 'expression'
          ? typed(pass.reusable(value.content.expression, name))
          : {
              ...value,
              content: { ...value.content, test: pass.reusable(value.content.test, name) },
            };
    case 'struct':
      return value.slot !== undefined ? value : heldFields(pass, value, name);
    case 'tensor':
      return { ...value, indices: value.indices.map((index) => pass.reusable(index, 'index')) };
    case 'element':
      return { ...value, index: pass.reusable(value.index, 'index') };
    case 'array':
      return value.index === undefined
        ? value
        : { ...value, index: pass.reusable(value.index, 'index') };
    default:
      return value;
  }
}
