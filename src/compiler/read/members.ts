/** object.name and object[index]. */
import type { AnyNode, Identifier, MemberExpression } from 'acorn';
import { consoleFunctions } from './console.js';
import { gpuName, gpuNamesIn } from './gpu-names.js';
import { mathConstants, mathFunction } from './math-table.js';
import { binary, compare, constant } from './nodes.js';
import type { Pass } from './pass.js';
import { indexInto, indexOf, load } from './places.js';
import { checkInPlace, fieldsOf, structField } from './slots.js';
import { concrete, constantOf, describe, typed, type NumberValue, type Value } from './values.js';
import { join, readAs, storageBytes } from './types.js';
import { literal } from './operands.js';
import { propertyName } from './property-name.js';
import { freeNames } from './free-names.js';
import { failIfRecursive } from './recursion.js';
import { asNumber, read, readNumber } from './reading.js';

/** JavaScript's functions that read a clock. */
const TIMES: ReadonlySet<string> = new Set(['Date.now', 'performance.now']);

export function member(pass: Pass, node: MemberExpression): Value {
  if (node.optional)
    return pass.fail(
      node,
      'Optional access has no use in a kernel: nothing is null or undefined',
      'Write it without ?.',
    );
  const { object } = node;
  if (object.type === 'Super')
    return pass.fail(node, 'There is no super in a kernel', 'Use the arguments and gpu.');
  const name = propertyName(node);
  if (object.type === 'Identifier' && name !== undefined && isForeign(pass, object)) {
    return pass.fail(
      node,
      `\`${pass.code(node)}\` is not defined in a kernel: its text is compiled without its ` +
        'surroundings and imports',
      object.name === 'Number'
        ? instead(name)
        : TIMES.has(`${object.name}.${name}`)
          ? 'gpu.globalTimer() gives nanoseconds, gpu.clock() cycles.'
          : `Give it through uses: { ${name}: ${pass.code(node)} } and write gpu.${name}.`,
    );
  }
  if (name !== undefined) return property(pass, node, read(pass, object), name);
  const { property: index } = node;
  if (index.type === 'PrivateIdentifier')
    return pass.fail(node, 'There are no private names in a kernel', 'Use the arguments and gpu.');
  const [base, at] = pass.inOrder([
    () => read(pass, object),
    () => readNumber(pass, index),
  ] as const);
  return element(pass, node, base, asNumber(pass, index, at), index);
}

/** JavaScript's own functions of Number, and their replacements in a kernel. */
const OF_NUMBER: Readonly<Record<string, string | undefined>> = {
  isNaN: 'Write x !== x.',
  isFinite: 'Write Math.abs(x) < Infinity.',
  isInteger: 'Write Math.trunc(x) === x.',
  parseInt: 'Write gpu.i32(x).',
  parseFloat: 'Write gpu.f32(x).',
};

const instead = (name: string): string =>
  OF_NUMBER[name] ?? `Give it through uses: { ${name}: Number.${name} } and write gpu.${name}.`;

/**
 * Whether a name is free. Tools write an import as a property of a free name: `module_1.name`,
 * `__vite_ssr_import_0__.name`.
 */
function isForeign(pass: Pass, node: Identifier): boolean {
  return pass.frame.parsed.names.get(node) === undefined && !Object.hasOwn(freeNames, node.name);
}

/** base[index] as a value. */
export function element(
  pass: Pass,
  node: AnyNode,
  base: Value,
  index: NumberValue,
  indexNode: AnyNode,
): Value {
  switch (base.kind) {
    case 'tensor':
    case 'array': {
      const found = indexInto(pass, node, base, index, indexNode);
      return found.kind === 'place' ? load(found.place) : found;
    }
    case 'shape': {
      const param = pass.params[base.param]!;
      const axis = constantOf(index);
      const rank = param.kind === 'tensor' ? param.rank - base.from : 0;
      if (axis === undefined)
        return pass.fail(
          indexNode,
          'The axis of a shape has to be known when the kernel is compiled: ' +
            `${pass.code(indexNode)}`,
          'Write a literal: y.shape[0].',
        );
      if (Number(axis) < 0 || Number(axis) >= rank || !Number.isInteger(Number(axis))) {
        return pass.fail(
          indexNode,
          `${param.name} has ${rank} ${rank === 1 ? 'axis' : 'axes'} here, and this reads ` +
            `axis ${String(axis)}`,
          `Use 0 to ${rank - 1}.`,
        );
      }
      return extent(pass, node, base.param, base.from + Number(axis));
    }
    case 'list': {
      const at = constantOf(index);
      if (at === undefined) return chosenOf(pass, node, base, index, indexNode);
      const item = Number.isInteger(Number(at)) ? base.items[Number(at)] : undefined;
      if (item === undefined)
        return pass.fail(
          indexNode,
          `Index ${String(at)} is beyond the list ${base.name}, which has ` +
            `${base.items.length} items`,
          `Use 0 to ${base.items.length - 1}.`,
        );
      return literal(item, pass.span(node));
    }
    case 'args':
    case 'namespace':
      return pass.fail(
        node,
        `What is taken of ${describe(base)} has to be named in the source: ${pass.code(node)}`,
        'Write its name after a dot.',
      );
    default:
      return pass.fail(
        node,
        `${describe(base)} cannot be indexed: ${pass.code(node)}`,
        'Index tensors and arrays.',
      );
  }
}

/** A longer list belongs in memory. */
const MOST_CHOICES = 64;

/**
 * The item of a list at a computed index, as a binary selection among the items. Where a loop is
 * unrolled the index is constant, and one item remains. Literal items take the type of their
 * context. An index before the first item gives the first, and one past the last gives the last.
 */
function chosenOf(
  pass: Pass,
  node: AnyNode,
  { name, items }: Extract<Value, { kind: 'list' }>,
  index: NumberValue,
  indexNode: AnyNode,
): NumberValue {
  if (items.length === 0 || items.length > MOST_CHOICES) {
    return pass.fail(
      indexNode,
      `The list ${name} has ${items.length} items, and with an index that the kernel ` +
        `computes it may have 1 to ${MOST_CHOICES}: ${pass.code(indexNode)}`,
      'Pass the list as a tensor.',
    );
  }
  const span = pass.span(node);
  const at = pass.reusable(indexOf(pass, index, indexNode), 'index');
  const between = (from: number, to: number): NumberValue => {
    if (to - from === 1) return literal(items[from]!, span);
    const middle = (from + to) >> 1;
    const [then, otherwise] = [between(from, middle), between(middle, to)];
    return {
      kind: 'number',
      level: join(then.level, otherwise.level),
      content: {
        is: 'choice',
        test: compare('lt', at, constant(middle, at.type, span), span),
        then,
        otherwise,
        span,
      },
    };
  };
  const chosen = between(0, items.length);
  return items.some((item) => typeof item === 'boolean') ? typed(concrete(chosen)) : chosen;
}

/** The length of one axis; with one axis, the number of elements. */
function extent(pass: Pass, node: AnyNode, param: number, axis: number): Value {
  const declared = pass.params[param]!;
  const one = declared.kind === 'tensor' && declared.rank === 1;
  return typed(
    pass.abi(
      one ? { kind: 'length', param } : { kind: 'extent', param, axis },
      pass.span(node),
      pass.source.indexType,
    ),
  );
}

/** value.name */
export function property(pass: Pass, node: AnyNode, value: Value, name: string): Value {
  const span = pass.span(node);
  switch (value.kind) {
    case 'args':
      return argument(pass, node, name);
    case 'namespace':
      return value.given?.get(name) ?? namespaced(pass, node, value.path, name);
    case 'tensor': {
      const whole = value.indices.length === 0;
      if (name === 'shape')
        return { kind: 'shape', param: value.param, from: value.indices.length };
      if (name === 'length')
        return whole
          ? typed(pass.abi({ kind: 'length', param: value.param }, span, pass.source.indexType))
          : extent(pass, node, value.param, value.indices.length);
      return pass.fail(
        node,
        `A tensor has no ${name} in a kernel`,
        'It has length, shape[axis] and its elements.',
      );
    }
    case 'shape': {
      const declared = pass.params[value.param]!;
      if (name === 'length')
        return literal(declared.kind === 'tensor' ? declared.rank - value.from : 0, span);
      if (/^\d+$/.test(name)) return element(pass, node, value, literal(Number(name), span), node);
      return pass.fail(node, `A shape has no ${name}`, 'It has length and its axes: y.shape[0].');
    }
    case 'array': {
      const [length] = value.dims;
      if (name !== 'length')
        return pass.fail(
          node,
          `An array has no ${name} in a kernel`,
          'It has length and its elements.',
        );
      if (length === undefined) {
        const bytes = { op: 'special', name: 'dynamicSharedBytes', type: 'i32', span } as const;
        return typed(
          binary(
            'div',
            bytes,
            constant(storageBytes[pass.arrays[value.array]!.storage], 'i32', span),
            span,
          ),
        );
      }
      return literal(length, span);
    }
    case 'list':
      if (name === 'length') return literal(value.items.length, span);
      return pass.fail(
        node,
        `The list ${value.name} has no ${name} in a kernel`,
        'It has length and its items.',
      );
    case 'struct': {
      const field =
        value.slot === undefined ? value.fields.get(name) : fieldsOf(pass, node, value)!.get(name);
      return (
        field ??
        pass.fail(
          node,
          `This structure has no field ${name}: it has ${[...value.fields.keys()].join(', ')}`,
          'Use one of these.',
        )
      );
    }
    case 'element':
    case 'structParam': {
      const at = value.struct.fields.findIndex((field) => field.name === name);
      const field = value.struct.fields[at];
      if (field === undefined)
        return pass.fail(
          node,
          `This structure has no field ${name}: it has ` +
            `${value.struct.fields.map((each) => each.name).join(', ')}`,
          'Use one of these.',
        );
      if (value.kind === 'element') checkInPlace(pass, value, node);
      return value.kind === 'structParam'
        ? structField(pass, node, value.param, at)
        : load(pass.paramPlace(value.param, value.index, field.storage, span, field));
    }
    default:
      return pass.fail(
        node,
        `${describe(value)} has no ${name}: ${pass.code(node)}`,
        'Structures, tensors, arrays, gpu and Math have properties.',
      );
  }
}

function argument(pass: Pass, node: AnyNode, name: string): Value {
  const param = pass.params.findIndex((each) => each.name === name);
  const declared = pass.params[param];
  if (declared === undefined) {
    const names = pass.params.map((each) => each.name).join(', ');
    return pass.fail(
      node,
      `\`${name}\` is not in the kernel's signature, which has ` +
        `${names === '' ? 'no parameters' : names}`,
      `Add it to the signature: { ${name}: f32 }.`,
    );
  }
  switch (declared.kind) {
    case 'tensor':
      return { kind: 'tensor', param, indices: [] };
    case 'struct':
      return { kind: 'structParam', param, struct: declared.struct };
    case 'scalar':
      return typed(
        pass.abi(
          { kind: 'scalar', param, storage: declared.storage },
          pass.span(node),
          readAs[declared.storage],
        ),
      );
  }
}

function namespaced(pass: Pass, node: AnyNode, path: string, name: string): Value {
  const span = pass.span(node);
  if (path === 'Math') {
    if (Object.hasOwn(mathConstants, name)) return literal(mathConstants[name]!, span);
    const call = mathFunction(name);
    if (call !== undefined) return { kind: 'function', name: `Math.${name}`, call };
    return pass.fail(
      node,
      `Math.${name} is not supported in a kernel`,
      name === 'random'
        ? 'Use a generator that counts, such as Philox: its numbers are the same on every device.'
        : 'Write it as a device function and give it through uses.',
    );
  }
  if (path === 'console') {
    if (Object.hasOwn(consoleFunctions, name))
      return { kind: 'function', name: `console.${name}`, call: consoleFunctions[name]! };
    return pass.fail(
      node,
      `console.${name} is not supported in a kernel`,
      'Use console.log and console.assert.',
    );
  }
  const { uses } = pass.frame;
  if (path === '' && Object.hasOwn(uses, name)) {
    const used = uses[name]!;
    if (typeof used === 'object' && !Array.isArray(used)) {
      const fn = used as Exclude<typeof used, readonly unknown[]>;
      return { kind: 'device', name: name.endsWith('$') ? 'the body' : `gpu.${name}`, fn };
    }
    if (typeof used === 'object')
      return {
        kind: 'list',
        name: `gpu.${name}`,
        items: used as readonly (number | bigint | boolean)[],
      };
    return literal(used, span);
  }
  const { narrow } = pass.frame;
  if (
    narrow !== undefined &&
    pass.frame.shownAs === undefined &&
    path === '' &&
    !narrow.has.includes(name)
  )
    return pass.fail(node, `There is no gpu.${name} in ${narrow.of}`, narrow.fix);
  const found = gpuName(pass, node, path === '' ? name : `${path}.${name}`);
  if (found !== undefined) return found;
  if (path === '') failIfRecursive(pass, node, name);
  const within = path === '' ? 'gpu' : `gpu.${path}`;
  const meant = gpuNamesIn(path).find((each) => each.toLowerCase() === name.toLowerCase());
  if (meant !== undefined)
    return pass.fail(node, `${within} has no ${name}`, `Write ${within}.${meant}.`);
  if (path !== '') {
    const near = nearest(name, gpuNamesIn(path));
    return pass.fail(
      node,
      `${within} has no ${name}`,
      near.length === 0
        ? `It has ${gpuNamesIn(path).join(', ')}.`
        : `It has ${near.map((each) => `${within}.${each}`).join(', ')}.`,
    );
  }
  const near = nearest(name, gpuNamesIn(''));
  return pass.fail(
    node,
    `gpu has no ${name}, and ` +
      `${pass.frame.fn === undefined ? 'the kernel' : `the device function ${pass.frame.name}`} ` +
      'does not use one',
    near.length === 0
      ? `Give it through uses: { ${name} }.`
      : `It has ${near.join(', ')}. What it does not have is given through uses: { ${name} }.`,
  );
}

/**
 * Known names that are similar: those with the same first word, and where there are none those that
 * differ by a letter or two.
 */
function nearest(name: string, known: readonly string[]): string[] {
  const wordOf = (text: string): string => /^[A-Z]?[a-z]*/.exec(text)![0].toLowerCase();
  const word = wordOf(name);
  const alike = word.length > 2 ? known.filter((each) => wordOf(each) === word) : [];
  return alike.length > 0
    ? alike
    : known.filter(
        (each) => differ(name.toLowerCase(), each.toLowerCase()) <= Math.min(2, name.length - 2),
      );
}

/**
 * The number of letters that are inserted, deleted, transposed or replaced, from one text to the
 * other.
 */
function differ(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = Math.min(
        rows[i - 1]![j]! + 1,
        row[j - 1]! + 1,
        rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
      row.push(
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
          ? Math.min(same, rows[i - 2]![j - 2]! + 1)
          : same,
      );
    }
    rows.push(row);
  }
  return rows[a.length]![b.length]!;
}
