/** Operators behind each other. */
import type { AnyNode, BinaryExpression } from 'acorn';

/**
 * The operators that stand behind each other without brackets, `a + b - c`, the innermost first:
 * each has the one before it, or `first`, on its left. What reads them goes along this list: a sum
 * of some thousand terms is nested as deeply as it is long.
 */
export function leftChain(node: BinaryExpression): {
  readonly first: AnyNode;
  readonly rest: readonly BinaryExpression[];
} {
  const rest = [node];
  let first: AnyNode = node.left;
  for (; first.type === 'BinaryExpression'; first = first.left) rest.push(first);
  return { first, rest: rest.reverse() };
}
