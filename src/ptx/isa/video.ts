// Rows of the video instructions, on bytes and halves of registers.

import { OPERATIONS as PACKED_OPERATIONS, packed } from '../rules/packed-bytes.js';
import { OPERATIONS, multiplyAdd, scalar } from '../rules/video.js';
import { form } from './form.js';
import type { Form } from './form.js';
import { NO_VECTOR_FORM } from './instruction.js';
import type { Instruction, Rows } from './instruction.js';
import { NEVER_WAITS, WRITES_FIRST } from './traits.js';

const PAIR = 'u32|s32 u32|s32';
const COMPARISONS = 'eq|ne|lt|le|gt|ge';

/** Their effect is `any`, not `none`, so that the analyses ignore them: no compiler writes them. */
const VIDEO_TRAITS = {
  operands: { ...WRITES_FIRST, refusesOffsets: true },
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  vector: NO_VECTOR_FORM,
} as const;

const binary: readonly Form[] = [
  form(`u32|s32 ${PAIR} [sat]`, 'b32 b32.b1 b32.h1'),
  form(`u32|s32 ${PAIR} [sat] add|min|max`, 'b32 b32.h0 b32.b3 b32'),
  form(`u32|s32 ${PAIR} [sat]`, 'b32.h1 b32 b32.b2 b32'),
];
const shift: readonly Form[] = [
  form('u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32 b32.b1 b32.b0'),
  form('u32|s32 u32|s32 u32 [sat] clamp|wrap add|min|max', 'b32 b32 b32.b3 b32'),
  form('u32|s32 u32|s32 u32 [sat] clamp|wrap', 'b32.b2 b32 b32 b32'),
];

const one = (name: keyof typeof OPERATIONS, forms: readonly Form[]): Instruction => ({
  ...VIDEO_TRAITS,
  forms,
  scalar: scalar(OPERATIONS[name], name === 'vset'),
});

/** The row of an instruction with this number of lanes in a register. */
const several = (name: keyof typeof PACKED_OPERATIONS, lanes: 2 | 4): Instruction => {
  const operands = lanes === 2 ? 'b32.h1 b32.h02 b32.h31 b32' : 'b32.b210 b32.b7250 b32.b0123 b32';
  return {
    ...VIDEO_TRAITS,
    forms:
      name === 'vset'
        ? [form(`${PAIR} ${COMPARISONS} [add]`, operands)]
        : [form(`u32|s32 ${PAIR} [sat]`, operands), form(`u32|s32 ${PAIR} add`, operands)],
    scalar: packed(PACKED_OPERATIONS[name], lanes, name === 'vset'),
  };
};

export const VIDEO = {
  vadd: one('vadd', binary),
  vsub: one('vsub', binary),
  vabsdiff: one('vabsdiff', binary),
  vmin: one('vmin', binary),
  vmax: one('vmax', binary),
  vshl: one('vshl', shift),
  vshr: one('vshr', shift),
  vmad: {
    ...VIDEO_TRAITS,
    forms: [
      form(`u32|s32 ${PAIR} [sat] [shr7|shr15]`, 'b32 b32.h0 b32.h1 b32'),
      form(`u32|s32 ${PAIR} po [sat] [shr7|shr15]`, 'b32 b32 b32.b1 b32'),
    ],
    operands: {
      ...VIDEO_TRAITS.operands,
      // With `po`, which adds one to the sum, no operand may be negated.
      negated: (modifiers) => !modifiers.includes('po'),
    },
    scalar: multiplyAdd,
  },
  vset: one('vset', [
    form(`${PAIR} ${COMPARISONS}`, 'b32 b32.b0 b32'),
    form(`${PAIR} ${COMPARISONS} add|min|max`, 'b32 b32.b0 b32 b32'),
    form(`${PAIR} ${COMPARISONS}`, 'b32.b3 b32 b32.h1 b32'),
  ]),
  vadd2: several('vadd', 2),
  vsub2: several('vsub', 2),
  vavrg2: several('vavrg', 2),
  vabsdiff2: several('vabsdiff', 2),
  vmin2: several('vmin', 2),
  vmax2: several('vmax', 2),
  vset2: several('vset', 2),
  vadd4: several('vadd', 4),
  vsub4: several('vsub', 4),
  vavrg4: several('vavrg', 4),
  vabsdiff4: several('vabsdiff', 4),
  vmin4: several('vmin', 4),
  vmax4: several('vmax', 4),
  vset4: several('vset', 4),
} satisfies Rows;
