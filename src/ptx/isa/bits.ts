// Rows of logic, shifts, and fields of bits.

import * as lanes from '../lanes/logic.js';
import * as bitLanes from '../lanes/bit-operations.js';
import * as bits from '../rules/bits.js';
import { form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Instruction, Rows } from './instruction.js';
import { COMPUTES } from './traits.js';

const WORDS = 'u32|s32|u64|s64';
const opaque = { ...COMPUTES, meaning: 'opaque' } as const;

const logicRow = (name: 'and' | 'or' | 'xor'): Instruction => ({
  ...COMPUTES,
  forms: [form('pred|b16|b32|b64', 'T T T')],
  meaning: name,
  scalar: bits.logic(name),
  vector: { group: [lanes.logic(name)] },
});

export const BITS = {
  and: logicRow('and'),
  or: logicRow('or'),
  xor: logicRow('xor'),
  not: {
    ...COMPUTES,
    forms: [form('pred|b16|b32|b64', 'T T')],
    meaning: 'not',
    scalar: bits.not,
    vector: { group: [lanes.not] },
  },
  cnot: {
    ...opaque,
    forms: [form('b16|b32|b64', 'T T')],
    scalar: bits.logicalNot,
    vector: NO_VECTOR_FORM,
  },
  lop3: {
    ...opaque,
    forms: [
      form('b32', 'T T T T 0x96', '4.3 sm_50'),
      form('and|or b32', 'T|p T T T 0x96 p', '8.2 sm_70'),
    ],
    scalar: bits.logic3,
    vector: { group: [lanes.logic3] },
  },
  shf: {
    ...opaque,
    forms: [form('l|r clamp|wrap b32', 'T T T b32', '3.1 sm_32')],
    scalar: bits.funnelShift,
    vector: { group: [lanes.funnelShift] },
  },
  shl: {
    ...COMPUTES,
    forms: [form('b16|b32|b64', 'T T b32')],
    meaning: 'shift left',
    scalar: bits.shift('shl'),
    vector: { group: [lanes.shift('shl'), bitLanes.shift('shl')] },
  },
  shr: {
    ...COMPUTES,
    forms: [form('b16|b32|b64|u16|u32|u64|s16|s32|s64', 'T T b32')],
    meaning: 'shift right',
    scalar: bits.shift('shr'),
    vector: { group: [lanes.shift('shr'), bitLanes.shift('shr')] },
  },
  prmt: {
    ...opaque,
    forms: [form('b32 [f4e|b4e|rc8|ecl|ecr|rc16]', 'T T T T')],
    scalar: bits.permute,
    vector: { group: [bitLanes.permute] },
  },
  popc: {
    ...opaque,
    forms: [form('b32|b64', 'b32 T')],
    scalar: bits.count('popcnt'),
    vector: { group: [bitLanes.countOnes] },
  },
  clz: {
    ...opaque,
    forms: [form('b32|b64', 'b32 T')],
    scalar: bits.count('clz'),
    vector: { group: [bitLanes.leadingZeros] },
  },
  bfind: {
    ...opaque,
    forms: [form(`[shiftamt] ${WORDS}`, 'b32 T')],
    scalar: bits.findBit,
    vector: { group: [bitLanes.findBit] },
  },
  fns: {
    ...opaque,
    forms: [form('b32', 'T T T T', '6.0')],
    effect: 'any',
    scalar: bits.findSet,
    vector: NO_VECTOR_FORM,
  },
  brev: {
    ...opaque,
    forms: [form('b32|b64', 'T T')],
    scalar: bits.reverse,
    vector: { group: [bitLanes.reverse] },
  },
  bfe: {
    ...opaque,
    forms: [form(WORDS, 'T T b32 b32')],
    scalar: bits.extractField,
    vector: { group: [bitLanes.extractField] },
  },
  bfi: {
    ...opaque,
    forms: [form('b32|b64', 'T T T b32 b32')],
    scalar: bits.insertField,
    vector: { group: [bitLanes.insertField] },
  },
  szext: {
    ...opaque,
    forms: [form('clamp|wrap u32|s32', 'b32 b32 b32', '7.6 sm_70')],
    effect: 'any',
    scalar: bits.extend,
    vector: NO_VECTOR_FORM,
  },
  bmsk: {
    ...opaque,
    forms: [form('clamp|wrap b32', 'b32 b32 b32', '7.6 sm_70')],
    scalar: bits.bitMask,
    vector: NO_VECTOR_FORM,
  },
} satisfies Rows;
