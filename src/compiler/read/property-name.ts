/** The property name of a member expression. */
import type { MemberExpression } from 'acorn';

/** Gives the name, where it is a constant: `a.x`, `a["x"]`. */
export function propertyName(node: MemberExpression): string | undefined {
  if (!node.computed) return node.property.type === 'Identifier' ? node.property.name : undefined;
  return node.property.type === 'Literal' && typeof node.property.value === 'string'
    ? node.property.value
    : undefined;
}
