// Finds the functions whose addresses a module takes, and where a call through a pointer may lead.

import type {
  Initializer,
  Instruction,
  Operand,
  Prototype,
  PtxFunction,
  PtxModule,
  Statement,
  Variable,
} from '../syntax/ast.js';
import { variableLayout } from './data-layout.js';

/**
 * What calls through pointers in a function name after their arguments: prototypes, or functions
 * with the signature of the call.
 */
export function prototypesCalled(
  fn: PtxFunction,
  module: PtxModule,
  functions: ReadonlyMap<string, PtxFunction>,
): Prototype[] {
  const prototypes = new Map<string, Prototype[]>();
  const lists = new Map<string, readonly string[]>();
  const names = new Set<string>();
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      // Several may have one name, in different scopes.
      else if (statement.kind === 'prototype')
        prototypes.set(statement.name, [
          ...(prototypes.get(statement.name) ?? []),
          statement.prototype,
        ]);
      else if (statement.kind === 'targets') lists.set(statement.name, statement.labels);
      else if (statement.kind === 'instruction' && statement.mnemonic === 'call') {
        const list = targetsNamed(statement, functions);
        if (list !== undefined) names.add(list);
      }
    }
  };
  visit(fn.body ?? []);
  return [...names].flatMap((name) => {
    const known = prototypes.get(name);
    if (known) return known;
    const [first] = lists.get(name) ?? functionsIn(name, module);
    const target = first === undefined ? undefined : functions.get(first);
    return target ? [target] : [];
  });
}

/** What follows the arguments of a call whose target is no function of the module. */
function targetsNamed(
  { operands }: Instruction,
  functions: ReadonlyMap<string, PtxFunction>,
): string | undefined {
  const callee = operands.find((operand) => operand.kind === 'name');
  const last = operands.at(-1);
  return callee && !functions.has(callee.name) && last?.kind === 'name' && last !== callee
    ? last.name
    : undefined;
}

/** Functions whose addresses the initial value of a variable of the module contains. */
export function functionsIn(name: string, module: PtxModule): string[] {
  return symbolsIn(module.variables.find((variable) => variable.name === name)?.initializer);
}

function symbolsIn(value: Initializer | undefined): string[] {
  if (value?.kind === 'list') return value.elements.flatMap(symbolsIn);
  return value?.kind === 'symbol' ? [value.name] : [];
}

/** Functions with bodies that an instruction or an initial value names without a call. */
export function pointedFunctions(
  module: PtxModule,
  functions: ReadonlyMap<string, PtxFunction>,
): PtxFunction[] {
  const found = new Set<PtxFunction>();
  const add = (name: string): void => {
    const fn = functions.get(name);
    if (fn?.body && !fn.entry) found.add(fn);
  };
  const look = (operand: Operand): void => {
    if (operand.kind === 'name') add(operand.name);
    else if (operand.kind === 'list') operand.elements.forEach(look);
  };
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      if (statement.kind === 'block') visit(statement.statements);
      else if (statement.kind === 'instruction') {
        const callee =
          statement.mnemonic === 'call'
            ? statement.operands.find((operand) => operand.kind === 'name')
            : undefined;
        for (const operand of statement.operands) if (operand !== callee) look(operand);
      }
    }
  };
  for (const { initializer } of module.variables) symbolsIn(initializer).forEach(add);
  for (const fn of functions.values()) visit(fn.body ?? []);
  return [...found];
}

/** Whether a call with one prototype may be a call with the other. */
export function sameShape(one: Prototype, other: Prototype): boolean {
  return sameList(one.returns, other.returns) && sameList(one.params, other.params);
}

function sameList(one: readonly Variable[], other: readonly Variable[]): boolean {
  return (
    one.length === other.length &&
    one.every((variable, index) => {
      const { aggregate, size } = variableLayout(variable);
      const against = variableLayout(other[index]!);
      return aggregate === against.aggregate && size === against.size;
    })
  );
}
