/** Assignments, compound assignments, ++ and --, as statements and as values. */
import type {
  AnyNode,
  AssignmentExpression,
  BinaryOperator,
  MemberExpression,
  Pattern,
  UpdateExpression,
} from 'acorn';
import { bindPattern } from './bindings.js';
import { not } from './nodes.js';
import { operate } from './operators.js';
import type { Pass } from './pass.js';
import { checkAccess, indexInto, load, storable } from './places.js';
import {
  asItIs,
  checkInPlace,
  fieldsOf,
  originsOf,
  readSlot,
  replaceSlot,
  sharedAs,
  wroteElement,
} from './slots.js';
import type { Place } from '../tree.js';
import { describe, nothing, typed, type NumberValue, type Slot, type Value } from './values.js';
import { literal, truth } from './operands.js';
import { propertyName } from './property-name.js';
import { assignName } from './name-assignment.js';
import { asNumber, branch, read, readNumber } from './reading.js';

/** The destination of an assignment. */
type Target =
  | { readonly kind: 'name'; readonly node: AnyNode & { type: 'Identifier' } }
  | { readonly kind: 'slot'; readonly slot: Slot; readonly name: string }
  | { readonly kind: 'place'; readonly place: Place }
  | { readonly kind: 'element'; readonly element: Extract<Value, { kind: 'element' }> }
  /** A field of a structure that gets a slot in the next pass only. */
  | { readonly kind: 'later'; readonly value: Value };

/** The places of all fields of a structure in memory. */
function fieldPlaces(
  pass: Pass,
  node: AnyNode,
  { param, index, struct }: Extract<Value, { kind: 'element' }>,
): Map<string, Place> {
  return new Map(
    struct.fields.map((field) => [
      field.name,
      pass.paramPlace(param, index, field.storage, pass.span(node), field),
    ]),
  );
}

function targetOf(pass: Pass, node: Pattern | AnyNode): Target {
  if (node.type === 'Identifier') return { kind: 'name', node };
  if (node.type !== 'MemberExpression')
    return pass.fail(
      node,
      `This cannot be assigned to: ${pass.code(node)}`,
      'Assign to variables, elements and fields.',
    );
  return memberTarget(pass, node);
}

function memberTarget(pass: Pass, node: MemberExpression): Target {
  const { object, property } = node;
  if (object.type === 'Super' || property.type === 'PrivateIdentifier')
    return pass.fail(
      node,
      `This cannot be assigned to: ${pass.code(node)}`,
      'Assign to variables, elements and fields.',
    );
  const name = propertyName(node);
  if (name !== undefined) {
    const base = read(pass, object);
    if (base.kind === 'struct') {
      const field = base.fields.get(name);
      const origins = originsOf(base);
      const [origin] = origins;
      if (field !== undefined && origin !== undefined && origins.size === 1) {
        pass.wrote(origin, 'fieldWrites');
        const slot = base.slot?.fields.get(name);
        if (slot !== undefined) return { kind: 'slot', slot, name: pass.code(node) };
        pass.failUnlessTypesChange(node, ...sharedAs(pass.code(object)));
        return { kind: 'later', value: field };
      }
      return pass.fail(
        node,
        base.fields.has(name)
          ? `This structure cannot be changed: ${pass.code(node)}`
          : `This structure has no field ${name}: it has ${[...base.fields.keys()].join(', ')}`,
        'Make a new structure, or assign to a variable that holds one.',
      );
    }
    if (base.kind === 'element') {
      const place = fieldPlaces(pass, node, base).get(name);
      checkAccess(pass, node, base.param, 'write');
      checkInPlace(pass, base, node);
      wroteElement(pass, base.param, 'fieldWrites');
      return place === undefined
        ? pass.fail(
            node,
            `This structure has no field ${name}: it has ` +
              `${base.struct.fields.map((field) => field.name).join(', ')}`,
            'Use one of these.',
          )
        : { kind: 'place', place };
    }
    return pass.fail(
      node,
      `This cannot be assigned to: ${pass.code(node)} belongs to ${describe(base)}`,
      base.kind === 'structParam'
        ? 'Parameters stay as they are: make a copy, let s = { ...p }.'
        : 'Assign to variables, elements and fields.',
    );
  }
  const [base, index] = pass.inOrder([
    () => read(pass, object),
    () => readNumber(pass, property),
  ] as const);
  if (base.kind !== 'tensor' && base.kind !== 'array')
    return pass.fail(
      node,
      `This cannot be assigned to: ${pass.code(node)} belongs to ${describe(base)}`,
      'Assign to elements of tensors and arrays.',
    );
  const found = indexInto(pass, node, base, asNumber(pass, property, index), property);
  if (found.kind === 'place') {
    checkAccess(pass, node, found.param, 'write');
    return { kind: 'place', place: found.place };
  }
  if (found.kind === 'element') {
    checkAccess(pass, node, found.param, 'write');
    return { kind: 'element', element: found };
  }
  return pass.fail(
    node,
    `This is ${describe(found)}, and cannot be assigned as a whole: ${pass.code(node)}`,
    'Assign its elements in a loop.',
  );
}

function currentOf(pass: Pass, node: AnyNode, target: Target): Value {
  switch (target.kind) {
    case 'name':
      return read(pass, target.node);
    case 'slot':
      return readSlot(pass, target.slot, node);
    case 'place':
      return load(target.place);
    case 'element':
      return target.element;
    case 'later':
      return target.value;
  }
}

function write(pass: Pass, node: AnyNode, target: Target, value: Value, valueNode: AnyNode): void {
  const span = pass.span(node);
  switch (target.kind) {
    case 'name':
      return assignName(pass, target.node, value);
    case 'slot':
      return replaceSlot(pass, target.slot, value, node, target.name);
    case 'later':
      return;
    case 'place':
      return pass.emit({
        kind: 'store',
        place: target.place,
        value: storable(pass, valueNode, target.place, asNumber(pass, valueNode, value)),
        span,
      });
    case 'element': {
      const fields = fieldsOf(pass, valueNode, value);
      const places = fieldPlaces(pass, node, target.element);
      if (fields === undefined || [...places.keys()].some((name) => !fields.has(name))) {
        return pass.fail(
          valueNode,
          `An element with the fields ${[...places.keys()].join(', ')} cannot become ` +
            describe(value) +
            (fields === undefined ? '' : ` of ${[...fields.keys()].join(', ')}`),
          'Assign a structure with these fields.',
        );
      }
      // All fields are read before any is written.
      wroteElement(pass, target.element.param, 'replacements');
      const saved = [...places]
        .map(([name, place]) => [place, asNumber(pass, valueNode, fields.get(name)!)] as const)
        .map(
          ([place, of]) =>
            [
              place,
              of.content.is === 'expression' ? typed(pass.reusable(of.content.expression)) : of,
            ] as const,
        );
      for (const [place, of] of saved)
        pass.emit({ kind: 'store', place, value: storable(pass, valueNode, place, of), span });
    }
  }
}

/**
 * Checks that a field of an element is written to the structure that was there before the value was
 * read.
 */
function checkStill(pass: Pass, target: Target, then: number): void {
  if (
    target.kind !== 'place' ||
    target.place.field === undefined ||
    target.place.memory.kind !== 'param'
  )
    return;
  pass.failIfReplaced(target.place.memory.param, then, target.place.span);
}

/** Gives the destination with an index that may be used twice. */
function once(pass: Pass, target: Target): Target {
  if (target.kind !== 'place') return target;
  return {
    ...target,
    place: { ...target.place, index: pass.reusable(target.place.index, 'index') },
  };
}

/** Gives the value in a form that can be used again after it was written. */
function kept(pass: Pass, value: NumberValue): NumberValue {
  return value.content.is === 'expression' ? typed(pass.reusable(value.content.expression)) : value;
}

const logicalOperators: Readonly<Record<string, 'and' | 'or'>> = { '&&=': 'and', '||=': 'or' };

export function assignment(pass: Pass, node: AssignmentExpression, wanted: boolean): Value {
  const { left, right, operator } = node;
  if (operator === '=') {
    if (left.type === 'ObjectPattern' || left.type === 'ArrayPattern') {
      // All values are read before any name is assigned.
      const value = asItIs(pass, right, read(pass, right), 'value');
      bindPattern(pass, left, value);
      return value;
    }
    if (left.type === 'Identifier') {
      const value = read(pass, right);
      assignName(pass, left, value);
      return wanted ? read(pass, left) : nothing;
    }
    return storeInOrder(pass, node, left, wanted);
  }
  if (operator === '??=')
    return pass.fail(node, '??= has no use in a kernel: no value is null or undefined', 'Write =.');
  if (Object.hasOwn(logicalOperators, operator)) {
    const target = once(pass, targetOf(pass, left));
    const test = truth(asNumber(pass, left, currentOf(pass, left, target)));
    branch(
      pass,
      node,
      logicalOperators[operator] === 'and' ? test : not(test, test.span),
      () => write(pass, node, target, read(pass, right), right),
      undefined,
    );
    return wanted ? currentOf(pass, left, target) : nothing;
  }
  const then = pass.now;
  const target = once(pass, targetOf(pass, left));
  const [current, value] = pass.inOrder([
    () => currentOf(pass, left, target),
    () => read(pass, right),
  ] as const);
  checkStill(pass, target, then);
  const result = operate({
    pass,
    node,
    operator: operator.slice(0, -1) as BinaryOperator,
    left: asNumber(pass, left, current),
    right: asNumber(pass, right, value),
    syntax: { left, right },
  });
  const used = wanted && target.kind !== 'name' ? kept(pass, result) : result;
  write(pass, node, target, used, node);
  return !wanted ? nothing : target.kind === 'name' ? read(pass, target.node) : used;
}

/** Stores a value. The index is computed before the value. */
function storeInOrder(
  pass: Pass,
  node: AssignmentExpression,
  left: Pattern,
  wanted: boolean,
): Value {
  const { right } = node;
  const then = pass.now;
  let target: Target | undefined;
  // The destination's index is evaluated in order, as an operand is.
  const [index, value] = pass.inOrder([
    () => {
      target = targetOf(pass, left);
      if (target.kind === 'place') return typed(target.place.index);
      return target.kind === 'element' ? typed(target.element.index) : nothing;
    },
    () => read(pass, right),
  ] as const);
  const found = target!;
  checkStill(pass, found, then);
  const at =
    index.kind === 'number' && index.content.is === 'expression'
      ? index.content.expression
      : undefined;
  const ordered: Target =
    at === undefined
      ? found
      : found.kind === 'place'
        ? { kind: 'place', place: { ...found.place, index: at } }
        : found.kind === 'element'
          ? { kind: 'element', element: { ...found.element, index: at } }
          : found;
  const used = wanted && value.kind === 'number' ? kept(pass, value) : value;
  write(pass, node, ordered, used, right);
  return wanted ? used : nothing;
}

export function update(pass: Pass, node: UpdateExpression, wanted: boolean): Value {
  const target = once(pass, targetOf(pass, node.argument));
  let before = asNumber(pass, node.argument, currentOf(pass, node.argument, target));
  if (wanted && !node.prefix && before.content.is === 'expression')
    before = typed(pass.save(before.content.expression, 'before'));
  const after = operate({
    pass,
    node,
    operator: node.operator === '++' ? '+' : '-',
    left: before,
    right: literal(1, pass.span(node)),
    syntax: { left: node.argument, right: node },
  });
  const used = wanted && node.prefix && target.kind !== 'name' ? kept(pass, after) : after;
  write(pass, node, target, used, node);
  if (!wanted) return nothing;
  return !node.prefix ? before : target.kind === 'name' ? read(pass, target.node) : used;
}
