// Rows of integer and floating-point arithmetic.

import * as lanes from '../lanes/arithmetic.js';
import * as bitLanes from '../lanes/bit-operations.js';
import * as halfLanes from '../lanes/halves.js';
import * as narrowLanes from '../lanes/narrow.js';
import * as calledLanes from '../lanes/vector-calls.js';
import * as compare from '../rules/compare.js';
import * as float from '../rules/float.js';
import * as half from '../rules/half.js';
import * as integer from '../rules/integer.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Instruction, Rows } from './instruction.js';
import { COMPUTES, WRITES_FIRST } from './traits.js';
import type { OperandTraits } from './traits.js';

const INTEGERS = 'u16|u32|u64|s16|s32|s64';
const ROUNDINGS = '[rn|rz|rm|rp]';
const ROUNDED = 'rn|rz|rm|rp';

const READS_CARRY: OperandTraits = { ...WRITES_FIRST, readsCarry: true };

// The forms that several mnemonics have.

const integerSum: readonly Form[] = [
  form(INTEGERS, 'T T T'),
  form('sat s32', 'T T T'),
  form('cc u32|s32', 'T T T'),
  form('cc u64|s64', 'T T T', '4.3'),
];
const sumWithCarry: readonly Form[] = [
  form('[cc] u32|s32', 'T T T'),
  form('[cc] u64|s64', 'T T T').withWords({ cc: '4.3' }),
  form('u16|s16', 'T T T'),
];
/** Sums and products of floats. */
const floatOperation: readonly Form[] = [
  form(`${ROUNDINGS} [ftz] [sat] f32`, 'T T T'),
  form(`${ROUNDINGS} f64`, 'T T T'),
  form(`${ROUNDINGS} [ftz] f32x2`, 'T T T', '8.6 sm_100'),
];
const halfOperation: readonly Form[] = [
  form('[rn] [ftz] [sat] f16|f16x2', 'T T T', '4.2 sm_53'),
  form('[rn] bf16|bf16x2', 'T T T', '7.8 sm_90'),
];
/** One operand is a half; the sum is an f32. */
const mixedSum: readonly Form[] = [
  form(`${ROUNDINGS} [sat] f32 f16|bf16`, 'f32 T f32', '8.6 sm_100'),
];
const fusedOperation: readonly Form[] = [
  form(`${ROUNDED} [ftz] [sat] f32`, 'T T T T'),
  form(`${ROUNDED} f64`, 'T T T T'),
];
const extreme: readonly Form[] = [
  form(INTEGERS, 'T T T'),
  form('u16x2|s16x2', 'T T T', '8.0 sm_90'),
  form('relu s32|s16x2', 'T T T', '8.0 sm_90'),
  form('[ftz] f32', 'T T T'),
  form('[ftz] NaN f32', 'T T T', '7.0 sm_80'),
  form('[ftz] [NaN] xorsign abs f32', 'T T T', '7.2 sm_86'),
  form('[ftz] [NaN] [abs] f32', 'T T T T', '8.8 sm_100'),
  form('f64', 'T T T'),
  form('[ftz] [NaN] f16|f16x2', 'T T T', '7.0 sm_80'),
  form('[ftz] [NaN] xorsign abs f16|f16x2', 'T T T', '7.2 sm_86'),
  form('[NaN] bf16|bf16x2', 'T T T', '7.0 sm_80'),
  form('[NaN] xorsign abs bf16|bf16x2', 'T T T', '7.2 sm_86'),
];
const floatSign: readonly Form[] = [form('[ftz] f32', 'T T'), form('f64', 'T T')];
const halfSign = form('bf16|bf16x2', 'T T', '7.0 sm_80');
const rootOrReciprocal: readonly Form[] = [
  form(`approx|${ROUNDED} [ftz] f32`, 'T T'),
  form(`${ROUNDED} f64`, 'T T'),
];
const approximate = form('approx [ftz] f32', 'T T');
const PRODUCTS = 'u32|s32 u32|s32';

const opaque = { ...COMPUTES, meaning: 'opaque' } as const;

const extremeRow = (name: 'min' | 'max'): Instruction => ({
  ...COMPUTES,
  forms: extreme,
  meaning: name === 'min' ? 'minimum' : 'opaque',
  scalar: float.byType({
    integer: integer.minMax(name),
    float: float.minMax(name),
    half: half.minMax(name),
  }),
  vector: { group: [lanes.extreme(name), halfLanes.extreme(name)] },
});

export const ARITHMETIC = {
  add: {
    ...COMPUTES,
    forms: [
      ...integerSum,
      form('u16x2|s16x2', 'T T T', '8.0 sm_90'),
      ...floatOperation,
      ...halfOperation,
      ...mixedSum,
    ],
    meaning: 'sum',
    scalar: float.byType({
      integer: integer.add('add'),
      operation: float.SUM,
      half: half.fused('add'),
    }),
    vector: { group: [lanes.binary('add', 'add')], halves: halfLanes.fused('add') },
  },
  sub: {
    ...COMPUTES,
    forms: [...integerSum, ...floatOperation, ...halfOperation, ...mixedSum],
    meaning: 'difference',
    scalar: float.byType({
      integer: integer.add('sub'),
      operation: float.DIFFERENCE,
      half: half.fused('sub'),
    }),
    vector: { group: [lanes.binary('sub', 'sub')], halves: halfLanes.fused('sub') },
  },
  addc: {
    ...opaque,
    forms: sumWithCarry,
    operands: READS_CARRY,
    effect: 'any',
    scalar: integer.add('add', true),
    vector: NO_VECTOR_FORM,
  },
  subc: {
    ...opaque,
    forms: sumWithCarry,
    operands: READS_CARRY,
    effect: 'any',
    scalar: integer.add('sub', true),
    vector: NO_VECTOR_FORM,
  },
  mul: {
    ...COMPUTES,
    forms: [
      form(`hi|lo ${INTEGERS}`, 'T T T'),
      form('wide u16|s16', 'b32 T T'),
      form('wide u32|s32', 'b64 T T'),
      ...floatOperation,
      ...halfOperation,
    ],
    meaning: 'product',
    scalar: float.byType({
      integer: integer.multiply,
      operation: float.PRODUCT,
      half: half.fused('mul'),
    }),
    vector: {
      group: [lanes.multiply, narrowLanes.highProduct],
      halves: halfLanes.fused('mul'),
    },
  },
  mad: {
    ...COMPUTES,
    forms: [
      form(`hi|lo ${INTEGERS}`, 'T T T T'),
      form('wide u16|s16', 'b32 T T b32'),
      form('wide u32|s32', 'b64 T T b64'),
      form('hi sat s32', 'T T T T'),
      form('hi|lo cc u32|s32', 'T T T T'),
      form('hi|lo cc u64|s64', 'T T T T', '4.3'),
      ...fusedOperation,
    ],
    meaning: 'multiply-add',
    scalar: float.byType({ integer: integer.multiplyAdd(), operation: float.FUSED }),
    vector: { group: [lanes.multiplyAdd], unit: calledLanes.directed },
  },
  madc: {
    ...opaque,
    forms: [
      form('hi|lo [cc] u32|s32', 'T T T T'),
      form('hi|lo [cc] u64|s64', 'T T T T').withWords({ cc: '4.3' }),
    ],
    operands: READS_CARRY,
    effect: 'any',
    scalar: integer.multiplyAdd(true),
    vector: NO_VECTOR_FORM,
  },
  mul24: {
    ...opaque,
    forms: [form('hi|lo u32|s32', 'T T T')],
    scalar: integer.multiply24,
    vector: NO_VECTOR_FORM,
  },
  mad24: {
    ...opaque,
    forms: [form('hi|lo u32|s32', 'T T T T'), form('hi sat s32', 'T T T T')],
    scalar: integer.multiplyAdd24,
    vector: NO_VECTOR_FORM,
  },
  sad: {
    ...opaque,
    forms: [form(INTEGERS, 'T T T T')],
    scalar: integer.sumOfDifferences,
    vector: NO_VECTOR_FORM,
  },
  div: {
    ...opaque,
    forms: [
      form(INTEGERS, 'T T T'),
      form(`approx|full|${ROUNDED} [ftz] f32`, 'T T T'),
      form(`${ROUNDED} f64`, 'T T T'),
    ],
    scalar: float.byType({ integer: integer.divide('div'), float: float.divide }),
    vector: { group: [lanes.divide, bitLanes.divide('div')] },
  },
  rem: {
    ...opaque,
    forms: [form(INTEGERS, 'T T T')],
    scalar: integer.divide('rem'),
    vector: { group: [bitLanes.divide('rem')] },
  },
  abs: {
    ...opaque,
    forms: [
      form('s16|s32|s64', 'T T'),
      ...floatSign,
      form('[ftz] f16|f16x2', 'T T', '6.5 sm_53'),
      halfSign,
    ],
    scalar: float.byType({
      integer: integer.absolute,
      float: float.unary('abs'),
      half: half.sign('abs'),
    }),
    vector: { group: [lanes.unary('abs', 'abs'), halfLanes.sign('abs')] },
  },
  neg: {
    ...opaque,
    forms: [
      form('s16|s32|s64', 'T T'),
      ...floatSign,
      form('[ftz] f16|f16x2', 'T T', '6.0 sm_53'),
      halfSign,
    ],
    scalar: float.byType({
      integer: integer.negate,
      float: float.unary('neg'),
      half: half.sign('neg'),
    }),
    vector: { group: [lanes.unary('neg', 'neg'), halfLanes.sign('neg')] },
  },
  min: extremeRow('min'),
  max: extremeRow('max'),
  dp4a: {
    ...opaque,
    forms: [form(PRODUCTS, 'b32 b32 b32 b32', '5.0 sm_61')],
    scalar: integer.dotProduct(4),
    vector: { group: [bitLanes.dotProduct] },
  },
  dp2a: {
    ...opaque,
    forms: [form(`lo|hi ${PRODUCTS}`, 'b32 b32 b32 b32', '5.0 sm_61')],
    scalar: integer.dotProduct(2),
    vector: NO_VECTOR_FORM,
  },
  fma: {
    ...opaque,
    forms: [
      ...fusedOperation,
      form(`${ROUNDED} [ftz] f32x2`, 'T T T T', '8.6 sm_100'),
      form('rn [ftz] [sat] f16|f16x2', 'T T T T', '4.2 sm_53'),
      form('rn [ftz] relu f16|f16x2', 'T T T T', '7.0 sm_80'),
      form('rn [relu] bf16|bf16x2', 'T T T T', '7.0 sm_80'),
      form('rn oob [relu] f16|f16x2|bf16|bf16x2', 'T T T T', '8.1 sm_90'),
      form(`${ROUNDED} [sat] f32 f16|bf16`, 'f32 T T f32', '8.6 sm_100'),
    ],
    scalar: float.byType({ operation: float.FUSED, half: half.fused('fma') }),
    vector: {
      group: [lanes.fused],
      unit: calledLanes.directed,
      halves: halfLanes.fused('fma'),
    },
  },
  testp: {
    ...opaque,
    forms: [form('finite|infinite|number|notanumber|normal|subnormal f32|f64', 'p T')],
    scalar: compare.testProperty,
    vector: NO_VECTOR_FORM,
  },
  copysign: {
    ...opaque,
    forms: [form('f32|f64', 'T T T')],
    scalar: float.byType({ float: float.copySign }),
    vector: { group: [lanes.copySign] },
  },
  rcp: {
    ...opaque,
    forms: [...rootOrReciprocal, form('approx ftz f64', 'T T')],
    scalar: float.byType({ float: float.reciprocal }),
    vector: { group: [lanes.reciprocal] },
  },
  sqrt: {
    ...opaque,
    forms: rootOrReciprocal,
    scalar: float.byType({ float: float.squareRoot }),
    vector: { group: [lanes.unary(undefined, 'sqrt')] },
  },
  rsqrt: {
    ...opaque,
    forms: [form('approx [ftz] f32|f64', 'T T')],
    scalar: float.byType({ float: float.reciprocalSquareRoot }),
    vector: { group: [lanes.reciprocalRoot] },
  },
  sin: {
    ...opaque,
    forms: [approximate],
    scalar: float.byType({ float: float.sine }),
    vector: { unit: calledLanes.approximate('sine') },
  },
  cos: {
    ...opaque,
    forms: [approximate],
    scalar: float.byType({ float: float.cosine }),
    vector: { unit: calledLanes.approximate('cosine') },
  },
  lg2: {
    ...opaque,
    forms: [approximate],
    scalar: float.byType({ float: float.logarithm }),
    vector: { unit: calledLanes.approximate('log2') },
  },
  ex2: {
    ...opaque,
    forms: [
      approximate,
      form('approx f16|f16x2', 'T T', '7.0 sm_75'),
      form('approx ftz bf16|bf16x2', 'T T', '7.8 sm_90'),
    ],
    scalar: float.byType({ float: float.exponential, half: half.approximate('exp2') }),
    vector: { unit: calledLanes.approximate('exp2') },
  },
  tanh: {
    ...opaque,
    forms: [
      form('approx f32', 'T T', '7.0 sm_75'),
      form('approx f16|f16x2', 'T T', '7.0 sm_75'),
      form('approx bf16|bf16x2', 'T T', '7.8 sm_90'),
    ],
    scalar: float.byType({ float: float.hyperbolicTangent, half: half.approximate('tanh') }),
    vector: { unit: calledLanes.approximate('tanh') },
  },
} satisfies Rows;
