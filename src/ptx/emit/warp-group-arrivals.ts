// wgmma in one lane. A group's four warps compute 16 rows each: in each warp the product is one as
// mma's, except that its operands are in shared memory. It is computed when all four warps have
// arrived, so that the instructions which wait for it do nothing.

import type { Arg, Inst } from '../analysis/program.js';
import type { Product } from '../matrix/forms.js';
import { FAULT } from '../context.js';
import { PRODUCT } from '../runtime/matrices.js';
import { GROUP_FLAGS, GROUP_HEADER, GROUP_TYPES } from '../runtime/warp-groups.js';
import { scalarType } from '../scalar-types.js';
import type { Emitter } from './emitter.js';
import type { MailEmitter } from './mail-emitter.js';
import {
  areas,
  fragmentValues,
  laneLocal,
  mailProduct,
  nameOf,
  pushArea,
  required,
  storeFragment,
  vectorOf,
} from './matrix-arrivals.js';
import { callPart } from './shared-part.js';
import { emitCallerCheck } from './check.js';

const B64 = scalarType('b64');
const PRED = scalarType('pred');

/** The operands after the two matrices, by their places: only some types can be transposed. */
interface Operands {
  readonly scale: Arg;
  readonly negatedA: boolean;
  readonly negatedB: boolean;
  readonly transposedA: boolean;
  readonly transposedB: boolean;
  readonly sharedA: boolean;
}

function operandsOf(e: MailEmitter, { a: { type } }: Product): Operands {
  const sharedA = e.arg(1).kind !== 'vector';
  const transposes = type.bits === 16;
  const scales = type.as === 'f32';
  e.argCount(4 + (scales ? 2 : 0) + (transposes ? (sharedA ? 2 : 1) : 0));
  const integer = (place: number): bigint => {
    const arg = e.arg(place);
    return arg.kind === 'integer' ? arg.value : 0n;
  };
  return {
    sharedA,
    scale: e.arg(3),
    negatedA: scales && integer(4) === -1n,
    negatedB: scales && integer(5) === -1n,
    transposedA: transposes && sharedA && integer(6) === 1n,
    transposedB: transposes && integer(sharedA ? 7 : 6) === 1n,
  };
}

export function emitGroupArrival(e: MailEmitter, inst: Inst): void {
  const { code } = e;
  const product = required(e, inst);
  const operands = operandsOf(e, product);
  const { sharedA } = operands;
  const { m, n, k } = product;
  const at = areas(product);
  const c = fragmentValues(e, e.arg(0), product.c);
  const a = sharedA ? [] : fragmentValues(e, e.arg(1), product.a);
  callPart(e, {
    key: `${nameOf(inst)} arrives${sharedA ? '' : ' with A'}`,
    inputs: [...c, ...a],
    matrixResults: () => {
      e.pushMatrixResults();
    },
    build: (part, inputs) => {
      part.inst = inst;
      const lane = laneLocal(part);
      storeFragment(part, vectorOf(inputs.slice(0, c.length)), product.c, lane, at.c, n, 0);
      if (!sharedA)
        storeFragment(part, vectorOf(inputs.slice(c.length)), product.a, lane, at.a, k, 0);
    },
  });
  const header = e.temp('i32');
  pushArea(e);
  code.set(header);
  // A product that is not scaled does not begin with its accumulators.
  e.push(operands.scale, PRED);
  code.op('i32.eqz');
  e.when(() => {
    code
      .get(header)
      .i32(at.c)
      .op('i32.add')
      .i32(0)
      .i32(4 * m * n)
      .op('memory.fill')
      .byte(0);
  });
  const warp = e.temp('i32');
  code.get(e.thread).i32(5).op('i32.shr_u').i32(3).op('i32.and').set(warp);
  const flags =
    (operands.negatedA ? GROUP_FLAGS.negatedA : 0) |
    (operands.negatedB ? GROUP_FLAGS.negatedB : 0) |
    (sharedA ? GROUP_FLAGS.sharedA : 0) |
    (operands.transposedA ? GROUP_FLAGS.transposedA : 0) |
    (operands.transposedB ? GROUP_FLAGS.transposedB : 0);
  for (const [offset, value] of [
    [GROUP_HEADER.flags, flags],
    [GROUP_HEADER.typeA, GROUP_TYPES.indexOf(product.a.type.name)],
    [GROUP_HEADER.typeB, GROUP_TYPES.indexOf(product.b.type.name)],
  ] as const)
    code.get(header).i32(value).memory('i32.store', offset);
  code.get(header).get(warp).memory('i32.store', GROUP_HEADER.warp);
  if (e.around.check) emitCallerCheck(e);
  if (sharedA)
    placeOperand(e, header, GROUP_HEADER.a, e.arg(1), operands.transposedA, m, k, product, warp);
  placeOperand(e, header, GROUP_HEADER.b, e.arg(2), operands.transposedB, n, k, product);
  mailProduct(e, 'wgmma', product, arithmeticOf(e, product));
}

function arithmeticOf(e: Emitter, { a: { type } }: Product): number {
  if (type.name === 'b1') return PRODUCT.and;
  if (type.as === 'f32') return PRODUCT.f32;
  return e.has('satfinite') ? PRODUCT.s32sat : PRODUCT.s32;
}

/**
 * Writes where an operand of `extent` rows or columns is, and checks that it is in shared memory.
 * With `warp`, a local, the operand is this warp's part of it.
 */
function placeOperand(
  e: MailEmitter,
  header: number,
  offset: number,
  descriptor: Arg,
  transposed: boolean,
  extent: number,
  k: number,
  product: Product,
  warp?: number,
): void {
  const { code } = e;
  const perUnit = 128 / product.a.type.bits;
  const [lines, units] = transposed ? [k, extent / perUnit] : [extent, k / perUnit];
  /** Pushes where the warp's lines or units begin, which are so many for each warp. */
  const pushFirst = (each: number): void => {
    if (warp === undefined || each === 0) code.i32(0);
    else code.get(warp).i32(each).op('i32.mul');
  };
  code.get(e.ctx).get(header).i32(offset).op('i32.add');
  e.push(descriptor, B64);
  code.i32(transposed ? 1 : 0);
  const line = transposed ? 0 : lines;
  pushFirst(line);
  code.get(laneLocal(e)).op('i32.add');
  pushFirst(line);
  code.i32(lines).op('i32.add');
  pushFirst(transposed ? units : 0);
  code.i32(units);
  e.call('place_group_operand');
  const outside = e.temp('i32');
  code.tee(outside);
  e.when(() => {
    code.get(e.ctx).i32(FAULT.outOfBounds).get(e.thread);
    e.pushLine();
    code.get(outside).op('i64.extend_i32_u');
    e.call('fault');
    e.leaveFaulted();
  });
}
