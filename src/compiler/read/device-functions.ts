/**
 * Inlined calls: device functions of `uses`, and functions of the language that are written in the
 * kernel language.
 */
import type { AnyNode, ReturnStatement } from 'acorn';
import type { DeviceFunctionText } from '../signature.js';
import { bindPattern } from './bindings.js';
import { completes, leaves, withoutLast } from './flow.js';
import type { Frame, Pass } from './pass.js';
import { readSlot, readTemporary } from './slots.js';
import type { Span } from '../tree.js';
import { nothing, type Value } from './values.js';
import { isPresent } from './present.js';
import { A_LOOP } from './recursion.js';
import { childrenOf, type FunctionNode } from './syntax.js';
import { read, readStatements } from './reading.js';

const sameFunction = (a: DeviceFunctionText | undefined, b: DeviceFunctionText): boolean =>
  a === b || (a !== undefined && a.text === b.text && a.uses === b.uses);

/** The names of the enclosing functions, the outermost first. */
function callers(frame: Frame): string[] {
  return frame.caller === undefined ? [] : [...callers(frame.caller), frame.name];
}

/** Reads the function's statements in place of the call, with the types of these arguments. */
export function callDevice(
  pass: Pass,
  node: AnyNode,
  name: string,
  fn: DeviceFunctionText,
  given: readonly Value[],
  argNodes: readonly AnyNode[],
  shownAs?: Span,
): Value {
  const caller = pass.frame;
  for (let at: Frame | undefined = caller; at !== undefined; at = at.caller) {
    if (!sameFunction(at.fn, fn)) continue;
    const all = [...callers(caller), name];
    const cycle = all.slice(all.indexOf(at.name)).join(' → ');
    return pass.fail(node, `A device function cannot call itself: ${cycle}`, A_LOOP);
  }
  const [args, gpu] = takenByGpu(fn, given);
  const { parsed, number } = pass.facts.parse(
    fn.text,
    shownAs !== undefined || caller.shownAs !== undefined,
  );
  const { params } = parsed.node;
  // The kernel around a body passes all arguments, whether the body takes them or not.
  if (args.length > params.length && (fn.gpu?.given.length ?? 0) === 0) {
    return pass.fail(
      argNodes[params.length] ?? node,
      `${name} takes ${params.length} argument${params.length === 1 ? '' : 's'}, and got ` +
        `${args.length}`,
      'Leave out the others.',
    );
  }
  // The parameter after those of the call is the function's own gpu.
  if (params.length > args.length + 1)
    return pass.fail(
      node,
      `${name} takes ${params.length - 1} arguments and gpu, and got ${args.length}`,
      'Give every argument.',
    );
  for (const arg of args) {
    if (arg.kind === 'string' || arg.kind === 'nothing')
      return pass.fail(
        node,
        `${name} got ${arg.kind === 'string' ? 'a string' : 'no value'} as an argument`,
        'Give it numbers, structures, tensors and arrays.',
      );
  }
  const returns = returnsOf(parsed.node);
  const { body } = parsed.node;
  const last = body.type === 'BlockStatement' ? body.body.at(-1) : undefined;
  // A function with one return, at its end, needs no slot for the result.
  const direct =
    body.type !== 'BlockStatement' ||
    returns.length === 0 ||
    (returns.length === 1 && returns[0] === last);
  const frame: Frame = {
    parsed,
    text: number,
    key: pass.freshKey(node, name),
    name,
    uses: fn.uses,
    bindings: new Map(),
    caller,
    fn,
    targets: [],
    shownAs: shownAs ?? caller.shownAs,
    unroll: undefined,
    narrow: fn.gpu ?? caller.narrow,
    result: {
      group: pass.newGroup(),
      slot: undefined,
      returnsNothing: false,
      origins: new Set(),
      slots: new Set(),
    },
  };
  pass.frame = frame;
  try {
    for (const [at, param] of params.entries()) bindPattern(pass, param, args[at] ?? gpu);
    if (body.type !== 'BlockStatement') return read(pass, body);
    if (direct) {
      const before = returns.length === 0 ? body.body : body.body.slice(0, -1);
      const mark = pass.out.length;
      readStatements(pass, before);
      const value = returns[0]?.argument;
      if (!isPresent(value) || !completes(pass.out.slice(mark))) return nothing;
      return read(pass, value);
    }
    const result = frame.result!;
    const statements = pass.collect(() => readStatements(pass, body.body));
    const falls = completes(statements);
    if (result.slot !== undefined && (falls || result.returnsNothing)) {
      pass.fail(
        last ?? body,
        `${name} gives a value on some paths only`,
        'Return a value at its end too.',
      );
    }
    const kept = withoutLast(statements, result.group);
    if (leaves(kept, result.group))
      pass.emit({ kind: 'group', id: result.group, body: kept, span: pass.span(body) });
    else for (const statement of kept) pass.emit(statement);
    pass.frame = caller;
    if (result.slot === undefined) return nothing;
    // All returns give the same structure.
    const [same] = result.slots;
    return result.slots.size === 1 && same !== undefined
      ? readSlot(pass, same, node)
      : readTemporary(pass, result.slot, node, result.origins);
  } finally {
    pass.frame = caller;
  }
}

/** The function's own arguments, and its gpu with the arguments that it provides. */
function takenByGpu(
  { gpu }: DeviceFunctionText,
  args: readonly Value[],
): readonly [readonly Value[], Value] {
  if (gpu === undefined) return [args, { kind: 'namespace', path: '' }];
  const own = args.length - gpu.given.length;
  return [
    args.slice(0, own),
    {
      kind: 'namespace',
      path: '',
      given: new Map(gpu.given.map((name, at) => [name, args[own + at]!])),
    },
  ];
}

const returnsByFunction = new WeakMap<FunctionNode, ReturnStatement[]>();

function returnsOf(fn: FunctionNode): ReturnStatement[] {
  let found = returnsByFunction.get(fn);
  if (found === undefined) {
    found = [];
    collectReturns(fn.body, found);
    returnsByFunction.set(fn, found);
  }
  return found;
}

function collectReturns(node: AnyNode, found: ReturnStatement[]): void {
  if (
    node.type === 'FunctionDeclaration' ||
    node.type === 'FunctionExpression' ||
    node.type === 'ArrowFunctionExpression'
  )
    return;
  if (node.type === 'ReturnStatement') found.push(node);
  for (const child of childrenOf(node)) collectReturns(child, found);
}
