/** Syntax that kernels do not have: the message for each, and what to write instead. */
import type { AnyNode } from 'acorn';
import type { Pass } from './pass.js';

const sentences: Partial<Record<AnyNode['type'], readonly [what: string, fix: string]>> = {
  ArrayExpression: [
    'Arrays cannot be written as literals in a kernel',
    'Declare one, const a = gpu.local.f32(4), or give constants through uses. To swap write ' +
      '{ const t = a; a = b; b = t; }.',
  ],
  ArrowFunctionExpression: [
    'Functions cannot be made inside a kernel',
    'Give the function through uses: { f } and call gpu.f(x).',
  ],
  FunctionExpression: [
    'Functions cannot be made inside a kernel',
    'Give the function through uses: { f } and call gpu.f(x).',
  ],
  FunctionDeclaration: [
    'Functions cannot be declared inside a kernel',
    'Give the function through uses: { f } and call gpu.f(x).',
  ],
  ClassDeclaration: [
    'Classes are not supported in a kernel',
    'Use structures of numbers: { x, y }.',
  ],
  ClassExpression: [
    'Classes are not supported in a kernel',
    'Use structures of numbers: { x, y }.',
  ],
  AwaitExpression: [
    'Nothing can be awaited in a kernel',
    'Threads wait for each other with gpu.block.sync().',
  ],
  YieldExpression: ['A kernel cannot yield', 'Write results to a tensor.'],
  ChainExpression: [
    '?. has no use in a kernel: nothing is null or undefined',
    'Write it without ?.',
  ],
  ImportExpression: ['Nothing can be imported inside a kernel', 'Give what it needs through uses.'],
  MetaProperty: [
    'import.meta and new.target are not supported in a kernel',
    'Give what it needs through uses.',
  ],
  NewExpression: [
    'Nothing can be made with new in a kernel',
    'Arrays are gpu.local.f32(4) and gpu.shared.f32(256), structures { x, y }.',
  ],
  SpreadElement: ['... is not supported in a kernel', 'Write each value.'],
  RestElement: ['... is not supported in a kernel', 'Name each parameter.'],
  Super: ['There is no super in a kernel', 'Use the arguments and gpu.'],
  TaggedTemplateExpression: [
    'Tagged templates are not supported in a kernel',
    'Write a call with numbers.',
  ],
  ThisExpression: ['There is no this in a kernel', 'Use the arguments and gpu.'],
  PrivateIdentifier: ['There are no private names in a kernel', 'Use the arguments and gpu.'],
  ForInStatement: [
    'for-in is not supported in a kernel',
    'Count: for (let i = 0; i < y.length; i++).',
  ],
  ForOfStatement: [
    'for-of is not supported in a kernel',
    'Count: for (let i = 0; i < x.length; i++) and take x[i].',
  ],
  ThrowStatement: [
    'A kernel cannot throw',
    "Write console.assert(false, 'message'), or gpu.trap().",
  ],
  TryStatement: [
    'Nothing is thrown in a kernel, so there is nothing to catch',
    'Check before: if (i < y.length).',
  ],
  WithStatement: ['with is not supported in a kernel', 'Name the object each time.'],
  ArrayPattern: [
    'Arrays cannot be taken apart in a kernel',
    'Take each element: const a = x[0]. To swap write { const t = a; a = b; b = t; }.',
  ],
};

export function unsupported(pass: Pass, node: AnyNode): never {
  if (node.type === 'Literal') {
    if (node.regex !== undefined && node.regex !== null)
      return pass.fail(
        node,
        'Regular expressions are not supported in a kernel',
        'Work with numbers.',
      );
    return pass.fail(node, 'null is not supported in a kernel', 'Use a number or a boolean.');
  }
  const [what, fix] = sentences[node.type] ?? [
    `This is not supported in a kernel: ${pass.code(node)}`,
    'Kernels have numbers, structures, arrays, if, loops, switch and calls.',
  ];
  return pass.fail(node, what, fix);
}
