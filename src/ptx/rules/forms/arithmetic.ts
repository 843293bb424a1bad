// Integer and floating-point arithmetic, in the order of the PTX ISA's chapters.

import { form } from '../form.js';
import type { Form } from '../form.js';

const INTEGERS = 'u16|u32|u64|s16|s32|s64';
const WORDS = 'u32|s32|u64|s64';
const ROUNDINGS = '[rn|rz|rm|rp]';
const ROUNDED = 'rn|rz|rm|rp';

const INTEGER: readonly Form[] = [
  ...['add', 'sub'].flatMap((name) => [
    form(name, INTEGERS, 'T T T'),
    form(name, 'sat s32', 'T T T'),
    form(name, 'cc u32|s32', 'T T T'),
    form(name, 'cc u64|s64', 'T T T', '4.3'),
    form(`${name}c`, '[cc] u32|s32', 'T T T'),
    form(`${name}c`, '[cc] u64|s64', 'T T T').withWords({ cc: '4.3' }),
    form(`${name}c`, 'u16|s16', 'T T T'),
  ]),
  form('add', 'u16x2|s16x2', 'T T T', '8.0 sm_90'),
  form('mul', `hi|lo ${INTEGERS}`, 'T T T'),
  form('mul', 'wide u16|s16', 'b32 T T'),
  form('mul', 'wide u32|s32', 'b64 T T'),
  form('mad', `hi|lo ${INTEGERS}`, 'T T T T'),
  form('mad', 'wide u16|s16', 'b32 T T b32'),
  form('mad', 'wide u32|s32', 'b64 T T b64'),
  form('mad', 'hi sat s32', 'T T T T'),
  form('mad', 'hi|lo cc u32|s32', 'T T T T'),
  form('mad', 'hi|lo cc u64|s64', 'T T T T', '4.3'),
  form('madc', 'hi|lo [cc] u32|s32', 'T T T T'),
  form('madc', 'hi|lo [cc] u64|s64', 'T T T T').withWords({ cc: '4.3' }),
  form('mul24', 'hi|lo u32|s32', 'T T T'),
  form('mad24', 'hi|lo u32|s32', 'T T T T'),
  form('mad24', 'hi sat s32', 'T T T T'),
  form('sad', INTEGERS, 'T T T T'),
  form('div', INTEGERS, 'T T T'),
  form('rem', INTEGERS, 'T T T'),
  form('abs', 's16|s32|s64', 'T T'),
  form('neg', 's16|s32|s64', 'T T'),
  ...['min', 'max'].flatMap((name) => [
    form(name, INTEGERS, 'T T T'),
    form(name, 'u16x2|s16x2', 'T T T', '8.0 sm_90'),
    form(name, 'relu s32|s16x2', 'T T T', '8.0 sm_90'),
  ]),
  form('popc', 'b32|b64', 'b32 T'),
  form('clz', 'b32|b64', 'b32 T'),
  form('bfind', `[shiftamt] ${WORDS}`, 'b32 T'),
  form('fns', 'b32', 'T T T T', '6.0'),
  form('brev', 'b32|b64', 'T T'),
  form('bfe', WORDS, 'T T b32 b32'),
  form('bfi', 'b32|b64', 'T T T b32 b32'),
  form('szext', 'clamp|wrap u32|s32', 'b32 b32 b32', '7.6 sm_70'),
  form('bmsk', 'clamp|wrap b32', 'b32 b32 b32', '7.6 sm_70'),
  form('dp4a', 'u32|s32 u32|s32', 'b32 b32 b32 b32', '5.0 sm_61'),
  form('dp2a', 'lo|hi u32|s32 u32|s32', 'b32 b32 b32 b32', '5.0 sm_61'),
];

const FLOAT: readonly Form[] = [
  form('testp', 'finite|infinite|number|notanumber|normal|subnormal f32|f64', 'p T'),
  form('copysign', 'f32|f64', 'T T T'),
  ...['add', 'sub', 'mul'].flatMap((name) => [
    form(name, `${ROUNDINGS} [ftz] [sat] f32`, 'T T T'),
    form(name, `${ROUNDINGS} f64`, 'T T T'),
    form(name, `${ROUNDINGS} [ftz] f32x2`, 'T T T', '8.6 sm_100'),
  ]),
  ...['fma', 'mad'].flatMap((name) => [
    form(name, `${ROUNDED} [ftz] [sat] f32`, 'T T T T'),
    form(name, `${ROUNDED} f64`, 'T T T T'),
  ]),
  form('fma', `${ROUNDED} [ftz] f32x2`, 'T T T T', '8.6 sm_100'),
  form('div', `approx|full|${ROUNDED} [ftz] f32`, 'T T T'),
  form('div', `${ROUNDED} f64`, 'T T T'),
  ...['abs', 'neg'].flatMap((name) => [form(name, '[ftz] f32', 'T T'), form(name, 'f64', 'T T')]),
  ...['min', 'max'].flatMap((name) => [
    form(name, '[ftz] f32', 'T T T'),
    form(name, '[ftz] NaN f32', 'T T T', '7.0 sm_80'),
    form(name, '[ftz] [NaN] xorsign abs f32', 'T T T', '7.2 sm_86'),
    form(name, '[ftz] [NaN] [abs] f32', 'T T T T', '8.8 sm_100'),
    form(name, 'f64', 'T T T'),
  ]),
  ...['rcp', 'sqrt'].flatMap((name) => [
    form(name, `approx|${ROUNDED} [ftz] f32`, 'T T'),
    form(name, `${ROUNDED} f64`, 'T T'),
  ]),
  form('rcp', 'approx ftz f64', 'T T'),
  form('rsqrt', 'approx [ftz] f32|f64', 'T T'),
  ...['sin', 'cos', 'lg2', 'ex2'].map((name) => form(name, 'approx [ftz] f32', 'T T')),
  form('tanh', 'approx f32', 'T T', '7.0 sm_75'),
];

const HALF: readonly Form[] = [
  ...['add', 'sub', 'mul'].flatMap((name) => [
    form(name, '[rn] [ftz] [sat] f16|f16x2', 'T T T', '4.2 sm_53'),
    form(name, '[rn] bf16|bf16x2', 'T T T', '7.8 sm_90'),
  ]),
  form('fma', 'rn [ftz] [sat] f16|f16x2', 'T T T T', '4.2 sm_53'),
  form('fma', 'rn [ftz] relu f16|f16x2', 'T T T T', '7.0 sm_80'),
  form('fma', 'rn [relu] bf16|bf16x2', 'T T T T', '7.0 sm_80'),
  form('fma', 'rn oob [relu] f16|f16x2|bf16|bf16x2', 'T T T T', '8.1 sm_90'),
  form('abs', '[ftz] f16|f16x2', 'T T', '6.5 sm_53'),
  form('neg', '[ftz] f16|f16x2', 'T T', '6.0 sm_53'),
  ...['abs', 'neg'].map((name) => form(name, 'bf16|bf16x2', 'T T', '7.0 sm_80')),
  ...['min', 'max'].flatMap((name) => [
    form(name, '[ftz] [NaN] f16|f16x2', 'T T T', '7.0 sm_80'),
    form(name, '[ftz] [NaN] xorsign abs f16|f16x2', 'T T T', '7.2 sm_86'),
    form(name, '[NaN] bf16|bf16x2', 'T T T', '7.0 sm_80'),
    form(name, '[NaN] xorsign abs bf16|bf16x2', 'T T T', '7.2 sm_86'),
  ]),
  form('tanh', 'approx f16|f16x2', 'T T', '7.0 sm_75'),
  form('tanh', 'approx bf16|bf16x2', 'T T', '7.8 sm_90'),
  form('ex2', 'approx f16|f16x2', 'T T', '7.0 sm_75'),
  form('ex2', 'approx ftz bf16|bf16x2', 'T T', '7.8 sm_90'),
  // One operand is a half, the sum is single.
  ...['add', 'sub'].map((name) =>
    form(name, `${ROUNDINGS} [sat] f32 f16|bf16`, 'f32 T f32', '8.6 sm_100'),
  ),
  form('fma', `${ROUNDED} [sat] f32 f16|bf16`, 'f32 T T f32', '8.6 sm_100'),
];

const PAIR = 'u32|s32 u32|s32';
const COMPARISONS = 'eq|ne|lt|le|gt|ge';
const VIDEO: readonly Form[] = [
  ...['vadd', 'vsub', 'vabsdiff', 'vmin', 'vmax'].flatMap((name) => [
    form(name, `u32|s32 ${PAIR} [sat]`, 'b32 b32.b1 b32.h1'),
    form(name, `u32|s32 ${PAIR} [sat] add|min|max`, 'b32 b32.h0 b32.b3 b32'),
    form(name, `u32|s32 ${PAIR} [sat]`, 'b32.h1 b32 b32.b2 b32'),
  ]),
  ...['vshl', 'vshr'].flatMap((name) => [
    form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32 b32.b1 b32.b0'),
    form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap add|min|max', 'b32 b32 b32.b3 b32'),
    form(name, 'u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32.b2 b32 b32 b32'),
  ]),
  form('vmad', `u32|s32 ${PAIR} [sat] [shr7|shr15]`, 'b32 b32.h0 b32.h1 b32'),
  form('vmad', `u32|s32 ${PAIR} po [sat] [shr7|shr15]`, 'b32 b32 b32.b1 b32'),
  form('vset', `${PAIR} ${COMPARISONS}`, 'b32 b32.b0 b32'),
  form('vset', `${PAIR} ${COMPARISONS} add|min|max`, 'b32 b32.b0 b32 b32'),
  form('vset', `${PAIR} ${COMPARISONS}`, 'b32.b3 b32 b32.h1 b32'),
  ...[
    ['2', '.h1', '.h02', '.h31'],
    ['4', '.b210', '.b7250', '.b0123'],
  ].flatMap(([lanes, mask, a, b]) => [
    ...['vadd', 'vsub', 'vavrg', 'vabsdiff', 'vmin', 'vmax'].flatMap((name) => [
      form(`${name}${lanes}`, `u32|s32 ${PAIR} [sat]`, `b32${mask} b32${a} b32${b} b32`),
      form(`${name}${lanes}`, `u32|s32 ${PAIR} add`, `b32${mask} b32${a} b32${b} b32`),
    ]),
    form(`vset${lanes}`, `${PAIR} ${COMPARISONS} [add]`, `b32${mask} b32${a} b32${b} b32`),
  ]),
];

export const ARITHMETIC_FORMS: readonly Form[] = [...INTEGER, ...FLOAT, ...HALF, ...VIDEO];
