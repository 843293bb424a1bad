/**
 * Parses the text that Function.prototype.toString gives to the function's syntax, with offsets in
 * that text.
 */
import { parse, type AnyNode, type Program } from 'acorn';
import { KernelSourceError } from '../source-error.js';
import { resolveNames, type Names } from './names.js';
import { unwrapTools } from './unwrap-tools.js';
import { type FunctionNode, childrenOf } from './syntax.js';

export interface ParsedFunction {
  readonly node: FunctionNode;
  readonly names: Names;
}

/** Ways to make an expression of a function's text: unchanged, and as a method. */
const wrappings = [
  { before: '(', after: '\n)', functionOf: (program: Program) => expressionOf(program) },
  {
    before: '({',
    after: '\n})',
    functionOf: (program: Program) => {
      const object = expressionOf(program);
      const property =
        object?.type === 'ObjectExpression' && object.properties.length === 1
          ? object.properties[0]
          : undefined;
      return property?.type === 'Property' && property.method ? property.value : undefined;
    },
  },
] as const;

function expressionOf(program: Program): AnyNode | undefined {
  const [statement] = program.body;
  return program.body.length === 1 && statement?.type === 'ExpressionStatement'
    ? statement.expression
    : undefined;
}

/**
 * Shifts offsets without recursion: a sum of some thousand terms is nested as deeply as it is long.
 */
function moveBack(root: AnyNode, by: number): void {
  const nodes = [root];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    node.start -= by;
    node.end -= by;
    nodes.push(...childrenOf(node));
  }
}

/**
 * Parses a function. `index`: the text's number in the tree, for spans.
 *
 * @throws KernelSourceError where the text is no function, or one that cannot be a kernel
 */
export function parseFunction(text: string, index: number): ParsedFunction {
  const fail = (what: string, fix: string, start = 0, end = text.length): never => {
    throw new KernelSourceError(
      what,
      fix,
      { text: index, start: Math.min(start, text.length), end: Math.min(end, text.length) },
      text,
    );
  };
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text)) {
    return fail(
      'This function has no source text: it is native or bound',
      'Give the function itself, not the result of bind() or a built-in one.',
    );
  }
  let first: { message: string; pos: number } | undefined;
  for (const { before, after, functionOf } of wrappings) {
    let program: Program;
    try {
      program = parse(before + text + after, { ecmaVersion: 'latest', sourceType: 'script' });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      if (error.message.startsWith('Not enough stack space')) throw new RangeError(error.message);
      const pos = (error as SyntaxError & { pos?: number }).pos ?? 0;
      const found = {
        message: error.message.replace(/ \(\d+:\d+\)$/, ''),
        pos: Math.max(0, pos - before.length),
      };
      if (first === undefined || found.pos > first.pos) first = found;
      continue;
    }
    const found = functionOf(program);
    if (found === undefined) continue;
    moveBack(found, before.length);
    const node = unwrapTools(found);
    if (node.type !== 'ArrowFunctionExpression' && node.type !== 'FunctionExpression') continue;
    if (node.async)
      return fail(
        'A kernel cannot be async',
        'Leave `async` out: threads wait for each other with gpu.block.sync().',
      );
    if (node.generator)
      return fail(
        'A kernel cannot be a generator',
        'Write a plain function; each thread writes its results to a tensor.',
      );
    return { node, names: resolveNames(node) };
  }
  if (first === undefined)
    return fail('This is not a function', 'Give a function: ({ y, x }, gpu) => { … }.');
  return fail(
    `This is not a function that can be read: ${first.message}`,
    'Give an arrow function, a function or a method.',
    first.pos,
    first.pos + 1,
  );
}
