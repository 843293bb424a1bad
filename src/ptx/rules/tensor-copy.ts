// Tensor copies: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and their prefetches, and the
// instructions that change tensor maps. A copy is done at once, as other bulk copies;
// runtime/tensors.ts goes through the tensor.

import type { Arg } from '../analysis/program.js';
import { ACCESS } from '../check.js';
import { FAULT } from '../context.js';
import { emitCallerCheck, emitCopyCheck, emitTouch } from '../emit/check.js';
import type { Emitter } from '../emit/emitter.js';
import { checkedRange, pushWideAddress } from '../emit/memory-access.js';
import { TENSOR_MODE, TENSOR_OPERATIONS } from '../runtime/tensors.js';
import { scalarType } from '../scalar-types.js';
import { TENSOR_MAP, TENSOR_MAP_MAGIC } from '../tensor-map.js';
import { mapToRank } from './cluster.js';
import { completeTransaction } from './mbarrier.js';
import { toSelectedBlocks } from './multicast.js';

const B16 = scalarType('b16');
const B32 = scalarType('b32');
const B64 = scalarType('b64');
const S32 = scalarType('s32');

/** The operands between brackets after the address of the tensor map, or of `{…}`. */
function elements(e: Emitter, arg: Arg | undefined): readonly Arg[] {
  if (arg?.kind !== 'vector') throw e.semantic('expected a vector in braces', arg?.at);
  return arg.elements;
}

/** How the instruction goes through the tensor, and along how many dimensions. */
function formOf(e: Emitter): number {
  const dimensions = Number(e.oneOf('1d', '2d', '3d', '4d', '5d')![0]);
  if (e.has('tile::gather4') || e.has('tile::scatter4')) return dimensions | TENSOR_MODE.rows;
  return dimensions | (e.has('im2col') || e.has('im2col_no_offs') ? TENSOR_MODE.im2col : 0);
}

export function copyTensor(e: Emitter): void {
  const { code } = e;
  if (e.has('im2col::w') || e.has('im2col::w::128')) throw e.unsupported('wide im2col is');
  if (e.has('prefetch')) return;
  const loads = e.has('mbarrier::complete_tx::bytes');
  const memory = e.arg(loads ? 0 : 1);
  const tensor = e.arg(loads ? 1 : 0);
  if (tensor.kind !== 'address') throw e.semantic('expected a tensor map in brackets', tensor.at);
  const operation = loads ? 'load' : (e.oneOf(...TENSOR_OPERATIONS) ?? 'store');
  const coordinates = elements(e, tensor.extra[0]);
  const offsets = e.has('im2col') ? elements(e, e.arg(3)) : [];
  const map = e.temp('i64');
  pushWideAddress(e, tensor);
  code.set(map);
  const shared = e.temp('i64');
  pushWideAddress(e, memory);
  code.set(shared);
  const bytes = e.temp('i32');
  const copy = (): void => {
    if (e.around.check) emitCallerCheck(e);
    code.get(e.ctx).get(e.thread).i32(e.line).get(map).get(shared);
    if (e.has('shared::cluster')) {
      code.get(e.ctx).get(shared);
      e.call('shared_of');
    } else {
      code.get(e.contextField('shared'));
    }
    code.i32(formOf(e)).i32(TENSOR_OPERATIONS.indexOf(operation));
    for (let axis = 0; axis < TENSOR_MAP.most; axis++) {
      const coordinate = coordinates[axis];
      if (coordinate) e.push(coordinate, S32);
      else code.i32(0);
    }
    for (let axis = 0; axis < TENSOR_MAP.most - 2; axis++) {
      const offset = offsets[axis];
      if (offset) e.push(offset, B16);
      else code.i32(0);
      code.i32(0xffff).op('i32.and');
    }
    e.call('tensor_copy');
    code.tee(bytes).op('i32.eqz');
    e.when(() => {
      e.leaveFaulted();
    });
  };
  if (!e.has('multicast::cluster')) {
    copy();
    if (loads)
      completeTransaction(e, e.arg(2), () => {
        code.get(bytes);
      });
    return;
  }
  const target = e.temp('i64');
  code.get(shared).set(target);
  toSelectedBlocks(e, e.arg(offsets.length ? 4 : 3), e.arg(2), bytes, (pushRank) => {
    code.get(target);
    mapToRank(e, pushRank);
    code.set(shared);
    copy();
  });
}

/** tensormap.replace and tensormap.cp_fenceproxy. */
export function changeTensorMap(e: Emitter): void {
  if (e.has('replace')) replaceField(e);
  else copyMap(e);
}

/** The threads of a warp execute it together, with the same operands: each copies the map. */
function copyMap(e: Emitter): void {
  const { code } = e;
  const bytes = e.temp('i32');
  code.i32(TENSOR_MAP.bytes).set(bytes);
  const target = checkedRange(e, e.arg(0), bytes, TENSOR_MAP.bytes, 'generic');
  const source = checkedRange(e, e.arg(1), bytes, TENSOR_MAP.bytes, 'shared');
  emitCopyCheck(e, { local: target, offset: 0 }, { local: source, offset: 0 }, () => {
    code.get(bytes);
  });
  code.get(target).get(source).get(bytes).op('memory.copy').byte(0).byte(0);
}

/** The fields of one byte. */
const BYTES: Readonly<Record<string, number>> = {
  elemtype: TENSOR_MAP.type,
  interleave_layout: TENSOR_MAP.interleave,
  swizzle_mode: TENSOR_MAP.swizzle,
  swizzle_atomicity: TENSOR_MAP.atomicity,
  fill_mode: TENSOR_MAP.fill,
};

function replaceField(e: Emitter): void {
  const { code } = e;
  const bytes = e.temp('i32');
  code.i32(TENSOR_MAP.bytes).set(bytes);
  const map = checkedRange(
    e,
    e.arg(0),
    bytes,
    TENSOR_MAP.align,
    e.has('shared::cta') ? 'shared' : 'generic',
  );
  if (e.around.check) emitTouch(e, { local: map, offset: 0 }, TENSOR_MAP.bytes, ACCESS.read);
  code.get(map).memory('i32.load', TENSOR_MAP.magic).i32(TENSOR_MAP_MAGIC).op('i32.ne');
  e.when(() => {
    code.get(e.ctx).i32(FAULT.tensorMap).get(e.thread).i32(e.line);
    code.get(map).op('i64.extend_i32_u');
    e.call('fault');
    e.leaveFaulted();
  });
  const field = e.oneOf(
    'global_address',
    'rank',
    'box_dim',
    'global_dim',
    'global_stride',
    'element_stride',
    ...Object.keys(BYTES),
  )!;
  const value = e.inst.args.at(-1)!;
  const ordinal = e.inst.args.length > 2 ? ordinalOf(e, field) : 0;
  code.get(map);
  switch (field) {
    case 'global_address':
      e.push(value, B64);
      code.memory('i64.store', TENSOR_MAP.address);
      return;
    case 'global_stride':
      e.push(value, B64);
      code.memory('i64.store', TENSOR_MAP.strides + 8 * ordinal);
      return;
    case 'rank':
      e.push(value, B32);
      code.i32(1).op('i32.add').memory('i32.store8', TENSOR_MAP.rank);
      return;
    case 'box_dim':
    case 'global_dim':
      e.push(value, B32);
      code.memory(
        'i32.store',
        (field === 'box_dim' ? TENSOR_MAP.box : TENSOR_MAP.dims) + 4 * ordinal,
      );
      return;
    case 'element_stride':
      e.push(value, B32);
      code.memory('i32.store8', TENSOR_MAP.steps + ordinal);
      return;
    default:
      e.push(value, B32);
      code.memory('i32.store8', BYTES[field]);
  }
}

function ordinalOf(e: Emitter, field: string): number {
  const arg = e.arg(1);
  const most = field === 'global_stride' ? TENSOR_MAP.most - 2 : TENSOR_MAP.most - 1;
  if (arg.kind !== 'integer' || arg.value < 0n || arg.value > BigInt(most))
    throw e.semantic(`expected the number of a dimension from 0 to ${most}`, arg.at);
  return Number(arg.value);
}
