// Checks declarations: types in their spaces, initial values, parameters, directives of kernels and
// functions, and that each name is declared once. The parser accepts more than the language has;
// this step rejects the rest.

import { scalarType } from '../scalar-types.js';
import type { Initializer, PtxFunction, PtxModule, Statement, Variable } from '../syntax/ast.js';
import { variableLayout } from './data-layout.js';

/** PTX's fundamental types; all others are types of instructions only. */
const FUNDAMENTAL = new Set([
  'b8',
  'b16',
  'b32',
  'b64',
  'b128',
  'u8',
  'u16',
  'u32',
  'u64',
  's8',
  's16',
  's32',
  's64',
  'f16',
  'f16x2',
  'f32',
  'f64',
  'pred',
]);
const OPAQUE = new Set(['texref', 'samplerref', 'surfref']);
const LARGEST_VECTOR = 16;
const MOST_PARAMETER_BYTES = 32764;
const LARGEST_PARAMETER_ALIGN = 128;

/** The most numbers after a directive of a kernel, and whether zero is allowed. */
const KERNEL_DIRECTIVES: Readonly<Record<string, { most: number; positive?: boolean }>> = {
  maxntid: { most: 3, positive: true },
  reqntid: { most: 3, positive: true },
  minnctapersm: { most: 1 },
  maxnreg: { most: 1, positive: true },
  explicitcluster: { most: 0 },
  blocksareclusters: { most: 0 },
  reqnctapercluster: { most: 3 },
  maxclusterrank: { most: 1 },
};
const FUNCTION_DIRECTIVES: Readonly<Record<string, { most: number; positive?: boolean }>> = {
  noreturn: { most: 0 },
  abi_preserve: { most: 1 },
  abi_preserve_control: { most: 1 },
};
const CONFLICTS = [
  ['maxntid', 'reqntid'],
  ['reqnctapercluster', 'maxclusterrank'],
] as const;

/** Rejects what declarations may not contain. */
export function checkDeclarations(module: PtxModule): void {
  new DeclarationChecker(module).check();
}

/** The declared type of a function, without the names of its parameters. */
const prototypeOf = (fn: PtxFunction): string =>
  [fn.returns, fn.params]
    .map((list) =>
      list
        .map(
          ({ space, type, vector, dimensions, align }) =>
            `${space} ${type} ${vector} ${dimensions.join(',')} ${align ?? ''}`,
        )
        .join(';'),
    )
    .join('|');

class DeclarationChecker {
  private readonly module: PtxModule;

  constructor(module: PtxModule) {
    this.module = module;
  }

  check(): void {
    const functions = new Map<string, PtxFunction>();
    const variables = new Set<string>();
    for (const variable of this.module.variables) {
      this.checkVariable(variable);
      variables.add(variable.name);
    }
    this.checkBody(this.module.perThread);
    for (const fn of this.module.functions) {
      const { name, at, linkage } = fn;
      if (variables.has(name)) throw this.fail(`'${name}' is a variable and a function`, at);
      if (linkage.length > 1)
        throw this.fail(`'${name}' is .${linkage[0]!} or .${linkage[1]!}, not both`, at);
      if (linkage.includes('common')) throw this.fail(`'${name}': only variables are .common`, at);
      if (fn.body && linkage.includes('extern'))
        throw this.fail(`'${name}' is external and has no body here`, at);
      const known = functions.get(name);
      if (known && prototypeOf(known) !== prototypeOf(fn))
        throw this.fail(`'${name}' is declared with other parameters, too`, at);
      functions.set(name, fn);
      this.checkParameters(fn, fn.entry);
      this.checkDirectives(fn);
      if (fn.directives.has('noreturn') && fn.returns.length)
        throw this.fail(`'${name}' returns a value and is not .noreturn`, at);
      if (fn.body) this.checkBody(fn.body);
    }
  }

  private fail(message: string, at: number): Error {
    return this.module.source.error('semantic', message, at);
  }

  private checkType({
    type,
    vector,
    name,
    at,
  }: Pick<Variable, 'type' | 'vector' | 'name' | 'at'>): void {
    if (!FUNDAMENTAL.has(type) && !OPAQUE.has(type))
      throw this.fail(`.${type} is a type of instructions, not of '${name}'`, at);
    if (vector > 4 || (vector * scalarType(type).bits) / 8 > LARGEST_VECTOR)
      throw this.fail(`the vector '${name}' is larger than ${LARGEST_VECTOR} bytes`, at);
  }

  private checkVariable(variable: Variable): void {
    const { type, space, name, at, linkage, dimensions, initializer } = variable;
    this.checkType(variable);
    if (linkage.length > 1)
      throw this.fail(`'${name}' is .${linkage[0]!} or .${linkage[1]!}, not both`, at);
    const external = linkage.includes('extern');
    if (type === 'pred' && space !== 'reg')
      throw this.fail(`the predicate '${name}' must be a register`, at);
    if (linkage.includes('common') && space !== 'global')
      throw this.fail(`'${name}': .common variables are in .global`, at);
    if (OPAQUE.has(type) && space !== 'global')
      throw this.fail(`'${name}': .${type} variables are in .global`, at);
    if (initializer) {
      if (external) throw this.fail(`'${name}' is external and has no initial value here`, at);
      if (space !== 'global' && space !== 'const')
        throw this.fail(`variables in .${space} have no initial values`, at);
      if (type === 'f16' || type === 'f16x2')
        throw this.fail(`.${type} variables have no initial values`, at);
      this.checkInitialValue(
        variable,
        initializer,
        dimensions.length + (variable.vector > 1 ? 1 : 0),
      );
    }
    const empty =
      initializer === undefined || (initializer.kind === 'list' && !initializer.elements.length);
    if (!external && dimensions[0] === 0 && empty)
      throw this.fail(`the array '${name}' has no size`, at);
  }

  private checkInitialValue(variable: Variable, value: Initializer, depth: number): void {
    const { name, type } = variable;
    const { kind } = scalarType(type);
    switch (value.kind) {
      case 'list':
        if (!depth) throw this.fail(`'${name}' is no array: one value, not a list`, value.at);
        for (const part of value.elements) this.checkInitialValue(variable, part, depth - 1);
        return;
      case 'integer':
        if (kind === 'float')
          throw this.fail(`'${name}' is .${type}: an integer is not its initial value`, value.at);
        return;
      case 'float':
        if (kind !== 'float' && kind !== 'bits')
          throw this.fail(`'${name}' is .${type}: a float is not its initial value`, value.at);
        return;
      case 'symbol': {
        const wanted = value.mask === undefined ? ['u32', 'u64'] : ['u8', 'u32', 'u64'];
        if (!OPAQUE.has(type) && !wanted.includes(type))
          throw this.fail(`'${name}' is .${type}: addresses are of type .u64`, value.at);
        if (
          this.module.functions.some((fn) => fn.name === value.name) &&
          (value.generic || value.addend !== 0)
        ) {
          throw this.fail(
            `'${value.name}' is a function: nothing can be added to its address`,
            value.at,
          );
        }
      }
    }
  }

  private checkParameters(fn: Pick<PtxFunction, 'params' | 'returns'>, entry: boolean): void {
    if (fn.returns.length > 1 && fn.returns.some(({ space }) => space === 'param'))
      throw this.fail('several results must be registers', fn.returns[1]!.at);
    const names = new Set<string>();
    let end = 0;
    for (const list of [fn.returns, fn.params]) {
      for (const variable of list) {
        const { name, at, space, type, dimensions, pointer, vector } = variable;
        this.checkType(variable);
        if (name !== '_' && names.has(name))
          throw this.fail(`parameter '${name}' is declared twice`, at);
        names.add(name);
        if (entry && space === 'reg')
          throw this.fail(`'${name}': parameters of kernels are in .param`, at);
        if (!entry && pointer)
          throw this.fail(`'${name}': only parameters of kernels are .ptr`, at);
        if (OPAQUE.has(type) && !entry)
          throw this.fail(`'${name}': only kernels have parameters of type .${type}`, at);
        if (space === 'reg') {
          if (dimensions.length) throw this.fail(`the register '${name}' is no array`, at);
          continue;
        }
        if (type === 'pred' || type === 'f16x2' || vector > 1)
          throw this.fail(
            `the parameter '${name}' may not be ${vector > 1 ? `.v${vector} ` : ''}.${type}`,
            at,
          );
        if (dimensions.length > 1)
          throw this.fail(`the parameter '${name}' has more than one dimension`, at);
        if (dimensions[0] === 0 && (entry || list === fn.returns))
          throw this.fail(`the parameter '${name}' has no size`, at);
        if (!entry && (variable.align ?? 1) > LARGEST_PARAMETER_ALIGN)
          throw this.fail(
            `the parameter '${name}' is aligned to more than ${LARGEST_PARAMETER_ALIGN} bytes`,
            at,
          );
        const { size, align } = variableLayout(variable);
        end = Math.ceil(end / align) * align + size;
        if (entry && end > MOST_PARAMETER_BYTES)
          throw this.fail(
            `the kernel has more than ${MOST_PARAMETER_BYTES} bytes of parameters`,
            at,
          );
      }
    }
  }

  private checkDirectives({ entry, directives, name, at }: PtxFunction): void {
    const allowed = entry ? KERNEL_DIRECTIVES : FUNCTION_DIRECTIVES;
    for (const [directive, numbers] of directives) {
      const rule = Object.hasOwn(allowed, directive) ? allowed[directive] : undefined;
      if (!rule)
        throw this.fail(`.${directive} is no directive of ${entry ? 'kernels' : 'functions'}`, at);
      if (numbers.length > rule.most || (rule.most > 0 && !numbers.length)) {
        const taken = ['no numbers', 'one number'][rule.most] ?? `one to ${rule.most} numbers`;
        throw this.fail(`'${name}': .${directive} takes ${taken}`, at);
      }
      if (rule.positive && numbers.includes(0))
        throw this.fail(`'${name}': .${directive} takes numbers above zero`, at);
    }
    for (const [one, other] of CONFLICTS) {
      if (directives.has(one) && directives.has(other))
        throw this.fail(`'${name}' has .${one} or .${other}, not both`, at);
    }
    if (
      directives.has('blocksareclusters') &&
      !(directives.has('reqntid') && directives.has('reqnctapercluster'))
    ) {
      throw this.fail(`'${name}': .blocksareclusters needs .reqntid and .reqnctapercluster`, at);
    }
  }

  private checkBody(statements: readonly Statement[]): void {
    const registers = new Set<string>();
    const data = new Set<string>();
    for (let index = 0; index < statements.length; index++) {
      const statement = statements[index]!;
      if (statement.kind === 'block') this.checkBody(statement.statements);
      else if (statement.kind === 'variable') {
        this.checkVariable(statement);
        const { space, name, at, linkage } = statement;
        if (space === 'global' || space === 'const') {
          if (linkage.length)
            throw this.fail(`'${name}' is inside a function, where nothing is .${linkage[0]!}`, at);
          if (data.has(name)) throw this.fail(`variable '${name}' is defined twice`, at);
          data.add(name);
        }
        if (OPAQUE.has(statement.type) || statement.space === 'tex')
          throw this.fail(
            `'${statement.name}': textures are declared outside functions`,
            statement.at,
          );
      } else if (statement.kind === 'registers') {
        const { type, vector } = statement;
        for (const { name, count, at } of statement.names) {
          this.checkType({ type, vector, name, at });
          if (type === 'pred' && vector > 1)
            throw this.fail(`'${name}': there are no vectors of predicates`, at);
          if (name === 'WARP_SZ') throw this.fail(`'${name}' is a constant`, at);
          const family = count === undefined ? name : `${name}<>`;
          if (registers.has(family)) throw this.fail(`register '${name}' is declared twice`, at);
          registers.add(family);
        }
      } else if (statement.kind === 'prototype') {
        const { prototype, at } = statement;
        this.checkParameters(prototype, false);
        if (prototype.noreturn && prototype.returns.length)
          throw this.fail('what returns a value is not .noreturn', at);
      }
    }
  }
}
