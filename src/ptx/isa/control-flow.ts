// Rows of control flow, and of what a thread reads or reports about itself.

import { allocate, call, nothing, restoreStack, saveStack } from '../rules/control.js';
import { form } from './form.js';
import { IN_STRUCTURE, NO_VECTOR_FORM } from './instruction.js';
import type { Rows } from './instruction.js';
import { FLOW, NEVER_WAITS, WRITES_FIRST, WRITES_NOTHING } from './traits.js';

const SETTING = {
  operands: WRITES_NOTHING,
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  scalar: nothing,
  vector: NO_VECTOR_FORM,
} as const;

const OF_THE_STACK = {
  effect: 'any',
  waits: NEVER_WAITS,
  meaning: 'opaque',
  vector: NO_VECTOR_FORM,
} as const;

export const CONTROL_FLOW = {
  bra: { ...FLOW, ...IN_STRUCTURE, forms: [form('[uni]', 'label')] },
  brx: { ...FLOW, ...IN_STRUCTURE, forms: [form('idx [uni]', 'b32 labels', '6.0 sm_30')] },
  ret: { ...FLOW, ...IN_STRUCTURE, forms: [form('[uni]')] },
  exit: { ...FLOW, ...IN_STRUCTURE, forms: [form('')] },
  trap: { ...FLOW, ...IN_STRUCTURE, forms: [form('')] },
  brkpt: { ...FLOW, ...IN_STRUCTURE, forms: [form('')] },
  call: {
    forms: [form('[uni]', 'function')],
    operands: { ...WRITES_NOTHING, takesNames: true },
    effect: 'any',
    waits: NEVER_WAITS,
    meaning: 'opaque',
    scalar: call,
    vector: NO_VECTOR_FORM,
  },
  nanosleep: {
    forms: [form('u32', 'u32', '6.3 sm_70')],
    operands: WRITES_NOTHING,
    effect: 'any',
    waits: { cut: () => 'sleep' },
    meaning: 'opaque',
    scalar: nothing,
    vector: NO_VECTOR_FORM,
  },
  pmevent: { ...SETTING, forms: [form('', '3'), form('mask', '3')], effect: 'repeatable' },
  setmaxnreg: {
    ...SETTING,
    forms: [
      form(
        'inc|dec sync aligned u32',
        '64',
        '8.0 sm_90a or 8.6 sm_100f or 8.6 sm_120f or 9.0 sm_110f',
      ),
    ],
  },
  griddepcontrol: { ...SETTING, forms: [form('launch_dependents|wait', '', '7.8 sm_90')] },
  stacksave: {
    ...OF_THE_STACK,
    forms: [form('u32|u64', 'T', '7.3 sm_52')],
    operands: { ...WRITES_FIRST, takesNames: true, movesStack: 'reads' },
    scalar: saveStack,
  },
  stackrestore: {
    ...OF_THE_STACK,
    forms: [form('u32|u64', 'T', '7.3 sm_52')],
    operands: {
      ...WRITES_NOTHING,
      takesNames: true,
      refusesNames: true,
      movesStack: 'writes',
    },
    scalar: restoreStack,
  },
  alloca: {
    ...OF_THE_STACK,
    forms: [form('u32|u64', 'T T 16?', '7.3 sm_52')],
    operands: { ...WRITES_FIRST, takesNames: true, refusesNames: true, movesStack: 'writes' },
    scalar: allocate,
  },
} satisfies Rows;
