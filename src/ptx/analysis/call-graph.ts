// Decides which device functions become real WebAssembly functions and which are inlined. A real
// function cannot be suspended, so a function that waits (at barriers, warp operations), gives way
// or loops is inlined into its kernel. Recursive functions and functions that are called through
// pointers stay real, unless one of the latter waits: then it is inlined at each call that may lead
// to it.

import type { PtxFunction, PtxModule, Statement } from '../syntax/ast.js';
import { UNKNOWN } from '../isa/traits.js';
import type { Traits } from '../isa/traits.js';
import { isCut } from './cuts.js';
import { pointedFunctions, prototypesCalled, sameShape } from './pointed-functions.js';

const SMALL = 40;
/**
 * The most instructions of a function, inlined ones included, before functions that only loop stay
 * functions: each loop may be left, with every register, and engines end the process on code in
 * which some thousand loops meet some thousand registers.
 */
const LARGE = 16_000;
/** The cost of an inlined call by itself, in instructions. */
export const INLINING = 8;

export interface FunctionTraits {
  inlined: boolean;
  recursive: boolean;
  waits: boolean;
}

interface Facts {
  size: number;
  waits: boolean;
  /** The function loops or gives way. It is better inlined, but may stay a real function. */
  loops: boolean;
  /**
   * The function reads what other threads may change meanwhile, as a loop that waits for them does:
   * it has to be left so that they can run.
   */
  polls: boolean;
  /** The callees, each with the number of calls. */
  callees: Map<PtxFunction, number>;
  callsThroughPointers: boolean;
}

export function definitions(module: PtxModule): Map<string, PtxFunction> {
  const found = new Map<string, PtxFunction>();
  for (const fn of module.functions) {
    const known = found.get(fn.name);
    if (known?.body && fn.body)
      throw module.source.error('semantic', `function '${fn.name}' is defined twice`, fn.at);
    if (!known?.body) found.set(fn.name, fn);
  }
  for (const [name, target] of module.aliases) {
    const fn = found.get(target);
    if (fn) found.set(name, fn);
  }
  return found;
}

/** A thread's mark at the cluster's barrier belongs to the kernel: see `emit/frame-layout.ts`. */
const arrivesAtCluster = ({ mnemonic, modifiers }: Statement & { kind: 'instruction' }): boolean =>
  mnemonic === 'barrier' && modifiers.includes('cluster');

const polls = (mnemonic: string, modifiers: readonly string[]): boolean =>
  (mnemonic === 'ld' &&
    modifiers.some((word) => word === 'volatile' || word === 'relaxed' || word === 'acquire')) ||
  (mnemonic === 'atom' && modifiers.some((word) => word === 'cas' || word === 'exch'));

function factsOf(
  fn: PtxFunction,
  functions: Map<string, PtxFunction>,
  instructions: Traits,
): Facts {
  const facts: Facts = {
    size: 0,
    waits: false,
    loops: false,
    polls: false,
    callees: new Map(),
    callsThroughPointers: false,
  };
  const seen = new Set<string>();
  const visit = (statements: readonly Statement[]): void => {
    // An index is used here and wherever a large kernel's statements are visited: until an engine
    // has compiled a loop, each step of an iterator is an object.
    for (let at = 0; at < statements.length; at++) {
      const statement = statements[at]!;
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'label') seen.add(statement.name);
      else if (statement.kind === 'instruction') {
        facts.size++;
        const { mnemonic, modifiers } = statement;
        const traits = instructions.get(mnemonic) ?? UNKNOWN;
        if (isCut(traits, modifiers) || arrivesAtCluster(statement)) facts.waits = true;
        if (polls(mnemonic, modifiers)) facts.polls = true;
        if (mnemonic === 'brx' || traits.waits.givesWay?.(modifiers) === true) facts.loops = true;
        if (mnemonic !== 'bra' && mnemonic !== 'call') continue;
        for (const operand of statement.operands) {
          if (operand.kind !== 'name') continue;
          if (mnemonic === 'bra' && seen.has(operand.name)) facts.loops = true;
          const callee = mnemonic === 'call' ? functions.get(operand.name) : undefined;
          if (callee?.body) facts.callees.set(callee, (facts.callees.get(callee) ?? 0) + 1);
        }
        const through =
          mnemonic === 'call'
            ? statement.operands.find((operand) => operand.kind === 'name')
            : undefined;
        if (through && !functions.has(through.name)) facts.callsThroughPointers = true;
      }
    }
  };
  visit(fn.body ?? []);
  return facts;
}

/**
 * `waiting`: functions that wait and whose addresses are taken, in a module with calls through
 * pointers.
 */
export function functionTraits(
  module: PtxModule,
  functions: Map<string, PtxFunction>,
  instructions: Traits,
): { traits: Map<PtxFunction, FunctionTraits>; waiting: PtxFunction[] } {
  const facts = new Map<PtxFunction, Facts>();
  for (const fn of functions.values()) facts.set(fn, factsOf(fn, functions, instructions));
  const callers = [...facts].flatMap(([fn, own]) =>
    own.callsThroughPointers ? [{ own, prototypes: prototypesCalled(fn, module, functions) }] : [],
  );
  const pointed = callers.length ? pointedFunctions(module, functions) : [];
  for (;;) {
    const traits = traitsOf(module, facts);
    const waiting = pointed.filter((fn) => traits.get(fn)!.waits);
    // A caller of a function that waits waits, too; this may change what its own callers do.
    let more = false;
    for (const { own, prototypes } of callers) {
      for (const fn of waiting) {
        if (own.callees.has(fn) || !prototypes.some((prototype) => sameShape(prototype, fn)))
          continue;
        own.callees.set(fn, 1);
        more = true;
      }
    }
    if (!more) return { traits, waiting };
  }
}

function traitsOf(
  module: PtxModule,
  facts: Map<PtxFunction, Facts>,
): Map<PtxFunction, FunctionTraits> {
  const traits = new Map<PtxFunction, FunctionTraits>();
  const loops = new Map<PtxFunction, boolean>();
  const sizes = new Map<PtxFunction, number>();
  const polling = new Set<PtxFunction>();
  for (const group of cycles([...facts.keys()], (fn) => facts.get(fn)!.callees.keys())) {
    // Functions of one cycle reach each other, and all callees outside the cycle are complete.
    const members = new Set(group);
    const all = group.map((fn) => facts.get(fn)!);
    const beyond = all
      .flatMap((one) => [...one.callees.keys()])
      .filter((callee) => !members.has(callee));
    const recursive = group.length > 1 || all[0]!.callees.has(group[0]!);
    const waits =
      all.some((one) => one.waits) || beyond.some((callee) => traits.get(callee)!.waits);
    const loop = all.some((one) => one.loops) || beyond.some((callee) => loops.get(callee)!);
    const looksAtOthers =
      all.some((one) => one.polls) || beyond.some((callee) => polling.has(callee));
    for (const fn of group) {
      loops.set(fn, loop);
      if (looksAtOthers) polling.add(fn);
      // A real function has no access to what each thread has outside functions.
      const shares = module.perThread.length > 0;
      traits.set(fn, {
        recursive,
        waits,
        inlined: !recursive && (waits || loop || shares || facts.get(fn)!.size <= SMALL),
      });
      if (shares) continue;
      sizes.set(fn, keepSmall(facts.get(fn)!, traits, sizes, polling));
    }
  }
  return traits;
}

/**
 * The size of a function with all that is inlined into it. If it is large, callees that loop, but
 * neither wait nor poll, are inlined nowhere, the largest ones first.
 */
function keepSmall(
  { size, callees }: Facts,
  traits: Map<PtxFunction, FunctionTraits>,
  sizes: Map<PtxFunction, number>,
  polling: ReadonlySet<PtxFunction>,
): number {
  const parts = [...callees]
    .filter(([callee]) => traits.get(callee)?.inlined === true)
    .map(([callee, times]) => ({ callee, of: times * (INLINING + (sizes.get(callee) ?? 0)) }))
    .sort((a, b) => b.of - a.of);
  let whole = size + parts.reduce((sum, { of }) => sum + of, 0);
  for (const { callee, of } of parts) {
    const own = traits.get(callee)!;
    if (whole <= LARGE || own.waits || polling.has(callee) || of < LARGE / parts.length / 4)
      continue;
    own.inlined = false;
    whole -= of;
  }
  return whole;
}

/**
 * The strongly connected components of the call graph, callees first (Tarjan). It is not recursive:
 * chains of calls may be as long as the text.
 */
function cycles<T>(nodes: readonly T[], next: (node: T) => Iterable<T>): T[][] {
  const found: T[][] = [];
  const order = new Map<T, number>();
  const low = new Map<T, number>();
  const open: T[] = [];
  const isOpen = new Set<T>();
  for (const root of nodes) {
    if (order.has(root)) continue;
    const path: { node: T; rest: Iterator<T> }[] = [];
    const enter = (node: T): void => {
      low.set(node, order.size);
      order.set(node, order.size);
      open.push(node);
      isOpen.add(node);
      path.push({ node, rest: next(node)[Symbol.iterator]() });
    };
    enter(root);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const { node, rest } = top;
      const step = rest.next();
      if (!step.done) {
        if (!order.has(step.value)) enter(step.value);
        else if (isOpen.has(step.value))
          low.set(node, Math.min(low.get(node)!, order.get(step.value)!));
        continue;
      }
      path.pop();
      const caller = path.at(-1)?.node;
      if (caller !== undefined) low.set(caller, Math.min(low.get(caller)!, low.get(node)!));
      if (low.get(node) !== order.get(node)) continue;
      const group = open.splice(open.indexOf(node));
      for (const member of group) isOpen.delete(member);
      found.push(group);
    }
  }
  return found;
}
