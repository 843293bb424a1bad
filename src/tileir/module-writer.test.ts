/**
 * Bytecode of small functions. The expected bytes are those that NVIDIA's writer in cuda-tile 1.7.0
 * gives for the same operations; the real assembler takes them in tile-assembler.test.ts.
 */
import { expect, test } from 'vitest';

import { moduleOf } from './module-writer.js';
import type { EntryPoint } from './module-writer.js';
import { DYNAMIC } from './types.js';
import type { Value } from './function-builder.js';
import type { TypeId } from './types.js';

const hex = (entry: EntryPoint): string => Buffer.from(moduleOf(entry)).toString('hex');

const ADDED =
  '7f54696c654952000d030000823b08cb0100070201350604081000004301080301010030050505420a043e02090b' +
  '00000801055b0c020b090b02090000090c66010b00000d0801055c0000840808cbcb00cbcbcbcbcbcbcb837108cb' +
  'cbcbcbcb01cbcbcb000000000bcbcbcbcbcbcbcb0000000000000000000000000000000000000000000000000000' +
  '00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000' +
  '0000000000000000000000000000000001cbcbcb000000000085850104cbcbcb0dcbcbcb00000000010000000200' +
  '00000300000005000000080000000b0000000e00000014000000280000003300000041000000420000000003070c' +
  '020d03000d01000d02001003040506000e020100000000000000800101000000000000000d020100010000000000' +
  '000f01010001000008010000000000110d02010100000000000000810d0401cbcbcb00000000616464656400';

const LARGEST =
  '7f54696c654952000d030000827008cb01000602016a430107000101004209022d010503100500100501100a0229' +
  '010a000405040607010102050a043e02080b000003010858010a00010202808080f81f010a0101020a0a02450a01' +
  '0c0d6d00010e450a01090c1100010d5b0c08420d02440b66010b0400090a01050b5c0000842f08cbcbcbcbcb03cb' +
  'cbcbcbcbcbcb000000000000000005000000000000000a000000000000000400000000040100000004000080ff83' +
  'b10108cbcbcbcbcb01cbcbcb0000000013cbcbcbcbcbcbcb00000000000000000000000000000000000000000000' +
  '00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000' +
  '00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000' +
  '000000000000000000000000000000000000000000000000000000000000000000000000000001cbcbcb00000000' +
  '0085950104cbcbcb0ecbcbcb0000000001000000020000000300000005000000080000000b000000100000002400' +
  '00002f0000003d00000040000000410000004c0000000003070c020d03000d010010020405000e02010000000000' +
  '0000800101000000000000000d020140000000000000000f010140000000070100000000040d0200110d02010100' +
  '0000000000000f000101000000070100000000810c0401cbcbcb000000006c6f6f7000';

/** Adds a scalar to a tile of a vector. */
const added: EntryPoint = {
  name: 'added',
  parameters: (types) => [
    types.tile(types.pointer('f32'), []),
    types.tile(types.simple('i32'), []),
    types.tile(types.simple('f32'), []),
  ],
  write: (to, [base, length, scalar]) => {
    const { types } = to;
    const i32 = types.tile(types.simple('i32'), []);
    const pointer = types.tile(types.pointer('f32'), []);
    const aligned = to.one('assume', pointer, {
      operands: [base],
      attributes: { assumption: { is: 'divisible', by: 16 } },
    });
    const view = types.tensorView('f32', [DYNAMIC], [1]);
    const tensor = to.one('makeTensorView', view, { operands: [aligned, [length!], []] });
    const [block] = to.write('getTileBlockId', { results: [i32, i32, i32] });
    const tile = types.tile(types.simple('f32'), [256]);
    const parts = to.one('makePartitionView', types.partition([256], view, 'zero'), {
      operands: [tensor],
    });
    const weak = { attributes: { ordering: 'weak' } } as const;
    const [loaded] = to.write('loadView', {
      results: [tile, types.token],
      operands: [parts, [block!], undefined],
      ...weak,
    });
    const one = to.one('reshape', types.tile(types.simple('f32'), [1]), { operands: [scalar] });
    const wide = to.one('broadcast', tile, { operands: [one] });
    const sum = to.one('addf', tile, {
      operands: [loaded, wide],
      attributes: { rounding: 'nearestEven' },
    });
    to.write('storeView', {
      results: [types.token],
      operands: [sum, parts, [block!], undefined],
      ...weak,
    });
    to.write('return', { operands: [[]] });
  },
};

/** The maximum of a vector: a loop with a carried value, and a reduction. */
const largest: EntryPoint = {
  name: 'loop',
  parameters: (types) => [
    types.tile(types.pointer('f32'), []),
    types.tile(types.simple('i32'), []),
  ],
  write: (to, [base, length]) => {
    const { types } = to;
    const [i32, f32] = [types.simple('i32'), types.simple('f32')];
    const index = types.tile(i32, []);
    const view = types.tensorView('f32', [DYNAMIC], [1]);
    const tensor = to.one('makeTensorView', view, { operands: [base, [length!], []] });
    const tile = types.tile(f32, [64]);
    const parts = to.one('makePartitionView', types.partition([64], view, 'negativeInfinity'), {
      operands: [tensor],
    });
    const [count] = to.write('getIndexSpaceShape', { results: [index], operands: [parts] });
    const scalar = types.tile(f32, []);
    const constant = (type: TypeId, ...bytes: readonly number[]): Value =>
      to.one('constant', type, { attributes: { elements: Uint8Array.from(bytes) } });
    const zero = constant(index, 0, 0, 0, 0);
    const one = constant(index, 1, 0, 0, 0);
    const lowest = constant(scalar, 0, 0, 0x80, 0xff);
    const higher = (a: Value, b: Value): Value =>
      to.one('maxf', scalar, { operands: [a, b], flags: ['propagateNaN'] });
    const [found] = to.write('for', {
      results: [scalar],
      operands: [[zero, count!, one, lowest]],
      region: {
        arguments: [index, scalar],
        write: ([step, before]) => {
          const [loaded] = to.write('loadView', {
            results: [tile, types.token],
            operands: [parts, [step!], undefined],
            attributes: { ordering: 'weak' },
          });
          const [most] = to.write('reduce', {
            results: [scalar],
            operands: [[loaded!]],
            attributes: {
              axis: 0,
              neutrals: [{ type: f32, is: 'float', bits: 0xff800000n, width: 32 }],
            },
            region: {
              arguments: [scalar, scalar],
              write: ([a, b]) => {
                to.write('yield', { operands: [[higher(a!, b!)]] });
              },
            },
          });
          to.write('continue', { operands: [[higher(before!, most!)]] });
        },
      },
    });
    const result = to.one('reshape', types.tile(f32, [1]), { operands: [found] });
    const single = to.one('makePartitionView', types.partition([1], view), { operands: [tensor] });
    const token = to.one('makeToken', types.token);
    to.write('storeView', {
      results: [types.token],
      operands: [result, single, [zero], token],
      attributes: { ordering: 'weak' },
    });
    to.write('return', { operands: [[]] });
  },
};

test('loads, arithmetic and stores are the bytes of the format', () => {
  expect(hex(added)).toBe(ADDED);
});

test('loops, reductions, constants and tokens are the bytes of the format', () => {
  expect(hex(largest)).toBe(LARGEST);
});
