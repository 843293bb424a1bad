// Resolves the names of a function body and flattens it: scopes disappear, arguments of calls are
// bound to parameters, and functions that cannot be real ones are inlined.

import { formComplaint, operandComplaint } from '../rules/forms.js';
import { valueComplaint } from '../rules/values.js';
import { scalarType } from '../scalar-types.js';
import type { Instruction, PtxFunction, Statement, Variable } from '../syntax/ast.js';
import { alignUp, sharedVariable, variableLayout } from './data-layout.js';
import { CallLowering } from './lower-calls.js';
import { isBare } from './lower-operands.js';
import { NOWHERE } from './lowering-state.js';
import type { LoweringContext } from './lowering-state.js';
import { assignRoles, NO_REGISTERS, usesCarry, writesFirstOperand } from './operand-roles.js';
import { isLabel } from './program.js';
import type { Arg, Inst, Label, LoweredFunction, Register, Symbol } from './program.js';
import type { Scope } from './scopes.js';

/**
 * The most loops times registers of a function: where a loop is left early, all registers meet. V8
 * ends the process beyond some 2^25, and takes gigabytes before that.
 */
const MOST_MERGED = 1.2e7;

const NO_ARGS: readonly Arg[] = [];
export function entryParameters(
  fn: PtxFunction,
): { variable: Variable; offset: number; size: number; align: number; aggregate: boolean }[] {
  let end = 0;
  return fn.params.map((variable) => {
    const { size, align, aggregate } = variableLayout(variable);
    const offset = alignUp(end, align);
    end = offset + size;
    return { variable, offset, size, align, aggregate };
  });
}

export function lowerFunction(fn: PtxFunction, context: LoweringContext): LoweredFunction {
  return new Lowering(fn, context, true).run();
}

/** Finds the errors in a function that no kernel calls. */
export function checkFunction(fn: PtxFunction, context: LoweringContext): void {
  new Lowering(fn, context, false).run();
}

/** The number of branches to earlier labels. */
function backEdges({ code }: LoweredFunction): number {
  const before = new Set<Label>();
  let found = 0;
  for (let at = 0; at < code.length; at++) {
    const entry = code[at]!;
    if (isLabel(entry)) before.add(entry);
    else for (const target of entry.targets) if (before.has(target)) found++;
  }
  return found;
}

class Lowering extends CallLowering {
  protected readonly resolvedSymbols = new Map<Variable, Symbol>();
  protected carry: Register | undefined = undefined;

  run(): LoweredFunction {
    const { out } = this;
    const fn = out.source;
    this.context.lowered.add(fn);
    this.body(this.context.module.perThread, this.outermost, undefined);
    const scope = this.newScope(this.outermost);
    if (fn.entry) {
      for (const { variable, offset, size } of entryParameters(fn))
        scope.symbols.set(variable.name, { kind: 'entryParam', offset, size });
    } else {
      for (const variable of fn.returns) out.results.push(this.formal(variable, scope));
      for (const variable of fn.params) out.params.push(this.formal(variable, scope));
    }
    const end: Label = { name: '(end)', block: -1 };
    this.body(fn.body ?? [], scope, undefined);
    out.code.push(end);
    if (backEdges(out) * out.registers.length > MOST_MERGED) throw this.tooLarge();
    return out;
  }

  /** The register that carries a parameter or result of a real function. */
  protected formal(variable: Variable, scope: Scope): Register {
    const { aggregate } = variableLayout(variable);
    if (aggregate) {
      const pointer = this.newRegister(variable.name, scalarType('b32'));
      scope.symbols.set(variable.name, { kind: 'incoming', pointer });
      return pointer;
    }
    const register = this.newRegister(variable.name, scalarType(variable.type));
    this.alias(scope, variable, register);
    return register;
  }

  protected body(
    statements: readonly Statement[],
    scope: Scope,
    returnTo: Label | undefined,
  ): void {
    // A label is visible before its place, but only within its function: they are collected for
    // each scope first.
    for (let index = 0; index < statements.length; index++) {
      const statement = statements[index]!;
      if (statement.kind === 'label') {
        if (scope.labels.has(statement.name)) {
          throw this.context.module.source.error(
            'semantic',
            `label '${statement.name}' is defined twice`,
            statement.at,
          );
        }
        scope.labels.set(statement.name, { name: statement.name, block: -1 });
      } else if (statement.kind === 'targets') scope.targets.set(statement.name, statement.labels);
      else if (statement.kind === 'prototype')
        scope.prototypes.set(statement.name, statement.prototype);
    }
    for (let index = 0; index < statements.length; index++) {
      const statement = statements[index]!;
      switch (statement.kind) {
        case 'label':
          this.out.code.push(scope.labels.get(statement.name)!);
          break;
        case 'block':
          this.body(statement.statements, this.newScope(scope), returnTo);
          break;
        case 'registers': {
          const type = scalarType(statement.type);
          for (const { name, count, at } of statement.names) {
            if (type.bits > 64 && type.kind !== 'bits')
              throw this.context.module.source.error(
                'semantic',
                `.${type.name} is no type of registers`,
                at,
              );
            if (statement.vector === 1) scope.declare(name, type, count);
            else
              for (const part of 'xyzw'.slice(0, statement.vector))
                scope.declare(name, type, count, `.${part}`);
          }
          break;
        }
        case 'variable':
          this.local(statement, scope);
          break;
        case 'instruction':
          this.instruction(statement, scope, returnTo);
          break;
      }
    }
  }

  protected local(variable: Variable, scope: Scope): void {
    const { size, align, aggregate } = variableLayout(variable);
    const { source } = this.context.module;
    let symbol = this.resolvedSymbols.get(variable);
    if (!symbol) {
      if (variable.space === 'shared')
        symbol = { kind: 'shared', variable: sharedVariable(variable) };
      else if (variable.space === 'local')
        symbol = { kind: 'frame', offset: this.frame(variable.name, size, align) };
      else if (variable.space === 'param') {
        symbol = aggregate
          ? { kind: 'frame', offset: this.frame(variable.name, size, align) }
          : {
              kind: 'paramRegister',
              register: this.newRegister(variable.name, scalarType(variable.type)),
            };
      } else if (variable.placedAs !== undefined) {
        symbol = this.context.symbols.get(variable.placedAs)!;
      } else {
        throw source.error(
          'unsupported',
          `.${variable.space} variables inside a function are not covered yet`,
          variable.at,
        );
      }
      // A shared variable of an inlined function is one variable, however often the function is
      // inlined.
      if (variable.space === 'shared') this.resolvedSymbols.set(variable, symbol);
    }
    scope.symbols.set(variable.name, symbol);
  }

  protected instruction(source: Instruction, scope: Scope, returnTo: Label | undefined): void {
    const { mnemonic, modifiers } = source;
    const predicate = this.predicate(source, scope);
    if (mnemonic === 'mov' && modifiers.some((word) => word === 'v2' || word === 'v4')) {
      this.moveVector(source, scope, predicate);
      return;
    }
    const { source: text, targetOptions } = this.context.module;
    const traits = this.traitsOf(mnemonic);
    const complaint = formComplaint(traits, mnemonic, modifiers, source.operands.length);
    if (complaint) {
      throw text.error(
        complaint.code,
        complaint.message,
        source.start,
        text.text.slice(source.start, source.end),
      );
    }
    if (targetOptions.has('map_f64_to_f32') && modifiers.includes('f64')) {
      throw text.error(
        'unsupported',
        'f64 under map_f64_to_f32 is f32 in half of its memory: not covered. Write .f32, or ' +
          '.target sm_13',
        source.start,
        text.text.slice(source.start, source.end),
      );
    }
    if (mnemonic === 'bra') {
      const [target, more] = source.operands;
      if (target?.kind !== 'name' || !isBare(target))
        throw this.fail(source, 'expected a label', target?.at ?? source.start);
      if (more) throw this.fail(source, "'bra' takes one operand", more.at);
      this.branch(source, this.label(scope, target.name, target.at), predicate);
      return;
    }
    if (mnemonic === 'ret' && returnTo) {
      this.branch(source, returnTo, predicate);
      return;
    }
    if (mnemonic === 'call') {
      this.call(source, scope, predicate);
      return;
    }
    const inst: Inst = {
      mnemonic,
      traits,
      modifiers,
      args: NO_ARGS,
      predicate,
      source,
      defs: NO_REGISTERS,
      uses: NO_REGISTERS,
      targets: NOWHERE,
      call: undefined,
    };
    if (mnemonic === 'brx') {
      const [index, list, more] = source.operands;
      const names = list?.kind === 'name' && isBare(list) ? scope.targetList(list.name) : undefined;
      if (!index || !names?.length || more)
        throw this.fail(source, 'expected a register and a list of branch targets', source.start);
      inst.args = [this.operand(index, scope, source)];
      inst.targets = names.map((name) => this.label(scope, name, source.start));
    } else {
      inst.args = this.operands(source, scope);
      const wrong =
        operandComplaint(
          traits,
          mnemonic,
          modifiers,
          inst.args,
          writesFirstOperand(traits, modifiers),
        ) ?? valueComplaint(mnemonic, modifiers, inst.args);
      if (wrong) throw this.fail(source, wrong.message, wrong.at ?? source.start);
    }
    if (this.halved) {
      this.halved = false;
      if (this.narrowed(inst)) return;
    }
    if (mnemonic === 'mov' && this.movedByHalves(inst)) return;
    if (this.context.unnamedShared && this.countedFromShared(inst)) return;
    if (traits.operands.movesStack) inst.args = [...inst.args, ...this.allocaStack(source)];
    if (usesCarry(traits, modifiers))
      inst.carry = this.carry ??= this.newRegister('(carry)', scalarType('b32'));
    assignRoles(inst);
    this.push(inst);
  }
}
