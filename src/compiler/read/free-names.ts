/** Names that exist without a declaration. */
import type { AnyNode } from 'acorn';
import { literal } from './operands.js';
import type { Pass } from './pass.js';
import { nothing, type Value } from './values.js';

/** Values of the names that exist without a declaration. */
export const freeNames: Readonly<Record<string, (pass: Pass, node: AnyNode) => Value>> = {
  undefined: () => nothing,
  NaN: (pass, node) => literal(NaN, pass.span(node)),
  Infinity: (pass, node) => literal(Infinity, pass.span(node)),
  Math: () => ({ kind: 'namespace', path: 'Math' }),
  console: () => ({ kind: 'namespace', path: 'console' }),
};
