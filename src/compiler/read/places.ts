/** Places in memory from indices: rows, elements, strides. */
import type { AnyNode } from 'acorn';
import type { Expression, Place, StorageType } from '../tree.js';
import { binary, constant, convert } from './nodes.js';
import type { Pass } from './pass.js';
import { isFloat, isInteger, readAs, settled } from './types.js';
import {
  concrete,
  constantOf,
  inStorage,
  inType,
  typed,
  type NumberValue,
  type Value,
} from './values.js';
import { failNegated, notWhole, wholeOperand } from './operands.js';

export type Indexable = Extract<Value, { kind: 'tensor' | 'array' }>;
export type Access = 'read' | 'write';

/** The value as an index: i32, u32 or i64. */
export function indexOf(pass: Pass, value: NumberValue, node: AnyNode): Expression {
  wholeOperand(pass, node, value, 'An index');
  if (value.level === 'bool')
    pass.failUnlessTypesChange(
      node,
      `An index is a boolean: ${pass.code(node)}`,
      `Write gpu.i32(${pass.code(node)}).`,
    );
  const known = constantOf(value);
  if (known !== undefined && Number(known) < 0)
    pass.fail(node, `An index is negative: ${pass.code(node)}`, 'The first element has index 0.');
  const expression = value.level === 'bool' ? inType(value, 'i32') : concrete(value);
  return expression.type === 'u64' ? convert(expression, 'i64') : expression;
}

/** Gives base[index]: a place where all axes have an index, else the remaining part. */
export function indexInto(
  pass: Pass,
  node: AnyNode,
  base: Indexable,
  value: NumberValue,
  indexNode: AnyNode,
): Value | { readonly kind: 'place'; readonly place: Place; readonly param?: number } {
  const span = pass.span(node);
  const index = indexOf(pass, value, indexNode);
  if (base.kind === 'array') {
    const [length, ...rest] = base.dims;
    const known = constantOf(value);
    if (length !== undefined && known !== undefined && Number(known) >= length) {
      pass.fail(
        indexNode,
        `Index ${String(known)} is beyond the array, which has ${length} elements there`,
        `Use 0 to ${length - 1}.`,
      );
    }
    const within = rest.reduce<number>((elements, dim) => elements * (dim ?? 1), 1);
    const at =
      base.index === undefined && rest.length === 0
        ? index
        : sum(
            base.index,
            within === 1
              ? convert(index, 'i32')
              : binary('mul', convert(index, 'i32'), constant(within, 'i32', span), span),
          );
    if (rest.length > 0) return { kind: 'array', array: base.array, dims: rest, index: at };
    return {
      kind: 'place',
      place: {
        memory: { kind: 'array', array: base.array },
        index: at,
        storage: pass.arrays[base.array]!.storage,
        span,
      },
    };
  }
  const param = pass.params[base.param]!;
  if (param.kind !== 'tensor')
    return pass.fail(node, `${param.name} is no tensor`, 'Index a tensor.');
  const indices = [...base.indices, index];
  if (indices.length < param.rank) return { kind: 'tensor', param: base.param, indices };
  const at =
    param.rank === 1
      ? index
      : indices
          .map((each, axis): Expression => {
            const type = pass.source.indexType;
            return binary(
              'mul',
              pass.abi({ kind: 'stride', param: base.param, axis }, span, type),
              convert(each, type),
              span,
            );
          })
          .reduce((a, b) => sum(a, b));
  if ('struct' in param.element)
    return { kind: 'element', param: base.param, index: at, struct: param.element.struct };
  return {
    kind: 'place',
    param: base.param,
    place: pass.paramPlace(base.param, at, param.element.storage, span),
  };

  function sum(a: Expression | undefined, b: Expression): Expression {
    return a === undefined ? b : binary('add', a, b, span);
  }
}

/** Rejects writes to an input. */
export function checkAccess(
  pass: Pass,
  node: AnyNode,
  param: number | undefined,
  access: Access,
): void {
  if (param === undefined || access === 'read') return;
  const declared = pass.params[param]!;
  if (declared.kind === 'tensor' && declared.access === 'input') {
    pass.fail(
      node,
      `${declared.name} is an input, and this writes to it: ${pass.code(node)}`,
      'Declare it as inout or output.',
    );
  }
}

/** The place that one index names in a tensor, a row or an array. */
export function placeIn(
  pass: Pass,
  node: AnyNode,
  base: Indexable,
  value: NumberValue,
  indexNode: AnyNode,
  access: Access,
): Place {
  const found = indexInto(pass, node, base, value, indexNode);
  if (found.kind !== 'place') {
    return pass.fail(
      node,
      found.kind === 'element'
        ? 'This element is a structure'
        : 'This has more axes than one index names',
      'Give a row of it: one index for each axis but the last.',
    );
  }
  checkAccess(pass, node, found.param, access);
  return found.place;
}

export function load(place: Place): NumberValue {
  return typed({ op: 'load', type: readAs[place.storage], place, span: place.span });
}

/** The value as it is stored, in the type that the storage is read as. */
export function storable(pass: Pass, node: AnyNode, place: Place, value: NumberValue): Expression {
  const type = readAs[place.storage];
  // An array with the type of another value may still become one of floats.
  if (type !== 'bool' && !isFloat(type) && isFloat(settled(value.level))) {
    pass.failUnlessTypesChange(
      node,
      ...notWhole(pass, node, value, `What is written to ${place.storage} elements`),
    );
  }
  if (isFloat(type)) failNegated(pass, node, value);
  const { content } = value;
  if (content.is === 'literal' && typeof content.value === 'bigint' && isInteger(type))
    checkFits(pass, node, place.storage, content.value);
  return inStorage(value, place.storage);
}

/** Rejects a bigint constant that has more bits than the element. */
function checkFits(pass: Pass, node: AnyNode, storage: StorageType, value: bigint): void {
  // Types are named after their bits: i32, u8.
  const bits = Number(storage.slice(1));
  if (value >= -(2n ** BigInt(bits - 1)) && value < 2n ** BigInt(bits)) return;
  const code = pass.code(node);
  const [signedness, cast] = storage.startsWith('u')
    ? ['u', `gpu.u${bits}`]
    : ['i', `gpu.i${bits}`];
  pass.fail(
    node,
    `${code}${/^\d+n$/.test(code) ? '' : `, which is ${value}n,`} does not fit in the ` +
      `${bits} bits of ${storage}`,
    `Write a number that they hold, or ${cast}(${code}) for its low ${bits} ` +
      `bits${bits < 64 ? `, or make the elements ${signedness}64` : ''}.`,
  );
}
