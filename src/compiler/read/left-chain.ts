/** Chains of binary operators. */
import type { AnyNode, BinaryExpression } from 'acorn';

/**
 * Gives the operators of a chain without brackets, `a + b - c`, the innermost first: each has the
 * one before it, or `first`, on its left. Readers iterate over this list, because a sum of some
 * thousand terms is nested as deeply as it is long.
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
