/** Assignment to a name: a new binding, or a new value for its slot. */
import type { AnyNode } from 'acorn';
import type { Pass } from './pass.js';
import { fixed, replaceSlot, slotFor } from './slots.js';
import type { Value } from './values.js';

/** Assigns to a name. The first assignment of a name with only one may bind any kind of value. */
export function assignName(pass: Pass, node: AnyNode & { type: 'Identifier' }, value: Value): void {
  const declaration = pass.frame.parsed.names.get(node);
  if (declaration === undefined) {
    return pass.fail(
      node,
      `\`${node.name}\` is not declared in this function, and a kernel cannot change what is ` +
        'outside it',
      `Declare it: let ${node.name}. What the kernel gives back it writes to a tensor.`,
    );
  }
  const bound = pass.frame.bindings.get(declaration);
  if (bound === undefined && declaration.writes === 1) {
    if (value.kind === 'nothing') return;
    pass.frame.bindings.set(declaration, fixed(pass, value, declaration, node));
    return;
  }
  if (declaration.kind === 'const' || declaration.kind === 'other') {
    if (bound !== undefined)
      pass.fail(
        node,
        `\`${node.name}\` is a constant, and this assigns to it`,
        'Declare it with let.',
      );
  }
  // `let x = undefined`: the variable gets its value later.
  if (value.kind === 'nothing' && bound === undefined) return;
  const slot =
    bound === undefined || (bound.kind !== 'scalar' && bound.kind !== 'fields')
      ? slotFor(
          pass,
          node,
          bound ?? value,
          pass.freshKey({ ...node, start: declaration.at, end: declaration.at }, declaration.name),
          declaration.name,
          false,
        )
      : bound;
  pass.frame.bindings.set(declaration, slot);
  replaceSlot(pass, slot, value, node, node.name);
}
