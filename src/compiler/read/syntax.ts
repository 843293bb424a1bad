/** The children of a syntax node. */
import type { ArrowFunctionExpression, FunctionExpression, AnyNode } from 'acorn';

export type FunctionNode = ArrowFunctionExpression | FunctionExpression;

/**
 * Gives a node's children. A node is an object with a type; other properties of nodes (regular
 * expressions, raw text) are none.
 */
export function childrenOf(node: AnyNode): AnyNode[] {
  const children: AnyNode[] = [];
  const fields = node as unknown as Record<string, unknown>;
  for (const key in fields) {
    const value = fields[key];
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value)) {
      if (typeof (value as AnyNode).type === 'string') children.push(value as AnyNode);
      continue;
    }
    for (const child of value as unknown[]) {
      if (
        typeof child === 'object' &&
        child !== null &&
        typeof (child as AnyNode).type === 'string'
      )
        children.push(child as AnyNode);
    }
  }
  return children;
}
