/** Recursion, which kernels do not have: the chain of calls from a function back to itself. */
import type { AnyNode } from 'acorn';
import type { Frame, Pass } from './pass.js';
import { propertyName } from './property-name.js';
import { childrenOf } from './syntax.js';

const shortName = (name: string): string => name.replace(/^.*\./, '');

/**
 * The names by which a function may call itself: its own name, and its name in `uses`. A kernel has
 * none.
 */
const namesOf = ({ name, parsed, caller }: Frame): string[] => [
  ...(parsed.node.type === 'FunctionExpression' && parsed.node.id ? [parsed.node.id.name] : []),
  ...(caller === undefined ? [] : [shortName(name)]),
];

/** The names that a function calls, its own and those of gpu. */
function calledIn(node: AnyNode, found = new Set<string>()): Set<string> {
  if (node.type === 'CallExpression') {
    const { callee } = node;
    const name =
      callee.type === 'Identifier'
        ? callee.name
        : callee.type === 'MemberExpression'
          ? propertyName(callee)
          : undefined;
    if (name !== undefined) found.add(name);
  }
  for (const child of childrenOf(node)) calledIn(child, found);
  return found;
}

/**
 * The chain of calls, through enclosing functions and those that they use, by which a call of
 * `name` reaches a function that is being read: its names from there on.
 */
function cycleOf(pass: Pass, name: string): string[] | undefined {
  const around: Frame[] = [];
  for (let at: Frame | undefined = pass.frame; at !== undefined; at = at.caller) around.push(at);
  const tried = new Set<string>();
  const from = (called: string, path: readonly string[]): string[] | undefined => {
    const again = around.findIndex((frame) => namesOf(frame).includes(called));
    if (again >= 0)
      return [
        ...around
          .slice(0, again + 1)
          .reverse()
          .map((frame) => shortName(frame.name)),
        ...path,
        shortName(around[again]!.name),
      ];
    const fn = around
      .map(({ uses }) => uses[called])
      .find((used) => typeof used === 'object' && 'text' in used);
    if (fn === undefined || tried.has(called)) return undefined;
    tried.add(called);
    for (const next of calledIn(pass.facts.parse(fn.text, false).parsed.node)) {
      const found = from(next, [...path, called]);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return from(name, []);
}

/** Rejects a call of an unknown name that would be a recursion. */
export function failIfRecursive(pass: Pass, node: AnyNode, name: string): void {
  const cycle = cycleOf(pass, name);
  if (cycle !== undefined)
    pass.fail(
      node,
      `A ${pass.frame.caller === undefined ? 'kernel' : 'device function'} cannot call ` +
        `itself: ${cycle.join(' → ')}`,
      A_LOOP,
    );
}

export const A_LOOP = 'Functions are put in place of their calls: write a loop.';
