// Matrix products and moves of tiles in one lane: it writes its fragments to their places in the
// warp's dense matrices, waits for the warp, and reads its part of the result. The other half is in
// runtime/matrices.ts.

import { WARP_OPERATIONS } from '../analysis/cuts.js';
import type { Arg, Inst } from '../analysis/program.js';
import { numberBytes } from '../matrix/element-types.js';
import type { ElementType } from '../matrix/element-types.js';
import { productOf } from '../matrix/forms.js';
import type { Operand, Product } from '../matrix/forms.js';
import type { LaneField } from '../matrix/layouts.js';
import { PRODUCT, SPARSITY, TILE } from '../runtime/matrices.js';
import { ROUNDING } from '../runtime/floats.js';
import { scalarType } from '../scalar-types.js';
import type { Emitter } from './emitter.js';
import { MAIL } from './frame-layout.js';
import type { MailEmitter } from './mail-emitter.js';
import { accessSpace } from '../rules/memory.js';
import { checkedPlace } from './memory-access.js';
import { callPart } from './shared-part.js';
import type { PartValue } from './shared-part.js';

const B32 = scalarType('b32');
const U32 = scalarType('u32');
const F32 = scalarType('f32');
const F64 = scalarType('f64');

/** Sixteen bytes for each lane. */
const TILE_AREA_BYTES = 512;
/** One word for each lane. */
const MOVED_BYTES = 128;

export const isMatrixOperation = (mnemonic: string): boolean =>
  mnemonic === 'mma' ||
  mnemonic === 'wmma' ||
  mnemonic === 'wgmma' ||
  mnemonic === 'ldmatrix' ||
  mnemonic === 'stmatrix' ||
  mnemonic === 'movmatrix';

/**
 * The offsets of the four matrices of a product in its part of the warp's area, which begins with
 * the product's header.
 */
export function areas(product: Product): {
  a: number;
  b: number;
  c: number;
  d: number;
  end: number;
} {
  const { m, n, k, batch, sparse, headerBytes: a } = product;
  const bytes = numberBytes(product.a.type);
  const b = a + batch * m * (sparse ? k / 2 : k) * bytes;
  const c = b + batch * k * n * bytes;
  const d = c + batch * m * n * bytes;
  return { a, b, c, d, end: d + batch * m * n * bytes + (sparse ? m * k * bytes : 0) };
}

/**
 * The bytes that a warp needs for the operands of this instruction, and for its results. A lane
 * that has its result continues to the next instruction and writes its operands there while others
 * have yet to read their results, so results of one instruction may not overlap the operands of
 * another.
 */
export function matrixRoom(inst: Inst): { operands: number; results: number } {
  const product = isMatrixOperation(inst.mnemonic)
    ? productOf(inst.mnemonic, inst.modifiers)
    : undefined;
  if (product) {
    const { d, end } = areas(product);
    return { operands: d, results: end - d };
  }
  switch (inst.mnemonic) {
    case 'ldmatrix':
      return { operands: 0, results: TILE_AREA_BYTES };
    case 'stmatrix':
      return { operands: TILE_AREA_BYTES, results: 0 };
    case 'movmatrix':
      return { operands: MOVED_BYTES, results: MOVED_BYTES };
    default:
      return { operands: 0, results: 0 };
  }
}

/**
 * Pushes the address of the current instruction's part of the warp's area: its operands end where
 * results begin.
 */
export function pushArea(e: MailEmitter): void {
  e.pushMatrixResults();
  const { operands } = matrixRoom(e.inst);
  if (operands) e.code.i32(operands).op('i32.sub');
}

/** The registers of a fragment; a single one may be without braces. */
export function fragmentRegisters(e: Emitter, arg: Arg, count: number): readonly Arg[] {
  const found = arg.kind === 'vector' ? arg.elements : [arg];
  if (found.length !== count)
    throw e.semantic(
      `this fragment takes ${count} register${count === 1 ? '' : 's'}, found ${found.length}`,
      arg.at,
    );
  return found;
}

/** Pushes the sum of a lane's fields, each times its `weight`; the lane is in a local. */
export function pushLaneSum(
  e: Emitter,
  lane: number,
  fields: readonly LaneField[],
  weight: (field: LaneField) => number,
): void {
  const { code } = e;
  code.i32(0);
  for (const field of fields) {
    const factor = weight(field);
    if (!factor) continue;
    code.get(lane);
    if (field.shift) code.i32(field.shift).op('i32.shr_u');
    code.i32(field.mask).op('i32.and').i32(factor).op('i32.mul').op('i32.add');
  }
}

export function laneLocal(e: Emitter): number {
  const lane = e.temp('i32');
  e.code.get(e.thread).i32(31).op('i32.and').set(lane);
  return lane;
}

/** Pushes the number that element `index` of the register's bits (in an i32 local) represents. */
function pushNumber(e: Emitter, type: ElementType, bits: number, index: number): void {
  const { code } = e;
  const shift = index * type.bits;
  const field = (mask: number): void => {
    code.get(bits);
    if (shift) code.i32(shift).op('i32.shr_u');
    code.i32(mask).op('i32.and');
  };
  switch (type.name) {
    case 'f16':
      field(0xffff);
      e.call('f16_to_f32');
      return;
    case 'bf16':
      code.get(bits);
      if (index) code.i32(0xffff0000 | 0).op('i32.and');
      else code.i32(16).op('i32.shl');
      code.op('f32.reinterpret_i32');
      return;
    // The low 13 bits are ignored.
    case 'tf32':
      code
        .get(bits)
        .i32(0xffffe000 | 0)
        .op('i32.and')
        .op('f32.reinterpret_i32');
      return;
    case 'e4m3':
      field(0xff);
      e.call('e4m3_to_f32');
      return;
    case 'e5m2':
      field(0xff);
      code.i32(8).op('i32.shl');
      e.call('f16_to_f32');
      return;
    case 'e3m2':
      field(0x3f);
      code.i32(3).i32(2);
      e.call('small_float');
      return;
    case 'e2m3':
      field(0x3f);
      code.i32(2).i32(3);
      e.call('small_float');
      return;
    // Four bits are in the middle of their byte, with two zeros on either side.
    case 'e2m1':
      field(0x3c);
      code.i32(2).op('i32.shr_u').i32(2).i32(1);
      e.call('small_float');
      return;
    case 's8':
    case 's4':
      code
        .get(bits)
        .i32(32 - type.bits - shift)
        .op('i32.shl')
        .i32(32 - type.bits)
        .op('i32.shr_s');
      return;
    case 'u8':
    case 'u4':
      field(2 ** type.bits - 1);
      return;
    default:
      code.get(bits);
  }
}

export function storeFragment(
  e: MailEmitter,
  arg: Arg,
  { type, layout }: Operand,
  lane: number,
  area: number,
  columns: number,
  batchBytes: number,
): void {
  const { code } = e;
  const bytes = numberBytes(type);
  const address = e.temp('i32');
  pushLaneSum(
    e,
    lane,
    layout.lane,
    ({ row = 0, column = 0, batch = 0 }) => (row * columns + column) * bytes + batch * batchBytes,
  );
  pushArea(e);
  code.op('i32.add').set(address);
  const written = new Set<number>();
  const place = (index: number): number => {
    const { row, column } = layout.element(index);
    return area + (row * columns + column) * bytes;
  };
  fragmentRegisters(e, arg, layout.registers).forEach((register, number) => {
    if (type.as === 'f64') {
      code.get(address);
      e.push(register, F64);
      code.memory('f64.store', place(number));
      return;
    }
    if (type.name === 'f32') {
      code.get(address);
      e.push(register, F32);
      code.memory('f32.store', place(number));
      return;
    }
    const bits = e.temp('i32');
    e.push(register, B32);
    code.set(bits);
    for (let index = 0; index < layout.width; index++) {
      const at = place(number * layout.width + index);
      // A fragment may contain an element several times.
      if (written.has(at)) continue;
      written.add(at);
      code.get(address);
      pushNumber(e, type, bits, index);
      code.memory(`${type.as}.store`, at);
    }
  });
}

export function loadFragment(
  e: MailEmitter,
  arg: Arg,
  { type, layout }: Operand,
  area: number,
  columns: number,
  batchBytes: number,
): void {
  const { code } = e;
  const bytes = numberBytes(type);
  const address = e.temp('i32');
  pushLaneSum(
    e,
    laneLocal(e),
    layout.lane,
    ({ row = 0, column = 0, batch = 0 }) => (row * columns + column) * bytes + batch * batchBytes,
  );
  pushArea(e);
  code.op('i32.add').set(address);
  fragmentRegisters(e, arg, layout.registers).forEach((register, number) => {
    for (let index = 0; index < layout.width; index++) {
      const { row, column } = layout.element(number * layout.width + index);
      code.get(address).memory(`${type.as}.load`, area + (row * columns + column) * bytes);
      if (type.name !== 'f16') continue;
      code.op('f64.promote_f32');
      e.call('f64_to_f16');
      if (index) code.i32(16).op('i32.shl').op('i32.or');
    }
    e.pop(register, type.name === 'f32' ? F32 : type.as === 'f64' ? F64 : B32);
  });
}

/** The registers of a fragment, as values that are passed to a part. */
export function fragmentValues(e: Emitter, arg: Arg, { type, layout }: Operand): PartValue[] {
  const passed = type.as === 'f64' ? F64 : type.name === 'f32' ? F32 : B32;
  return fragmentRegisters(e, arg, layout.registers).map((register) => ({
    arg: register,
    type: passed,
  }));
}

export const vectorOf = (elements: readonly Arg[]): Arg => ({
  kind: 'vector',
  elements: [...elements],
  at: elements[0]!.at,
});

export const nameOf = ({ mnemonic, modifiers }: Inst): string => [mnemonic, ...modifiers].join('.');

function productArrival(e: MailEmitter, inst: Inst): void {
  const product = required(e, inst);
  e.argCount(product.sparse ? 6 : 4);
  const [a, b, c] = [product.a, product.b, product.c].map((operand, index) =>
    fragmentValues(e, e.arg(index + 1), operand),
  ) as [PartValue[], PartValue[], PartValue[]];
  const metadata = product.sparse ? [{ arg: e.arg(4), type: B32 }] : [];
  const selector = inst.args[5];
  callPart(e, {
    key: `${nameOf(inst)} arrives${selector?.kind === 'integer' ? ` ${selector.value}` : ''}`,
    inputs: [...a, ...b, ...c, ...metadata],
    mailbox: () => {
      e.pushMailbox();
    },
    matrixResults: () => {
      e.pushMatrixResults();
    },
    build: (part, inputs) => {
      const fragments = [a, b, c].map((values, index) => {
        const from = [a, b, c].slice(0, index).reduce((sum, { length }) => sum + length, 0);
        return vectorOf(inputs.slice(from, from + values.length));
      });
      part.inst = {
        ...inst,
        args: [inst.args[0]!, ...fragments, ...(product.sparse ? [inputs.at(-1)!, e.arg(5)] : [])],
      };
      emitProductArrival(part, part.inst);
    },
  });
}

function emitProductArrival(e: MailEmitter, inst: Inst): void {
  const { code } = e;
  const product = required(e, inst);
  const { m, n, k, sparse } = product;
  const bytes = numberBytes(product.a.type);
  const at = areas(product);
  e.argCount(sparse ? 6 : 4);
  const lane = laneLocal(e);
  const depth = sparse ? k / 2 : k;
  storeFragment(e, e.arg(1), product.a, lane, at.a, depth, m * depth * bytes);
  storeFragment(e, e.arg(2), product.b, lane, at.b, n, k * n * bytes);
  storeFragment(e, e.arg(3), product.c, lane, at.c, n, m * n * bytes);
  let arithmetic: number = PRODUCT[product.a.type.as === 'i32' ? 's32' : product.a.type.as];
  if (product.a.type.as === 'f64') arithmetic += ROUNDING[e.oneOf('rn', 'rz', 'rm', 'rp') ?? 'rn'];
  else if (product.a.type.name === 'b1') arithmetic = PRODUCT[bitOperation(e)];
  else if (e.has('satfinite')) arithmetic = PRODUCT.s32sat;
  if (e.has('satfinite') && (product.a.type.as !== 'i32' || product.a.type.name === 'b1'))
    throw e.unsupported("modifier '.satfinite' is");
  if (sparse) {
    pushLaneSum(e, lane, [{ shift: 0, mask: 31, row: 1 }], () => 4);
    pushArea(e);
    code.op('i32.add');
    e.push(e.arg(4), B32);
    code.memory('i32.store');
    arithmetic |= sparsity(e, product);
  }
  mailProduct(e, 'mma', product, arithmetic);
}

/** Writes to the mailbox what the warp's product is. */
export function mailProduct(
  e: MailEmitter,
  operation: 'mma' | 'wgmma',
  { m, n, k, batch, headerBytes }: Product,
  arithmetic: number,
): void {
  const { code } = e;
  e.pushMailbox();
  pushArea(e);
  code.memory('i32.store', MAIL.value);
  for (const [offset, value] of [
    [MAIL.operation, WARP_OPERATIONS[operation]!],
    [MAIL.mask, -1],
    [MAIL.value + 4, k | (batch << 16)],
    [MAIL.lane, arithmetic],
    [MAIL.clamp, m | (n << 16)],
    [MAIL.result, headerBytes],
    [MAIL.result + 4, 0],
  ] as const) {
    e.pushMailbox();
    code.i32(value).memory('i32.store', offset);
  }
}

export function required(e: MailEmitter, inst: Inst): Product {
  const product = productOf(inst.mnemonic, inst.modifiers);
  if (!product) throw e.unsupported();
  return product;
}

function bitOperation(e: Emitter): 'xor' | 'and' {
  const operation = e.oneOf('xor', 'and');
  if (!operation || !e.has('popc'))
    throw e.semantic(`'${e.inst.mnemonic}' of single bits needs .xor.popc or .and.popc`);
  return operation;
}

/**
 * Bytes 1 to 3 of the kind of product: granularity, the first of the four lanes with metadata, and
 * its unit in bits.
 */
function sparsity(e: Emitter, { a: { type }, k }: Product): number {
  const kind =
    type.name === 'tf32'
      ? SPARSITY.oneOfTwo
      : type.bits === 4
        ? SPARSITY.pairs
        : SPARSITY.twoOfFour;
  const unit = type.bits >= 16 ? 16 : 32;
  // Two bits for each element that is kept, or for each pair; four for tf32; for two rows.
  const perRow = kind === SPARSITY.twoOfFour ? k : kind === SPARSITY.oneOfTwo ? 2 * k : k / 2;
  const lanes = perRow / 16;
  const selector = e.arg(5);
  if (selector.kind !== 'integer' || selector.value < 0n || selector.value >= BigInt(4 / lanes)) {
    throw e.semantic(`the sparsity selector is a constant from 0 to ${4 / lanes - 1}`, selector.at);
  }
  return (kind << 8) | ((Number(selector.value) * lanes) << 16) | (unit << 24);
}

// Tiles.

interface TileForm {
  /** Registers of a lane. */
  registers: number;
  /** Lanes whose addresses are used. */
  rows: number;
  tile: number;
  /** Bits of an element in memory, if they differ from those in the register. */
  width: number;
}

function tileForm(e: Emitter): TileForm {
  const count = Number((e.oneOf('x1', 'x2', 'x4') ?? 'x').slice(1));
  const shape = e.oneOf('m8n8', 'm8n16', 'm16n16', 'm16n8');
  const transposed = e.has('trans');
  const packed = e.has('b8x16') ? (e.has('b6x16_p32') ? 6 : e.has('b4x16_p64') ? 4 : 0) : 8;
  if (!count || !packed) throw e.unsupported();
  const load = e.inst.mnemonic === 'ldmatrix';
  if (shape === 'm8n8' && e.has('b16')) {
    return {
      registers: count,
      rows: 8 * count,
      tile: transposed ? TILE.transposed16 : TILE.plain,
      width: 8,
    };
  }
  if (load && shape === 'm8n16' && !transposed && packed < 8)
    return { registers: count, rows: 8 * count, tile: TILE.plain, width: packed };
  if (load && shape === 'm16n16' && transposed && count < 4 && (e.has('b8') || packed < 8)) {
    return { registers: 2 * count, rows: 16 * count, tile: TILE.transposed8, width: packed };
  }
  if (!load && shape === 'm16n8' && transposed && e.has('b8'))
    return { registers: count, rows: 8 * count, tile: TILE.columns8, width: 8 };
  throw e.unsupported();
}

function tileArrival(e: MailEmitter): void {
  const { code } = e;
  const load = e.inst.mnemonic === 'ldmatrix';
  e.argCount(2);
  const form = tileForm(e);
  const lane = laneLocal(e);
  const address = e.temp('i32');
  code.get(lane).i32(form.rows).op('i32.lt_u');
  e.when(() => {
    // Addresses are shared ones, or generic ones that point into shared memory.
    const place = checkedPlace(e, e.arg(load ? 1 : 0), 16, accessSpace(e));
    code.get(place.local);
    if (place.offset) code.i32(place.offset).op('i32.add');
    code.set(address);
  });
  code.get(lane).i32(form.rows).op('i32.ge_u');
  e.when(() => {
    code.i32(0).set(address);
  });
  if (!load) {
    fragmentRegisters(e, e.arg(1), form.registers).forEach((register, index) => {
      pushTileCell(e, lane);
      e.push(register, B32);
      code.memory('i32.store', 4 * index);
    });
  }
  mailTile(
    e,
    load ? 'ldmatrix' : 'stmatrix',
    () => {
      code.get(address);
    },
    form.registers | (form.tile << 8) | (form.width << 16),
  );
}

function pushTileCell(e: MailEmitter, lane: number): void {
  pushLaneSum(e, lane, [{ shift: 0, mask: 31, row: 1 }], () => 16);
  pushArea(e);
  e.code.op('i32.add');
}

function mailTile(e: MailEmitter, operation: string, pushAddress: () => void, form: number): void {
  const { code } = e;
  const fields: [number, () => void][] = [
    [
      MAIL.operation,
      () => {
        code.i32(WARP_OPERATIONS[operation]!);
      },
    ],
    [
      MAIL.mask,
      () => {
        code.i32(-1);
      },
    ],
    [MAIL.value, pushAddress],
    [
      MAIL.lane,
      () => {
        pushArea(e);
      },
    ],
    [
      MAIL.clamp,
      () => {
        code.i32(form);
      },
    ],
  ];
  for (const [offset, push] of fields) {
    e.pushMailbox();
    push();
    code.memory('i32.store', offset);
  }
}

function moveArrival(e: MailEmitter): void {
  const { code } = e;
  e.argCount(2);
  if (!e.has('m8n8') || !e.has('trans') || !e.has('b16')) throw e.unsupported();
  pushLaneSum(e, laneLocal(e), [{ shift: 0, mask: 31, row: 1 }], () => 4);
  pushArea(e);
  code.op('i32.add');
  e.push(e.arg(1), U32);
  code.memory('i32.store');
  mailTile(
    e,
    'movmatrix',
    () => {
      code.i32(0);
    },
    0,
  );
}

// What kernels call.

export function emitMatrixArrival(e: MailEmitter, inst: Inst): void {
  if (!e.has('sync')) throw e.semantic(`'${inst.mnemonic}' needs .sync`);
  switch (inst.mnemonic) {
    case 'ldmatrix':
    case 'stmatrix':
      tileArrival(e);
      return;
    case 'movmatrix':
      moveArrival(e);
      return;
    default:
      productArrival(e, inst);
  }
}

export function emitMatrixResult(e: MailEmitter, inst: Inst): void {
  const { code } = e;
  switch (inst.mnemonic) {
    case 'ldmatrix': {
      const lane = laneLocal(e);
      fragmentRegisters(e, e.arg(0), tileForm(e).registers).forEach((register, index) => {
        pushTileCell(e, lane);
        code.memory('i32.load', 4 * index);
        e.pop(register, B32);
      });
      return;
    }
    case 'movmatrix':
      pushLaneSum(e, laneLocal(e), [{ shift: 0, mask: 31, row: 1 }], () => 4);
      pushArea(e);
      code.op('i32.add').memory('i32.load', MOVED_BYTES);
      e.pop(e.arg(0), B32);
      return;
    default: {
      const product = required(e, inst);
      const { m, n } = product;
      callPart(e, {
        key: `${nameOf(inst)} results`,
        inputs: [],
        outputs: fragmentValues(e, e.arg(0), product.d),
        matrixResults: () => {
          e.pushMatrixResults();
        },
        build: (part, _, outputs) => {
          loadFragment(
            part,
            vectorOf(outputs),
            product.d,
            areas(product).d,
            n,
            m * n * numberBytes(product.d.type),
          );
        },
      });
    }
  }
}
