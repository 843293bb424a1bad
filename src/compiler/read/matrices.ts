/** Matrix operations of a warp, and asynchronous copies. */
import type { Fragment, MatrixShape, MatrixType, Place, StorageType } from '../tree.js';
import { arity, integer, known, number, statement, type Call } from './calls.js';
import { convert, constant } from './nodes.js';
import { placeIn } from './places.js';
import { storageBytes } from './types.js';
import { describe, type Value } from './values.js';

interface Product {
  readonly shape: MatrixShape;
  /** Elements of a, b and the sum in each lane. */
  readonly lengths: readonly [a: number, b: number, sum: number];
}

/** Products of f16 and bf16, by the elements of `a` in a lane. */
const halfProducts: Readonly<Record<number, Product>> = {
  8: { shape: 'm16n8k16', lengths: [8, 4, 4] },
  4: { shape: 'm16n8k8', lengths: [4, 2, 4] },
};
const tf32Product: Product = { shape: 'm16n8k8', lengths: [4, 2, 4] };

/** The number of elements that each lane gets from one instruction. */
const loads: readonly number[] = [2, 4, 8];

/**
 * The argument as a local array of one axis: an array, or a row of an array of several axes. With
 * `folded` it may also be a whole array of several axes, which is read in row-major order.
 */
export function fragment(
  call: Call,
  at: number,
  what: string,
  folded = false,
): Fragment & { readonly storage: StorageType } {
  const { pass, node, name, args, argNodes } = call;
  const value = args[at];
  const own = argNodes[at] ?? node;
  if (value?.kind !== 'array') {
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} is ` +
        `${value === undefined ? 'missing' : describe(value)}, and has to be ${what}: a local ` +
        'array',
      'Declare it with const part = gpu.local.f16(8), and pass all of it, or a row of ' +
        'gpu.local.f16(4, 8).',
    );
  }
  const declared = pass.arrays[value.array]!;
  if (declared.space !== 'local') {
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} lies in shared memory, and has to be ${what}: a local array`,
      'Read it into one with gpu.warp.loadMatrices(part, shared, index).',
    );
  }
  const length = value.dims.reduce<number>((elements, dim) => elements * (dim ?? 1), 1);
  if (value.dims.length > 1 && !folded) {
    return pass.fail(
      own,
      `Argument ${at + 1} of ${name} has ${value.dims.length} axes, and has to be ${what}: ` +
        'one axis',
      'Give it an index for each axis but the last.',
    );
  }
  const span = pass.span(own);
  return {
    array: value.array,
    index: value.index ?? constant(0, 'i32', span),
    length,
    storage: declared.storage,
  };
}

export const asFragment = ({ array, index, length }: Fragment): Fragment => ({
  array,
  index: convert(index, 'i32'),
  length,
});

function lengthOf(
  call: Call,
  at: number,
  found: Fragment,
  letter: string,
  length: number,
  because: string,
): void {
  if (found.length === length) return;
  const { pass, node, name, argNodes } = call;
  pass.fail(
    argNodes[at] ?? node,
    `Argument ${at + 1} of ${name} (${letter}) has ${found.length} elements in each lane, ` +
      `and takes ${length}${because}`,
    `Declare it with ${length}: gpu.local.${pass.arrays[found.array]!.storage}(${length}).`,
  );
}

function matrixProduct(tf32: boolean) {
  return (call: Call): Value => {
    arity(call, 3);
    const { pass, node, name, argNodes } = call;
    const [sum, a, b] = [
      fragment(call, 0, 'the sum'),
      fragment(call, 1, 'the left factor'),
      fragment(call, 2, 'the right factor'),
    ];
    if (sum.storage !== 'f32')
      pass.fail(
        argNodes[0] ?? node,
        `${name} sums in f32, and argument 1 is an array of ${sum.storage}`,
        'Declare it with gpu.local.f32(4).',
      );
    const allowed: readonly StorageType[] = tf32 ? ['f32'] : ['f16', 'bf16'];
    if (!allowed.includes(a.storage)) {
      pass.fail(
        argNodes[1] ?? node,
        `${name} multiplies ${allowed.join(' or ')}, and argument 2 is an array of ${a.storage}`,
        a.storage === 'f32'
          ? 'Use gpu.local.f16 or gpu.local.bf16, or gpu.warp.mmaTf32 for f32 with fewer bits.'
          : `Declare it with gpu.local.${allowed[0]!}(${tf32 ? 4 : 8}).`,
      );
    }
    if (b.storage !== a.storage)
      pass.fail(
        argNodes[2] ?? node,
        `${name} multiplies two of one dtype, and its factors are ${a.storage} and ${b.storage}`,
        `Declare both as ${a.storage}.`,
      );
    const product = tf32 ? tf32Product : halfProducts[a.length];
    if (product === undefined) {
      return pass.fail(
        argNodes[1] ?? node,
        `Argument 2 of ${name} (a) has ${a.length} elements in each lane, and takes 8 (16 × ` +
          '16) or 4 (16 × 8)',
        `Declare it with gpu.local.${a.storage}(8), or pass a row of gpu.local.${a.storage}(4, 8).`,
      );
    }
    const [lengthA, lengthB, lengthSum] = product.lengths;
    lengthOf(call, 1, a, 'a', lengthA, '');
    lengthOf(call, 2, b, 'b', lengthB, tf32 ? '' : ` beside an a of ${lengthA}`);
    lengthOf(call, 0, sum, 'sum', lengthSum, ': 16 × 8 by 32 lanes');
    const type: MatrixType = tf32 ? 'tf32' : (a.storage as 'f16');
    return statement(call, (span) => ({
      kind: 'matrixProduct',
      shape: product.shape,
      type,
      sum: asFragment(sum),
      a: asFragment(a),
      b: asFragment(b),
      span,
    }));
  };
}

/** An argument of 1, 2 or 4 matrices of 8 × 8 elements of 16 bits: a local array. */
export function matricesOf(
  call: Call,
  at: number,
  what: string,
): Fragment & { readonly storage: StorageType } {
  const { pass, node, name, argNodes } = call;
  const found = fragment(call, at, what, true);
  if (found.storage !== 'f16' && found.storage !== 'bf16') {
    pass.fail(
      argNodes[at] ?? node,
      `${name} takes elements of 16 bits, and argument ${at + 1} is an array of ${found.storage}`,
      'Use gpu.local.f16 or gpu.local.bf16.',
    );
  }
  if (!loads.includes(found.length)) {
    pass.fail(
      argNodes[at] ?? node,
      `${name} takes 1, 2 or 4 matrices, 2 elements of each in a lane, and argument ${at + 1} ` +
        `has ${found.length} elements`,
      `Declare it with 2, 4 or 8: gpu.local.${found.storage}(8).`,
    );
  }
  return found;
}

function loadMatrices(transposed: boolean) {
  return (call: Call): Value => {
    arity(call, 3);
    const { pass, node, name, argNodes } = call;
    const to = matricesOf(call, 0, 'what is read');
    const from = sharedPlace(call, 1, 2);
    if (from.storage !== to.storage)
      pass.fail(
        argNodes[1] ?? node,
        `${name} reads ${from.storage} into an array of ${to.storage}`,
        `Declare both as ${to.storage}.`,
      );
    return statement(call, (span) => ({
      kind: 'loadMatrices',
      to: asFragment(to),
      from,
      transposed,
      span,
    }));
  };
}

/** The element of shared memory of two arguments. */
export function sharedPlace(call: Call, array: number, index: number): Place {
  const { pass, node, name, args, argNodes } = call;
  const value = args[array];
  const own = argNodes[array] ?? node;
  if (value?.kind !== 'array' || pass.arrays[value.array]!.space === 'local') {
    const found =
      value === undefined ? 'missing' : value.kind === 'array' ? 'a local array' : describe(value);
    return pass.fail(
      own,
      `Argument ${array + 1} of ${name} is ${found}, and has to be a shared array`,
      'Declare it with gpu.shared.f16(LENGTH), or gpu.dynamicShared.f16() where it takes ' +
        'more than 48 KiB.',
    );
  }
  return placeIn(pass, node, value, number(call, index), argNodes[index] ?? node, 'write');
}

/** Sizes in bytes that cp.async copies. */
const copied: readonly number[] = [4, 8, 16];

function copyAsync(call: Call): Value {
  arity(call, 5, 6);
  const { pass, node, name, args, argNodes } = call;
  const to = sharedPlace(call, 0, 1);
  const source = args[2];
  if (source?.kind !== 'tensor') {
    return pass.fail(
      argNodes[2] ?? node,
      `Argument 3 of ${name} is ${source === undefined ? 'missing' : describe(source)}, and ` +
        'has to be a tensor or a row of one',
      `Write ${name}(tile, i, x, j, 8).`,
    );
  }
  const from = placeIn(pass, node, source, number(call, 3), argNodes[3] ?? node, 'read');
  if (from.storage !== to.storage)
    pass.fail(
      argNodes[2] ?? node,
      `${name} copies bytes as they are, and the tensor has elements of ${from.storage}, the ` +
        `shared array of ${to.storage}`,
      `Declare the shared array as ${from.storage}.`,
    );
  const count = known(call, 4);
  const bytes = count * storageBytes[to.storage];
  if (!copied.includes(bytes)) {
    const counts = copied
      .map((each) => each / storageBytes[to.storage])
      .filter((each) => each >= 1);
    pass.fail(
      argNodes[4] ?? node,
      `${name} copies 4, 8 or 16 bytes, and ${count} elements of ${to.storage} are ${bytes}`,
      `Copy ${counts.join(' or ')} elements.`,
    );
  }
  const given = args[5] === undefined ? undefined : integer(call, 5, 'i32');
  return statement(call, (span) => ({
    kind: 'copyAsync',
    to,
    from,
    count,
    span,
    ...(given !== undefined && { given }),
  }));
}

function copyWait(call: Call): Value {
  arity(call, 1);
  const pending = known(call, 0);
  if (pending < 0)
    call.pass.fail(
      call.argNodes[0] ?? call.node,
      `${call.name} takes how many groups may be under way, from 0, and got ${pending}`,
      'Write 0 to wait for all of them.',
    );
  return statement(call, (span) => ({ kind: 'copyWait', pending, span }));
}

export const matrixFunctions: Readonly<Record<string, (call: Call) => Value>> = {
  'warp.mma': matrixProduct(false),
  'warp.mmaTf32': matrixProduct(true),
  'warp.loadMatrices': loadMatrices(false),
  'warp.loadMatricesTransposed': loadMatrices(true),
  'async.copy': copyAsync,
  'async.commit': (call) => {
    arity(call, 0);
    return statement(call, (span) => ({ kind: 'copyCommit', span }));
  },
  'async.wait': copyWait,
};
