/** Binds the names of a pattern: parameters, `const { x } = gpu.threadIdx`, `({ x } = p)`. */
import type { AnyNode } from 'acorn';
import { element, property } from './members.js';
import type { Pass } from './pass.js';
import { unsupported } from './unsupported.js';
import type { Value } from './values.js';
import { literal } from './operands.js';
import { assignName } from './name-assignment.js';

export function bindPattern(pass: Pass, pattern: AnyNode, value: Value): void {
  switch (pattern.type) {
    case 'Identifier':
      assignName(pass, pattern, value);
      return;
    case 'ObjectPattern':
      for (const part of pattern.properties) {
        if (part.type !== 'Property') return unsupported(pass, part);
        const { key } = part;
        const name =
          key.type === 'Identifier' && !part.computed
            ? key.name
            : key.type === 'Literal'
              ? String(key.value)
              : undefined;
        if (name === undefined)
          return pass.fail(
            part,
            'What is taken out of an object has to be named in the source',
            'Write { name }.',
          );
        bindPattern(pass, part.value, property(pass, key, value, name));
      }
      return;
    case 'ArrayPattern':
      if (value.kind !== 'list' && value.kind !== 'shape') return unsupported(pass, pattern);
      for (const [at, part] of pattern.elements.entries()) {
        if (part !== null)
          bindPattern(pass, part, element(pass, part, value, literal(at, pass.span(part)), part));
      }
      return;
    case 'AssignmentPattern':
      return pass.fail(
        pattern,
        'Parameters of a kernel have no default values: every one is given at the launch',
        'Leave the default out, and give the value when you call the kernel.',
      );
    case 'MemberExpression':
      return pass.fail(
        pattern,
        `This cannot be assigned to here: ${pass.code(pattern)}`,
        'Assign to it in a statement of its own.',
      );
    default:
      return unsupported(pass, pattern);
  }
}
