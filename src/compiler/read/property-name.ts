/** The name that a member expression asks for. */
import type { MemberExpression } from 'acorn';

/** The name that is asked for, where it is one: `a.x`, `a["x"]`. */
export function propertyName(node: MemberExpression): string | undefined {
  if (!node.computed) return node.property.type === 'Identifier' ? node.property.name : undefined;
  return node.property.type === 'Literal' && typeof node.property.value === 'string'
    ? node.property.value
    : undefined;
}
