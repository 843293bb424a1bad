// Decides which device functions become real WebAssembly functions and which are inlined. A real function cannot
// be suspended, so whatever waits (barriers, warp operations) or loops is inlined into its kernel; recursion and
// calls through pointers must stay real.

import type { PtxFunction, PtxModule, Statement } from '../syntax/ast.js';
import { isCut } from './cuts.js';

const SMALL = 40;

export interface FunctionTraits {
  inlined: boolean;
  recursive: boolean;
  waits: boolean;
}

interface Facts {
  size: number;
  waits: boolean;
  loops: boolean;
  callees: Set<PtxFunction>;
}

export function definitions(module: PtxModule): Map<string, PtxFunction> {
  const found = new Map<string, PtxFunction>();
  for (const fn of module.functions) {
    const known = found.get(fn.name);
    if (known?.body && fn.body) throw module.source.error('semantic', `function '${fn.name}' is defined twice`, fn.at);
    if (!known?.body) found.set(fn.name, fn);
  }
  for (const [name, target] of module.aliases) {
    const fn = found.get(target);
    if (fn) found.set(name, fn);
  }
  return found;
}

function factsOf(fn: PtxFunction, functions: Map<string, PtxFunction>): Facts {
  const facts: Facts = { size: 0, waits: false, loops: false, callees: new Set() };
  const seen = new Set<string>();
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'label') seen.add(statement.name);
      else if (statement.kind === 'instruction') {
        facts.size++;
        if (isCut(statement.mnemonic, statement.modifiers)) facts.waits = true;
        for (const operand of statement.operands) {
          if (operand.kind !== 'name') continue;
          if (statement.mnemonic === 'bra' && seen.has(operand.name)) facts.loops = true;
          const callee = statement.mnemonic === 'call' ? functions.get(operand.name) : undefined;
          if (callee?.body) facts.callees.add(callee);
        }
        if (statement.mnemonic === 'brx') facts.loops = true;
      }
    }
  };
  visit(fn.body ?? []);
  return facts;
}

export function functionTraits(module: PtxModule, functions: Map<string, PtxFunction>): Map<PtxFunction, FunctionTraits> {
  const facts = new Map<PtxFunction, Facts>();
  for (const fn of functions.values()) facts.set(fn, factsOf(fn, functions));
  const reach = (from: PtxFunction): Set<PtxFunction> => {
    const reached = new Set<PtxFunction>();
    const queue = [...facts.get(from)!.callees];
    for (let next = queue.pop(); next; next = queue.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      queue.push(...facts.get(next)!.callees);
    }
    return reached;
  };
  const traits = new Map<PtxFunction, FunctionTraits>();
  for (const [fn, own] of facts) {
    const reached = reach(fn);
    const recursive = reached.has(fn);
    const all = [own, ...[...reached].map(other => facts.get(other)!)];
    const waits = all.some(one => one.waits);
    const loops = all.some(one => one.loops);
    traits.set(fn, { recursive, waits, inlined: !recursive && (waits || loops || own.size <= SMALL) });
  }
  return traits;
}
